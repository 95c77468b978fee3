//! What came and what became of it, for who asks at any time.

use streamgauge_base::{Duration, Instant};
use streamgauge_wire::asf::Header;

use super::WmPlayer;
use super::core::Phase;
use super::keeping::Known;
use super::losses::WmsCame;
use crate::playout::{PlayoutStats, ReceivedUnit};

/// What the player has seen.
#[derive(Clone, Debug, Default)]
pub struct WmPlayerReport {
    /// What has come.
    pub came: WmsCame,
    /// What became of the pictures.
    pub frames: PlayoutStats,
    /// From PLAY to the first picture's time.
    pub startup: Option<Duration>,
    /// Pictures held.
    pub buffer: Duration,
    /// Where play is in the media.
    pub position: Duration,
    /// The media's length, if the server says it.
    pub duration: Option<Duration>,
    /// What the pictures come to at each rate that is offered, with the sound, ascending, in bit/s.
    pub levels_bps: Vec<f64>,
    /// What the link carries by the packet pair, in bit/s.
    pub estimate_bps: Option<f64>,
    /// What is taken, in bit/s; nothing before the server has stated its rates.
    pub level_bps: Option<f64>,
}

impl WmPlayer {
    /// Keeps the media objects that come for `take_unit`; a trial keeps nothing. Call it before the start.
    pub fn keep_units(&mut self, keep: bool) {
        self.core.keeping.is_wanted = keep;
    }

    /// The next media object that has been shown or given up, in its stream's order, and what it is if any of it came.
    pub(in super::super) fn take_unit(&mut self) -> Option<(ReceivedUnit, Option<Known>)> {
        let unit = self.core.playout.as_mut()?.take_unit()?;
        let known = unit.timestamp.and_then(|at| self.core.keeping.take(unit.track, at));
        Some((unit, known))
    }

    /// What the server said of the media.
    pub(in super::super) fn header(&self) -> &Header {
        &self.core.keeping.header
    }

    /// Nothing more will be shown.
    pub(in super::super) fn has_ended(&self) -> bool {
        matches!(self.core.phase, Phase::Leaving { .. } | Phase::Gone)
    }

    /// The last answer's status, if it was no success.
    pub(in super::super) fn refused(&self) -> Option<u16> {
        self.core.refused
    }

    /// The server answered with something that this player cannot play.
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

    /// What came and what was shown by `now`.
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
