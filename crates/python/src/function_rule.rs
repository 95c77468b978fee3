//! A rule of adaptive bit rate that is a function of Python: `FILE.py:NAME`.

use std::cell::RefCell;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyType};
use streamgauge_base::Duration;
use streamgauge_systems::abr::{Decision, Fetched, Rule, Situation, Tuning};

thread_local! {
    /// What the function raised in the session that this thread runs, the first time.
    static RAISED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// What a function raised since this was last asked, in words, on this thread.
pub fn take_raised() -> Option<String> {
    RAISED.with(|raised| raised.borrow_mut().take())
}

/// A function, with all that it was told.
struct FunctionRule {
    name: String,
    function: Py<PyAny>,
    fetched: Py<PyList>,
}

/// Makes the rule: the file is run anew for each session, so that what it keeps is of that session alone.
pub fn make(name: &str, _: &Tuning) -> Result<Box<dyn Rule>, String> {
    let rule = Python::attach(|py| {
        let (file, function) =
            name.rsplit_once(':').ok_or_else(|| PyValueError::new_err("no function is named"))?;
        let found = py.import("runpy")?.call_method1("run_path", (file,))?;
        let found = found.get_item(function)?;
        // A class is made for each session; what it makes is called.
        let function = if found.is_instance_of::<PyType>() { found.call0()? } else { found };
        if !function.is_callable() {
            return Err(PyTypeError::new_err("it cannot be called"));
        }
        let fetched = PyList::empty(py).unbind();
        Ok(FunctionRule { name: name.to_owned(), function: function.unbind(), fetched })
    });
    match rule {
        Ok(rule) => Ok(Box::new(rule)),
        Err(error) => Err(format!("{name}: {error}; give a function or a class of that file")),
    }
}

impl FunctionRule {
    fn ask(&self, now: &Situation<'_>) -> PyResult<(usize, String)> {
        Python::attach(|py| {
            let ladder = now.ladder;
            let told = PyDict::new(py);
            told.set_item("now_s", now.now.as_secs_f64())?;
            told.set_item("segment", now.segment)?;
            told.set_item("segment_s", ladder.segment.as_secs_f64())?;
            told.set_item("rates_bps", ladder.rates.iter().map(|rate| rate.as_bps()).collect::<Vec<_>>())?;
            let sizes = (0..ladder.rates.len()).map(|level| ladder.bytes(level, now.segment));
            told.set_item("sizes_bytes", sizes.collect::<Vec<_>>())?;
            told.set_item("level", now.level)?;
            told.set_item("buffer_s", now.buffer.as_secs_f64())?;
            told.set_item("target_s", now.target.as_secs_f64())?;
            told.set_item("playing", now.playing)?;
            told.set_item("latency_s", now.live.map(|live| live.latency.as_secs_f64()))?;
            told.set_item("fetched", &self.fetched)?;
            let told = py.import("types")?.getattr("SimpleNamespace")?.call((), Some(&told))?;
            let said = self.function.bind(py).call1((told,))?;
            let (level, why) = match said.extract::<(i64, String)>() {
                Ok(both) => both,
                Err(_) => (said.extract::<i64>()?, "the function's choice".to_owned()),
            };
            let there = ladder.rates.len();
            let level = usize::try_from(level).ok().filter(|level| *level < there).ok_or_else(|| {
                PyValueError::new_err(format!("it chose level {level}, and there are 0 to {}", there - 1))
            })?;
            Ok((level, why))
        })
    }
}

impl Rule for FunctionRule {
    /// Where the function raises, the lowest level; who runs the session asks [`take_raised`].
    fn decide(&mut self, now: &Situation<'_>) -> Decision {
        let (level, why) = self.ask(now).unwrap_or_else(|error| {
            RAISED.with(|raised| {
                raised.borrow_mut().get_or_insert_with(|| format!("{}: {error}", self.name)).len()
            });
            (0, "the function failed".into())
        });
        Decision::at_once(level, None, why)
    }

    fn fetched(&mut self, fetched: &Fetched, _: &Situation<'_>) {
        let seconds = |time: Duration| time.as_secs_f64();
        let told = Python::attach(|py| {
            let told = PyDict::new(py);
            told.set_item("segment", fetched.segment)?;
            told.set_item("level", fetched.level)?;
            told.set_item("bytes", fetched.bytes)?;
            told.set_item("asked_s", seconds(fetched.asked))?;
            told.set_item("first_byte_s", seconds(fetched.first_byte))?;
            told.set_item("done_s", seconds(fetched.done))?;
            told.set_item("throughput_bps", fetched.throughput_bps())?;
            let told = py.import("types")?.getattr("SimpleNamespace")?.call((), Some(&told))?;
            self.fetched.bind(py).append(told)
        });
        told.expect("a namespace of numbers is made and kept");
    }
}
