//! The Python face of sim and record: texts and arrays in, texts and arrays out, nothing but conversion here.

#![forbid(unsafe_code)]

mod asf;
mod captures;
mod captures_packets;
mod captures_record;
mod function_control;
mod function_rule;
mod raised;
mod watch;

use std::path::PathBuf;

use numpy::{
    Element, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use serde::Deserialize;
use streamgauge_base::{Duration, Event, Instant};
use streamgauge_path::trace::Trace;
use streamgauge_plan::{AppSpec, Entry, Legend, MediaWay, TcpSpec, TrialPlan};
use streamgauge_record::{EVENTS_FILE, PACKETS_FILE, RecordError};
use streamgauge_transport::tcp::congestion::Marks;
use streamgauge_transport::tcp::{CongestionControl, Hystart, Mechanisms};

/// Returns an exception of `streamgauge.errors`.
fn exception(py: Python<'_>, class: &str, message: String) -> PyErr {
    match py.import("streamgauge.errors").and_then(|module| module.getattr(class)) {
        Ok(class) => match class.call1((message.clone(),)) {
            Ok(error) => PyErr::from_value(error),
            Err(error) => error,
        },
        Err(error) => error,
    }
}

/// Returns Python's exception for a failure to write: an `OSError` with its number, by which callers can
/// detect a full disk.
fn record_error(py: Python<'_>, error: RecordError) -> PyErr {
    if let RecordError::Io { path, source, .. } = &error
        && let Some(number) = source.raw_os_error()
    {
        let text = source.to_string();
        let text = text.split(" (os error").next().unwrap_or_default().to_owned();
        return PyOSError::new_err((number, text, path.display().to_string()));
    }
    exception(py, "RecordError", error.to_string())
}

fn to_json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|e| PyRuntimeError::new_err(e.to_string()))
}

/// Contents by their digests, for plans that name them: read once, shared by all flows and trials.
#[pyclass]
#[derive(Default)]
struct Contents(streamgauge_systems::media::Contents);

#[pymethods]
impl Contents {
    #[new]
    fn new() -> Self {
        Contents::default()
    }

    /// Adds the content (JSON, as it is stored) that `digest` names.
    fn add(&mut self, py: Python<'_>, digest: String, content_json: &str) -> PyResult<()> {
        let content = streamgauge_systems::media::Content::read(content_json)
            .map_err(|what| exception(py, "MediaError", format!("content {digest}: {what}")))?;
        self.0.add(digest, content);
        Ok(())
    }
}

/// Runs a trial in virtual time. `plan_json` is a trial's plan, which may name some of `contents`;
/// `packets.parquet` and `events.parquet` are written to `directory` according to its `keep`; with `capture`
/// both, and `capture.pcapng`. Returns the summary as JSON. Other threads run meanwhile.
#[pyfunction]
#[pyo3(signature = (plan_json, directory, contents=None, *, capture=false))]
fn simulate(
    py: Python<'_>,
    plan_json: &str,
    directory: PathBuf,
    contents: Option<PyRef<'_, Contents>>,
    capture: bool,
) -> PyResult<String> {
    let summary = ran(py, plan_json, contents, |plan, contents| {
        let run = if capture { streamgauge_sim::simulate_captured } else { streamgauge_sim::simulate_with };
        run(plan, contents, &directory)
    })?;
    to_json(&summary)
}

/// Runs `simulate` with all packets kept, at `pace` seconds of the trial a second, shown and steered over the
/// Unix stream socket `fd`, which it closes. Returns the summary and the list of changes, as JSON.
#[cfg(unix)]
#[pyfunction]
#[pyo3(signature = (plan_json, directory, fd, pace, contents=None))]
fn simulate_live(
    py: Python<'_>,
    plan_json: &str,
    directory: PathBuf,
    fd: i32,
    pace: f64,
    contents: Option<PyRef<'_, Contents>>,
) -> PyResult<(String, String)> {
    let socket = streamgauge_sim::inherited(fd)?;
    let (summary, steered) = ran(py, plan_json, contents, |plan, contents| {
        streamgauge_sim::simulate_live(plan, contents, &directory, socket, pace)
    })?;
    Ok((to_json(&summary)?, steered.to_string()))
}

