//! How it went, for people and for programs.

use serde::Serialize;
use streamgauge_systems::darwin::PlayerReport;

use super::viewer::Viewer;

/// The whole of it. Packets are of RTP, of all tracks; frames are pictures.
#[derive(Serialize)]
pub struct Report {
    /// Of this report.
    pub schema: &'static str,
    /// What was played.
    pub url: String,
    /// Which player.
    pub player: &'static str,
    /// What carried the media.
    pub transport: &'static str,
    /// Reliable UDP was granted.
    pub reliable_udp: bool,
    /// How it ended.
    pub outcome: String,
    /// It played to the end, or as long as was asked.
    pub played: bool,
    /// From the first attempt to connect.
    pub duration_s: f64,
    /// Until the connection stood.
    pub connect_s: f64,
    /// From PLAY to the first frame shown.
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
    /// Duplicates included.
    pub packets_received: u64,
    /// RTP headers included.
    pub bytes_received: u64,
    /// Never came, though later ones did.
    pub packets_lost: u64,
    /// Had come before.
    pub packets_duplicated: u64,
    /// Came behind a later one.
    pub packets_retransmitted: u64,
    /// Of the pictures' track (RFC 3550 section 6.4.1).
    pub jitter_s: f64,
    /// RTP's bytes over the time from the first packet to the last.
    pub throughput_bps: Option<f64>,
    /// RTCP that we sent by UDP.
    pub rtcp_packets_sent: u64,
}

impl Report {
    /// For people.
    pub fn lines(&self) -> String {
        let over = if self.reliable_udp { "Reliable UDP" } else { self.transport };
        let startup = self.startup_delay_s.map_or("never".into(), |s| format!("{s:.2} s after PLAY"));
        let throughput = self.throughput_bps.map_or("too few".into(), rate);
        format!(
            "{} after {:.1} s over {over}\n\
             picture: first frame {startup}; {} frames shown, {} late, {} incomplete; {} stalls ({:.1} s), \
             {} freezes ({:.1} s)\n\
             packets: {} received ({} bytes, {throughput}), {} lost, {} retransmitted, {} duplicates, \
             jitter {:.1} ms\n",
            self.outcome,
            self.duration_s,
            self.frames_shown,
            self.frames_late,
            self.frames_incomplete,
            self.stalls,
            self.stalled_s,
            self.freezes,
            self.frozen_s,
            self.packets_received,
            self.bytes_received,
            self.packets_lost,
            self.packets_retransmitted,
            self.packets_duplicated,
            self.jitter_s * 1e3,
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
    pub fn line(&mut self, now_s: f64, viewer: &Viewer, report: &PlayerReport) -> String {
        let bytes = report.bytes - self.last_bytes;
        let speed = rate(bytes as f64 * 8.0 / (now_s - self.last_s).max(1e-3));
        (self.last_s, self.last_bytes) = (now_s, report.bytes);
        let frames = &report.frames;
        format!(
            "{now_s:6.1} s: {} frames shown, {} late, {} incomplete, {} stalls, {} freezes; {:.1} s buffered; \
             {speed}, {} packets lost",
            frames.shown,
            frames.late,
            frames.incomplete,
            frames.stalls,
            viewer.freezes,
            report.buffer.as_secs_f64(),
            report.lost
        )
    }
}

fn rate(bps: f64) -> String {
    if bps >= 1e6 { format!("{:.2} Mbit/s", bps / 1e6) } else { format!("{:.0} kbit/s", bps / 1e3) }
}
