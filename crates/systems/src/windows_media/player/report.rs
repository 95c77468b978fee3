//! The received packets and their fates, readable at any time.

use streamgauge_base::{Duration, Instant};
use streamgauge_wire::asf::Header;

use super::WmPlayer;
use super::core::Phase;
use super::keeping::Known;
use super::losses::WmsCame;
use crate::playout::{PlayoutStats, ReceivedUnit};

/// The player's observations.
#[derive(Clone, Debug, Default)]
pub struct WmPlayerReport {
    /// Counts of received packets.
    pub came: WmsCame,
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
    /// The rate of the pictures at each offer, with the sound, ascending, in bit/s.
    pub levels_bps: Vec<f64>,
    /// The link's rate by the packet pair, in bit/s.
    pub estimate_bps: Option<f64>,
    /// The rate of the selection, in bit/s; nothing before the server has stated its rates.
    pub level_bps: Option<f64>,
}

impl WmPlayer {
    /// Keeps the received media objects for `take_unit`; a trial keeps nothing. Call it before the start.
    pub fn keep_units(&mut self, keep: bool) {
        self.core.keeping.is_wanted = keep;
    }

    /// Returns the next media object that has been shown or given up, in its stream's order, and its properties if any
    /// of it arrived.
    pub(in super::super) fn take_unit(&mut self) -> Option<(ReceivedUnit, Option<Known>)> {
        let unit = self.core.playout.as_mut()?.take_unit()?;
        let known = unit.timestamp.and_then(|at| self.core.keeping.take(unit.track, at));
        Some((unit, known))
    }

    /// Returns the server's description of the media.
    pub(in super::super) fn header(&self) -> &Header {
        &self.core.keeping.header
    }

    /// Returns whether nothing more will be shown.
    pub(in super::super) fn has_ended(&self) -> bool {
        matches!(self.core.phase, Phase::Leaving { .. } | Phase::Gone)
    }

    /// Returns the last answer's status, if it was no success.
    pub(in super::super) fn refused(&self) -> Option<u16> {
        self.core.refused
    }

    /// Returns whether the server answered with something that this player cannot play.
    pub(in super::super) fn is_unplayable(&self) -> bool {
        self.core.is_unplayable
    }

    fn levels_bps(&self) -> Vec<f64> {
        let of = |is_video: bool| {
            let streams = self.core.streams.iter().filter(move |stream| stream.is_video == is_video);
            streams.map(|stream| stream.bit_rate_bps as f64)
        };
        let sound: f64 = of(false).sum();
        let mut levels: Vec<f64> = of(true).map(|pictures| pictures + sound).collect();
        levels.sort_by(f64::total_cmp);
        if levels.is_empty() && sound > 0.0 { vec![sound] } else { levels }
    }

    /// Returns the packets received and the pictures shown by `now`.
    pub fn report_at(&self, now: Instant) -> WmPlayerReport {
        let mut report = WmPlayerReport {
            came: self.core.came,
            estimate_bps: self.core.estimate_bps,
            level_bps: Some(self.core.rate_bps()).filter(|_| !self.core.streams.is_empty()),
            levels_bps: self.levels_bps(),
            duration: self.core.duration,
            ..WmPlayerReport::default()
        };
        if let Some(playout) = &self.core.playout {
            report.frames = playout.stats();
            report.startup = playout.startup();
            report.buffer = playout.buffer(now);
            report.position = playout.position(now);
        }
        report
    }
}
