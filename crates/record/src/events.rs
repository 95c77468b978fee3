//! Writes `events.parquet`.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use streamgauge_base::Event;
use streamgauge_plan::Legend;

use crate::error::RecordError;
use crate::file::{Partial, digest_text, hash_text, keys, put_text};

/// The schema that this version writes.
pub const EVENTS_SCHEMA: &str = "streamgauge.events/1";

pub(crate) const MESSAGE: &str = "
message events {
  required int64 time;
  optional binary flow (STRING);
  required binary name (STRING);
  optional double value;
  required binary unit (STRING);
  required binary reason (STRING);
}";

/// Approximate bytes of an event in the digest.
const EVENT_BYTES: usize = 96;

/// The columns of `events.parquet`, borrowed to write and owned when read. `flow` and `value` are null where there
/// is none.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct EventColumns<Text> {
    /// Nanoseconds since the trial's start.
    pub time: Vec<i64>,
    pub flow: Vec<Option<Text>>,
    pub name: Vec<Text>,
    pub value: Vec<Option<f64>>,
    pub unit: Vec<Text>,
    pub reason: Vec<Text>,
}

impl<Text: AsRef<str>> EventColumns<Text> {
    /// Makes columns without rows, with room for as many.
    pub fn with_capacity(rows: usize) -> Self {
        EventColumns {
            time: Vec::with_capacity(rows),
            flow: Vec::with_capacity(rows),
            name: Vec::with_capacity(rows),
            value: Vec::with_capacity(rows),
            unit: Vec::with_capacity(rows),
            reason: Vec::with_capacity(rows),
        }
    }

    /// Returns the digest of schema, number of rows, then each column: numbers little-endian, strings after their
    /// length, nullables after a byte that is 1 where there is a value.
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        hash_text(&mut hasher, EVENTS_SCHEMA);
        hasher.update(&(self.time.len() as u64).to_le_bytes());
        // The hash processes many bytes at once much faster than a few at a time.
        let mut bytes = Vec::with_capacity(EVENT_BYTES * self.time.len());
        bytes.extend(self.time.iter().flat_map(|time| time.to_le_bytes()));
        for flow in &self.flow {
            bytes.push(u8::from(flow.is_some()));
            put_text(&mut bytes, flow.as_ref().map_or("", AsRef::as_ref));
        }
        for name in &self.name {
            put_text(&mut bytes, name.as_ref());
        }
        for value in &self.value {
            bytes.push(u8::from(value.is_some()));
            bytes.extend(value.unwrap_or_default().to_bits().to_le_bytes());
        }
        for one in self.unit.iter().chain(&self.reason) {
            put_text(&mut bytes, one.as_ref());
        }
        hasher.update(&bytes);
        digest_text(&hasher)
    }

    fn write(&self, group: &mut SerializedRowGroupWriter<'_, impl Write + Send>) -> ParquetResult<()> {
        column::<Int64Type>(group, &self.time, None)?;
        column::<ByteArrayType>(group, &texts(self.flow.iter().flatten()), Some(&levels(&self.flow)))?;
        column::<ByteArrayType>(group, &texts(&self.name), None)?;
        let values: Vec<f64> = self.value.iter().flatten().copied().collect();
        column::<DoubleType>(group, &values, Some(&levels(&self.value)))?;
        column::<ByteArrayType>(group, &texts(&self.unit), None)?;
        column::<ByteArrayType>(group, &texts(&self.reason), None)
    }
}

/// Converts texts to Parquet's form: slices of one buffer, instead of a buffer for each.
pub(crate) fn texts<'a, Text: AsRef<str> + 'a>(
    column: impl IntoIterator<Item = &'a Text> + Clone,
) -> Vec<ByteArray> {
    let all: String = column.clone().into_iter().map(AsRef::as_ref).collect();
    let all = ByteArray::from(all.into_bytes());
    let mut end = 0;
    let slices = column.into_iter().map(|text| {
        let start = end;
        end += text.as_ref().len();
        all.slice(start, text.as_ref().len())
    });
    slices.collect()
}

pub(crate) fn levels<T>(column: &[Option<T>]) -> Vec<i16> {
    column.iter().map(|v| i16::from(v.is_some())).collect()
}

/// Writes the group's next column; for a nullable one `levels` marks the values that are there.
pub(crate) fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> ParquetResult<()> {
    let mut column = group.next_column()?.expect("the schema has this column");
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}

/// Writes a trial's events to `path`, sorted by time, those of one time in the order given, and returns their
/// digest. Values that are not finite are refused: no JSON can carry them.
pub fn write_events(path: &Path, events: &[Event], legend: &Legend) -> Result<String, RecordError> {
    let columns = event_columns(path, events, legend)?;
    let digest = columns.digest();
    let partial = Partial::new(path);
    let file = File::create(&partial.path).map_err(|e| RecordError::io(path, "creating", e))?;
    write_to(file, &columns, &digest, legend).map_err(|e| RecordError::writing(path, e))?;
    partial.rename()?;
    Ok(digest)
}

/// Returns a trial's events as [`write_events`] writes them; `path` is the name in errors.
pub(crate) fn event_columns<'a>(
    path: &Path,
    events: &'a [Event],
    legend: &'a Legend,
) -> Result<EventColumns<&'a str>, RecordError> {
    // An event has three texts: sorting where they are is cheaper than moving them.
    let mut order: Vec<&Event> = events.iter().collect();
    order.sort_by_key(|event| event.at);
    let mut columns = EventColumns::with_capacity(events.len());
    for event in order {
        let flow = match event.flow {
            None => None,
            Some(flow) => Some(legend.flow_name(flow).ok_or_else(|| {
                let what = format!("event {:?}: the legend has no flow {}", event.name, flow.0);
                RecordError::invalid(path, what)
            })?),
        };
        if event.value.is_some_and(|v| !v.is_finite()) {
            let what = format!("event {:?} at {:?}: its value is not a finite number", event.name, event.at);
            return Err(RecordError::invalid(path, what));
        }
        columns.time.push(event.at.as_nanos().cast_signed());
        columns.flow.push(flow);
        columns.name.push(event.name.as_ref());
        columns.value.push(event.value);
        columns.unit.push(event.unit.as_ref());
        columns.reason.push(event.reason.as_ref());
    }
    Ok(columns)
}

fn write_to(
    sink: impl Write + Send,
    columns: &EventColumns<&str>,
    digest: &str,
    legend: &Legend,
) -> ParquetResult<()> {
    let properties = WriterProperties::builder()
        .set_created_by("streamgauge".into())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_statistics_enabled(EnabledStatistics::None)
        // Times hardly ever repeat, so that a dictionary of them is work for nothing.
        .set_column_dictionary_enabled("time".into(), false)
        .set_column_encoding("time".into(), Encoding::DELTA_BINARY_PACKED)
        .set_offset_index_disabled(true)
        .build();
    let schema = Arc::new(parse_message_type(MESSAGE)?);
    let mut writer = SerializedFileWriter::new(sink, schema, Arc::new(properties))?;
    for (key, value) in [
        (keys::SCHEMA, EVENTS_SCHEMA.to_owned()),
        (keys::LEGEND, legend.to_json()),
        (keys::ROWS, columns.time.len().to_string()),
        (keys::EVENTS_DIGEST, digest.to_owned()),
    ] {
        writer.append_key_value_metadata(KeyValue::new(key.into(), value));
    }
    if !columns.time.is_empty() {
        let mut group = writer.next_row_group()?;
        columns.write(&mut group)?;
        group.close()?;
    }
    writer.finish()?;
    writer.flush()?;
    Ok(())
}
