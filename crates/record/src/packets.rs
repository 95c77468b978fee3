//! Writes `packets.parquet`.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Encoding, ZstdLevel};
use parquet::data_type::{Int32Type, Int64Type};
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnDescPtr;
use streamgauge_base::{Direction, Fate, Item, PacketInfo, StageId};
use streamgauge_plan::Legend;

use crate::balance::Balance;
use crate::columns::{BATCH_ROWS, Columns, MESSAGE, PACKETS_SCHEMA, Version};
use crate::error::RecordError;
use crate::file::{Partial, digest_text, hash_text, keys};
use crate::pages::{Value, chunk};

/// The content of a finished `packets.parquet`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PacketsSummary {
    /// Rows.
    pub rows: u64,
    /// Digest of schema, legend and rows, as `"blake3:<hex>"`. Encoding and compression do not enter it.
    pub digest: String,
    /// The account of every stage and flow.
    pub balance: Balance,
}

/// Writes rows to Parquet, a batch of 65,536 at a time.
///
/// The order of rows is the record's canonical order: the digest covers it. Rows are written to a sibling file, which
/// [`finish`](Self::finish) renames; a writer that is dropped leaves nothing behind. A full batch is encoded inside the
/// call that filled it, which needs some milliseconds: a thread with deadlines uses
/// [`PacketSender`](crate::PacketSender).
pub struct PacketWriter<W: Write + Send = File> {
    batch: Columns,
    encoder: Encoder<W>,
    balance: Balance,
}

impl PacketWriter<File> {
    /// Starts `path`, and replaces an existing file when it is finished.
    pub fn create(path: &Path, legend: &Legend) -> Result<Self, RecordError> {
        let encoder = Encoder::create(path, legend)?;
        Ok(PacketWriter { batch: Columns::new(), encoder, balance: Balance::new(legend) })
    }
}

impl<W: Write + Send> PacketWriter<W> {
    /// Writes to `sink`; `name` is the name in errors.
    pub fn new(sink: W, name: &Path, legend: &Legend, compression: Compression) -> Result<Self, RecordError> {
        let encoder = Encoder::new(sink, name, legend, compression)?;
        Ok(PacketWriter { batch: Columns::new(), encoder, balance: Balance::new(legend) })
    }

    /// Writes one row. An error is final: the file cannot be finished after it.
    #[inline]
    pub fn row(&mut self, fate: &Fate, info: &PacketInfo, direction: Direction) -> Result<(), RecordError> {
        if !self.balance.count(fate) {
            return Err(unknown_code(&self.encoder.name, fate));
        }
        self.batch.push(fate, info, direction);
        if self.batch.is_full() {
            self.encoder.write(&self.batch)?;
            self.batch.clear();
        }
        Ok(())
    }

    /// Counts that `stage` has made `made` out of `from`; see [`FateSink::made`](streamgauge_base::FateSink::made). A
    /// stage or flow that the legend has not is an error of the row that follows.
    #[inline]
    pub fn made(&mut self, stage: StageId, from: &Item, made: &Item) {
        self.balance.made(stage, from, made);
    }

    /// Returns the account so far.
    pub fn balance(&self) -> &Balance {
        &self.balance
    }

    /// Writes the rest and the footer, and gives the file its name.
    pub fn finish(mut self) -> Result<PacketsSummary, RecordError> {
        if self.batch.rows() > 0 {
            self.encoder.write(&self.batch)?;
        }
        let (rows, digest) = self.encoder.finish()?;
        Ok(PacketsSummary { rows, digest, balance: self.balance })
    }
}

/// Turns batches into row groups.
pub(crate) struct Encoder<W: Write + Send> {
    name: PathBuf,
    writer: SerializedFileWriter<W>,
    columns: Vec<ColumnDescPtr>,
    compression: Compression,
    hasher: blake3::Hasher,
    rows: u64,
    scratch: Scratch,
    partial: Option<Partial>,
}

/// Buffers that live as long as the writer.
#[derive(Default)]
struct Scratch {
    narrow: Vec<i32>,
    wide: Vec<i64>,
    levels: Vec<i16>,
}

/// Returns the digest of packets before their first row.
pub(crate) fn digest_begun(legend_json: &str) -> blake3::Hasher {
    let mut hasher = blake3::Hasher::new();
    hash_text(&mut hasher, PACKETS_SCHEMA);
    hash_text(&mut hasher, legend_json);
    hasher
}

