//! The parts of a record that measuring reads: some columns of `packets.parquet`, whole, and the events, by sender and
//! name.

use std::collections::HashMap;
use std::path::Path;

use parquet::column::reader::ColumnReader;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::FileMetaData;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};

use crate::columns::{Columns, Version};
use crate::error::RecordError;
use crate::events::{self, EVENTS_SCHEMA, EventColumns};
use crate::file::keys;
use crate::verify::{
    Column, Footer, checked_rows, guarded, narrowed, open, read_column, spread, unreadable, value_of,
};

/// In a column of times: there is none.
pub const NEVER: i64 = i64::MIN;
/// In [`PacketTable::seq`]: the packet shows none.
pub const HIDDEN: i64 = -1;

/// Columns of a `packets.parquet` with all its rows, codes as in the file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)]
pub struct PacketTable {
    pub pkt: Vec<u64>,
    pub copy: Vec<u8>,
    /// Empty in version 1 of the schema.
    pub fragment_offset: Vec<u16>,
    pub flow: Vec<u16>,
    pub dir: Vec<u8>,
    pub stage: Vec<u8>,
    pub kind: Vec<u8>,
    pub t_in: Vec<i64>,
    /// [`NEVER`] where it did not leave.
    pub t_out: Vec<i64>,
    /// [`NEVER`] where it was not dropped; empty in version 1 of the schema.
    pub t_drop: Vec<i64>,
    pub fate: Vec<u8>,
    pub wire_bytes: Vec<u32>,
    pub ip_bytes: Vec<u32>,
    pub payload_bytes: Vec<u32>,
    /// [`HIDDEN`] where there is none.
    pub seq: Vec<i64>,
    pub flags: Vec<u16>,
}

impl PacketTable {
    /// Bytes of one row in all columns together.
    pub const ROW_BYTES: u64 = (4 * size_of::<u64>() // pkt, t_in, t_out, t_drop
        + size_of::<i64>() // seq
        + 3 * size_of::<u32>()
        + 3 * size_of::<u16>()
        + 5 * size_of::<u8>()) as u64;
}

/// Reads the columns that measuring needs from a `packets.parquet` of any version.
pub fn read_packet_table(path: &Path) -> Result<PacketTable, RecordError> {
    let file = open(path)?;
    guarded(path, || {
        let reader = SerializedFileReader::new(file).map_err(|e| unreadable(path, e))?;
        let metadata = reader.metadata().file_metadata();
        let known = Version::ALL.map(|version| (version.schema(), version.message()));
        let (which, _) = Footer::read(path, metadata, &known)?;
        let mut table = PacketTable::default();
        for i in 0..reader.num_row_groups() {
            let group = reader.get_row_group(i).map_err(|e| unreadable(path, e))?;
            let columns = Named { group: group.as_ref(), metadata };
            table.add(&columns, Version::ALL[which]).map_err(|e| unreadable(path, e))?;
        }
        check_rows(path, metadata, table.pkt.len())?;
        Ok(table)
    })
}

impl PacketTable {
    /// Adds a batch of rows that was never in a file.
    pub(crate) fn take(&mut self, batch: &Columns) {
        let n = batch.rows();
        self.pkt.extend_from_slice(&batch.pkt[..n]);
        self.copy.extend_from_slice(&batch.copy[..n]);
        self.fragment_offset.extend_from_slice(&batch.fragment_offset[..n]);
        self.flow.extend_from_slice(&batch.flow[..n]);
        self.dir.extend_from_slice(&batch.dir[..n]);
        self.stage.extend_from_slice(&batch.stage[..n]);
        self.kind.extend_from_slice(&batch.kind[..n]);
        self.t_in.extend(batch.t_in[..n].iter().map(|t| t.cast_signed()));
        take_known(&mut self.t_out, &batch.t_out[..n], &batch.t_out_known[..n], NEVER, u64::cast_signed);
        take_known(&mut self.t_drop, &batch.t_drop[..n], &batch.t_drop_known[..n], NEVER, u64::cast_signed);
        self.fate.extend_from_slice(&batch.fate[..n]);
        self.wire_bytes.extend_from_slice(&batch.wire_bytes[..n]);
        self.ip_bytes.extend_from_slice(&batch.ip_bytes[..n]);
        self.payload_bytes.extend_from_slice(&batch.payload_bytes[..n]);
        take_known(&mut self.seq, &batch.seq[..n], &batch.seq_known[..n], HIDDEN, i64::from);
        self.flags.extend_from_slice(&batch.flags[..n]);
    }

