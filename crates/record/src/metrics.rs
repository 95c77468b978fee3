//! `metrics.parquet`: the results of a trial's metrics, in long form.
//!
//! A row is one metric of one flow, one stage or the whole trial over the measurement window. Its lists have the
//! metric's components in each sample of the trial. Many metrics share a list (bits sent are a rate, a total and the
//! base of losses): here each list is held once, and a row refers to its own by number.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use parquet::column::reader::ColumnReader;
use parquet::data_type::{BoolType, ByteArrayType, DoubleType};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnDescPtr;

use crate::error::RecordError;
use crate::events::{column, levels, texts};
use crate::file::{Partial, keys};
use crate::pages::{Lists, NO_LIST};
use crate::verify::{Column, Columnwise, check_schema, guarded, open, spread, unreadable, value_of};

/// The schema that this version writes.
pub const METRICS_SCHEMA: &str = "streamgauge.metrics/7";
/// A trial's metrics, in its directory.
pub const METRICS_FILE: &str = "metrics.parquet";

const MESSAGE: &str = "
message metrics {
  required binary trial (STRING);
  required boolean valid;
  optional binary flow (STRING);
  optional binary stage (STRING);
  required binary metric (STRING);
  required double begin_s;
  required double end_s;
  optional double value;
  optional double min;
  optional double max;
  required binary unit (STRING);
  optional group numerator (LIST) { repeated group list { required double element; } }
  optional group denominator (LIST) { repeated group list { required double element; } }
  optional group low (LIST) { repeated group list { required double element; } }
  optional group high (LIST) { repeated group list { required double element; } }
}";

/// The columns that are lists, and the place of the first of them.
const LISTS: [&str; 4] = ["numerator", "denominator", "low", "high"];
const FIRST_LIST: usize = 11;

/// One metric: of a flow, of a stage, or of the whole trial where it has neither.
#[derive(Clone, PartialEq, Debug)]
pub struct MetricRow {
    /// The flow's name.
    pub flow: Option<String>,
    /// The stage's name.
    pub stage: Option<String>,
    /// The metric's name.
    pub metric: String,
    /// Over the window, in `unit`; `None` where there is nothing to measure.
    pub value: Option<f64>,
    /// Least in the window, likewise.
    pub min: Option<f64>,
    /// Most in the window, likewise.
    pub max: Option<f64>,
    /// The unit's name.
    pub unit: String,
    /// Which of the lists are its numerator, denominator, low and high.
    pub lists: [Option<usize>; 4],
}

/// A trial's metrics.
#[derive(Clone, PartialEq, Debug)]
pub struct Metrics<'a> {
    /// The trial, in a few words that no other trial of a campaign has.
    pub trial: String,
    /// Whether the trial counts.
    pub valid: bool,
    /// The window, s since the trial's start.
    pub window_s: (f64, f64),
    /// Data other than tables (JSON).
    pub about: String,
    /// The metrics.
    pub rows: Vec<MetricRow>,
    /// All lists, one after the other, each of `samples` values.
    pub lists: Cow<'a, [f64]>,
    /// Samples of the trial.
    pub samples: usize,
}

impl Metrics<'_> {
    fn list(&self, number: usize) -> Option<&[f64]> {
        self.lists.get(number * self.samples..(number + 1) * self.samples)
    }

    fn write(
        &self,
        group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
        columns: &[ColumnDescPtr],
    ) -> ParquetResult<()> {
        let rows = &self.rows;
        let flows: Vec<_> = rows.iter().map(|row| row.flow.as_deref()).collect();
        let stages: Vec<_> = rows.iter().map(|row| row.stage.as_deref()).collect();
        let (trial, metrics, units) = (
            vec![self.trial.as_str(); rows.len()],
            rows.iter().map(|row| row.metric.as_str()).collect::<Vec<_>>(),
            rows.iter().map(|row| row.unit.as_str()).collect::<Vec<_>>(),
        );
        let numbers = |of: fn(&MetricRow) -> Option<f64>| rows.iter().map(of).collect::<Vec<_>>();
        column::<ByteArrayType>(group, &texts(&trial), None)?;
        column::<BoolType>(group, &vec![self.valid; rows.len()], None)?;
        column::<ByteArrayType>(group, &texts(flows.iter().flatten()), Some(&levels(&flows)))?;
        column::<ByteArrayType>(group, &texts(stages.iter().flatten()), Some(&levels(&stages)))?;
        column::<ByteArrayType>(group, &texts(&metrics), None)?;
        column::<DoubleType>(group, &vec![self.window_s.0; rows.len()], None)?;
        column::<DoubleType>(group, &vec![self.window_s.1; rows.len()], None)?;
        for of in [|row: &MetricRow| row.value, |row: &MetricRow| row.min, |row: &MetricRow| row.max] {
            let given = numbers(of);
            let there: Vec<f64> = given.iter().flatten().copied().collect();
            column::<DoubleType>(group, &there, Some(&levels(&given)))?;
        }
        column::<ByteArrayType>(group, &texts(&units), None)?;
        let mut lists = Lists::new()?;
        for which in 0..LISTS.len() {
            // Checked before: a row has no list that is not there.
            let of_rows = rows.iter().map(|row| row.lists[which].and_then(|number| self.list(number)));
            let (chunk, closed) = lists.chunk(&columns[FIRST_LIST + which], &of_rows.collect::<Vec<_>>())?;
            group.append_column(&chunk, closed)?;
        }
        Ok(())
    }
}

