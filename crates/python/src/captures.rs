//! Packet captures: files in, figures as JSON out.

use std::path::PathBuf;

use pyo3::prelude::*;
use streamgauge_capture::{
    CaptureError, CaptureSide, CaptureSource, KnownBeforehand, MatchedPacket, PairAnalysis, Renamed,
    analyse_pair, end_of, translated,
};

use super::{exception, to_json};

pub fn capture_error(py: Python<'_>, error: &CaptureError) -> PyErr {
    exception(py, "CaptureFileError", error.to_string())
}

fn side(at: Option<&str>) -> Option<CaptureSide> {
    match at {
        Some("sender") => Some(CaptureSide::Sender),
        Some("receiver") => Some(CaptureSide::Receiver),
        _ => None,
    }
}

/// Returns a first look at a capture: interfaces, and whether two of them are at two places (JSON).
#[pyfunction]
pub fn survey_capture(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    match py.detach(|| streamgauge_capture::survey(&path)) {
        Ok(found) => to_json(&found),
        Err(error) => Err(capture_error(py, &error)),
    }
}

/// Returns the figures of one capture, `{"capture", "flows"}` as JSON. `only`: that interface alone. Other
/// threads run meanwhile.
#[pyfunction]
#[pyo3(signature = (path, only=None, at=None))]
pub fn analyse_capture(
    py: Python<'_>,
    path: PathBuf,
    only: Option<u32>,
    at: Option<&str>,
) -> PyResult<String> {
    let at = side(at);
    match py.detach(|| streamgauge_capture::analyse(&path, only, at)) {
        Ok(found) => to_json(&serde_json::json!({"capture": found.capture, "flows": found.flows})),
        Err(error) => Err(capture_error(py, &error)),
    }
}

/// Two captures as Python names them: a file, and the interface that is read or none for all.
pub type Place = (PathBuf, Option<u32>);

/// Analyses two captures. Where they have nothing in common, address translation between both is looked for.
pub fn pair(
    a: &Place,
    b: &Place,
    known: KnownBeforehand,
    each: &mut dyn FnMut(&MatchedPacket),
) -> Result<(PairAnalysis, Vec<Renamed>), CaptureError> {
    let sources = [a, b].map(|(path, only)| CaptureSource { path, only: *only });
    match analyse_pair(&sources[0], &sources[1], &known, &mut *each) {
        Err(CaptureError::NoMatch(what)) if known.renamed.is_empty() => {
            let renamed = translated(&sources[0], &sources[1])?;
            if renamed.is_empty() {
                return Err(CaptureError::NoMatch(what));
            }
            let known = KnownBeforehand { renamed: renamed.clone(), ..known };
            analyse_pair(&sources[0], &sources[1], &known, each).map(|found| (found, renamed))
        }
        found => found.map(|found| (found, known.renamed)),
    }
}

/// Sets the facts that are known beforehand. `renamed`: ends of B by their names in A, as text.
pub fn known(
    py: Python<'_>,
    at: Option<&str>,
    base_delay_s: Option<f64>,
    renamed: &[(String, String)],
) -> PyResult<KnownBeforehand> {
    let end = |text: &str| {
        let what =
            || format!("--flow {text}: no address; expected 192.0.2.1, 192.0.2.1:80 or [2001:db8::1]:80.");
        end_of(text).ok_or_else(|| exception(py, "CaptureFileError", what()))
    };
    let renamed = renamed.iter().map(|(theirs, ours)| Ok((end(theirs)?, end(ours)?)));
    Ok(KnownBeforehand {
        a_is_receiver: at.map(|at| at == "receiver"),
        base_ns: base_delay_s.map(|seconds| (seconds * 1e9).round() as i64),
        renamed: renamed.collect::<PyResult<_>>()?,
        without: None,
    })
}

/// Ends as text: B's name, and A's.
pub fn names(renamed: &[Renamed]) -> Vec<(String, String)> {
    renamed.iter().map(|(theirs, ours)| (theirs.to_string(), ours.to_string())).collect()
}

/// Returns the figures of two captures, `{"captures", "flows", "path", "translated"}` as JSON.
/// `base_delay_s`: the least one-way delay in the direction of most payload, if it is known.
#[pyfunction]
#[pyo3(signature = (a, b, at=None, base_delay_s=None, renamed=Vec::new()))]
pub fn analyse_captures(
    py: Python<'_>,
    a: Place,
    b: Place,
    at: Option<&str>,
    base_delay_s: Option<f64>,
    renamed: Vec<(String, String)>,
) -> PyResult<String> {
    let known = known(py, at, base_delay_s, &renamed)?;
    match py.detach(|| pair(&a, &b, known, &mut |_| {})) {
        Ok((found, renamed)) => to_json(&serde_json::json!({
            "captures": found.captures, "flows": found.flows, "path": found.path, "translated": names(&renamed),
        })),
        Err(error) => Err(capture_error(py, &error)),
    }
}