    fn add(&mut self, columns: &Named<'_>, version: Version) -> ParquetResult<()> {
        self.pkt.extend(columns.wide("pkt", false)?.values.into_iter().map(i64::cast_unsigned));
        columns.narrow("copy", &mut self.copy)?;
        if version >= Version::Two {
            columns.narrow("fragment_offset", &mut self.fragment_offset)?;
            columns.time("t_drop", &mut self.t_drop)?;
        }
        columns.narrow("flow", &mut self.flow)?;
        columns.narrow("dir", &mut self.dir)?;
        columns.narrow("stage", &mut self.stage)?;
        columns.narrow("kind", &mut self.kind)?;
        add(columns.wide("t_in", false)?.values, &mut self.t_in);
        columns.time("t_out", &mut self.t_out)?;
        columns.narrow("fate", &mut self.fate)?;
        columns.narrow("wire_bytes", &mut self.wire_bytes)?;
        columns.narrow("ip_bytes", &mut self.ip_bytes)?;
        columns.narrow("payload_bytes", &mut self.payload_bytes)?;
        let seq = columns.int("seq", true)?;
        let values = seq.values.into_iter().map(|seq| i64::from(seq.cast_unsigned())).collect();
        fill(Column { values, levels: seq.levels }, HIDDEN, &mut self.seq)?;
        columns.narrow("flags", &mut self.flags)
    }
}

/// Adds a nullable column, `absent` where it is null.
fn take_known<T: Copy>(
    to: &mut Vec<i64>,
    values: &[T],
    known: &[bool],
    absent: i64,
    value: impl Fn(T) -> i64,
) {
    to.extend(values.iter().zip(known).map(|(&v, &known)| if known { value(v) } else { absent }));
}

/// The events of one flow under one name, by time.
#[derive(Clone, PartialEq, Debug)]
pub struct EventSeries {
    /// The event's name.
    pub name: String,
    /// Its flow; the path's own if `None`.
    pub flow: Option<String>,
    /// Nanoseconds since the trial's start, ascending.
    pub times: Vec<i64>,
    /// NaN where there is none. Milliseconds are converted to seconds.
    pub values: Vec<f64>,
    /// The values' units, in alphabetical order, `s` for milliseconds: one, unless the sender changed it, and none
    /// without values.
    pub units: Vec<String>,
}

/// Reads an `events.parquet` by flow and name, in the order in which these first occur. Reasons are left out.
pub fn read_event_series(path: &Path) -> Result<Vec<EventSeries>, RecordError> {
    let file = open(path)?;
    guarded(path, || {
        let reader = SerializedFileReader::new(file).map_err(|e| unreadable(path, e))?;
        let metadata = reader.metadata().file_metadata();
        Footer::read(path, metadata, &[(EVENTS_SCHEMA, events::MESSAGE)])?;
        let (mut found, mut places, mut rows) = (Vec::new(), Places::default(), 0);
        for i in 0..reader.num_row_groups() {
            let group = reader.get_row_group(i).map_err(|e| unreadable(path, e))?;
            let columns = Named { group: group.as_ref(), metadata };
            rows += add_event_series(&columns, &mut found, &mut places).map_err(|e| unreadable(path, e))?;
        }
        check_rows(path, metadata, rows)?;
        for told in &mut found {
            told.ascend();
            told.sort_units();
        }
        Ok(found)
    })
}

/// Places and lengths of a name and a flow's name.
type Address = (usize, usize, usize, usize);

/// The number of recent lookups with a cached place.
const RECENT: usize = 1024;

