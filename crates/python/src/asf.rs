//! Files of Windows Media: their streams, and several files as one of several rates.

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use streamgauge_wire::asf::{Asf, Guid, MultiplexError, MultiplexInput, MultiplexSettings, multiplex};

use super::exception;

/// Returns the streams of a file of ASF, in its order: the number of each, and "video", "audio" or "other".
#[pyfunction]
pub fn asf_streams(py: Python<'_>, file: &[u8]) -> PyResult<Vec<(u8, &'static str)>> {
    let asf = Asf::read(file).map_err(|problem| exception(py, "MediaError", problem.to_string()))?;
    let kind = |kind: Guid| match kind {
        Guid::VIDEO => "video",
        Guid::AUDIO => "audio",
        _ => "other",
    };
    Ok(asf.header.all_streams().map(|stream| (stream.number, kind(stream.kind))).collect())
}

/// Files with selected streams of these numbers, each with its name.
type Taken = (String, PyBackedBytes, Vec<u8>);

/// Returns one file of ASF called `id` (16 bytes) with streams of all `files`, numbered from 1 in that order.
/// Those of video exclude each other by bit rate, and so do those of audio.
#[pyfunction]
pub fn multiplex_asf<'py>(py: Python<'py>, files: Vec<Taken>, id: [u8; 16]) -> PyResult<Bound<'py, PyBytes>> {
    let inputs: Vec<_> = files
        .iter()
        .map(|(_, file, streams)| MultiplexInput { file, streams: Some(streams.clone()) })
        .collect();
    let settings = MultiplexSettings { id: Guid(id), ..MultiplexSettings::default() };
    let made = py.detach(|| multiplex(&inputs, &settings));
    let made = made.map_err(|error| {
        let input = match error {
            MultiplexError::Input { input, .. }
            | MultiplexError::Incomplete { input, .. }
            | MultiplexError::NoStream { input, .. }
            | MultiplexError::Preroll { input, .. } => files.get(input),
            _ => None,
        };
        // It identifies inputs by their numbers.
        let said = error.to_string();
        let said = said.split_once(": ").filter(|_| input.is_some()).map_or(&*said, |(_, what)| what);
        let named = input.map_or(said.to_owned(), |(name, ..)| format!("{name}: {said}"));
        exception(py, "MediaError", named)
    })?;
    Ok(PyBytes::new(py, &made))
}