/// Writes `metrics` to `path`, whole or not at all. A row that names a list which is not there is refused.
pub fn write_metrics(path: &Path, metrics: &Metrics<'_>) -> Result<(), RecordError> {
    for row in &metrics.rows {
        if row.lists.iter().flatten().any(|&number| metrics.list(number).is_none()) {
            let what = format!("metric {:?}: there are no {} values of it", row.metric, metrics.samples);
            return Err(RecordError::invalid(path, what));
        }
    }
    let partial = Partial::new(path);
    let file = File::create(&partial.path).map_err(|e| RecordError::io(path, "creating", e))?;
    write_to(file, metrics).map_err(|e| RecordError::writing(path, e))?;
    partial.rename()
}

/// Lists are compressed, which stores one that several metrics share about once; the rest is some hundred bytes a
/// column, for which setting a compressor up costs more than it saves.
fn write_to(sink: impl Write + Send, metrics: &Metrics<'_>) -> ParquetResult<()> {
    let mut properties = WriterProperties::builder()
        .set_created_by("streamgauge".into())
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true);
    for name in ["value", "min", "max"] {
        properties = properties.set_column_dictionary_enabled(name.into(), false);
    }
    let schema = Arc::new(parse_message_type(MESSAGE)?);
    let mut writer = SerializedFileWriter::new(sink, schema, Arc::new(properties.build()))?;
    for (key, value) in [
        (keys::SCHEMA, METRICS_SCHEMA.to_owned()),
        (keys::METRICS, metrics.about.clone()),
        (keys::ROWS, metrics.rows.len().to_string()),
        (keys::SAMPLES, metrics.samples.to_string()),
    ] {
        writer.append_key_value_metadata(KeyValue::new(key.into(), value));
    }
    if !metrics.rows.is_empty() {
        let columns = writer.schema_descr().columns().to_vec();
        let mut group = writer.next_row_group()?;
        metrics.write(&mut group, &columns)?;
        group.close()?;
    }
    writer.finish()?;
    writer.flush()?;
    Ok(())
}

/// Returns the data of a `metrics.parquet` other than tables, as [`Metrics::about`]: by its footer alone.
pub fn about_metrics(path: &Path) -> Result<String, RecordError> {
    let file = open(path)?;
    guarded(path, || {
        let reader = SerializedFileReader::new(file).map_err(|e| unreadable(path, e))?;
        let (about, _) = said(path, &reader)?;
        Ok(about)
    })
}

/// Reads a `metrics.parquet`. Lists with the same bits are one list.
pub fn read_metrics(path: &Path) -> Result<Metrics<'static>, RecordError> {
    let file = open(path)?;
    guarded(path, || {
        let reader = SerializedFileReader::new(file).map_err(|e| unreadable(path, e))?;
        let (about, samples) = said(path, &reader)?;
        let mut found = Metrics {
            trial: String::new(),
            valid: false,
            window_s: (0.0, 0.0),
            about,
            rows: Vec::new(),
            lists: Cow::default(),
            samples,
        };
        let mut known = Known::default();
        for i in 0..reader.num_row_groups() {
            let group = reader.get_row_group(i).map_err(|e| unreadable(path, e))?;
            read_group(group.as_ref(), &mut found, &mut known).map_err(|e| unreadable(path, e))?;
        }
        Ok(found)
    })
}