#[cold]
pub(crate) fn unknown_code(file: &Path, fate: &Fate) -> RecordError {
    let what = format!("the legend has no flow {} or no stage {}", fate.item.flow.0, fate.stage.0);
    RecordError::invalid(file, what)
}

impl Encoder<File> {
    pub fn create(path: &Path, legend: &Legend) -> Result<Self, RecordError> {
        let partial = Partial::new(path);
        let file = File::create(&partial.path).map_err(|e| RecordError::io(path, "creating", e))?;
        Ok(Encoder { partial: Some(partial), ..Encoder::new(file, path, legend, Compression::None)? })
    }
}

impl<W: Write + Send> Encoder<W> {
    fn new(sink: W, name: &Path, legend: &Legend, compression: Compression) -> Result<Self, RecordError> {
        let schema = parse_message_type(MESSAGE).map_err(|e| RecordError::writing(name, e))?;
        let mut writer = properties(compression)
            .and_then(|properties| SerializedFileWriter::new(sink, Arc::new(schema), Arc::new(properties)))
            .map_err(|e| RecordError::writing(name, e))?;
        let legend = legend.to_json();
        let hasher = digest_begun(&legend);
        writer.append_key_value_metadata(KeyValue::new(keys::SCHEMA.into(), PACKETS_SCHEMA.to_owned()));
        writer.append_key_value_metadata(KeyValue::new(keys::LEGEND.into(), legend));
        Ok(Encoder {
            name: name.to_owned(),
            columns: writer.schema_descr().columns().to_vec(),
            writer,
            compression,
            hasher,
            rows: 0,
            scratch: Scratch::default(),
            partial: None,
        })
    }

    #[cold]
    pub fn write(&mut self, batch: &Columns) -> Result<(), RecordError> {
        batch.digest(Version::NEWEST, &mut self.hasher);
        self.rows += batch.rows() as u64;
        self.row_group(batch).map_err(|e| RecordError::writing(&self.name, e))
    }

    fn row_group(&mut self, batch: &Columns) -> ParquetResult<()> {
        let mut group = self.writer.next_row_group()?;
        let packed = self.compression == Compression::None;
        let columns = self.columns.iter();
        let mut put = Put { group: &mut group, columns, packed, scratch: &mut self.scratch };
        let n = batch.rows();
        put.wide(&batch.pkt[..n], None)?;
        put.narrow(&batch.copy[..n], None)?;
        put.narrow(&batch.fragment_offset[..n], None)?;
        put.narrow(&batch.flow[..n], None)?;
        put.narrow(&batch.dir[..n], None)?;
        put.narrow(&batch.stage[..n], None)?;
        put.narrow(&batch.kind[..n], None)?;
        put.wide(&batch.t_in[..n], None)?;
        put.wide(&batch.t_out[..n], Some(&batch.t_out_known[..n]))?;
        put.wide(&batch.t_drop[..n], Some(&batch.t_drop_known[..n]))?;
        put.narrow(&batch.fate[..n], None)?;
        put.narrow(&batch.cause[..n], None)?;
        put.narrow(&batch.wire_bytes[..n], None)?;
        put.narrow(&batch.ip_bytes[..n], None)?;
        put.narrow(&batch.payload_bytes[..n], None)?;
        put.narrow(&batch.seq[..n], Some(&batch.seq_known[..n]))?;
        put.narrow(&batch.flags[..n], None)?;
        put.narrow(&batch.queue_bytes[..n], None)?;
        put.narrow(&batch.queue_packets[..n], None)?;
        put.narrow(&batch.hash[..n], None)?;
        put.narrow(&batch.protocol[..n], None)?;
        put.narrow(&batch.connection[..n], Some(&batch.connection_known[..n]))?;
        group.close()?;
        Ok(())
    }

    /// Rows and digest.
    pub fn finish(mut self) -> Result<(u64, String), RecordError> {
        let digest = digest_text(&self.hasher);
        self.writer.append_key_value_metadata(KeyValue::new(keys::ROWS.into(), self.rows.to_string()));
        self.writer.append_key_value_metadata(KeyValue::new(keys::PACKETS_DIGEST.into(), digest.clone()));
        self.writer.finish().map_err(|e| RecordError::writing(&self.name, e))?;
        self.writer.flush().map_err(|e| RecordError::io(&self.name, "writing", e))?;
        if let Some(partial) = self.partial {
            partial.rename()?;
        }
        Ok((self.rows, digest))
    }
}