/// Lets `how` run the plan with its contents.
fn ran<T: Send>(
    py: Python<'_>,
    plan_json: &str,
    contents: Option<PyRef<'_, Contents>>,
    how: impl Send
    + FnOnce(&TrialPlan, &streamgauge_systems::media::Contents) -> Result<T, streamgauge_sim::SimError>,
) -> PyResult<T> {
    let contents = contents.map(|given| given.0.clone()).unwrap_or_default();
    let plan: TrialPlan = serde_json::from_str(plan_json)
        .map_err(|e| exception(py, "ScenarioError", format!("the trial's plan does not read: {e}")))?;
    raised::take();
    let (ran, raised) = py.detach(|| (how(&plan, &contents), raised::take()));
    if let Some(what) = raised {
        return Err(exception(py, "ScenarioError", format!("{what}; nothing of this trial counts")));
    }
    ran.map_err(|error| match error {
        streamgauge_sim::SimError::Record(error) => record_error(py, error),
        error => exception(py, "ScenarioError", error.to_string()),
    })
}

/// Runs `simulate` as when it keeps packets, to the same summary, but writes nothing: also returns the data
/// that `packet_columns` and `told` would read from the files.
#[pyfunction]
#[pyo3(signature = (plan_json, contents=None))]
fn simulate_in_memory<'py>(
    py: Python<'py>,
    plan_json: &str,
    contents: Option<PyRef<'_, Contents>>,
) -> PyResult<(String, Vec<PacketColumn<'py>>, Vec<EventColumns<'py>>)> {
    let (summary, found) = ran(py, plan_json, contents, streamgauge_sim::simulate_in_memory)?;
    Ok((to_json(&summary)?, columns_of(py, found.packets), said(py, found.told)))
}

/// Returns the meaning of the codes in a record of this plan, as its files carry it (JSON).
#[pyfunction]
fn legend(py: Python<'_>, plan_json: &str) -> PyResult<String> {
    let plan: TrialPlan = serde_json::from_str(plan_json)
        .map_err(|e| exception(py, "ScenarioError", format!("the trial's plan does not read: {e}")))?;
    Ok(Legend::of(&plan).to_json())
}

/// Returns the addresses of the flow with that index: its server's, or its source's at the router, and its
/// player's. They are swapped if its media flows up.
#[pyfunction]
#[pyo3(signature = (index, at_router, up=false))]
fn addresses(index: u16, at_router: bool, up: bool) -> (String, String) {
    let entry = if at_router { Entry::Router } else { Entry::Server };
    let pair = streamgauge_plan::addresses(index, entry, if up { MediaWay::Up } else { MediaWay::Down });
    (pair.server.to_string(), pair.player.to_string())
}