/// Returns the file's [`Metrics::about`] and its number of samples, if it is one that can be read.
fn said(path: &Path, reader: &SerializedFileReader<File>) -> Result<(String, usize), RecordError> {
    let metadata = reader.metadata().file_metadata();
    check_schema(path, value_of(metadata, keys::SCHEMA), &[METRICS_SCHEMA])?;
    let expected = parse_message_type(MESSAGE).map_err(|e| unreadable(path, e))?;
    if *metadata.schema() != expected {
        return Err(RecordError::damaged(path, format!("its columns are not those of {METRICS_SCHEMA}")));
    }
    let say = |key| {
        value_of(metadata, key).ok_or_else(|| RecordError::damaged(path, format!("no {key} in its footer")))
    };
    let (rows, said) = (metadata.num_rows(), say(keys::ROWS)?);
    if rows.to_string() != said {
        return Err(RecordError::damaged(path, format!("it holds {rows} rows, {said} were written")));
    }
    let samples = say(keys::SAMPLES)?;
    let samples = samples.parse().map_err(|_| RecordError::damaged(path, format!("{samples:?} samples")))?;
    Ok((say(keys::METRICS)?.to_owned(), samples))
}

/// Lists by their bits.
#[derive(Default)]
struct Known(HashMap<Vec<u64>, usize>);

impl Known {
    /// Returns the number of the list with these values, which is added to `lists` if it is not among them.
    fn number(&mut self, values: &[f64], lists: &mut Vec<f64>) -> usize {
        let next = self.0.len();
        *self.0.entry(values.iter().map(|value| value.to_bits()).collect()).or_insert_with(|| {
            lists.extend_from_slice(values);
            next
        })
    }
}

