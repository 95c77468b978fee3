//! The Python face of sim and record: texts in, texts out, nothing but conversion here.

mod asf;
mod function_rule;

use std::path::PathBuf;

use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use serde::Deserialize;
use streamgauge_base::{Duration, Event, Instant};
use streamgauge_path::trace::Trace;
use streamgauge_plan::{AppSpec, Entry, Legend, MediaWay, TcpSpec, TrialPlan};
use streamgauge_record::{EVENTS_FILE, PACKETS_FILE, RecordError};
use streamgauge_transport::tcp::{CongestionControl, Hystart, Mechanisms};

/// An exception of `streamgauge.errors`.
fn exception(py: Python<'_>, class: &str, message: String) -> PyErr {
    match py.import("streamgauge.errors").and_then(|module| module.getattr(class)) {
        Ok(class) => match class.call1((message.clone(),)) {
            Ok(error) => PyErr::from_value(error),
            Err(error) => error,
        },
        Err(error) => error,
    }
}

/// As Python raises a failure to write: an `OSError` with its number, so that callers can tell a full disk.
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

/// Runs a trial in virtual time. `plan_json` is a trial's plan, which may name some of `contents`; `packets.parquet` and
/// `events.parquet` are written to `directory` as its `keep` says. Returns the summary as JSON. Other threads run
/// meanwhile.
#[pyfunction]
#[pyo3(signature = (plan_json, directory, contents=None))]
fn simulate(
    py: Python<'_>,
    plan_json: &str,
    directory: PathBuf,
    contents: Option<PyRef<'_, Contents>>,
) -> PyResult<String> {
    let summary = ran(py, plan_json, contents, |plan, contents| {
        streamgauge_sim::simulate_with(plan, contents, &directory)
    })?;
    to_json(&summary)
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
    function_rule::take_raised();
    let (ran, raised) = py.detach(|| (how(&plan, &contents), function_rule::take_raised()));
    if let Some(what) = raised {
        return Err(exception(py, "ScenarioError", format!("{what}; nothing of this trial counts")));
    }
    ran.map_err(|error| match error {
        streamgauge_sim::SimError::Record(error) => record_error(py, error),
        error => exception(py, "ScenarioError", error.to_string()),
    })
}

/// As `simulate` when it keeps packets, to the same summary, but nothing is written: also returns what `packet_columns`
/// and `told` would read of the files.
#[pyfunction]
#[pyo3(signature = (plan_json, contents=None))]
fn simulate_in_memory<'py>(
    py: Python<'py>,
    plan_json: &str,
    contents: Option<PyRef<'_, Contents>>,
) -> PyResult<(String, Vec<PacketColumn<'py>>, Vec<Said<'py>>)> {
    let (summary, found) = ran(py, plan_json, contents, streamgauge_sim::simulate_in_memory)?;
    Ok((to_json(&summary)?, columns_of(py, &found.packets)?, said(py, found.told)?))
}

/// What the codes in a record of this plan mean, as its files carry it (JSON).
#[pyfunction]
fn legend(py: Python<'_>, plan_json: &str) -> PyResult<String> {
    let plan: TrialPlan = serde_json::from_str(plan_json)
        .map_err(|e| exception(py, "ScenarioError", format!("the trial's plan does not read: {e}")))?;
    Ok(Legend::of(&plan).to_json())
}

/// The addresses of the flow with that index: its server's, or its source's at the router, and its player's. The other
/// way about if its media goes up.
#[pyfunction]
#[pyo3(signature = (index, at_router, up=false))]
fn addresses(index: u16, at_router: bool, up: bool) -> (String, String) {
    let entry = if at_router { Entry::Router } else { Entry::Server };
    let pair = streamgauge_plan::addresses(index, entry, if up { MediaWay::Up } else { MediaWay::Down });
    (pair.server.to_string(), pair.player.to_string())
}

/// Between whom packets cross the path: for each flow of the plan, in order, whose the packets are (a flow's code, or a
/// relay's), and the addresses at the server's and the player's side.
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

/// The trial's digest from its normalised scenario (JSON) and the digests of packets and events, "" if not
/// kept.
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

/// What a Parquet file of a record says of itself: `{"schema", "legend", "rows", "digest"}` as JSON. Reads
/// the footer alone.
#[pyfunction]
fn footer(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    match streamgauge_record::footer(&path) {
        Ok(footer) => to_json(&footer),
        Err(error) => Err(record_error(py, error)),
    }
}

/// Numbers as numpy takes them: their type there, and their bytes.
type Numbers<'py> = (&'static str, Bound<'py, PyBytes>);

