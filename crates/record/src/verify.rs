//! Reads a record back and recomputes its digests.

use std::cell::Cell;
use std::fs::{self, File};
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::Once;

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::FileMetaData;
use parquet::file::reader::{ChunkReader, FileReader, RowGroupReader, SerializedFileReader};
use parquet::schema::parser::parse_message_type;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::canonical::canonical_json;
use crate::columns::{BATCH_ROWS, Columns, Version};
use crate::error::RecordError;
use crate::events::{self, EVENTS_SCHEMA, EventColumns};
use crate::file::{EVENTS_FILE, PACKETS_FILE, TRIAL_FILE, digest_text, hash_text, keys};
use crate::rows::PacketRow;

/// The schema of `trial.json` that this version writes.
pub const TRIAL_SCHEMA: &str = "streamgauge.trial/2";

/// All that can be read, with which the digest begins.
const TRIAL_SCHEMAS: &[&str] = &["streamgauge.trial/1", TRIAL_SCHEMA];

/// The content of a file of a record, recomputed from its rows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Verified {
    /// Rows.
    pub rows: u64,
    /// Digest, as `"blake3:<hex>"`.
    pub digest: String,
}

/// The content of a record, recomputed. `None` for a file that is not kept.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct VerifiedTrial {
    /// `packets.parquet`.
    pub packets: Option<Verified>,
    /// `events.parquet`.
    pub events: Option<Verified>,
    /// The trial's digest.
    pub digest: String,
}

/// Returns the trial's digest, `"blake3:<hex>"`: of its normalised scenario and the digests of packets and events, each
/// "" if not kept. Fails with the place where `scenario_json` is no JSON.
pub fn trial_digest(
    scenario_json: &str,
    packets_digest: &str,
    events_digest: &str,
) -> Result<String, RecordError> {
    digest_of(TRIAL_SCHEMA, scenario_json, packets_digest, events_digest)
}

fn digest_of(schema: &str, scenario_json: &str, packets: &str, events: &str) -> Result<String, RecordError> {
    let scenario = canonical_json(scenario_json).map_err(|what| RecordError::invalid("scenario", what))?;
    let mut hasher = blake3::Hasher::new();
    for text in [schema, &scenario, packets, events] {
        hash_text(&mut hasher, text);
    }
    Ok(digest_text(&hasher))
}

/// Recomputes every digest of the record in `directory` and compares it with those in the files and in `trial.json`.
/// The error names the first file that differs and how.
pub fn verify(directory: &Path) -> Result<VerifiedTrial, RecordError> {
    #[derive(Deserialize)]
    struct Trial {
        scenario: Value,
        kept: Vec<String>,
        packets_digest: Option<String>,
        events_digest: Option<String>,
        digest: String,
    }
    let path = directory.join(TRIAL_FILE);
    let text = fs::read_to_string(&path).map_err(|e| opening(&path, e))?;
    let trial: Value = serde_json::from_str(&text).map_err(|e| RecordError::damaged(&path, e.to_string()))?;
    let schema = trial.get("schema").and_then(Value::as_str);
    let schema = check_schema(&path, schema, TRIAL_SCHEMAS)?;
    let trial: Trial =
        serde_json::from_value(trial).map_err(|e| RecordError::damaged(&path, e.to_string()))?;
    let check = |file: &str, said: &Option<String>, read: fn(&Path) -> Result<Verified, RecordError>| {
        if !trial.kept.iter().any(|kept| kept == file) {
            return Ok(None);
        }
        let path = directory.join(file);
        let found = read(&path)?;
        if said.as_ref() == Some(&found.digest) {
            return Ok(Some(found));
        }
        let said = said.as_deref().unwrap_or("nothing");
        Err(RecordError::damaged(&path, format!("its rows give {}, {TRIAL_FILE} has {said}", found.digest)))
    };
    let packets = check(PACKETS_FILE, &trial.packets_digest, verify_packets)?;
    let events = check(EVENTS_FILE, &trial.events_digest, verify_events)?;
    let said = |digest: &Option<String>| digest.clone().unwrap_or_default();
    let (of_packets, of_events) = (said(&trial.packets_digest), said(&trial.events_digest));
    let digest = digest_of(schema, &trial.scenario.to_string(), &of_packets, &of_events)?;
    if digest != trial.digest {
        let what = format!("scenario, packets and events give digest {digest}, it has {}", trial.digest);
        return Err(RecordError::damaged(&path, what));
    }
    Ok(VerifiedTrial { packets, events, digest })
}

