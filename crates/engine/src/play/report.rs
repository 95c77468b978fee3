//! How it went, for people and for programs.

use serde::Serialize;
use serde_json::{Map, Value};
use streamgauge_systems::standalone::Seen;

use super::viewer::Viewer;

/// The whole of it. Frames are pictures.
#[derive(Serialize)]
pub struct Report {
    /// Of this report.
    pub schema: &'static str,
    /// What was played.
    pub url: String,
    /// Which player.
    pub player: String,
    /// What carried the media.
    pub transport: String,
    /// How it ended.
    pub outcome: String,
    /// It played to the end, or as long as was asked.
    pub played: bool,
    /// From the first attempt to connect.
    pub duration_s: f64,
    /// Until the connection stood.
    pub connect_s: f64,
    /// From the request for the media to the first frame shown.
    pub startup_delay_s: Option<f64>,
    /// Where play was in the media.
    pub position_s: f64,
    /// Whole when they were due.
    pub frames_shown: u64,
    /// Whole, and too late.
    pub frames_late: u64,
    /// Never whole.
    pub frames_incomplete: u64,
    /// Times that the player waited for its buffer to fill again.
    pub stalls: u64,
    /// For how long in all.
    pub stalled_s: f64,
    /// Gaps between frames above max(3 d, d + 150 ms), with d their mean interval (W3C webrtc-stats).
    pub freezes: u64,
    /// How long they were in all.
    pub frozen_s: f64,
    /// Of the media, with the headers of what packs it.
    pub bytes_received: u64,
    /// These over the time from the first of them to the last.
    pub throughput_bps: Option<f64>,
    /// What this player reports beside.
    #[serde(flatten)]
    pub own: Map<String, Value>,
}

impl Report {
    /// For people: the media was asked for by `asks` and carried `over` that; `came` says what came at a rate.
    pub fn lines(&self, asks: &str, over: &str, came: impl FnOnce(&str) -> String) -> String {
        let startup = self.startup_delay_s.map_or("never".into(), |s| format!("{s:.2} s after {asks}"));
        let throughput = self.throughput_bps.map_or("too few".into(), rate);
        format!(
            "{} after {:.1} s over {over}\n\
             picture: first frame {startup}; {} frames shown, {} late, {} incomplete; {} stalls ({:.1} s), \
             {} freezes ({:.1} s)\n\
             {}\n",
            self.outcome,
            self.duration_s,
            self.frames_shown,
            self.frames_late,
            self.frames_incomplete,
            self.stalls,
            self.stalled_s,
            self.freezes,
            self.frozen_s,
            came(&throughput),
        )
    }
}

/// Writes a line now and then about how it goes.
#[derive(Default)]
pub struct Progress {
    last_s: f64,
    last_bytes: u64,
}

impl Progress {
    /// How it goes at `now_s`.
    pub fn line(&mut self, now_s: f64, viewer: &Viewer, report: &Seen) -> String {
        let bytes = report.bytes - self.last_bytes;
        let speed = rate(bytes as f64 * 8.0 / (now_s - self.last_s).max(1e-3));
        (self.last_s, self.last_bytes) = (now_s, report.bytes);
        let frames = &report.frames;
        let lost = report.lost.map_or(String::new(), |lost| format!(", {lost} packets lost"));
        // What matters most first: a narrow terminal cuts the rest.
        format!(
            "{now_s:6.1} s: {} frames shown, {} stalls, {} freezes, {:.1} s buffered, {speed}{lost}, {} late, \
             {} incomplete",
            frames.shown,
            frames.stalls,
            viewer.freezes,
            report.buffer.as_secs_f64(),
            frames.late,
            frames.incomplete,
        )
    }
}

fn rate(bps: f64) -> String {
    if bps >= 1e6 { format!("{:.2} Mbit/s", bps / 1e6) } else { format!("{:.0} kbit/s", bps / 1e3) }
}