/// Returns the slot of an address: by the parts in which addresses differ most.
fn seat_of(name_at: usize, flow_at: usize) -> usize {
    let mixed = (name_at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ^ (flow_at as u64).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    (mixed >> 54) as usize
}

/// Places in the list by flow and name.
type Places = HashMap<(Vec<u8>, Option<Vec<u8>>), usize>;

fn add_event_series(
    columns: &Named<'_>,
    found: &mut Vec<EventSeries>,
    places: &mut Places,
) -> ParquetResult<usize> {
    let times = columns.wide("time", false)?.values;
    let names = columns.bytes("name", false)?.values;
    let mut flows = Vec::with_capacity(times.len());
    spread(columns.bytes("flow", true)?, |_, flow| flows.push(flow))?;
    let mut values = Vec::with_capacity(times.len());
    spread(columns.double("value", true)?, |_, value| values.push(value.unwrap_or(f64::NAN)))?;
    let units = columns.bytes("unit", false)?.values;
    // Texts of a dictionary lie in one place each, and comparing places is faster than comparing texts.
    let mut by_address: HashMap<Address, usize> = HashMap::new();
    let mut recent = [(Address::default(), usize::MAX); RECENT];
    let address = |text: &ByteArray| (text.data().as_ptr() as usize, text.len());
    for ((((time, name), flow), value), unit) in times.iter().zip(&names).zip(&flows).zip(&values).zip(&units)
    {
        let (name_at, name_bytes) = address(name);
        let (flow_at, flow_bytes) = flow.as_ref().map_or((0, 0), address);
        let key = (name_at, name_bytes, flow_at, flow_bytes);
        let seat = &mut recent[seat_of(name_at, flow_at)];
        let known = if seat.0 == key && seat.1 != usize::MAX { Some(&seat.1) } else { by_address.get(&key) };
        let place = match known {
            Some(&place) => place,
            None => {
                let said = (name.data().to_vec(), flow.as_ref().map(|flow| flow.data().to_vec()));
                let place = match places.get(&said) {
                    Some(&place) => place,
                    None => {
                        found.push(EventSeries {
                            name: name.as_utf8()?.to_owned(),
                            flow: flow.as_ref().map(|flow| flow.as_utf8().map(str::to_owned)).transpose()?,
                            times: Vec::new(),
                            values: Vec::new(),
                            units: Vec::new(),
                        });
                        places.insert(said, found.len() - 1);
                        found.len() - 1
                    }
                };
                by_address.insert(key, place);
                place
            }
        };
        *seat = (key, place);
        let told = &mut found[place];
        told.add(*time, *value, unit.as_utf8()?);
    }
    Ok(times.len())
}

/// Returns the same of events that were never in a file.
pub(crate) fn event_series_of(events: &EventColumns<&str>) -> Vec<EventSeries> {
    let mut found: Vec<EventSeries> = Vec::new();
    let mut places: HashMap<(&str, Option<&str>), usize> = HashMap::new();
    // Texts that lie in one place are one text: most are in few places.
    let mut recent = [(Address::default(), usize::MAX); RECENT];
    for row in 0..events.time.len() {
        let (name, flow) = (events.name[row], events.flow[row]);
        let (flow_at, flow_bytes) = flow.map_or((0, 0), |flow| (flow.as_ptr() as usize, flow.len()));
        let key = (name.as_ptr() as usize, name.len(), flow_at, flow_bytes);
        let seat = &mut recent[seat_of(key.0, flow_at)];
        if seat.0 != key || seat.1 == usize::MAX {
            let place = *places.entry((name, flow)).or_insert_with(|| {
                found.push(EventSeries {
                    name: name.to_owned(),
                    flow: flow.map(str::to_owned),
                    times: Vec::new(),
                    values: Vec::new(),
                    units: Vec::new(),
                });
                found.len() - 1
            });
            *seat = (key, place);
        }
        let value = events.value[row].unwrap_or(f64::NAN);
        found[seat.1].add(events.time[row], value, events.unit[row]);
    }
    found.iter_mut().for_each(EventSeries::sort_units);
    found
}

impl EventSeries {
    /// Adds an event, NaN being no value. Its unit stays as given until [`sort_units`](Self::sort_units).
    #[inline]
    fn add(&mut self, time: i64, value: f64, unit: &str) {
        self.times.push(time);
        self.values.push(if unit == "ms" { value / 1e3 } else { value });
        if !value.is_nan() && self.units.last().is_none_or(|last| last != unit) {
            self.add_unit(unit);
        }
    }

    #[cold]
    fn add_unit(&mut self, unit: &str) {
        if let Some(place) = self.units.iter().position(|one| one == unit) {
            let last = self.units.len() - 1;
            self.units.swap(place, last);
        } else {
            self.units.push(unit.to_owned());
        }
    }

    fn sort_units(&mut self) {
        self.units.sort_unstable();
        let mut told: Vec<String> = Vec::with_capacity(self.units.len());
        for unit in self.units.drain(..) {
            let unit = if unit == "ms" { "s".to_owned() } else { unit };
            if !told.contains(&unit) {
                told.push(unit);
            }
        }
        self.units = told;
    }

    /// Records of ours are in time's order; of others, those of one time stay as they are.
    fn ascend(&mut self) {
        if self.times.is_sorted() {
            return;
        }
        let mut both: Vec<_> = self.times.drain(..).zip(self.values.drain(..)).collect();
        both.sort_by_key(|&(time, _)| time);
        (self.times, self.values) = both.into_iter().unzip();
    }
}

fn check_rows(path: &Path, metadata: &FileMetaData, found: usize) -> Result<(), RecordError> {
    match value_of(metadata, keys::ROWS) {
        Some(said) if said == found.to_string() => Ok(()),
        said => {
            let said = said.unwrap_or("none");
            Err(RecordError::damaged(path, format!("it holds {found} rows, {said} were written")))
        }
    }
}

/// An unsigned number that a column of 32 bits holds.
trait Narrow: TryFrom<u32> {
    /// Returns the low bits of `value` as this type.
    fn low(value: i32) -> Self;
}
impl Narrow for u8 {
    fn low(value: i32) -> Self {
        value as u8
    }
}
impl Narrow for u16 {
    fn low(value: i32) -> Self {
        value as u16
    }
}
impl Narrow for u32 {
    fn low(value: i32) -> Self {
        value.cast_unsigned()
    }
}

/// Adds a nullable column, `absent` where it is null.
fn fill(column: Column<i64>, absent: i64, to: &mut Vec<i64>) -> ParquetResult<()> {
    if column.values.len() == column.levels.len() {
        add(column.values, to);
        return Ok(());
    }
    if column.levels.iter().filter(|&&level| level != 0).count() != column.values.len() {
        return Err(ParquetError::General("values and nulls do not make its rows".into()));
    }
    let begin = to.len();
    to.resize(begin + column.levels.len(), absent);
    let places = column.levels.iter().zip(&mut to[begin..]).filter(|(level, _)| **level != 0);
    places.zip(&column.values).for_each(|((_, to), value)| *to = *value);
    Ok(())
}

/// Adds values, without a copy of the first.
fn add<T>(mut values: Vec<T>, to: &mut Vec<T>) {
    if to.is_empty() {
        *to = values;
    } else {
        to.append(&mut values);
    }
}

/// Columns of a row group by name.
struct Named<'a> {
    group: &'a dyn RowGroupReader,
    metadata: &'a FileMetaData,
}

