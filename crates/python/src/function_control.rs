//! A congestion controller that is a class or a function of Python: `FILE.py:NAME`.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyType;
use streamgauge_base::{Duration, Instant};
use streamgauge_transport::tcp::congestion::{Ack, Controller, Factory, Start};

use crate::raised;
use crate::watch::{self, watched};

/// The largest accepted window, in bytes: the limit of window scaling (RFC 7323 section 2.3).
const MOST_WINDOW: f64 = (1u64 << 30) as f64;
/// The highest pacing rate, in bit/s.
const MOST_RATE: f64 = 1e12;

/// An event of a sender, as Python sees it. Where a field does not apply it is 0 or `None`.
#[pyclass(frozen, get_all, module = "streamgauge")]
#[derive(Default)]
struct Event {
    /// `ack`, `loss`, `timeout`, `idle`, `undo` or `open`.
    kind: &'static str,
    now_s: f64,
    /// Payload of a full segment, in bytes.
    mss: u32,
    /// The window in force, in bytes.
    window: f64,
    acked_bytes: u64,
    acked_segments: u32,
    marked_segments: u32,
    lost_bytes: u64,
    in_flight_bytes: u64,
    rtt_s: Option<f64>,
    srtt_s: f64,
    min_rtt_s: f64,
    rate_bps: Option<f64>,
    app_limited: bool,
    window_limited: bool,
    idle_s: f64,
}

/// The conditions that an object starts from.
#[pyclass(frozen, get_all, module = "streamgauge")]
struct Beginning {
    /// Payload of a full segment, in bytes.
    mss: u32,
    /// The initial window, in bytes.
    window: u64,
    /// For chance of one's own.
    seed: u64,
}

/// The file's class or function.
struct FunctionFactory {
    name: String,
    found: Py<PyAny>,
    is_class: bool,
    /// Python's number of the thread that runs the trial.
    thread: u64,
}

impl Debug for FunctionFactory {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Reads the file and finds the class or function. The file is run once for each flow and trial.
pub fn make(name: &str) -> Result<Arc<dyn Factory>, String> {
    let made = Python::attach(|py| {
        let (file, wanted) =
            name.rsplit_once(':').ok_or_else(|| PyValueError::new_err("no class is named"))?;
        let thread = watch::start(py)?;
        let found = watched(thread, || py.import("runpy")?.call_method1("run_path", (file,)))?;
        let found = found.get_item(wanted)?;
        let is_class = found.is_instance_of::<PyType>();
        if is_class {
            for method in ["on_ack", "on_loss", "on_timeout"] {
                if !found.hasattr(method)? {
                    return Err(PyTypeError::new_err(format!("the class has no method {method}")));
                }
            }
        } else if !found.is_callable() {
            return Err(PyTypeError::new_err("it cannot be called"));
        }
        Ok(FunctionFactory { name: name.to_owned(), found: found.unbind(), is_class, thread })
    });
    match made {
        Ok(factory) => Ok(Arc::new(factory)),
        Err(error) => Err(format!("{name}: {error}; give a class or a function of that file")),
    }
}

impl FunctionFactory {
    fn controller(&self, start: &Start, held: PyResult<Option<Py<PyAny>>>) -> FunctionControl {
        let window = u64::from(start.segments) * u64::from(start.mss);
        let mut control = FunctionControl {
            name: self.name.clone(),
            called: None,
            is_class: self.is_class,
            thread: self.thread,
            mss: start.mss,
            window: window as f64,
            pacing: None,
        };
        match held {
            Ok(held) => control.called = held,
            Err(error) => control.fail("when it was made", &error),
        }
        control
    }
}

impl Factory for FunctionFactory {
    fn name(&self) -> &str {
        &self.name
    }

    fn make(&self, start: &Start) -> Box<dyn Controller> {
        let mut control = Python::attach(|py| {
            if !self.is_class {
                return self.controller(start, Ok(Some(self.found.clone_ref(py))));
            }
            let beginning = Beginning {
                mss: start.mss,
                window: u64::from(start.segments) * u64::from(start.mss),
                seed: start.seed,
            };
            let object = watched(self.thread, || self.found.bind(py).call1((Py::new(py, beginning)?,)));
            self.controller(start, object.map(|object| Some(object.unbind())))
        });
        if control.is_class {
            control.settle("when it was made", |control, py| control.read(py));
        }
        Box::new(control)
    }

    /// Returns the usual initial window: no object is made.
    fn preview(&self, start: &Start) -> Box<dyn Controller> {
        Box::new(self.controller(start, Ok(None)))
    }
}

/// One sender's object, or the function.
struct FunctionControl {
    name: String,
    /// `None` once it has failed: the trial counts no more.
    called: Option<Py<PyAny>>,
    is_class: bool,
    thread: u64,
    mss: u32,
    window: f64,
    /// bit/s.
    pacing: Option<f64>,
}

impl Debug for FunctionControl {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.window)
    }
}

impl FunctionControl {
    fn fail(&mut self, when: &str, error: &PyErr) {
        let name = &self.name;
        raised::keep(|| format!("{name}: {when}: {error}"));
        self.called = None;
        self.window = f64::from(self.mss);
        self.pacing = None;
    }

