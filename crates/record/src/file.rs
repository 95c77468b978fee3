//! Code that the files of a record share.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::RecordError;

/// Rows of packets, in a trial's directory.
pub const PACKETS_FILE: &str = "packets.parquet";
/// Events, likewise.
pub const EVENTS_FILE: &str = "events.parquet";
/// The trial itself, likewise.
pub const TRIAL_FILE: &str = "trial.json";

/// Footer keys, shared by the files of a record.
pub(crate) mod keys {
    pub const SCHEMA: &str = "streamgauge.schema";
    pub const LEGEND: &str = "streamgauge.legend";
    pub const ROWS: &str = "streamgauge.rows";
    pub const PACKETS_DIGEST: &str = "streamgauge.packets_digest";
    pub const METRICS: &str = "streamgauge.metrics";
    pub const SAMPLES: &str = "streamgauge.samples";
    pub const EVENTS_DIGEST: &str = "streamgauge.events_digest";
}

/// A file under a temporary name beside its own; removed unless renamed.
pub(crate) struct Partial {
    pub path: PathBuf,
    target: PathBuf,
}

impl Partial {
    pub fn new(target: &Path) -> Self {
        let mut name = target.as_os_str().to_owned();
        name.push(".partial");
        Partial { path: name.into(), target: target.to_owned() }
    }

    pub fn rename(self) -> Result<(), RecordError> {
        fs::rename(&self.path, &self.target).map_err(|e| RecordError::io(&self.target, "renaming", e))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // After a rename there is nothing under this name.
        let _ = fs::remove_file(&self.path);
    }
}

/// Returns a digest as the record writes it.
pub(crate) fn digest_text(hasher: &blake3::Hasher) -> String {
    format!("blake3:{}", hasher.finalize().to_hex())
}

/// Feeds a digest with `text`, its length first, so that neighbours cannot trade bytes.
pub(crate) fn hash_text(hasher: &mut blake3::Hasher, text: &str) {
    let mut bytes = Vec::with_capacity(8 + text.len());
    put_text(&mut bytes, text);
    hasher.update(&bytes);
}

/// Appends the bytes that [`hash_text`] feeds, to be fed with much else at once.
pub(crate) fn put_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
}