impl Named<'_> {
    fn reader(&self, name: &str) -> ParquetResult<(ColumnReader, usize)> {
        let columns = self.metadata.schema_descr().columns();
        let place = columns.iter().position(|column| column.name() == name);
        let place = place.ok_or_else(|| ParquetError::General(format!("no column {name}")))?;
        Ok((self.group.get_column_reader(place)?, checked_rows(self.group)?))
    }

    fn int(&self, name: &str, nullable: bool) -> ParquetResult<Column<i32>> {
        match self.reader(name)? {
            (ColumnReader::Int32ColumnReader(r), rows) => read_column(r, rows, nullable),
            _ => Err(ParquetError::General(format!("{name} is not INT32"))),
        }
    }

    fn narrow<T: Narrow>(&self, name: &str, to: &mut Vec<T>) -> ParquetResult<()> {
        let values = self.int(name, false)?.values;
        // For types with 8, 16 and 32 bits all values are in range if all their bits are.
        let bits = values.iter().fold(0, |bits, value| bits | value);
        narrowed::<T>(bits)?;
        to.extend(values.into_iter().map(T::low));
        Ok(())
    }

    fn wide(&self, name: &str, nullable: bool) -> ParquetResult<Column<i64>> {
        match self.reader(name)? {
            (ColumnReader::Int64ColumnReader(r), rows) => read_column(r, rows, nullable),
            _ => Err(ParquetError::General(format!("{name} is not INT64"))),
        }
    }

    fn time(&self, name: &str, to: &mut Vec<i64>) -> ParquetResult<()> {
        fill(self.wide(name, true)?, NEVER, to)
    }

    fn double(&self, name: &str, nullable: bool) -> ParquetResult<Column<f64>> {
        match self.reader(name)? {
            (ColumnReader::DoubleColumnReader(r), rows) => read_column(r, rows, nullable),
            _ => Err(ParquetError::General(format!("{name} is not DOUBLE"))),
        }
    }

    fn bytes(&self, name: &str, nullable: bool) -> ParquetResult<Column<ByteArray>> {
        match self.reader(name)? {
            (ColumnReader::ByteArrayColumnReader(r), rows) => read_column(r, rows, nullable),
            _ => Err(ParquetError::General(format!("{name} is not BYTE_ARRAY"))),
        }
    }
}
