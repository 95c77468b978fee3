//! The parts of a live presentation that are available at a time.

use std::ops::Range;

use streamgauge_base::{Duration, Instant};

use super::OriginSettings;

/// A live presentation's time.
pub struct Clock {
    /// Its beginning since the Unix epoch.
    pub starts: Duration,
    /// When each segment ends, of every level alike: sound is cut a little later than pictures and there at the same time.
    ends: Vec<Duration>,
    begins: Instant,
    on_air: Duration,
    window: Duration,
    early: Duration,
    epoch: Duration,
}

impl Clock {
    /// A clock for segments that end at these times.
    pub fn new(settings: &OriginSettings, ends: Vec<Duration>) -> Result<Self, String> {
        let begins = settings.epoch + Duration::from_nanos(settings.begins.as_nanos());
        if begins < settings.on_air {
            let on_air = settings.on_air.as_secs_f64();
            return Err(format!(
                "it has been on air for {on_air} s, which is before 1970; give a later epoch"
            ));
        }
        Ok(Clock {
            starts: begins.saturating_sub(settings.on_air),
            ends,
            begins: settings.begins,
            on_air: settings.on_air,
            window: settings.live_window,
            early: settings.early,
            epoch: settings.epoch,
        })
    }

    /// Time of the presentation; `None` before it begins.
    fn time(&self, now: Instant) -> Option<Duration> {
        let before = self.begins.saturating_since(now);
        if before > self.on_air {
            return None;
        }
        Some((self.on_air + now.saturating_since(self.begins)).saturating_sub(before))
    }

    /// Since the Unix epoch.
    pub fn unix(&self, now: Instant) -> Duration {
        self.epoch + Duration::from_nanos(now.as_nanos())
    }

    /// Segments that are complete, or may be asked for all the same.
    fn made(&self, now: Instant) -> usize {
        let time = self.time(now).map(|time| time + self.early);
        time.map_or(0, |time| self.ends.partition_point(|end| *end <= time))
    }

    /// The segments in a manifest now: those that ended within the window.
    pub fn window(&self, now: Instant) -> Range<usize> {
        let made = self.made(now);
        let from = self.time(now).unwrap_or_default().saturating_sub(self.window);
        self.ends.partition_point(|end| *end <= from).min(made)..made
    }

    /// True if every segment is there.
    pub fn is_over(&self, now: Instant) -> bool {
        self.made(now) == self.ends.len()
    }

    /// Returns whether a segment is available now. It stays available for a window and its own length after it left the
    /// manifest, as RFC 8216 section 6.2.2 requires.
    pub fn has(&self, segment: usize, now: Instant) -> bool {
        let Some(&end) = self.ends.get(segment) else { return false };
        let start = segment.checked_sub(1).map_or(Duration::ZERO, |before| self.ends[before]);
        let goes = end + end.saturating_sub(start) + self.window * 2;
        segment < self.made(now) && self.time(now).is_some_and(|time| time <= goes)
    }
}
