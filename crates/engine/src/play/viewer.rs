//! Freezes, and the end, from the player's events.

use std::collections::VecDeque;

use streamgauge_base::Event;
use streamgauge_systems::MEDIA_END;

/// Intervals between frames over which a freeze is judged (W3C webrtc-stats, `freezeCount`).
const INTERVALS: usize = 30;

/// A gap that is longer than the mean interval by this is a freeze (W3C webrtc-stats), s.
const FREEZE_ABOVE_S: f64 = 0.150;

/// What was seen so far.
#[derive(Default)]
pub struct Viewer {
    /// Gaps between frames above max(3 d, d + 150 ms), with d their mean interval.
    pub freezes: u64,
    /// How long they were in all, s.
    pub frozen_s: f64,
    /// Nothing more is shown, and what ended it; empty at the media's own end.
    pub ended: Option<String>,
    last_frame_s: Option<f64>,
    intervals: VecDeque<f64>,
}

impl Viewer {
    /// Takes what the player says.
    pub fn event(&mut self, event: &Event) {
        match &*event.name {
            "frame_shown" => self.frame(event.at.as_secs_f64()),
            MEDIA_END => self.ended = Some(event.reason.clone().into_owned()),
            _ => {}
        }
    }

    fn frame(&mut self, at: f64) {
        let Some(interval) = self.last_frame_s.replace(at).map(|last| at - last) else { return };
        if self.intervals.len() == INTERVALS {
            let mean = self.intervals.iter().sum::<f64>() / INTERVALS as f64;
            if interval > (3.0 * mean).max(mean + FREEZE_ABOVE_S) {
                self.freezes += 1;
                self.frozen_s += interval;
            }
            self.intervals.pop_front();
        }
        self.intervals.push_back(interval);
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use streamgauge_base::Instant;

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
        // The mean is 40 ms: 190 ms is none yet, 191 ms is one.
        say(&mut viewer, 1560 + 190, "frame_shown", "");
        assert_eq!(viewer.freezes, 0);
        for frame in 1..=30 {
            say(&mut viewer, 1750 + 40 * frame, "frame_shown", "");
        }
        say(&mut viewer, 2950 + 191, "frame_shown", "");
        assert_eq!(viewer.freezes, 1);
        assert!((viewer.frozen_s - 0.191).abs() < 1e-9);
        assert_eq!(viewer.ended, None);
        say(&mut viewer, 5000, MEDIA_END, "the server said goodbye");
        assert_eq!(viewer.ended.as_deref(), Some("the server said goodbye"));
    }
}
