//! The fate of each packet of two captures.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use streamgauge_capture::{CaptureSource, KnownBeforehand, Mechanism};

use super::captures::capture_error;
use super::{exception, to_json};

/// Returns the figures of two captures as `analyse_captures` returns them, and the packets: little-endian
/// columns of the time at the sender's capture (i64, ns on the first clock), at the receiver's (i64, 0 for
/// none), its number there (u64, see `MatchedPacket::number`), fate (u8, in the order of `PacketFate`) and
/// direction (u8, 1 from `a` to `b`). `without`: a mechanism that is left out, for judges.
#[pyfunction]
#[pyo3(signature = (a, b, base_delay_s=None, without=None))]
pub fn match_captures<'py>(
    py: Python<'py>,
    a: (PathBuf, Option<u32>),
    b: (PathBuf, Option<u32>),
    base_delay_s: Option<f64>,
    without: Option<&str>,
) -> PyResult<(String, [Bound<'py, PyBytes>; 5])> {
    let sources = [&a, &b].map(|(path, only)| CaptureSource { path, only: *only });
    let base_ns = base_delay_s.map(|seconds| (seconds * 1e9) as i64);
    let unknown =
        |name: &str| exception(py, "CaptureFileError", format!("{name}: no mechanism of matching."));
    let without = without.map(|name| Mechanism::of(name).ok_or_else(|| unknown(name))).transpose()?;
    let known = KnownBeforehand { base_ns, without, ..KnownBeforehand::default() };
    let mut columns: [Vec<u8>; 5] = Default::default();
    let found = py.detach(|| {
        streamgauge_capture::analyse_pair(&sources[0], &sources[1], &known, |packet| {
            columns[0].extend(packet.in_ns.to_le_bytes());
            columns[1].extend(packet.out_ns.unwrap_or(0).to_le_bytes());
            columns[2].extend(packet.number.to_le_bytes());
            columns[3].push(packet.fate as u8);
            columns[4].push(u8::from(packet.forward));
        })
    });
    let found = found.map_err(|error| capture_error(py, &error))?;
    let figures = to_json(&serde_json::json!({
        "captures": found.captures, "flows": found.flows, "path": found.path,
    }))?;
    Ok((figures, columns.map(|column| PyBytes::new(py, &column))))
}
