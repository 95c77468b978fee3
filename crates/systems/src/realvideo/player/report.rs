//! The received packets and their fates, readable at any time.

use streamgauge_base::{Duration, Instant};

use super::super::sdp::StreamDescription;
use super::RealPlayer;
use crate::playout::{PlayoutStats, ReceivedUnit};

/// Key frames that are remembered as such.
const MOST_KEYS: usize = 1_024;

/// Counts of all streams, in packets of media.
#[derive(Clone, Copy, Default, Debug)]
pub struct RdtCame {
    /// Packets, without duplicates.
    pub packets: u64,
    /// Their bytes, with RDT's headers.
    pub bytes: u64,
    /// Those that were seen to be missing.
    pub missed: u64,
    /// Those of them that arrived after they were missed.
    pub repaired: u64,
    /// Packets that had arrived before, or arrived too late.
    pub duplicates: u64,
}

/// The player's observations.
#[derive(Clone, Debug, Default)]
pub struct RealPlayerReport {
    /// Counts of received packets.
    pub came: RdtCame,
    /// The fates of the pictures.
    pub frames: PlayoutStats,
    /// From PLAY to the first picture's time.
    pub startup: Option<Duration>,
    /// Pictures held.
    pub buffer: Duration,
    /// Where play is in the media.
    pub position: Duration,
    /// The media's length, if the server gives it.
    pub duration: Option<Duration>,
    /// Rate of each offered level, ascending, in bit/s.
    pub levels_bps: Vec<f64>,
    /// Rate of the level last requested.
    pub level_bps: Option<f64>,
}

/// The kept part of the media, and the pictures that are known to be key frames.
#[derive(Default)]
pub(super) struct Keeping {
    pub is_wanted: bool,
    keys: Vec<u32>,
}

impl Keeping {
    /// Notes a key frame of that time, or a part of it.
    pub fn key(&mut self, timestamp_ms: u32) {
        if self.is_wanted && self.keys.last() != Some(&timestamp_ms) {
            if self.keys.len() == MOST_KEYS {
                self.keys.remove(0);
            }
            self.keys.push(timestamp_ms);
        }
    }

    fn takes(&mut self, timestamp_ms: u32) -> bool {
        let place = self.keys.iter().position(|key| *key == timestamp_ms);
        place.map(|place| self.keys.remove(place)).is_some()
    }
}

impl RealPlayer {
    /// Keeps the received units for `take_unit`; a trial keeps nothing. Call it before the start.
    pub fn keep_units(&mut self, keep: bool) {
        self.keeping.is_wanted = keep;
    }

    /// Returns the next unit that has been shown or given up, in its stream's order of decoding; and whether it is a
    /// key frame.
    pub(in super::super) fn take_unit(&mut self) -> Option<(ReceivedUnit, bool)> {
        let unit = self.playout.as_mut()?.take_unit()?;
        let is_video = self.tracks.get(unit.track).is_some_and(|track| track.description.is_video);
        let is_key = !is_video || unit.timestamp.is_some_and(|at| self.keeping.takes(at));
        Some((unit, is_key))
    }

    /// Returns the server's description of each stream that is played.
    pub(in super::super) fn streams(&self) -> impl Iterator<Item = &StreamDescription> {
        self.tracks.iter().map(|track| &track.description)
    }

    /// Returns the packets received and the pictures shown by `now`.
    pub fn report_at(&self, now: Instant) -> RealPlayerReport {
        let mut report = RealPlayerReport {
            came: self.came,
            duration: self.duration,
            levels_bps: self.offers.iter().map(|offer| offer.needs_bps).collect(),
            level_bps: self.told.as_ref().map(|told| self.offers[told.level].needs_bps),
            ..RealPlayerReport::default()
        };
        if let Some(playout) = &self.playout {
            report.frames = playout.stats();
            report.startup = playout.startup();
            report.buffer = playout.buffer(now);
            report.position = playout.position(now);
        }
        report
    }

    /// Returns the media's length, if the server gives it.
    pub(in super::super) fn duration(&self) -> Option<Duration> {
        self.duration
    }

    /// Returns the last answer's status, if it was no success.
    pub(in super::super) fn refused(&self) -> Option<u16> {
        self.refused
    }

    /// Returns whether the server answered with something that this player cannot play.
    pub(in super::super) fn is_unplayable(&self) -> bool {
        self.is_unplayable
    }
}