/// The footer of a record's file, unchecked.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FileFooter {
    /// For example "streamgauge.packets/3".
    pub schema: String,
    /// The legend's JSON.
    pub legend: String,
    /// Rows, as Parquet counts them.
    pub rows: u64,
    /// Digest of the rows when they were written.
    pub digest: String,
}

/// Reads the footer of `packets.parquet` or `events.parquet`, of any schema version. An error if the file is cut short,
/// or if it holds another number of rows than were written.
pub fn footer(path: &Path) -> Result<FileFooter, RecordError> {
    let file = open(path)?;
    guarded(path, || {
        let reader = SerializedFileReader::new(file).map_err(|e| unreadable(path, e))?;
        let metadata = reader.metadata().file_metadata();
        let say = |key| {
            value_of(metadata, key)
                .ok_or_else(|| RecordError::damaged(path, format!("no {key} in its footer")))
        };
        let schema = say(keys::SCHEMA)?;
        let digest = say(keys::PACKETS_DIGEST).or_else(|_| say(keys::EVENTS_DIGEST))?;
        let (rows, said) = (metadata.num_rows(), say(keys::ROWS)?);
        if rows.to_string() != said {
            return Err(RecordError::damaged(path, format!("it holds {rows} rows, {said} were written")));
        }
        Ok(FileFooter {
            schema: schema.to_owned(),
            legend: say(keys::LEGEND)?.to_owned(),
            rows: rows.cast_unsigned(),
            digest: digest.to_owned(),
        })
    })
}

/// Recomputes the digest of a `packets.parquet` and compares it and the number of rows with its footer.
pub fn verify_packets(path: &Path) -> Result<Verified, RecordError> {
    verify_packets_in(open(path)?, path)
}

/// Verifies as [`verify_packets`], from anything that Parquet can be read from; `name` is the name in errors.
pub fn verify_packets_in<R: ChunkReader + 'static>(file: R, name: &Path) -> Result<Verified, RecordError> {
    guarded(name, || {
        let reader = SerializedFileReader::new(file).map_err(|e| unreadable(name, e))?;
        let known = Version::ALL.map(|version| (version.schema(), version.message()));
        let (which, footer) = Footer::read(name, reader.metadata().file_metadata(), &known)?;
        let version = Version::ALL[which];
        let mut hasher = blake3::Hasher::new();
        hash_text(&mut hasher, version.schema());
        hash_text(&mut hasher, footer.legend);
        let mut batch = Columns::new();
        let mut rows = 0;
        for i in 0..reader.num_row_groups() {
            let group = reader.get_row_group(i).map_err(|e| unreadable(name, e))?;
            read_batch(version, group.as_ref(), &mut batch).map_err(|e| unreadable(name, e))?;
            batch.digest(version, &mut hasher);
            rows += batch.rows() as u64;
        }
        footer.compare(name, keys::PACKETS_DIGEST, Verified { rows, digest: digest_text(&hasher) })
    })
}

/// Gives every row of a `packets.parquet` to `visit`, in the file's order. Version 1 of the schema has not all that a row
/// is made of and is an error.
pub fn read_packets(path: &Path, mut visit: impl FnMut(&PacketRow)) -> Result<(), RecordError> {
    let file = open(path)?;
    guarded(path, || {
        let reader = SerializedFileReader::new(file).map_err(|e| unreadable(path, e))?;
        let complete = [Version::Two, Version::Three];
        let known = complete.map(|version| (version.schema(), version.message()));
        let (which, _) = Footer::read(path, reader.metadata().file_metadata(), &known)?;
        let mut batch = Columns::new();
        for i in 0..reader.num_row_groups() {
            let group = reader.get_row_group(i).map_err(|e| unreadable(path, e))?;
            read_batch(complete[which], group.as_ref(), &mut batch).map_err(|e| unreadable(path, e))?;
            (0..batch.rows()).for_each(|row| visit(&batch.row(row)));
        }
        Ok(())
    })
}

