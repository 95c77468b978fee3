//! Separated values: from each time on, that rate. A header names the columns and their units, `time_s,rate_mbps` or
//! `t (ms);throughput [kbit/s]`; a delay and a loss may stand beside them, other columns are passed over. Without a header there are two columns, s and bit/s.
//! Columns are separated by commas, semicolons or tabs. Times count from the first.

use streamgauge_base::{BitRate, Duration};

use super::columns::{Beside, TraceColumn};
use super::lines::{Lines, lasting, not_later, number, quote, rate, room, since, time};
use super::units::{Unit, rate_unit, time_unit};
use super::{Samples, TraceError};

/// Words for a column of times. A column without another word than its unit is one, too.
const TIME_NAMES: &[&str] = &[
    "time",
    "times",
    "timestamp",
    "timestamps",
    "t",
    "ts",
    "at",
    "since",
    "start",
    "from",
    "begin",
    "elapsed",
    "offset",
    "epoch",
    "unix",
    "relative",
    "rel",
    "seconds",
];

/// Words for a column of rates.
const RATE_NAMES: &[&str] = &[
    "rate",
    "rates",
    "bitrate",
    "bit",
    "datarate",
    "data",
    "bandwidth",
    "bw",
    "throughput",
    "tput",
    "thr",
    "goodput",
    "capacity",
    "cap",
    "speed",
    "link",
    "available",
    "avail",
    "downlink",
    "download",
    "down",
    "dl",
    "uplink",
    "upload",
    "up",
    "ul",
    "rx",
    "tx",
    "mean",
    "avg",
    "average",
    "measured",
];

/// Where the two columns are, and their units.
struct Layout {
    separator: char,
    columns: usize,
    time: (usize, f64),
    rate: (usize, f64),
}

/// Returns whether columns are separated by something that is no mere space.
pub fn separator(line: &str) -> Option<char> {
    // With semicolons or tabs between them, a comma may be a decimal point.
    [';', '\t', ','].into_iter().find(|separator| line.contains(*separator))
}

/// A table, read.
pub struct CsvTable {
    pub samples: Samples,
    pub duration: Duration,
    /// A header named the units.
    pub names_units: bool,
    pub delays: TraceColumn<Duration>,
    pub losses: TraceColumn<f64>,
}

/// Reads the table.
pub fn parse(mut lines: Lines<'_>) -> Result<CsvTable, TraceError> {
    let Some((line, text)) = lines.peek()? else { return Err(TraceError::empty()) };
    let separator = separator(text).unwrap_or(',');
    let is_header = has_header(text, separator);
    let (layout, mut beside) = if is_header {
        lines.next()?;
        let names: Vec<&str> = text.split(separator).map(unquoted).collect();
        (header(line, &names, separator)?, Beside::of(line, &names))
    } else {
        (Layout { separator, columns: 2, time: (0, 1e9), rate: (1, 1.0) }, Beside::of(line, &[]))
    };
    let mut rates: Vec<(Duration, BitRate)> = Vec::new();
    let mut first = None;
    while let Some((line, text)) = lines.next()? {
        room(line, rates.len())?;
        let fields: Vec<&str> = text.split(layout.separator).map(unquoted).collect();
        if fields.len() != layout.columns {
            let what = format!("{} has {} columns; expected {}", quote(text), fields.len(), layout.columns);
            return Err(TraceError::at(line, what));
        }
        for field in [fields[layout.time.0], fields[layout.rate.0]] {
            if field.contains(',') {
                let what = format!("{} has a decimal comma; write a point", quote(field));
                return Err(TraceError::at(line, what));
            }
        }
        let at = time(line, number(line, fields[layout.time.0], "the time", "0.5")?, layout.time.1)?;
        let first = *first.get_or_insert(at);
        if rates.last().is_some_and(|(last, _)| at <= first + *last) {
            return Err(not_later(line));
        }
        let value = number(line, fields[layout.rate.0], "the rate", "2500")?;
        let at = since(line, at, first)?;
        rates.push((at, rate(line, value, layout.rate.1)?));
        beside.delay.take(line, &fields, at);
        beside.loss.take(line, &fields, at);
    }
    let (samples, duration) = lasting(rates)?;
    let (delays, losses) = (beside.delay.finish(), beside.loss.finish());
    Ok(CsvTable { samples, duration, names_units: is_header, delays, losses })
}

fn unquoted(field: &str) -> &str {
    let field = field.trim();
    field.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')).unwrap_or(field).trim()
}

fn has_header(text: &str, separator: char) -> bool {
    let is_number = |field: &str| unquoted(field).replace(',', ".").parse::<f64>().is_ok();
    text.chars().any(char::is_alphabetic) && !text.split(separator).all(is_number)
}

/// A column with a unit of the wanted kind.
struct Column<'a> {
    index: usize,
    name: &'a str,
    scale: f64,
    /// Whether its other words are usual ones, or there are none.
    is_named: bool,
}

fn header(line: usize, names: &[&str], separator: char) -> Result<Layout, TraceError> {
    let time = find(line, names, "time", time_unit, TIME_NAMES, "time_s or time_ms")?;
    let example = "rate_bps, rate_kbps, rate_mbps or \"rate (kbyte/s)\"";
    let rate = find(line, names, "rate", rate_unit, RATE_NAMES, example)?;
    Ok(Layout { separator, columns: names.len(), time, rate })
}

/// Finds the one column that is of a time or a rate by its unit and by its other words.
fn find(
    line: usize,
    names: &[&str],
    what: &str,
    unit: fn(&str) -> Unit,
    usual: &[&str],
    example: &str,
) -> Result<(usize, f64), TraceError> {
    let refuse = |said: String| TraceError::at(line, said);
    let all = quote(&names.join(","));
    let mut columns = Vec::new();
    for (index, name) in names.iter().copied().enumerate() {
        match unit(name) {
            Unit::None => {}
            Unit::BitsOrBytes => {
                let said = format!(
                    "column {}: its unit may be bits or bytes; write kbit/s or kbyte/s, say",
                    quote(name)
                );
                return Err(refuse(said));
            }
            Unit::Scale { scale, rest } => {
                let is_named = rest.iter().all(|word| usual.contains(&word.as_str()));
                columns.push(Column { index, name, scale, is_named });
            }
        }
    }
    let named: Vec<&Column<'_>> = columns.iter().filter(|column| column.is_named).collect();
    let list =
        |columns: &[&Column<'_>]| columns.iter().map(|one| quote(one.name)).collect::<Vec<_>>().join(", ");
    match (named.as_slice(), columns.as_slice()) {
        ([one], _) => Ok((one.index, one.scale)),
        ([], []) => Err(refuse(format!(
            "{all}: no column's name has a unit of {what}; expected one such as {example}"
        ))),
        ([], several) => {
            let several: Vec<&Column<'_>> = several.iter().collect();
            let said = format!(
                "no column is called a {what}; rename the intended one ({}), such as {example}",
                list(&several)
            );
            Err(refuse(said))
        }
        (several, _) => {
            let said = format!(
                "{} may each be the {what}; remove or rename all but the intended one",
                list(several)
            );
            Err(refuse(said))
        }
    }
}