fn numbers<'py, T: Copy, const WIDTH: usize>(
    py: Python<'py>,
    kind: &'static str,
    values: &[T],
    bytes: impl Fn(T) -> [u8; WIDTH],
) -> PyResult<Numbers<'py>> {
    let filled = PyBytes::new_with(py, values.len() * WIDTH, |to| {
        let (to, _) = to.as_chunks_mut::<WIDTH>();
        for (to, &value) in to.iter_mut().zip(values) {
            *to = bytes(value);
        }
        Ok(())
    })?;
    Ok((kind, filled))
}

/// A column: its name, numpy's name of its type, and its values' bytes.
type PacketColumn<'py> = (&'static str, &'static str, Bound<'py, PyBytes>);

/// What measuring needs of a `packets.parquet`.
#[pyfunction]
fn packet_columns<'py>(py: Python<'py>, path: PathBuf) -> PyResult<Vec<PacketColumn<'py>>> {
    let read = py.detach(|| streamgauge_record::read_packet_table(&path));
    columns_of(py, &read.map_err(|error| record_error(py, error))?)
}

fn columns_of<'py>(
    py: Python<'py>,
    table: &streamgauge_record::PacketTable,
) -> PyResult<Vec<PacketColumn<'py>>> {
    let u8s = |values: &[u8]| numbers(py, "u1", values, u8::to_le_bytes);
    let u16s = |values: &[u16]| numbers(py, "<u2", values, u16::to_le_bytes);
    let u32s = |values: &[u32]| numbers(py, "<u4", values, u32::to_le_bytes);
    let i64s = |values: &[i64]| numbers(py, "<i8", values, i64::to_le_bytes);
    let mut found = vec![
        ("pkt", numbers(py, "<u8", &table.pkt, u64::to_le_bytes)?),
        ("copy", u8s(&table.copy)?),
        ("flow", u16s(&table.flow)?),
        ("dir", u8s(&table.dir)?),
        ("stage", u8s(&table.stage)?),
        ("kind", u8s(&table.kind)?),
        ("t_in", i64s(&table.t_in)?),
        ("t_out", i64s(&table.t_out)?),
        ("fate", u8s(&table.fate)?),
        ("wire_bytes", u32s(&table.wire_bytes)?),
        ("ip_bytes", u32s(&table.ip_bytes)?),
        ("payload_bytes", u32s(&table.payload_bytes)?),
        ("seq", i64s(&table.seq)?),
        ("flags", u16s(&table.flags)?),
    ];
    if table.t_drop.len() == table.t_in.len() {
        found.push(("fragment_offset", u16s(&table.fragment_offset)?));
        found.push(("t_drop", i64s(&table.t_drop)?));
    }
    Ok(found.into_iter().map(|(name, (kind, bytes))| (name, kind, bytes)).collect())
}

/// What one flow said under one name: the name, the flow, times, values and their units.
type Said<'py> = (String, Option<String>, Bound<'py, PyBytes>, Bound<'py, PyBytes>, Vec<String>);

/// What each flow said, by name: `(name, flow or None, times in ns, values, units)`, times and values as bytes of int64
/// and float64.
#[pyfunction]
fn told<'py>(py: Python<'py>, path: PathBuf) -> PyResult<Vec<Said<'py>>> {
    let read = py.detach(|| streamgauge_record::read_told(&path));
    said(py, read.map_err(|error| record_error(py, error))?)
}

fn said<'py>(py: Python<'py>, found: Vec<streamgauge_record::Told>) -> PyResult<Vec<Said<'py>>> {
    let of = |told: streamgauge_record::Told| {
        let times = numbers(py, "<i8", &told.times, i64::to_le_bytes)?.1;
        let values = numbers(py, "<f8", &told.values, f64::to_le_bytes)?.1;
        Ok((told.name, told.flow, times, values, told.units))
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

/// Writes `metrics.parquet` at `path`. `lists` are the bytes of float64, `samples` of them a list.
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
    lists: &[u8],
    samples: usize,
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
    let write = || {
        let lists = lists.chunks_exact(8).map(|v| f64::from_le_bytes(v.try_into().unwrap_or_default()));
        let metrics = streamgauge_record::Metrics {
            trial,
            valid,
            window_s,
            about,
            rows: rows.into_iter().map(row).collect(),
            lists: lists.collect(),
            samples,
        };
        streamgauge_record::write_metrics(&path, &metrics)
    };
    py.detach(write).map_err(|error| record_error(py, error))
}

/// What a `metrics.parquet` says that is no table (JSON).
#[pyfunction]
fn about_metrics(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    streamgauge_record::about_metrics(&path).map_err(|error| record_error(py, error))
}