/// Recomputes the digest of an `events.parquet` and compares it and the number of rows with its footer.
pub fn verify_events(path: &Path) -> Result<Verified, RecordError> {
    verify_events_in(open(path)?, path)
}

/// Verifies as [`verify_events`], from anything that Parquet can be read from; `name` is the name in errors.
pub fn verify_events_in<R: ChunkReader + 'static>(file: R, name: &Path) -> Result<Verified, RecordError> {
    guarded(name, || {
        let reader = SerializedFileReader::new(file).map_err(|e| unreadable(name, e))?;
        let known = [(EVENTS_SCHEMA, events::MESSAGE)];
        let (_, footer) = Footer::read(name, reader.metadata().file_metadata(), &known)?;
        let mut columns = EventColumns::with_capacity(0);
        for i in 0..reader.num_row_groups() {
            let group = reader.get_row_group(i).map_err(|e| unreadable(name, e))?;
            read_events(group.as_ref(), &mut columns).map_err(|e| unreadable(name, e))?;
        }
        let found = Verified { rows: columns.time.len() as u64, digest: columns.digest() };
        footer.compare(name, keys::EVENTS_DIGEST, found)
    })
}

pub(crate) fn open(path: &Path) -> Result<File, RecordError> {
    File::open(path).map_err(|e| opening(path, e))
}

fn opening(path: &Path, error: io::Error) -> RecordError {
    match error.kind() {
        io::ErrorKind::NotFound => RecordError::Missing { path: path.to_owned() },
        _ => RecordError::io(path, "opening", error),
    }
}

pub(crate) fn unreadable(path: &Path, error: ParquetError) -> RecordError {
    RecordError::damaged(path, format!("not readable as Parquet: {error}"))
}

/// Returns the one of `known` that was found; of these the last is the newest.
pub(crate) fn check_schema(
    path: &Path,
    found: Option<&str>,
    known: &[&'static str],
) -> Result<&'static str, RecordError> {
    known.iter().copied().find(|&known| found == Some(known)).ok_or_else(|| RecordError::Version {
        path: path.to_owned(),
        found: found.unwrap_or_default().to_owned(),
        known: known.last().copied().unwrap_or_default(),
    })
}

thread_local! {
    /// This thread is inside [`guarded`].
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Guards against the Parquet reader's assertions, which damaged bytes can reach; to the caller they are damage too,
/// and nothing to be printed as a fault of the program. Panics elsewhere are reported as before.
pub(crate) fn guarded<T>(
    path: &Path,
    read: impl FnOnce() -> Result<T, RecordError>,
) -> Result<T, RecordError> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                report(info);
            }
        }));
    });
    GUARDED.set(true);
    let result = panic::catch_unwind(AssertUnwindSafe(read));
    GUARDED.set(false);
    result.unwrap_or_else(|_| Err(RecordError::damaged(path, "the Parquet reader gave up on it")))
}

/// Our keys in a file's footer.
pub(crate) struct Footer<'a> {
    legend: &'a str,
    metadata: &'a FileMetaData,
}

impl<'a> Footer<'a> {
    pub fn read(
        path: &Path,
        metadata: &'a FileMetaData,
        known: &[(&'static str, &str)],
    ) -> Result<(usize, Self), RecordError> {
        let schemas: Vec<_> = known.iter().map(|known| known.0).collect();
        let schema = check_schema(path, value_of(metadata, keys::SCHEMA), &schemas)?;
        let which = schemas.iter().position(|&known| known == schema).unwrap_or(0);
        let expected = parse_message_type(known[which].1).map_err(|e| unreadable(path, e))?;
        if *metadata.schema() != expected {
            return Err(RecordError::damaged(path, format!("its columns are not those of {schema}")));
        }
        let legend = value_of(metadata, keys::LEGEND)
            .ok_or_else(|| RecordError::damaged(path, format!("no {} in its footer", keys::LEGEND)))?;
        Ok((which, Footer { legend, metadata }))
    }

    fn compare(&self, path: &Path, digest_key: &str, found: Verified) -> Result<Verified, RecordError> {
        for (key, found) in [(keys::ROWS, found.rows.to_string()), (digest_key, found.digest.clone())] {
            let said = value_of(self.metadata, key).unwrap_or("nothing");
            if said != found {
                let what = format!("its rows give {key} {found}, its footer has {said}");
                return Err(RecordError::damaged(path, what));
            }
        }
        Ok(found)
    }
}

pub(crate) fn value_of<'a>(metadata: &'a FileMetaData, key: &str) -> Option<&'a str> {
    metadata.key_value_metadata()?.iter().find(|kv| kv.key == key)?.value.as_deref()
}

