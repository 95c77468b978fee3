//! Packets that left together as one group: how much further apart two groups arrive than they left.
//!
//! Source: draft-ietf-rmcat-gcc-02 section 5.2, with the constants of libwebrtc (branch 7204): packets sent within 5 ms are a
//! group, and so are those that arrive sooner than they were sent apart.

use streamgauge_base::Instant;

/// Packets sent within this time are a group, ms.
const GROUP_MS: f64 = 5.0;
/// Arrivals no further apart than this are a burst, ms.
const BURST_MS: f64 = 5.0;
/// No burst lasts longer, ms.
const LONGEST_BURST_MS: f64 = 100.0;
/// After this many groups that arrive before their predecessor everything starts again.
const MOST_REORDERED: u32 = 3;
/// After an arrival later than the one before by this time everything starts again, ms.
const LONGEST_GAP_MS: f64 = 3000.0;

#[derive(Clone, Copy, Debug)]
struct Group {
    first_sent: f64,
    last_sent: f64,
    first_arrived: f64,
    last_arrived: f64,
}

/// From one group to the next, ms.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Apart {
    pub sent: f64,
    pub arrived: f64,
}

/// The two groups that were seen last.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    current: Option<Group>,
    before: Option<Group>,
    reordered: u32,
}

/// Milliseconds since the trial's start.
pub(super) fn ms(at: Instant) -> f64 {
    at.as_nanos() as f64 / 1e6
}

impl Groups {
    /// Adds a packet, in the order of arrival. Returns how far apart the last two groups are where this packet begins a
    /// third.
    pub fn add(&mut self, sent: Instant, arrived: Instant) -> Option<Apart> {
        let (sent, arrived) = (ms(sent), ms(arrived));
        let fresh =
            Group { first_sent: sent, last_sent: sent, first_arrived: arrived, last_arrived: arrived };
        let Some(current) = &mut self.current else {
            self.current = Some(fresh);
            return None;
        };
        if sent < current.first_sent {
            return None;
        }
        let apart_sent = sent - current.last_sent;
        let apart_arrived = arrived - current.last_arrived;
        let is_burst = apart_arrived - apart_sent < 0.0
            && apart_arrived <= BURST_MS
            && arrived - current.first_arrived < LONGEST_BURST_MS;
        if is_burst || sent - current.first_sent <= GROUP_MS {
            current.last_sent = current.last_sent.max(sent);
            current.last_arrived = current.last_arrived.max(arrived);
            return None;
        }
        let ended = *current;
        let before = self.before.replace(ended);
        self.current = Some(fresh);
        let before = before?;
        let apart = Apart {
            sent: ended.last_sent - before.last_sent,
            arrived: ended.last_arrived - before.last_arrived,
        };
        if apart.arrived - apart.sent >= LONGEST_GAP_MS {
            *self = Groups { current: Some(fresh), ..Groups::default() };
            return None;
        }
        if apart.arrived < 0.0 {
            self.reordered += 1;
            if self.reordered >= MOST_REORDERED {
                *self = Groups { current: Some(fresh), ..Groups::default() };
            }
            return None;
        }
        self.reordered = 0;
        Some(apart)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn packets_of_one_burst_are_one_group() {
        let mut groups = Groups::default();
        for (sent, arrived) in [(0, 50), (2, 52), (5, 55), (33, 90), (35, 95)] {
            assert_eq!(groups.add(at(sent), at(arrived)), None);
        }
        // The first group's last packet left at 5 and arrived at 55, the second's left at 35 and arrived at 95.
        assert_eq!(groups.add(at(66), at(120)), Some(Apart { sent: 30.0, arrived: 40.0 }));
    }

    #[test]
    fn what_a_queue_lets_go_at_once_is_one_group() {
        let mut groups = Groups::default();
        for sent in [0, 20, 40, 60] {
            assert_eq!(groups.add(at(sent), at(100 + sent / 20)), None);
        }
    }

    #[test]
    fn a_gap_of_seconds_begins_anew() {
        let mut groups = Groups::default();
        for (sent, arrived) in [(0, 50), (33, 83), (66, 3_200), (99, 3_233)] {
            groups.add(at(sent), at(arrived));
        }
        assert_eq!(groups.add(at(132), at(3_266)), None, "the groups before the gap are forgotten");
        assert_eq!(groups.add(at(165), at(3_299)), Some(Apart { sent: 33.0, arrived: 33.0 }));
    }
}
