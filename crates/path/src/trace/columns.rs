//! Columns beside time and rate: a one-way delay, and a loss. A fault of one counts only where the column is used.

use streamgauge_base::Duration;

use super::TraceError;
use super::lines::{number, quote, time};
use super::units::{Unit, share_unit, time_unit};

/// Words for a column of delays; the first ones must be among them.
const DELAY_NAMES: &[&str] =
    &["delay", "latency", "owd", "propagation", "one", "way", "oneway", "base", "least", "min"];
const DELAY_NEEDS: usize = 3;
/// Words for a column of losses.
const LOSS_NAMES: &[&str] = &["loss", "lost", "plr", "packet", "packets", "random"];
const LOSS_NEEDS: usize = 3;

/// Values from each time on, the first at 0; empty without such a column.
pub type TraceColumn<T> = Result<Vec<(Duration, T)>, TraceError>;

/// A column while it is read.
pub struct ColumnReading<T> {
    place: Option<(usize, f64)>,
    values: TraceColumn<T>,
    read: fn(usize, &str, f64) -> Result<T, TraceError>,
}

impl<T: Copy + PartialEq> ColumnReading<T> {
    fn of(
        line: usize,
        names: &[&str],
        unit: fn(&str) -> Unit,
        (usual, needed): (&[&str], &[&str]),
        read: fn(usize, &str, f64) -> Result<T, TraceError>,
    ) -> Self {
        let is_named = |rest: &[String]| {
            let has = |words: &[&str], word: &String| words.contains(&word.as_str());
            rest.iter().all(|word| has(usual, word)) && rest.iter().any(|word| has(needed, word))
        };
        let found = names.iter().enumerate().filter_map(|(index, name)| match unit(name) {
            Unit::Scale { scale, rest } if is_named(&rest) => Some((index, scale)),
            _ => None,
        });
        let found: Vec<(usize, f64)> = found.collect();
        let values = if found.len() > 1 {
            let list: Vec<String> = found.iter().map(|&(index, _)| quote(names[index])).collect();
            let what = format!("{} are alike; remove or rename all but the intended one", list.join(", "));
            Err(TraceError::at(line, what))
        } else {
            Ok(Vec::new())
        };
        ColumnReading { place: found.first().copied().filter(|_| found.len() == 1), values, read }
    }

    /// Takes the column's field of a row. A blank one keeps the value before it.
    pub fn take(&mut self, line: usize, fields: &[&str], at: Duration) {
        let (Some((index, scale)), Ok(values)) = (self.place, &mut self.values) else { return };
        let Some(&text) = fields.get(index) else { return };
        match (text, values.last()) {
            ("", Some(_)) => {}
            ("", None) => {
                let what = "the first row has no value in this column; give it one";
                self.values = Err(TraceError::at(line, what));
            }
            (text, last) => match (self.read)(line, text, scale) {
                Ok(value) if last.is_some_and(|last| last.1 == value) => {}
                Ok(value) => values.push((at, value)),
                Err(error) => self.values = Err(error),
            },
        }
    }

    /// Returns the values.
    pub fn finish(self) -> TraceColumn<T> {
        self.values
    }
}

/// The columns beside time and rate of a header.
pub struct Beside {
    pub delay: ColumnReading<Duration>,
    pub loss: ColumnReading<f64>,
}

impl Beside {
    /// Finds both in a header's names; none in an empty list.
    pub fn of(line: usize, names: &[&str]) -> Self {
        let delay =
            |line: usize, text: &str, scale: f64| time(line, number(line, text, "the delay", "20")?, scale);
        let loss = |line: usize, text: &str, scale: f64| {
            let share = number(line, text, "the loss", "0.5")? * scale;
            if share <= 1.0 {
                return Ok(share);
            }
            Err(TraceError::at(
                line,
                format!("a loss of {} is more than every packet; check the unit", quote(text)),
            ))
        };
        let delays = (DELAY_NAMES, &DELAY_NAMES[..DELAY_NEEDS]);
        Beside {
            delay: ColumnReading::of(line, names, time_unit, delays, delay),
            loss: ColumnReading::of(line, names, share_unit, (LOSS_NAMES, &LOSS_NAMES[..LOSS_NEEDS]), loss),
        }
    }
}