/// One column of a row group: its values, and for a nullable one a level a row.
pub(crate) struct Column<T> {
    pub values: Vec<T>,
    pub levels: Vec<i16>,
}

pub(crate) fn read_column<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    rows: usize,
    nullable: bool,
) -> ParquetResult<Column<T::T>> {
    // A damaged file may declare more rows than it has bytes for.
    let room = rows.min(1 << 20);
    let mut values = Vec::with_capacity(room);
    let mut levels = Vec::with_capacity(if nullable { room } else { 0 });
    let mut read = 0;
    while read < rows {
        let levels = nullable.then_some(&mut levels);
        let (records, _, _) = reader.read_records(rows - read, levels, None, &mut values)?;
        if records == 0 {
            return Err(ParquetError::EOF(format!("{read} of {rows} values of a column")));
        }
        read += records;
    }
    Ok(Column { values, levels })
}

/// Reads columns in order.
pub(crate) struct Columnwise<'a> {
    group: &'a dyn RowGroupReader,
    rows: usize,
    next: usize,
}

impl<'a> Columnwise<'a> {
    pub fn new(group: &'a dyn RowGroupReader) -> ParquetResult<Self> {
        Ok(Columnwise { group, rows: checked_rows(group)?, next: 0 })
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn reader(&mut self) -> ParquetResult<ColumnReader> {
        self.next += 1;
        self.group.get_column_reader(self.next - 1)
    }

    fn narrow<T: TryFrom<u32> + Copy>(&mut self, to: &mut [T]) -> ParquetResult<()> {
        self.narrow_as::<T, T>(to)
    }

    /// Reads as [`Columnwise::narrow`], for values that are no wider than `N`.
    fn narrow_as<N: TryFrom<u32>, T: From<N>>(&mut self, to: &mut [T]) -> ParquetResult<()> {
        let column = self.narrow_column(false)?;
        for (to, value) in to.iter_mut().zip(column.values) {
            *to = narrowed::<N>(value)?.into();
        }
        Ok(())
    }

    pub fn narrow_column(&mut self, nullable: bool) -> ParquetResult<Column<i32>> {
        match self.reader()? {
            ColumnReader::Int32ColumnReader(r) => read_column(r, self.rows, nullable),
            _ => Err(ParquetError::General("a column that is not INT32".into())),
        }
    }

    pub fn wide(&mut self, nullable: bool) -> ParquetResult<Column<i64>> {
        match self.reader()? {
            ColumnReader::Int64ColumnReader(r) => read_column(r, self.rows, nullable),
            _ => Err(ParquetError::General("a column that is not INT64".into())),
        }
    }

    pub fn double(&mut self, nullable: bool) -> ParquetResult<Column<f64>> {
        match self.reader()? {
            ColumnReader::DoubleColumnReader(r) => read_column(r, self.rows, nullable),
            _ => Err(ParquetError::General("a column that is not DOUBLE".into())),
        }
    }

    pub fn text(&mut self, nullable: bool) -> ParquetResult<Column<String>> {
        let column = match self.reader()? {
            ColumnReader::ByteArrayColumnReader(r) => read_column(r, self.rows, nullable)?,
            _ => return Err(ParquetError::General("a column that is not BYTE_ARRAY".into())),
        };
        let text = |bytes: ByteArray| bytes.as_utf8().map(str::to_owned);
        let values = column.values.into_iter().map(text).collect::<ParquetResult<_>>()?;
        Ok(Column { values, levels: column.levels })
    }
}

/// An upper bound of the rows in a row group; a damaged footer must not make us allocate for more.
const MOST_ROWS: usize = 1 << 28;

pub(crate) fn checked_rows(group: &dyn RowGroupReader) -> ParquetResult<usize> {
    usize::try_from(group.metadata().num_rows())
        .ok()
        .filter(|&rows| rows <= MOST_ROWS)
        .ok_or_else(|| ParquetError::General("an impossible number of rows".into()))
}

pub(crate) fn narrowed<T: TryFrom<u32>>(value: i32) -> ParquetResult<T> {
    T::try_from(value.cast_unsigned()).map_err(|_| ParquetError::General(format!("{value} is out of range")))
}

/// Values and nulls of a nullable column: `put` gets every row's index and its value if there is one.
pub(crate) fn spread<T>(column: Column<T>, mut put: impl FnMut(usize, Option<T>)) -> ParquetResult<()> {
    let mut values = column.values.into_iter();
    for (i, level) in column.levels.into_iter().enumerate() {
        let value = match level {
            0 => None,
            _ => Some(values.next().ok_or_else(|| ParquetError::General("a value is missing".into()))?),
        };
        put(i, value);
    }
    Ok(())
}

fn read_batch(version: Version, group: &dyn RowGroupReader, batch: &mut Columns) -> ParquetResult<()> {
    let mut columns = Columnwise::new(group)?;
    let n = columns.rows;
    if n > BATCH_ROWS {
        return Err(ParquetError::General(format!("a row group of {n} rows, {BATCH_ROWS} expected")));
    }
    batch.set_rows(n);
    let number = |column: Column<i32>, to: &mut [u32], known: &mut [bool]| {
        spread(column, |i, value| {
            known[i] = value.is_some();
            to[i] = value.unwrap_or(0).cast_unsigned();
        })
    };
    let wide = |to: &mut [u64], column: Column<i64>| {
        to.iter_mut().zip(column.values).for_each(|(to, value)| *to = value.cast_unsigned());
    };
    wide(&mut batch.pkt[..n], columns.wide(false)?);
    columns.narrow(&mut batch.copy[..n])?;
    if version >= Version::Two {
        columns.narrow(&mut batch.fragment_offset[..n])?;
    }
    columns.narrow(&mut batch.flow[..n])?;
    columns.narrow(&mut batch.dir[..n])?;
    columns.narrow(&mut batch.stage[..n])?;
    columns.narrow(&mut batch.kind[..n])?;
    wide(&mut batch.t_in[..n], columns.wide(false)?);
    let mut time = |times: &mut [u64], known: &mut [bool]| {
        spread(columns.wide(true)?, |i, value| {
            known[i] = value.is_some();
            times[i] = value.unwrap_or(0).cast_unsigned();
        })
    };
    time(&mut batch.t_out[..], &mut batch.t_out_known[..])?;
    if version >= Version::Two {
        time(&mut batch.t_drop[..], &mut batch.t_drop_known[..])?;
    }
    columns.narrow(&mut batch.fate[..n])?;
    columns.narrow(&mut batch.cause[..n])?;
    columns.narrow(&mut batch.wire_bytes[..n])?;
    columns.narrow(&mut batch.ip_bytes[..n])?;
    columns.narrow(&mut batch.payload_bytes[..n])?;
    number(columns.narrow_column(true)?, &mut batch.seq[..], &mut batch.seq_known[..])?;
    match version {
        Version::One | Version::Two => columns.narrow_as::<u8, _>(&mut batch.flags[..n])?,
        Version::Three => columns.narrow(&mut batch.flags[..n])?,
    }
    columns.narrow(&mut batch.queue_bytes[..n])?;
    columns.narrow(&mut batch.queue_packets[..n])?;
    if version >= Version::Two {
        columns.narrow(&mut batch.hash[..n])?;
        columns.narrow(&mut batch.protocol[..n])?;
    }
    if version >= Version::Three {
        number(columns.narrow_column(true)?, &mut batch.connection[..], &mut batch.connection_known[..])?;
    }
    Ok(())
}

fn read_events(group: &dyn RowGroupReader, to: &mut EventColumns<String>) -> ParquetResult<()> {
    let mut columns = Columnwise::new(group)?;
    to.time.extend(columns.wide(false)?.values);
    spread(columns.text(true)?, |_, value| to.flow.push(value))?;
    to.name.extend(columns.text(false)?.values);
    spread(columns.double(true)?, |_, value| to.value.push(value))?;
    to.unit.extend(columns.text(false)?.values);
    to.reason.extend(columns.text(false)?.values);
    Ok(())
}