/// Returns the address pairs of the packets that cross the path: for each flow of the plan, in order, the
/// owner of the packets (a flow's code, or a relay's), and the addresses at the server's and the player's
/// side.
#[pyfunction]
fn path_pairs(py: Python<'_>, plan_json: &str) -> PyResult<Vec<(u16, String, String)>> {
    let plan: TrialPlan = serde_json::from_str(plan_json)
        .map_err(|e| exception(py, "ScenarioError", format!("the trial's plan does not read: {e}")))?;
    let pairs =
        plan.path_pairs().map(|one| (one.of.0, one.ends.server.to_string(), one.ends.player.to_string()));
    Ok(pairs.collect())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonEvent {
    t_ns: u64,
    #[serde(default)]
    flow: Option<String>,
    name: String,
    #[serde(default)]
    value: Option<f64>,
    #[serde(default)]
    unit: String,
    #[serde(default)]
    reason: String,
}

fn read_events(events_json: &str, legend: &Legend) -> Result<Vec<Event>, RecordError> {
    let invalid = |what: String| RecordError::Invalid { path: "events".into(), what };
    let events: Vec<JsonEvent> = serde_json::from_str(events_json).map_err(|e| invalid(e.to_string()))?;
    let event = |event: JsonEvent| {
        let flow =
            event.flow.map(|name| legend.flow(&name).ok_or_else(|| invalid(format!("no flow {name:?}"))));
        Ok(Event {
            at: Instant::from_nanos(event.t_ns),
            flow: flow.transpose()?,
            name: event.name.into(),
            value: event.value,
            unit: event.unit.into(),
            reason: event.reason.into(),
        })
    };
    events.into_iter().map(event).collect()
}

/// Writes `events.parquet`, sorted by time, and returns its digest. `events_json` is a list of
/// `{"t_ns", "flow": name or null, "name", "value": number or null, "unit", "reason"}`.
#[pyfunction]
fn write_events(
    py: Python<'_>,
    directory: PathBuf,
    events_json: &str,
    legend_json: &str,
) -> PyResult<String> {
    let write = || {
        let legend = Legend::from_json(legend_json)
            .map_err(|what| RecordError::Invalid { path: "legend".into(), what })?;
        let events = read_events(events_json, &legend)?;
        streamgauge_record::write_events(&directory.join(EVENTS_FILE), &events, &legend)
    };
    py.detach(write).map_err(|error| record_error(py, error))
}

/// Returns the trial's digest from its normalised scenario (JSON) and the digests of packets and events, ""
/// if not kept.
#[pyfunction]
fn trial_digest(
    py: Python<'_>,
    scenario_json: &str,
    packets_digest: &str,
    events_digest: &str,
) -> PyResult<String> {
    streamgauge_record::trial_digest(scenario_json, packets_digest, events_digest)
        .map_err(|error| record_error(py, error))
}

/// Recomputes every digest of a record and compares; returns `{"packets": {"rows", "digest"} or null,
/// "events": likewise, "digest"}` as JSON.
#[pyfunction]
fn verify(py: Python<'_>, directory: PathBuf) -> PyResult<String> {
    match py.detach(|| streamgauge_record::verify(&directory)) {
        Ok(verified) => to_json(&verified),
        Err(error) => Err(record_error(py, error)),
    }
}

/// Replays the packets of `directory` through a fresh path of the trial's plan; returns `{"packets", "rows",
/// "different", "first"}` as JSON. Other threads run meanwhile.
#[pyfunction]
fn replay(py: Python<'_>, plan_json: &str, directory: PathBuf) -> PyResult<String> {
    let plan: streamgauge_sim::PathPlan = serde_json::from_str(plan_json)
        .map_err(|e| exception(py, "ScenarioError", format!("the trial's plan does not read: {e}")))?;
    let packets = directory.join(PACKETS_FILE);
    match py.detach(|| streamgauge_sim::replay(&plan, &packets)) {
        Ok(found) => to_json(&found),
        Err(streamgauge_sim::SimError::Record(error)) => Err(record_error(py, error)),
        Err(error) => Err(exception(py, "ScenarioError", error.to_string())),
    }
}

/// Returns the metadata of a record's Parquet file: `{"schema", "legend", "rows", "digest"}` as JSON. Reads
/// the footer alone.
#[pyfunction]
fn footer(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    match streamgauge_record::footer(&path) {
        Ok(footer) => to_json(&footer),
        Err(error) => Err(record_error(py, error)),
    }
}

/// Returns an array of numpy's with these values, where they lie, not to be written to.
fn array<T: Element>(py: Python<'_>, values: Vec<T>) -> Bound<'_, PyArray1<T>> {
    let array = PyArray1::from_vec(py, values);
    // It has no other owner yet.
    array.readwrite().make_nonwriteable();
    array
}

/// A column: its name and its values.
type PacketColumn<'py> = (&'static str, Bound<'py, PyAny>);

/// Returns the columns of a `packets.parquet` that measuring needs.
#[pyfunction]
fn packet_columns(py: Python<'_>, path: PathBuf) -> PyResult<Vec<PacketColumn<'_>>> {
    let read = py.detach(|| streamgauge_record::read_packet_table(&path));
    Ok(columns_of(py, read.map_err(|error| record_error(py, error))?))
}

fn columns_of(py: Python<'_>, table: streamgauge_record::PacketTable) -> Vec<PacketColumn<'_>> {
    let has_drops = table.t_drop.len() == table.t_in.len();
    let mut found = vec![
        ("pkt", array(py, table.pkt).into_any()),
        ("copy", array(py, table.copy).into_any()),
        ("flow", array(py, table.flow).into_any()),
        ("dir", array(py, table.dir).into_any()),
        ("stage", array(py, table.stage).into_any()),
        ("kind", array(py, table.kind).into_any()),
        ("t_in", array(py, table.t_in).into_any()),
        ("t_out", array(py, table.t_out).into_any()),
        ("fate", array(py, table.fate).into_any()),
        ("wire_bytes", array(py, table.wire_bytes).into_any()),
        ("ip_bytes", array(py, table.ip_bytes).into_any()),
        ("payload_bytes", array(py, table.payload_bytes).into_any()),
        ("seq", array(py, table.seq).into_any()),
        ("flags", array(py, table.flags).into_any()),
    ];
    if has_drops {
        found.push(("fragment_offset", array(py, table.fragment_offset).into_any()));
        found.push(("t_drop", array(py, table.t_drop).into_any()));
    }
    found
}

/// One flow's values of one name: the name, the flow, times, values and their units.
type EventColumns<'py> =
    (String, Option<String>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f64>>, Vec<String>);

/// Returns each flow's values, by name: `(name, flow or None, times in ns, values, units)`.
#[pyfunction]
fn told(py: Python<'_>, path: PathBuf) -> PyResult<Vec<EventColumns<'_>>> {
    let read = py.detach(|| streamgauge_record::read_event_series(&path));
    Ok(said(py, read.map_err(|error| record_error(py, error))?))
}

fn said(py: Python<'_>, found: Vec<streamgauge_record::EventSeries>) -> Vec<EventColumns<'_>> {
    let of = |told: streamgauge_record::EventSeries| {
        (told.name, told.flow, array(py, told.times), array(py, told.values), told.units)
    };
    found.into_iter().map(of).collect()
}

/// A row of `metrics.parquet`: flow, stage, metric, value, min, max, unit, and which lists are its.
type Row = (
    Option<String>,
    Option<String>,
    String,
    Option<f64>,
    Option<f64>,
    Option<f64>,
    String,
    [Option<usize>; 4],
);

/// Writes `metrics.parquet` at `path`. `lists` are [list, sample].
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn write_metrics(
    py: Python<'_>,
    path: PathBuf,
    trial: String,
    valid: bool,
    window_s: (f64, f64),
    about: String,
    rows: Vec<Row>,
    lists: PyReadonlyArray2<'_, f64>,
) -> PyResult<()> {
    let row = |(flow, stage, metric, value, min, max, unit, lists): Row| streamgauge_record::MetricRow {
        flow,
        stage,
        metric,
        value,
        min,
        max,
        unit,
        lists,
    };
    if !lists.is_c_contiguous() {
        return Err(PyTypeError::new_err("lists: each must lie in one piece, one after the other"));
    }
    let samples = lists.shape()[1];
    let lists = lists.as_slice()?;
    let write = || {
        let metrics = streamgauge_record::Metrics {
            trial,
            valid,
            window_s,
            about,
            rows: rows.into_iter().map(row).collect(),
            lists: lists.into(),
            samples,
        };
        streamgauge_record::write_metrics(&path, &metrics)
    };
    py.detach(write).map_err(|error| record_error(py, error))
}

/// Returns the part of a `metrics.parquet` that is no table (JSON).
#[pyfunction]
fn about_metrics(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    streamgauge_record::about_metrics(&path).map_err(|error| record_error(py, error))
}

/// Reads a `metrics.parquet`: the part that is no table (JSON), `(flow, stage, metric, lists)` of each row,
/// and the lists as [list, sample].
#[pyfunction]
#[allow(clippy::type_complexity)]
fn read_metrics<'py>(
    py: Python<'py>,
    path: PathBuf,
) -> PyResult<(
    String,
    Vec<(Option<String>, Option<String>, String, [Option<usize>; 4])>,
    Bound<'py, PyArray2<f64>>,
)> {
    let read = py.detach(|| streamgauge_record::read_metrics(&path));
    let found = read.map_err(|error| record_error(py, error))?;
    let rows = found.rows.into_iter().map(|row| (row.flow, row.stage, row.metric, row.lists)).collect();
    let lists = found.lists.into_owned();
    let shape = [lists.len().checked_div(found.samples).unwrap_or(0), found.samples];
    Ok((found.about, rows, PyArray1::from_vec(py, lists).reshape(shape)?))
}

/// A quantity in each sample: its integral over it, least and most.
type Depth<'py> = [Bound<'py, PyArray1<f64>>; 3];

/// Returns a queue's content, by size and in packets, in each of the samples between `edges`
/// (`streamgauge_record::queue_depth`).
#[pyfunction]
fn queue_depth<'py>(
    py: Python<'py>,
    arrived: PyReadonlyArray1<'py, i64>,
    left: PyReadonlyArray1<'py, i64>,
    sizes: PyReadonlyArray1<'py, f64>,
    edges: PyReadonlyArray1<'py, i64>,
) -> PyResult<[Depth<'py>; 2]> {
    let (arrived, left, sizes, edges) =
        (arrived.as_slice()?, left.as_slice()?, sizes.as_slice()?, edges.as_slice()?);
    let found = py
        .detach(|| streamgauge_record::queue_depth(arrived, left, sizes, edges))
        .ok_or_else(|| PyValueError::new_err("as many packets arrive as leave, each with its size"))?;
    Ok(found.map(|one| [one.area, one.low, one.high].map(|values| PyArray1::from_vec(py, values))))
}

/// Returns the canonical text (RFC 8785, integers exact) of a JSON text: equal values have equal texts.
#[pyfunction]
fn canonical_json(py: Python<'_>, text: &str) -> PyResult<String> {
    streamgauge_record::canonical_json(text).map_err(|what| exception(py, "RecordError", what))
}

/// Reads a trace of a link; `format` is a name of it, or `None` to go by its first line. Returns `{"format",
/// "samples", "duration_ns", "mean_bps", "doubt", "rate", "delay", "loss", "faults"}` as JSON, where `doubt` is why its units
/// are probably others (or null) and `rate` is a bottleneck's, its steps repeated until `lasts_ns`. `delay` (ns) and
/// `loss` (parts of 1) are steps once, null where `faults` has the reason.
#[pyfunction]
#[pyo3(signature = (text, format=None, lasts_ns=None))]
fn parse_trace(py: Python<'_>, text: &str, format: Option<&str>, lasts_ns: Option<u64>) -> PyResult<String> {
    let parsed = format.map(str::parse).transpose().and_then(|format| {
        let trace = Trace::parse(text, format)?;
        let rate = trace.rate(lasts_ns.map(Duration::from_nanos))?;
        Ok((trace, rate))
    });
    let (trace, rate) = parsed.map_err(|error| exception(py, "ScenarioError", error.to_string()))?;
    let delays = trace
        .delays
        .as_ref()
        .map(|steps| steps.iter().map(|(at, delay)| (at.as_nanos(), delay.as_nanos())).collect::<Vec<_>>());
    let losses = trace
        .losses
        .as_ref()
        .map(|steps| steps.iter().map(|&(at, loss)| (at.as_nanos(), loss)).collect::<Vec<_>>());
    to_json(&serde_json::json!({
        "format": trace.format.name(),
        "samples": trace.len(),
        "duration_ns": trace.duration.as_nanos(),
        "mean_bps": trace.mean().as_bps(),
        "doubt": trace.doubt(),
        "rate": rate,
        "delay": delays.as_ref().ok(),
        "loss": losses.as_ref().ok(),
        "faults": {
            "delay": delays.as_ref().err().map(ToString::to_string),
            "loss": losses.as_ref().err().map(ToString::to_string),
        },
    }))
}

/// Returns the self-description of each built-in system (JSON).
#[pyfunction]
fn systems() -> PyResult<String> {
    to_json(&streamgauge_systems::descriptions())
}

/// Returns the self-description of each built-in relay, as JSON.
#[pyfunction]
fn relays() -> PyResult<String> {
    to_json(&streamgauge_systems::relay_descriptions())
}

/// Returns the facts of a flow with this `app` (JSON) in its plan, as JSON; null for third-party systems.
#[pyfunction]
fn facts(py: Python<'_>, app_json: &str) -> PyResult<String> {
    let app: AppSpec = serde_json::from_str(app_json)
        .map_err(|e| exception(py, "RecordError", format!("no system of a plan: {e}")))?;
    to_json(&streamgauge_systems::facts(&app))
}

/// Returns the protocols of a relay's channels with this `app` (JSON) in its plan, as JSON.
#[pyfunction]
fn relay_protocols(py: Python<'_>, app_json: &str) -> PyResult<String> {
    let app: AppSpec = serde_json::from_str(app_json)
        .map_err(|e| exception(py, "RecordError", format!("no relay of a plan: {e}")))?;
    to_json(&streamgauge_systems::relay_protocols(&app))
}

/// Returns the known names, in the order for people.
fn names<T>(py: Python<'_>, named: &[(&'static str, T)]) -> PyResult<Py<PyTuple>> {
    Ok(PyTuple::new(py, named.iter().map(|(name, _)| *name))?.unbind())
}

/// Returns each congestion control with the feedback of marks that it can work with.
fn control_marks() -> Vec<(String, &'static str)> {
    let word = |name: &String| match CongestionControl::named(name).map(|control| control.marks()) {
        Ok(Marks::Echo) => "echo",
        Ok(Marks::Counts) => "counts",
        Ok(Marks::Either) | Err(_) => "either",
    };
    CongestionControl::names().into_iter().map(|name| (name.clone(), word(&name))).collect()
}

/// Sim and record in Rust.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    streamgauge_systems::abr::call_functions_by(function_rule::make);
    streamgauge_transport::tcp::congestion::call_functions_by(function_control::make);
    module.add("MODEL_VERSION", streamgauge_sim::MODEL_VERSION)?;
    let py = module.py();
    module.add("CONGESTION_CONTROLS", PyTuple::new(py, CongestionControl::names())?)?;
    module.add("CONTROL_MARKS", control_marks())?;
    module.add("DEFAULT_CONGESTION_CONTROL", TcpSpec::default().congestion_control)?;
    module.add("HYSTARTS", names(py, Hystart::NAMED)?)?;
    module.add("TCP_MECHANISMS", names(py, Mechanisms::NAMED)?)?;
    module.add_class::<Contents>()?;
    module.add_function(wrap_pyfunction!(watch::function_calls, module)?)?;
    module.add_function(wrap_pyfunction!(systems, module)?)?;
    module.add_function(wrap_pyfunction!(relays, module)?)?;
    module.add_function(wrap_pyfunction!(facts, module)?)?;
    module.add_function(wrap_pyfunction!(relay_protocols, module)?)?;
    module.add_function(wrap_pyfunction!(simulate, module)?)?;
    #[cfg(unix)]
    module.add_function(wrap_pyfunction!(simulate_live, module)?)?;
    module.add_function(wrap_pyfunction!(simulate_in_memory, module)?)?;
    module.add_function(wrap_pyfunction!(queue_depth, module)?)?;
    module.add_function(wrap_pyfunction!(asf::asf_streams, module)?)?;
    module.add_function(wrap_pyfunction!(asf::multiplex_asf, module)?)?;
    module.add_function(wrap_pyfunction!(captures::survey_capture, module)?)?;
    module.add_function(wrap_pyfunction!(captures::analyse_capture, module)?)?;
    module.add_function(wrap_pyfunction!(captures::analyse_captures, module)?)?;
    module.add_function(wrap_pyfunction!(captures_record::record_captures, module)?)?;
    module.add_function(wrap_pyfunction!(captures_packets::match_captures, module)?)?;
    module.add_function(wrap_pyfunction!(legend, module)?)?;
    module.add_function(wrap_pyfunction!(addresses, module)?)?;
    module.add_function(wrap_pyfunction!(path_pairs, module)?)?;
    module.add_function(wrap_pyfunction!(write_events, module)?)?;
    module.add_function(wrap_pyfunction!(trial_digest, module)?)?;
    module.add_function(wrap_pyfunction!(verify, module)?)?;
    module.add_function(wrap_pyfunction!(replay, module)?)?;
    module.add_function(wrap_pyfunction!(footer, module)?)?;
    module.add_function(wrap_pyfunction!(packet_columns, module)?)?;
    module.add_function(wrap_pyfunction!(told, module)?)?;
    module.add_function(wrap_pyfunction!(write_metrics, module)?)?;
    module.add_function(wrap_pyfunction!(about_metrics, module)?)?;
    module.add_function(wrap_pyfunction!(read_metrics, module)?)?;
    module.add_function(wrap_pyfunction!(canonical_json, module)?)?;
    module.add_function(wrap_pyfunction!(parse_trace, module)?)?;
    Ok(())
}
