//! A viewer's report of the session.

use streamgauge_base::{Duration, Instant};

use super::DarwinPlayer;
use crate::playout::PlayoutStats;

/// Counts of a session, over all its tracks unless noted otherwise.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct PlayerReport {
    /// Reliable UDP was granted.
    pub reliable_udp: bool,
    /// RTP packets that arrived, duplicates included.
    pub packets: u64,
    /// Their bytes, RTP headers included.
    pub bytes: u64,
    /// Packets that never arrived, though later ones did.
    pub lost: u64,
    /// Packets that had arrived before.
    pub duplicates: u64,
    /// Packets that first arrived behind a later one: over a path that keeps the order, retransmissions.
    pub retransmitted: u64,
    /// Interarrival jitter of the pictures' track (RFC 3550 section 6.4.1).
    pub jitter: Duration,
    /// The fates of the pictures.
    pub frames: PlayoutStats,
    /// From PLAY to the first picture's time.
    pub startup: Option<Duration>,
    /// Pictures held, from the play position to the newest that arrived.
    pub buffer: Duration,
    /// Where play is in the media.
    pub position: Duration,
    /// The media's length, if the description has it.
    pub duration: Option<Duration>,
}

impl DarwinPlayer {
    /// Returns the packets received and the pictures shown by `now`.
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
