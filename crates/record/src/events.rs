//! Writes `events.parquet`.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use streamgauge_base::Event;

use crate::error::RecordError;
use crate::file::{Partial, digest_text, hash_text, keys};
use crate::legend::Legend;

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

/// The columns of `events.parquet`. `flow` and `value` are null where there is none.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct EventColumns {
    /// Nanoseconds since the trial's start.
    pub time: Vec<i64>,
    pub flow: Vec<Option<String>>,
    pub name: Vec<String>,
    pub value: Vec<Option<f64>>,
    pub unit: Vec<String>,
    pub reason: Vec<String>,
}

impl EventColumns {
    /// Schema, number of rows, then each column: numbers little-endian, strings after their length, nullables
    /// after a byte that is 1 where there is a value.
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        hash_text(&mut hasher, EVENTS_SCHEMA);
        hasher.update(&(self.time.len() as u64).to_le_bytes());
        for time in &self.time {
            hasher.update(&time.to_le_bytes());
        }
        for flow in &self.flow {
            hasher.update(&[u8::from(flow.is_some())]);
            hash_text(&mut hasher, flow.as_deref().unwrap_or_default());
        }
        for name in &self.name {
            hash_text(&mut hasher, name);
        }
        for value in &self.value {
            hasher
                .update(&[u8::from(value.is_some())])
                .update(&value.unwrap_or_default().to_bits().to_le_bytes());
        }
        for text in self.unit.iter().chain(&self.reason) {
            hash_text(&mut hasher, text);
        }
        digest_text(&hasher)
    }

    fn write(&self, group: &mut SerializedRowGroupWriter<'_, impl Write + Send>) -> ParquetResult<()> {
        column::<Int64Type>(group, &self.time, None)?;
        let flows: Vec<ByteArray> = self.flow.iter().flatten().map(|s| s.as_str().into()).collect();
        column::<ByteArrayType>(group, &flows, Some(&levels(&self.flow)))?;
        column::<ByteArrayType>(group, &texts(&self.name), None)?;
        let values: Vec<f64> = self.value.iter().flatten().copied().collect();
        column::<DoubleType>(group, &values, Some(&levels(&self.value)))?;
        column::<ByteArrayType>(group, &texts(&self.unit), None)?;
        column::<ByteArrayType>(group, &texts(&self.reason), None)
    }
}

fn texts(column: &[String]) -> Vec<ByteArray> {
    column.iter().map(|s| s.as_str().into()).collect()
}

fn levels<T>(column: &[Option<T>]) -> Vec<i16> {
    column.iter().map(|v| i16::from(v.is_some())).collect()
}

fn column<T: DataType>(
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
pub fn write_events(path: &Path, events: &mut [Event], legend: &Legend) -> Result<String, RecordError> {
    events.sort_by_key(|event| event.at);
    let mut columns = EventColumns::default();
    for event in &*events {
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
        columns.flow.push(flow.map(str::to_owned));
        columns.name.push(event.name.clone().into_owned());
        columns.value.push(event.value);
        columns.unit.push(event.unit.clone().into_owned());
        columns.reason.push(event.reason.clone().into_owned());
    }
    let digest = columns.digest();
    let partial = Partial::new(path);
    let file = File::create(&partial.path).map_err(|e| RecordError::io(path, "creating", e))?;
    write_to(file, &columns, &digest, legend).map_err(|e| RecordError::writing(path, e))?;
    partial.rename()?;
    Ok(digest)
}

fn write_to(
    sink: impl Write + Send,
    columns: &EventColumns,
    digest: &str,
    legend: &Legend,
) -> ParquetResult<()> {
    let properties = WriterProperties::builder()
        .set_created_by("streamgauge".into())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_statistics_enabled(EnabledStatistics::None)
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
