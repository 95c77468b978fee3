//! Freezes, and the end, from the player's events.

use std::collections::VecDeque;

use streamgauge_base::{Duration, Event, Instant};
use streamgauge_systems::MEDIA_END;

/// Intervals between frames over which a freeze is judged, or as many as there were (W3C webrtc-stats, `freezeCount`;
/// the same rule as of the metric `freeze_count`).
const INTERVALS: usize = 30;

/// A gap that is longer than the mean interval by this is a freeze (W3C webrtc-stats).
const FREEZE_ABOVE: Duration = Duration::from_millis(150);

/// Observations so far.
#[derive(Default)]
pub struct Viewer {
    /// Gaps between frames of max(3 d, d + 150 ms) or more, with d the mean interval before them.
    pub freezes: u64,
    /// How long they were in all.
    pub frozen: Duration,
    /// The cause why nothing more is shown; empty at the media's own end.
    pub ended: Option<String>,
    last_frame: Option<Instant>,
    intervals: VecDeque<Duration>,
}

impl Viewer {
    /// Processes an event of the player.
    pub fn event(&mut self, event: &Event) {
        match &*event.name {
            "frame_shown" => self.frame(event.at),
            MEDIA_END => self.ended = Some(event.reason.clone().into_owned()),
            _ => {}
        }
    }

    fn frame(&mut self, at: Instant) {
        let Some(interval) = self.last_frame.replace(at).map(|last| at.saturating_since(last)) else {
            return;
        };
        if !self.intervals.is_empty() {
            let sum: u64 = self.intervals.iter().map(|interval| interval.as_nanos()).sum();
            let mean = Duration::from_nanos(sum / self.intervals.len() as u64);
            if interval >= (mean * 3).max(mean + FREEZE_ABOVE) {
                self.freezes += 1;
                self.frozen += interval;
            }
        }
        if self.intervals.len() == INTERVALS {
            self.intervals.pop_front();
        }
        self.intervals.push_back(interval);
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    fn say(viewer: &mut Viewer, ms: u64, name: &'static str, reason: &'static str) {
        let at = Instant::from_nanos(ms * 1_000_000);
        let (unit, value) = (Cow::Borrowed("1"), Some(0.0));
        viewer.event(&Event { at, flow: None, name: name.into(), value, unit, reason: reason.into() });
    }

    #[test]
    fn a_gap_is_a_freeze_when_it_is_long_beside_the_others() {
        let mut viewer = Viewer::default();
        for frame in 0..40 {
            say(&mut viewer, 40 * frame, "frame_shown", "");
        }
        // The mean is 40 ms: 189 ms is none yet, 190 ms is one.
        say(&mut viewer, 1560 + 189, "frame_shown", "");
        assert_eq!(viewer.freezes, 0);
        for frame in 1..=30 {
            say(&mut viewer, 1749 + 40 * frame, "frame_shown", "");
        }
        say(&mut viewer, 2949 + 190, "frame_shown", "");
        assert_eq!((viewer.freezes, viewer.frozen), (1, Duration::from_millis(190)));
        assert_eq!(viewer.ended, None);
        say(&mut viewer, 5000, MEDIA_END, "the server said goodbye");
        assert_eq!(viewer.ended.as_deref(), Some("the server said goodbye"));
    }

    #[test]
    fn the_second_interval_may_be_one_and_the_first_may_not() {
        let mut viewer = Viewer::default();
        for at in [0, 1000, 1040] {
            say(&mut viewer, at, "frame_shown", "");
        }
        assert_eq!(viewer.freezes, 0);
        // The mean is 520 ms.
        say(&mut viewer, 1040 + 1560, "frame_shown", "");
        assert_eq!((viewer.freezes, viewer.frozen), (1, Duration::from_millis(1560)));
    }
}
