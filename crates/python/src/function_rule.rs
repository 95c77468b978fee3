//! A rule of adaptive bit rate that is a function of Python: `FILE.py:NAME`.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyType};
use serde_json::Value;
use streamgauge_systems::abr::{
    Decision, Fetched, Rule, Situation, Tuning, chosen_level, fetched_as_json, situation_as_json,
};

use crate::raised;
use crate::watch::{self, watched};

/// How many functions are being called, and the standard output of before the first of them.
static CALLS: Mutex<(usize, Option<Py<PyAny>>)> = Mutex::new((0, None));

/// While one lives, Python's standard output is its standard error: standard output is for the answer of the command
/// that runs the trial. Several may live at a time, of several threads.
struct Aside;

impl Aside {
    fn begin(py: Python<'_>) -> PyResult<Self> {
        let sys = py.import("sys")?;
        let (out, error) = (sys.getattr("stdout")?, sys.getattr("stderr")?);
        let mut calls = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
        if calls.0 == 0 {
            sys.setattr("stdout", error)?;
            calls.1 = Some(out.unbind());
        }
        calls.0 += 1;
        Ok(Aside)
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        Python::attach(|py| {
            let before = {
                let mut calls = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
                calls.0 -= 1;
                if calls.0 == 0 { calls.1.take() } else { None }
            };
            if let (Some(before), Ok(sys)) = (before, py.import("sys")) {
                let _ = sys.setattr("stdout", before);
            }
        });
    }
}

/// A function, with all its inputs.
struct FunctionRule {
    name: String,
    /// `None` once it has failed: the trial counts no more.
    function: Option<Py<PyAny>>,
    fetched: Py<PyList>,
    thread: u64,
}

/// Makes the rule: the file is run anew for each session, and its state is of that session alone.
pub fn make(name: &str, _: &Tuning) -> Result<Box<dyn Rule>, String> {
    let rule = Python::attach(|py| {
        let (file, function) =
            name.rsplit_once(':').ok_or_else(|| PyValueError::new_err("no function is named"))?;
        let _aside = Aside::begin(py)?;
        let thread = watch::start(py)?;
        let found = watched(thread, || py.import("runpy")?.call_method1("run_path", (file,)))?;
        let found = found.get_item(function)?;
        // A class is instantiated for each session; the instance is called.
        let is_class = found.is_instance_of::<PyType>();
        let function = if is_class { watched(thread, || found.call0())? } else { found };
        if !function.is_callable() {
            return Err(PyTypeError::new_err("it cannot be called"));
        }
        let fetched = PyList::empty(py).unbind();
        Ok(FunctionRule { name: name.to_owned(), function: Some(function.unbind()), fetched, thread })
    });
    match rule {
        Ok(rule) => Ok(Box::new(rule)),
        Err(error) => Err(format!("{name}: {error}; give a function or a class of that file")),
    }
}

/// Returns an object with these fields.
fn namespace<'py>(py: Python<'py>, fields: &Value) -> PyResult<Bound<'py, PyAny>> {
    let fields = py.import("json")?.call_method1("loads", (fields.to_string(),))?;
    py.import("types")?.getattr("SimpleNamespace")?.call((), Some(fields.cast::<PyDict>()?))
}

impl FunctionRule {
    fn ask(&self, function: &Py<PyAny>, now: &Situation<'_>) -> PyResult<(usize, String)> {
        Python::attach(|py| {
            let told = namespace(py, &situation_as_json(now))?;
            told.setattr("fetched", &self.fetched)?;
            let _aside = Aside::begin(py)?;
            let said = watched(self.thread, || function.bind(py).call1((told,)))?;
            let (level, why) = match said.extract::<(i64, String)>() {
                Ok(both) => both,
                Err(_) => (said.extract::<i64>()?, "the function's choice".to_owned()),
            };
            let level = chosen_level(level, now).map_err(PyValueError::new_err)?;
            Ok((level, why))
        })
    }
}

impl Rule for FunctionRule {
    /// Returns the lowest level where the function raises; the trial fails by [`raised`].
    fn decide(&mut self, now: &Situation<'_>) -> Decision {
        let said = self.function.take().map(|function| (self.ask(&function, now), function));
        let (level, why) = match said {
            Some((Ok(said), function)) => {
                self.function = Some(function);
                said
            }
            Some((Err(error), _)) => {
                raised::keep(|| format!("{}: {error}", self.name));
                (0, "the function failed".into())
            }
            None => (0, "the function failed".into()),
        };
        Decision::at_once(level, None, why)
    }

    fn fetched(&mut self, fetched: &Fetched, _: &Situation<'_>) {
        let told =
            Python::attach(|py| self.fetched.bind(py).append(namespace(py, &fetched_as_json(fetched))?));
        told.expect("a namespace of numbers is made and kept");
    }
}