    fn settle(&mut self, when: &str, what: impl FnOnce(&mut Self, Python<'_>) -> PyResult<()>) {
        if self.called.is_none() {
            return;
        }
        let done = Python::attach(|py| what(self, py));
        if let Err(error) = done {
            self.fail(when, &error);
        }
    }

    /// Takes the object's window and rate.
    fn read(&mut self, py: Python<'_>) -> PyResult<()> {
        let Some(object) = &self.called else { return Ok(()) };
        let object = object.bind(py);
        let pacing = match object.getattr_opt("pacing_bps")? {
            Some(rate) if !rate.is_none() => Some(rate),
            _ => None,
        };
        let (window, pacing) = taken(&object.getattr("window")?, pacing.as_ref())?;
        (self.window, self.pacing) = (window, pacing);
        Ok(())
    }

    fn tell(&mut self, event: Event) {
        let (kind, method) = (event.kind, method_of(event.kind));
        let now_s = event.now_s;
        self.settle(&format!("at {now_s:.6} s, {kind}"), |control, py| {
            let Some(called) = &control.called else { return Ok(()) };
            let called = called.bind(py);
            if control.is_class {
                let Some(method) = called.getattr_opt(method)? else { return Ok(()) };
                let event = Py::new(py, event)?;
                watched(control.thread, || method.call1((event,)))?;
                return control.read(py);
            }
            let event = Py::new(py, event)?;
            let answer = watched(control.thread, || called.call1((event,)))?;
            let (window, pacing) = match answer.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() {
                Ok((window, pacing)) => taken(&window, (!pacing.is_none()).then_some(&pacing))?,
                Err(_) => taken(&answer, None)?,
            };
            (control.window, control.pacing) = (window, pacing);
            Ok(())
        });
    }

    fn event(&self, kind: &'static str, now: Instant) -> Event {
        Event { kind, now_s: now.as_secs_f64(), mss: self.mss, window: self.window, ..Event::default() }
    }
}

fn method_of(kind: &str) -> &'static str {
    match kind {
        "ack" => "on_ack",
        "loss" => "on_loss",
        "timeout" => "on_timeout",
        "idle" => "on_idle",
        "undo" => "on_undo",
        _ => "on_open",
    }
}

/// Returns a window and a rate within bounds.
fn taken(window: &Bound<'_, PyAny>, pacing: Option<&Bound<'_, PyAny>>) -> PyResult<(f64, Option<f64>)> {
    let bytes: f64 = window.extract().map_err(|_| {
        PyTypeError::new_err(format!("its window is {}, not a number of bytes", shown(window)))
    })?;
    if !(1.0..=MOST_WINDOW).contains(&bytes) {
        return Err(PyValueError::new_err(format!("its window is {bytes} B; 1 B to 1 GiB is possible")));
    }
    let rate = pacing.map(|rate| {
        let bps: f64 = rate
            .extract()
            .map_err(|_| PyTypeError::new_err(format!("its pacing_bps is {}, not a number", shown(rate))))?;
        if (8.0..=MOST_RATE).contains(&bps) {
            Ok(bps)
        } else {
            Err(PyValueError::new_err(format!("its pacing_bps is {bps}; 8 bit/s to 1 Tbit/s is possible")))
        }
    });
    Ok((bytes, rate.transpose()?))
}

/// Returns a value in a message, of bounded length.
fn shown(value: &Bound<'_, PyAny>) -> String {
    let text = value.repr().map_or_else(|_| "unprintable".to_owned(), |text| text.to_string());
    if text.chars().count() > 60 { text.chars().take(57).chain("...".chars()).collect() } else { text }
}

impl Controller for FunctionControl {
    fn on_ack(&mut self, ack: &Ack) {
        let event = Event {
            acked_bytes: ack.delivered,
            acked_segments: ack.segments,
            marked_segments: ack.marked,
            lost_bytes: ack.lost,
            in_flight_bytes: ack.in_flight,
            rtt_s: ack.rtt.map(Duration::as_secs_f64),
            srtt_s: ack.srtt.as_secs_f64(),
            min_rtt_s: ack.min_rtt.as_secs_f64(),
            rate_bps: ack.rate.map(|rate| 8.0 * rate.delivered as f64 / rate.interval.as_secs_f64()),
            app_limited: ack.rate.is_some_and(|rate| rate.app_limited),
            window_limited: ack.window_limited,
            ..self.event("ack", ack.now)
        };
        self.tell(event);
    }
    fn on_congestion_event(&mut self, now: Instant) {
        self.tell(self.event("loss", now));
    }
    fn on_timeout(&mut self, now: Instant, _repeated: bool) {
        self.tell(self.event("timeout", now));
    }
    fn on_idle(&mut self, now: Instant, idle: Duration, _rto: Duration) {
        self.tell(Event { idle_s: idle.as_secs_f64(), ..self.event("idle", now) });
    }
    fn on_undo(&mut self, now: Instant) {
        self.tell(self.event("undo", now));
    }
    fn on_open(&mut self, now: Instant, rtt: Option<Duration>) {
        self.tell(Event { rtt_s: rtt.map(Duration::as_secs_f64), ..self.event("open", now) });
    }
    fn window(&self) -> u64 {
        self.window as u64
    }
    fn ssthresh(&self) -> u64 {
        u64::MAX
    }
    fn pacing_rate(&self) -> Option<u64> {
        self.pacing.map(|bps| (bps / 8.0) as u64)
    }
    fn samples_rates(&self) -> bool {
        true
    }
    fn governs_recovery(&self) -> bool {
        true
    }
}
