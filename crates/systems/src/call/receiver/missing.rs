//! Packets that did not come, and when they are asked for: at once, then each round trip, ten times at the most.
//!
//! Source: libwebrtc's NACK requester (branch 7204): a list of 1,000, ten tries, checked each 20 ms.

use std::collections::BTreeMap;

use streamgauge_base::{Duration, Instant};

const MOST: usize = 1000;
const TRIES: u32 = 10;
/// A packet is asked for again no sooner.
const LEAST_WAIT: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug)]
struct Asked {
    tries: u32,
    last: Instant,
}

/// Missing packets of one source.
pub(super) struct Missing {
    highest: Option<u64>,
    packets: BTreeMap<u64, Asked>,
    rtt: Duration,
    /// Packets that were given up.
    pub given_up: u64,
}

impl Default for Missing {
    fn default() -> Self {
        Missing { highest: None, packets: BTreeMap::new(), rtt: Duration::from_millis(100), given_up: 0 }
    }
}

impl Missing {
    /// Returns the highest number that has come.
    pub fn highest(&self) -> Option<u64> {
        self.highest
    }

    /// Notes a received packet. Returns how many before it are missing from now on; `None` where these are
    /// too many to ask for.
    pub fn came(&mut self, now: Instant, sequence: u64) -> Option<usize> {
        let Some(highest) = self.highest else {
            self.highest = Some(sequence);
            return Some(0);
        };
        if sequence <= highest {
            self.packets.remove(&sequence);
            return Some(0);
        }
        self.highest = Some(sequence);
        let fresh = (sequence - highest - 1) as usize;
        if fresh + self.packets.len() > MOST {
            self.given_up += (fresh + self.packets.len()) as u64;
            self.packets.clear();
            return None;
        }
        self.packets.extend((highest + 1..sequence).map(|number| (number, Asked { tries: 0, last: now })));
        Some(fresh)
    }

    /// Notes a packet that arrived after it was requested.
    pub fn mended(&mut self, now: Instant, sequence: u64) {
        if let Some(asked) = self.packets.remove(&sequence).filter(|asked| asked.tries == 1) {
            let took = now.saturating_since(asked.last).as_nanos();
            self.rtt = Duration::from_nanos((self.rtt.as_nanos() * 7 + took) / 8);
        }
    }

    /// Forgets packets that are no longer awaited.
    pub fn forget_before(&mut self, sequence: u64) {
        let kept = self.packets.split_off(&sequence);
        self.given_up += self.packets.len() as u64;
        self.packets = kept;
    }

    /// Returns the packets to be requested now, and whether some were requested often enough in vain.
    pub fn due(&mut self, now: Instant) -> (Vec<u16>, bool) {
        let wait = if self.rtt.as_nanos() > LEAST_WAIT.as_nanos() { self.rtt } else { LEAST_WAIT };
        let before = self.packets.len();
        self.packets.retain(|_, asked| asked.tries < TRIES || now.saturating_since(asked.last) < wait);
        self.given_up += (before - self.packets.len()) as u64;
        let is_vain = self.packets.len() < before;
        let mut found = Vec::new();
        for (sequence, asked) in &mut self.packets {
            if asked.tries < TRIES && (asked.tries == 0 || now.saturating_since(asked.last) >= wait) {
                *asked = Asked { tries: asked.tries + 1, last: now };
                found.push(*sequence as u16);
            }
        }
        (found, is_vain)
    }

    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn a_gap_is_asked_for_at_once_and_each_round_trip_ten_times() {
        let mut missing = Missing::default();
        assert_eq!((missing.came(at(0), 10), missing.came(at(0), 13)), (Some(0), Some(2)));
        let mut asked = Vec::new();
        for ms in (0..2_000).step_by(20) {
            let (packets, is_vain) = missing.due(at(ms));
            if !packets.is_empty() {
                assert_eq!(packets, [11, 12]);
                asked.push(ms);
            }
            assert_eq!(is_vain, ms == 1_000);
        }
        assert_eq!(asked, [0, 100, 200, 300, 400, 500, 600, 700, 800, 900]);
        assert_eq!((missing.given_up, missing.is_empty()), (2, true));
    }

    #[test]
    fn what_is_mended_measures_the_round_trip() {
        let mut missing = Missing::default();
        let _ = (missing.came(at(0), 1), missing.came(at(0), 3), missing.due(at(0)));
        missing.mended(at(20), 2);
        assert!(missing.is_empty());
        assert_eq!(missing.rtt, Duration::from_millis(90));
        assert_eq!(missing.came(at(30), 5_000), None, "too many");
    }
}
