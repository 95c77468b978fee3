//! The report of a session, for people and for programs.

use serde::Serialize;
use serde_json::{Map, Value};
use streamgauge_systems::standalone::{Seen, Shows, counted};

use super::viewer::Viewer;

/// The whole of it. Frames are pictures.
#[derive(Serialize)]
pub struct Report {
    /// Schema of this report.
    pub schema: &'static str,
    /// The played URL.
    pub url: String,
    /// Which player.
    pub player: String,
    /// The transport of the media.
    pub transport: String,
    /// How it ended.
    pub outcome: String,
    /// It played to the end, or as long as was asked.
    pub played: bool,
    /// From the first attempt to connect.
    pub duration_s: f64,
    /// Time until the connection was open.
    pub connect_s: f64,
    /// From the request for the media to the first frame shown.
    pub startup_delay_s: Option<f64>,
    /// Where play was in the media.
    pub position_s: f64,
    /// `pictures`, `sound alone`, or `uncounted` where there are pictures that cannot be counted.
    pub shows: &'static str,
    /// Why pictures cannot be counted.
    pub uncounted: Option<String>,
    /// Tracks of the media that are not played.
    pub left_out: Vec<String>,
    /// Whole when they were due; null where they cannot be counted.
    pub frames_shown: Option<u64>,
    /// Whole, and too late.
    pub frames_late: Option<u64>,
    /// Never whole.
    pub frames_incomplete: Option<u64>,
    /// Times that the player waited for its buffer to fill again.
    pub stalls: u64,
    /// For how long in all.
    pub stalled_s: f64,
    /// Gaps between frames above max(3 d, d + 150 ms), with d their mean interval (W3C webrtc-stats).
    pub freezes: Option<u64>,
    /// How long they were in all.
    pub frozen_s: Option<f64>,
    /// Bytes of the media, with the headers of its packets.
    pub bytes_received: u64,
    /// These over the time from the first of them to the last.
    pub throughput_bps: Option<f64>,
    /// Further values of this player.
    #[serde(flatten)]
    pub own: Map<String, Value>,
}

impl Report {
    /// Frames, and freezes among them, of a presentation that shows this.
    pub fn shows(&mut self, seen: &Seen, viewer: &Viewer) {
        let of_pictures = |count: u64| (!matches!(seen.shows, Shows::Uncounted(_))).then_some(count);
        let is_sound = seen.shows == Shows::SoundAlone;
        (self.shows, self.uncounted) = match &seen.shows {
            Shows::Pictures => ("pictures", None),
            Shows::SoundAlone => ("sound alone", None),
            Shows::Uncounted(why) => ("uncounted", Some(why.clone())),
        };
        self.frames_shown = of_pictures(seen.frames.shown);
        self.frames_late = of_pictures(seen.frames.late);
        self.frames_incomplete = of_pictures(seen.frames.incomplete);
        // Without pictures there is nothing that could freeze.
        self.freezes = of_pictures(viewer.freezes).filter(|_| !is_sound);
        self.frozen_s = self.freezes.map(|_| viewer.frozen.as_secs_f64());
    }

    /// Returns the lines for people: the media was requested by `asks` and carried `over` that; `came`
    /// describes arrivals at a rate.
    pub fn lines(&self, asks: &str, over: &str, came: impl FnOnce(&str) -> String) -> String {
        let startup = self.startup_delay_s.map_or("never".into(), |s| format!("{s:.2} s after {asks}"));
        let throughput = self.throughput_bps.map_or("too few".into(), rate);
        let stalls = format!("{} ({:.1} s)", counted(self.stalls, "stall"), self.stalled_s);
        let shown = match (self.frames_shown, self.frames_late, self.frames_incomplete, self.freezes) {
            (Some(shown), Some(late), Some(incomplete), Some(freezes)) => format!(
                "picture: first frame {startup}; {} shown, {late} late, {incomplete} incomplete; {stalls}, {} ({:.1} s)",
                counted(shown, "frame"),
                counted(freezes, "freeze"),
                self.frozen_s.unwrap_or(0.0)
            ),
            (Some(shown), ..) => format!(
                "sound alone: first sound {startup}; {}, {:.1} s of sound; {stalls}",
                counted(shown, "picture"),
                self.position_s
            ),
            (None, ..) => format!(
                "picture: not counted ({}); play began {startup}; {stalls}",
                self.uncounted.as_deref().unwrap_or("its container is not read")
            ),
        };
        let left_out = match self.left_out.is_empty() {
            true => String::new(),
            false => format!("left out: {}\n", self.left_out.join("; ")),
        };
        let came = came(&throughput);
        format!("{} after {:.1} s over {over}\n{shown}\n{left_out}{came}\n", self.outcome, self.duration_s)
    }
}

/// Writes a progress line now and then.
#[derive(Default)]
pub struct Progress {
    last_s: f64,
    last_bytes: u64,
}

impl Progress {
    /// Returns the progress at `now_s`.
    pub fn line(&mut self, now_s: f64, viewer: &Viewer, report: &Seen) -> String {
        let bytes = report.bytes - self.last_bytes;
        let speed = rate(bytes as f64 * 8.0 / (now_s - self.last_s).max(1e-3));
        (self.last_s, self.last_bytes) = (now_s, report.bytes);
        let frames = &report.frames;
        let (shown, late) = match report.shows {
            Shows::Pictures => (
                format!("{} shown", counted(frames.shown, "frame")),
                format!(", {} late, {} incomplete", frames.late, frames.incomplete),
            ),
            Shows::SoundAlone => ("sound alone".into(), String::new()),
            Shows::Uncounted(_) => ("pictures not counted".into(), String::new()),
        };
        let lost = report.lost.map_or(String::new(), |lost| format!(", {} lost", counted(lost, "packet")));
        // The most important is first: a narrow terminal cuts the rest.
        format!(
            "{now_s:6.1} s: {shown}, {}, {}, {:.1} s buffered, {speed}{lost}{late}",
            counted(frames.stalls, "stall"),
            counted(viewer.freezes, "freeze"),
            report.buffer.as_secs_f64(),
        )
    }
}

fn rate(bps: f64) -> String {
    if bps >= 1e6 { format!("{:.2} Mbit/s", bps / 1e6) } else { format!("{:.0} kbit/s", bps / 1e3) }
}