/// Reads a `metrics.parquet`: what is no table (JSON), `(flow, stage, metric, lists)` of each row, the lists' bytes and
/// the samples of each.
#[pyfunction]
#[allow(clippy::type_complexity)]
fn read_metrics<'py>(
    py: Python<'py>,
    path: PathBuf,
) -> PyResult<(
    String,
    Vec<(Option<String>, Option<String>, String, [Option<usize>; 4])>,
    Bound<'py, PyBytes>,
    usize,
)> {
    let read = py.detach(|| streamgauge_record::read_metrics(&path));
    let found = read.map_err(|error| record_error(py, error))?;
    let rows = found.rows.into_iter().map(|row| (row.flow, row.stage, row.metric, row.lists)).collect();
    let lists = numbers(py, "<f8", &found.lists, f64::to_le_bytes)?.1;
    Ok((found.about, rows, lists, found.samples))
}

/// The canonical text (RFC 8785, integers exact) of a JSON text: equal values have equal texts.
#[pyfunction]
fn canonical_json(py: Python<'_>, text: &str) -> PyResult<String> {
    streamgauge_record::canonical_json(text).map_err(|what| exception(py, "RecordError", what))
}

/// Reads a trace of a link; `format` is a name of it, or `None` to go by its first line. Returns `{"format",
/// "samples", "duration_ns", "mean_bps", "rate"}` as JSON, where `rate` is a bottleneck's, its steps repeated
/// until `lasts_ns`.
#[pyfunction]
#[pyo3(signature = (text, format=None, lasts_ns=None))]
fn parse_trace(py: Python<'_>, text: &str, format: Option<&str>, lasts_ns: Option<u64>) -> PyResult<String> {
    let parsed = format.map(str::parse).transpose().and_then(|format| {
        let trace = Trace::parse(text, format)?;
        let rate = trace.rate(lasts_ns.map(Duration::from_nanos))?;
        Ok((trace, rate))
    });
    let (trace, rate) = parsed.map_err(|error| exception(py, "ScenarioError", error.to_string()))?;
    to_json(&serde_json::json!({
        "format": trace.format.name(),
        "samples": trace.len(),
        "duration_ns": trace.duration.as_nanos(),
        "mean_bps": trace.mean().as_bps(),
        "rate": rate,
    }))
}

/// What each system of ours says of itself (JSON).
#[pyfunction]
fn systems() -> PyResult<String> {
    to_json(&streamgauge_systems::descriptions())
}

/// What each relay that we have says of itself, as JSON.
#[pyfunction]
fn relays() -> PyResult<String> {
    to_json(&streamgauge_systems::relay_descriptions())
}

/// What holds of a flow whose plan has this `app` (JSON), as JSON; null for third-party systems.
#[pyfunction]
fn facts(py: Python<'_>, app_json: &str) -> PyResult<String> {
    let app: AppSpec = serde_json::from_str(app_json)
        .map_err(|e| exception(py, "RecordError", format!("no system of a plan: {e}")))?;
    to_json(&streamgauge_systems::facts(&app))
}

/// What the channels of a relay speak whose plan has this `app` (JSON), as JSON.
#[pyfunction]
fn relay_protocols(py: Python<'_>, app_json: &str) -> PyResult<String> {
    let app: AppSpec = serde_json::from_str(app_json)
        .map_err(|e| exception(py, "RecordError", format!("no relay of a plan: {e}")))?;
    to_json(&streamgauge_systems::relay_protocols(&app))
}

/// What is known by name, in the order that people read.
fn names<T>(py: Python<'_>, named: &[(&'static str, T)]) -> PyResult<Py<PyTuple>> {
    Ok(PyTuple::new(py, named.iter().map(|(name, _)| *name))?.unbind())
}

/// Sim and record in Rust.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    streamgauge_systems::abr::call_functions_by(function_rule::make);
    module.add("MODEL_VERSION", streamgauge_sim::MODEL_VERSION)?;
    let py = module.py();
    module.add("CONGESTION_CONTROLS", names(py, CongestionControl::NAMED)?)?;
    module.add("DEFAULT_CONGESTION_CONTROL", TcpSpec::default().congestion_control)?;
    module.add("HYSTARTS", names(py, Hystart::NAMED)?)?;
    module.add("TCP_MECHANISMS", names(py, Mechanisms::NAMED)?)?;
    module.add_class::<Contents>()?;
    module.add_function(wrap_pyfunction!(systems, module)?)?;
    module.add_function(wrap_pyfunction!(relays, module)?)?;
    module.add_function(wrap_pyfunction!(facts, module)?)?;
    module.add_function(wrap_pyfunction!(relay_protocols, module)?)?;
    module.add_function(wrap_pyfunction!(simulate, module)?)?;
    module.add_function(wrap_pyfunction!(simulate_in_memory, module)?)?;
    module.add_function(wrap_pyfunction!(asf::asf_streams, module)?)?;
    module.add_function(wrap_pyfunction!(asf::multiplex_asf, module)?)?;
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