/// Columns into one row group, in order.
struct Put<'a, 'b, W: Write + Send> {
    group: &'a mut SerializedRowGroupWriter<'b, W>,
    /// The columns still to be written.
    columns: std::slice::Iter<'a, ColumnDescPtr>,
    /// By our own pages, which are not compressed.
    packed: bool,
    scratch: &'a mut Scratch,
}

impl<W: Write + Send> Put<'_, '_, W> {
    fn narrow<T: Value<Word = i32>>(&mut self, values: &[T], known: Option<&[bool]>) -> ParquetResult<()> {
        if self.packed {
            return self.pack(values, known);
        }
        let Scratch { narrow, levels, .. } = &mut *self.scratch;
        gather(values, known, narrow, levels);
        let mut column = self.group.next_column()?.expect("the schema has this column");
        column.typed::<Int32Type>().write_batch(narrow, known.map(|_| levels.as_slice()), None)?;
        column.close()
    }

    fn wide(&mut self, values: &[u64], known: Option<&[bool]>) -> ParquetResult<()> {
        if self.packed {
            return self.pack(values, known);
        }
        let Scratch { wide, levels, .. } = &mut *self.scratch;
        gather(values, known, wide, levels);
        let mut column = self.group.next_column()?.expect("the schema has this column");
        column.typed::<Int64Type>().write_batch(wide, known.map(|_| levels.as_slice()), None)?;
        column.close()
    }

    fn pack<T: Value>(&mut self, values: &[T], known: Option<&[bool]>) -> ParquetResult<()> {
        let column = self.columns.next().expect("the schema has this column");
        let (bytes, closed) = chunk(column, values, known)?;
        self.group.append_column(&bytes, closed)
    }
}

/// Gathers Parquet's form of a column: the values that there are, and for a nullable one a definition level a row.
fn gather<T: Value>(values: &[T], known: Option<&[bool]>, to: &mut Vec<T::Word>, levels: &mut Vec<i16>) {
    to.clear();
    let Some(known) = known else {
        to.extend(values.iter().map(|&v| v.word()));
        return;
    };
    levels.clear();
    levels.extend(known.iter().map(|&k| i16::from(k)));
    to.extend(values.iter().zip(known).filter(|&(_, &k)| k).map(|(&v, _)| v.word()));
}

/// Whether the pages of `packets.parquet` are compressed. The digest is the same either way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Compression {
    /// Bit-packed only: about 20 bytes a row, and the least CPU.
    #[default]
    None,
    /// zstd level 1 on top: about half the size for half as much CPU again.
    Zstd,
}

/// Returns how columns are stored, chosen by measurement: 1 Mi rows of 2 and of 200 bulk TCP flows (`benches/rows.rs`),
/// CPU per row with everything included, on one core of an AMD EPYC with AVX-512, and bytes per row in the file.
///
/// | encoding of every column      | ns  | bytes |
/// |-------------------------------|-----|-------|
/// | PLAIN                         |  48 |  80   |
/// | **DELTA_BINARY_PACKED**       |  82 |  20   |
/// | RLE_DICTIONARY                | 208 |  31   |
/// | DELTA_BINARY_PACKED + zstd 1  | 124 |  10   |
/// | PLAIN + zstd 1                | 170 |  13   |
///
/// Measured with the crate's own encoder. Uncompressed columns are packed by [`chunk`] instead, with which the 2.6 rows
/// of a packet need 1,730 instructions where they needed 4,580 (`docs/performance.md`); the files of two trials are 0.2
/// % shorter and 1.2 % longer.
///
/// The digest needs 8 of the 82 ns, and gathering the row 8. Dictionaries for the three sizes would save 4 bytes for
/// some 12 ns, zstd for `t_out` alone 3 bytes for 13: not worth a rule for each column. Statistics would let a reader
/// skip row groups, but readers of one trial read all of it. One page per column and row group.
fn properties(compression: Compression) -> ParquetResult<WriterProperties> {
    let codec = match compression {
        Compression::None => parquet::basic::Compression::UNCOMPRESSED,
        Compression::Zstd => parquet::basic::Compression::ZSTD(ZstdLevel::try_new(1)?),
    };
    Ok(WriterProperties::builder()
        .set_created_by("streamgauge".into())
        .set_encoding(Encoding::DELTA_BINARY_PACKED)
        .set_dictionary_enabled(false)
        .set_compression(codec)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_data_page_row_count_limit(BATCH_ROWS)
        .set_write_batch_size(BATCH_ROWS)
        .build())
}
