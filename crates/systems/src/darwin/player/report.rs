//! What a viewer would say of the session.

use streamgauge_base::{Duration, Instant};

use super::DarwinPlayer;
use crate::playout::PlayoutStats;

/// Counts of a session, over all its tracks where nothing else is said.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct PlayerReport {
    /// Reliable UDP was granted.
    pub reliable_udp: bool,
    /// RTP packets that came, duplicates included.
    pub packets: u64,
    /// Their bytes, RTP headers included.
    pub bytes: u64,
    /// Packets that never came, though later ones did.
    pub lost: u64,
    /// Packets that had come before.
    pub duplicates: u64,
    /// Packets that came for the first time behind a later one: over a path that keeps the order, retransmissions.
    pub retransmitted: u64,
    /// Interarrival jitter of the pictures' track (RFC 3550 section 6.4.1).
    pub jitter: Duration,
    /// What became of the pictures.
    pub frames: PlayoutStats,
    /// From PLAY to the first picture's time.
    pub startup: Option<Duration>,
    /// Pictures held, from where play is to the newest that came.
    pub buffer: Duration,
    /// Where play is in the media.
    pub position: Duration,
    /// The media's length, if the description says.
    pub duration: Option<Duration>,
}

impl DarwinPlayer {
    /// What came and what was shown by `now`.
    pub fn report_at(&mut self, now: Instant) -> PlayerReport {
        let mut report = PlayerReport {
            reliable_udp: self.tracks.iter().any(|track| track.reliable),
            duration: self.duration,
            ..PlayerReport::default()
        };
        for track in &self.tracks {
            let reception = track.source.reception();
            let counts = reception.counts();
            report.packets += counts.packets;
            report.bytes += counts.bytes;
            report.lost += reception.lost();
            report.duplicates += counts.duplicates;
            report.retransmitted += counts.behind;
        }
        if let Some(track) = self.tracks.get(self.main) {
            report.jitter = track.source.reception().jitter();
        }
        if let Some(playout) = &self.playout {
            report.frames = playout.stats();
            report.startup = playout.startup();
            report.buffer = playout.buffer(now);
            report.position = playout.position(now);
        }
        report
    }
}
