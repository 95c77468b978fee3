//! A rule of adaptive bit rate that is a function of Python: `FILE.py:NAME`.

use std::cell::RefCell;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyType};
use serde_json::Value;
use streamgauge_systems::abr::{
    Decision, Fetched, Rule, Situation, Tuning, chosen_level, fetched_as_json, situation_as_json,
};

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

/// An object with these fields.
fn namespace<'py>(py: Python<'py>, fields: &Value) -> PyResult<Bound<'py, PyAny>> {
    let fields = py.import("json")?.call_method1("loads", (fields.to_string(),))?;
    py.import("types")?.getattr("SimpleNamespace")?.call((), Some(fields.cast::<PyDict>()?))
}

impl FunctionRule {
    fn ask(&self, now: &Situation<'_>) -> PyResult<(usize, String)> {
        Python::attach(|py| {
            let told = namespace(py, &situation_as_json(now))?;
            told.setattr("fetched", &self.fetched)?;
            let said = self.function.bind(py).call1((told,))?;
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
        let told =
            Python::attach(|py| self.fetched.bind(py).append(namespace(py, &fetched_as_json(fetched))?));
        told.expect("a namespace of numbers is made and kept");
    }
}
