//! A first look at a file: its interfaces, and whether they are at one place or at two.

use std::path::Path;

use serde::Serialize;

use crate::capture::Capture;
use crate::error::CaptureError;

/// Copies at two places are this far apart at least, in the median (ns). Within one machine they are closer.
const TWO_PLACES_NS: i64 = 50_000;
/// The program of ours that writes one file for both ends of a path.
const OURS: &str = "streamgauge";

/// A file at first sight.
#[derive(Clone, Debug, Serialize)]
pub struct CaptureSurvey {
    /// The names of its interfaces.
    pub interfaces: Vec<String>,
    /// Indices of two interfaces at two places: two captures in one file.
    pub places: Option<(u32, u32)>,
    /// Packets are in the file several times, as with `-i any`.
    pub has_copies: bool,
}

/// Looks at the first packets of a file.
///
/// # Errors
/// The file cannot be read, or is no capture.
pub fn survey(path: &Path) -> Result<CaptureSurvey, CaptureError> {
    let capture = Capture::open(path, None)?;
    let interfaces = capture.interfaces();
    let found = &capture.survey;
    let mut apart = found.apart_ns.clone();
    apart.sort_unstable();
    let median = apart.get(apart.len() / 2).copied().unwrap_or(0);
    let is_pair = interfaces.len() == 2
        && (capture.application() == OURS
            || apart.len() * 3 >= found.packets.max(1) && median >= TWO_PLACES_NS);
    Ok(CaptureSurvey {
        interfaces: interfaces.iter().map(|interface| interface.name.clone()).collect(),
        places: is_pair.then_some((0, 1)),
        has_copies: capture.leaves_copies_out(),
    })
}