fn read_group(group: &dyn RowGroupReader, found: &mut Metrics<'_>, known: &mut Known) -> ParquetResult<()> {
    let mut columns = Columnwise::new(group)?;
    let rows = columns.rows();
    let first = found.rows.len();
    let blank = MetricRow {
        flow: None,
        stage: None,
        metric: String::new(),
        value: None,
        min: None,
        max: None,
        unit: String::new(),
        lists: [None; 4],
    };
    found.rows.resize(first + rows, blank);
    let to = &mut found.rows[first..];
    let short = || ParquetError::General("a column is short".into());
    found.trial = columns.text(false)?.values.pop().ok_or_else(short)?;
    found.valid = match columns.reader()? {
        ColumnReader::BoolColumnReader(r) => crate::verify::read_column(r, rows, false)?.values,
        _ => return Err(ParquetError::General("a column that is not BOOLEAN".into())),
    }
    .pop()
    .ok_or_else(short)?;
    spread(columns.text(true)?, |i, flow| to[i].flow = flow)?;
    spread(columns.text(true)?, |i, stage| to[i].stage = stage)?;
    to.iter_mut().zip(columns.text(false)?.values).for_each(|(row, metric)| row.metric = metric);
    for end in [&mut found.window_s.0, &mut found.window_s.1] {
        *end = columns.double(false)?.values.pop().ok_or_else(short)?;
    }
    spread(columns.double(true)?, |i, value| to[i].value = value)?;
    spread(columns.double(true)?, |i, value| to[i].min = value)?;
    spread(columns.double(true)?, |i, value| to[i].max = value)?;
    to.iter_mut().zip(columns.text(false)?.values).for_each(|(row, unit)| row.unit = unit);
    for which in 0..LISTS.len() {
        let column = match group.get_column_reader(FIRST_LIST + which)? {
            ColumnReader::DoubleColumnReader(mut r) => {
                let (mut values, mut levels, mut read) = (Vec::new(), Vec::new(), 0);
                let mut repeated = Vec::new();
                while read < rows {
                    let records =
                        r.read_records(rows - read, Some(&mut levels), Some(&mut repeated), &mut values)?;
                    if records.0 == 0 {
                        return Err(short());
                    }
                    read += records.0;
                }
                Column { values, levels }
            }
            _ => return Err(ParquetError::General("a column that is not DOUBLE".into())),
        };
        let (mut level, mut value) = (0, 0);
        for row in to.iter_mut() {
            match column.levels.get(level) {
                Some(&NO_LIST) => level += 1,
                Some(_) if found.samples == 0 => {
                    level += 1;
                    row.lists[which] = Some(known.number(&[], found.lists.to_mut()));
                }
                Some(_) => {
                    let values = column.values.get(value..value + found.samples).ok_or_else(short)?;
                    row.lists[which] = Some(known.number(values, found.lists.to_mut()));
                    level += found.samples;
                    value += found.samples;
                }
                None => return Err(short()),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn row(metric: &str, lists: [Option<usize>; 4]) -> MetricRow {
        MetricRow {
            flow: Some("film".into()),
            stage: None,
            metric: metric.into(),
            value: Some(0.25),
            min: None,
            max: Some(f64::INFINITY),
            unit: "bit/s".into(),
            lists,
        }
    }

    fn example() -> Metrics<'static> {
        Metrics {
            trial: "test/one sim seed 1".into(),
            valid: true,
            window_s: (0.0, 1.5),
            about: "{}".into(),
            rows: vec![
                row("throughput", [Some(0), Some(1), None, None]),
                MetricRow { flow: None, stage: Some("bottleneck".into()), ..row("queue", [None; 4]) },
                MetricRow { value: None, ..row("rtt", [Some(2), Some(1), Some(0), Some(2)]) },
            ],
            lists: vec![1.0, -0.0, f64::NAN, 0.5, 0.5, 0.5, 1e300, f64::INFINITY, 0.0].into(),
            samples: 3,
        }
    }

    /// A file that is removed after the test.
    struct File(std::path::PathBuf);

    impl File {
        fn new(name: &str) -> Self {
            File(std::env::temp_dir().join(format!("streamgauge-metrics-{}-{name}", std::process::id())))
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    /// Returns the values of each of a row's lists: in a file lists are numbered in another order.
    fn bits_of(of: &Metrics<'_>, row: &MetricRow) -> [Option<Vec<u64>>; 4] {
        row.lists.map(|list| Some(of.list(list?)?.iter().map(|v| v.to_bits()).collect()))
    }

    #[test]
    fn what_is_written_comes_back_bit_for_bit() {
        let (file, written) = (File::new("whole.parquet"), example());
        write_metrics(&file.0, &written).unwrap();
        let read = read_metrics(&file.0).unwrap();
        for (one, other) in read.rows.iter().zip(&written.rows) {
            assert_eq!(bits_of(&read, one), bits_of(&written, other));
            assert_eq!(
                MetricRow { lists: [None; 4], ..one.clone() },
                MetricRow { lists: [None; 4], ..other.clone() }
            );
        }
        assert_eq!((read.rows.len(), read.lists.len()), (3, written.lists.len()));
        assert_eq!((read.window_s, read.samples, read.valid), (written.window_s, 3, true));
        assert_eq!(about_metrics(&file.0).unwrap(), "{}");
    }

    proptest! {
        /// Rows with and without lists, lists shared and empty, and any bits in them.
        #[test]
        fn whatever_is_written_the_librarys_reader_reads(
            samples in 0usize..40,
            bits in proptest::collection::vec(any::<u64>(), 4 * 40),
            rows in proptest::collection::vec(proptest::array::uniform4(proptest::option::of(0usize..4)), 1..30),
        ) {
            let lists: Vec<f64> = bits[..4 * samples].iter().map(|&bits| f64::from_bits(bits)).collect();
            let rows = rows.into_iter().map(|lists| row("any", lists)).collect();
            let (file, written) = (File::new("any.parquet"), Metrics { rows, lists: lists.into(), samples, ..example() });
            write_metrics(&file.0, &written).unwrap();
            let read = read_metrics(&file.0).unwrap();
            prop_assert_eq!((read.samples, read.rows.len()), (samples, written.rows.len()));
            for (one, other) in read.rows.iter().zip(&written.rows) {
                prop_assert_eq!(bits_of(&read, one), bits_of(&written, other));
            }
        }
    }

    #[test]
    fn a_column_of_several_pages_comes_back() {
        let samples = 300_000;
        let lists: Vec<f64> = (0..5 * samples).map(|i| i as f64).collect();
        let rows =
            (0..5).map(|i| row("long", [Some(i), None, (i % 2 == 0).then_some(4 - i), None])).collect();
        let (file, written) =
            (File::new("long.parquet"), Metrics { rows, lists: lists.into(), samples, ..example() });
        write_metrics(&file.0, &written).unwrap();
        let read = read_metrics(&file.0).unwrap();
        assert_eq!((read.samples, read.rows.len()), (samples, 5));
        for (one, other) in read.rows.iter().zip(&written.rows) {
            assert_eq!(bits_of(&read, one), bits_of(&written, other));
        }
    }

    #[test]
    fn a_list_that_is_not_there_is_refused() {
        let mut metrics = example();
        metrics.rows[0].lists[3] = Some(3);
        let error = write_metrics(&File::new("refused.parquet").0, &metrics).unwrap_err();
        assert!(error.to_string().contains("throughput"), "{error}");
    }

    #[test]
    fn a_file_cut_short_is_damaged() {
        let file = File::new("short.parquet");
        write_metrics(&file.0, &example()).unwrap();
        let bytes = std::fs::read(&file.0).unwrap();
        std::fs::write(&file.0, &bytes[..bytes.len() - 9]).unwrap();
        assert!(matches!(read_metrics(&file.0), Err(RecordError::Damaged { .. })));
    }
}
