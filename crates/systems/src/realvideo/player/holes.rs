//! The packets of a stream that arrived or are missing, and the times of reports to the server.

use std::collections::VecDeque;
use std::sync::Arc;

use streamgauge_base::{Duration, Instant};
use streamgauge_wire::rdt::{AckPacket, SequenceNumber};

use super::settings::PlayerSettings;

/// A packet that is missing for this long is not waited for; ours, longer than a server keeps it.
const HOLD: Duration = Duration::from_secs(20);

/// Numbers that are remembered as missing; a gap beyond them is a server that restarted.
const MOST_MISSING: usize = 1_024;

/// The relation of a packet to those before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// It is new; its number, extended by the count of wraps, and how many were missed before it.
    New(u32, u32),
    /// It was missing.
    Repaired(u32),
    /// It has arrived before, or is not waited for.
    Duplicate,
}

struct Missing {
    sequence: SequenceNumber,
    since: Instant,
    /// How many had arrived when it was missed.
    came: u64,
    is_said: bool,
}

/// One stream's.
pub struct Holes {
    settings: Arc<PlayerSettings>,
    /// The number that is expected, and how it is extended.
    next: Option<(SequenceNumber, u32)>,
    /// Reported ones are first: a missed packet is added at the end, and a report covers all of it.
    missing: VecDeque<Missing>,
    came: u64,
    /// The first number without any report.
    unsaid: SequenceNumber,
    said_at: Instant,
    checked_at: Instant,
    /// Whether more of them are missing than allowed, all at once.
    is_urgent: bool,
}

impl Holes {
    /// Makes the state before any arrival.
    pub fn new(settings: Arc<PlayerSettings>) -> Self {
        Holes {
            settings,
            next: None,
            missing: VecDeque::new(),
            came: 0,
            unsaid: SequenceNumber::default(),
            said_at: Instant::ZERO,
            checked_at: Instant::ZERO,
            is_urgent: false,
        }
    }

    /// Handles a packet that arrived.
    pub fn came(&mut self, now: Instant, sequence: SequenceNumber) -> Arrival {
        let Some((next, extended)) = self.next else {
            // The numbers begin at 0, and the first packet may be lost.
            (self.unsaid, self.said_at, self.checked_at) = (sequence, now, now);
            self.next = Some((sequence.next(), u32::from(sequence.get()) + 1));
            self.came = 1;
            return Arrival::New(sequence.get().into(), 0);
        };
        let ahead = sequence.ahead_of(next);
        let of = extended.wrapping_add_signed(ahead);
        if ahead < 0 {
            let Some(place) = self.missing.iter().position(|one| one.sequence == sequence) else {
                return Arrival::Duplicate;
            };
            self.missing.remove(place);
            return Arrival::Repaired(of);
        }
        let missed = ahead.cast_unsigned();
        for step in 0..ahead.min(MOST_MISSING as i32) {
            let sequence = next.plus(step);
            self.missing.push_back(Missing { sequence, since: now, came: self.came, is_said: false });
        }
        while self.missing.len() > MOST_MISSING {
            self.missing.pop_front();
        }
        self.is_urgent |= missed >= self.settings.nak_gap;
        self.came += 1;
        self.next = Some((sequence.next(), of.wrapping_add(1)));
        Arrival::New(of, missed)
    }

    /// Returns the missing packets that are not yet reported, the latest first.
    fn to_say(&self) -> impl Iterator<Item = &Missing> {
        self.missing.iter().rev().take_while(|one| !one.is_said)
    }

    /// Returns when it looks next.
    pub fn due(&self) -> Option<Instant> {
        self.next?;
        let check = self.to_say().next().map(|_| self.checked_at + self.settings.nak_check);
        Some(if self.is_urgent {
            Instant::ZERO
        } else {
            check.unwrap_or(Instant::FAR_FUTURE).min(self.said_at + self.settings.ack_interval)
        })
    }

    /// Returns the report to the server on `stream`, if it is time.
    pub fn take(&mut self, now: Instant, stream: u16) -> Option<AckPacket> {
        if self.due()? > now {
            return None;
        }
        self.checked_at = now;
        while self.missing.front().is_some_and(|one| one.since + HOLD < now) {
            self.missing.pop_front();
        }
        let (settings, came) = (&self.settings, self.came);
        let is_due = |one: &Missing| {
            came - one.came > u64::from(settings.nak_after) || one.since + settings.nak_wait <= now
        };
        let lacks = self.to_say().any(is_due);
        if !lacks && !self.is_urgent && self.said_at + self.settings.ack_interval > now {
            return None;
        }
        let (next, _) = self.next?;
        // A reported packet is not reported again.
        let first = self.to_say().last().map(|one| one.sequence);
        let first = first.filter(|one| one.ahead_of(self.unsaid) < 0).unwrap_or(self.unsaid);
        let last = next.plus(-1);
        let first = if first.ahead_of(last) > 0 { last } else { first };
        let is_there = |sequence| self.to_say().all(|one| one.sequence != sequence);
        let ack = AckPacket::of(stream, first, last, is_there);
        self.missing.iter_mut().for_each(|one| one.is_said = true);
        (self.unsaid, self.said_at, self.is_urgent) = (next, now, false);
        Some(ack)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::settings::PlayerKind;
    use super::*;

    fn holes() -> Holes {
        Holes::new(Arc::new(PlayerSettings::of(PlayerKind::RealPlayer8)))
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn number(sequence: u16) -> SequenceNumber {
        SequenceNumber::new(sequence).unwrap()
    }

    fn said(holes: &mut Holes, ms: u64) -> Option<Vec<u16>> {
        holes.take(at(ms), 0).map(|ack| ack.lost_sequences().map(|(_, sequence)| sequence.get()).collect())
    }

    #[test]
    fn three_missing_are_said_at_once_and_fewer_later() {
        let mut holes = holes();
        assert_eq!(holes.came(at(0), number(5)), Arrival::New(5, 0));
        assert_eq!(holes.came(at(10), number(9)), Arrival::New(9, 3));
        assert_eq!(said(&mut holes, 10), Some(vec![6, 7, 8]));
        assert_eq!(holes.came(at(20), number(11)), Arrival::New(11, 1));
        assert_eq!(said(&mut holes, 130), None, "one, and nothing behind it");
        for (later, ms) in (12..15).zip([140, 150, 160]) {
            holes.came(at(ms), number(later));
        }
        assert_eq!(said(&mut holes, 240), Some(vec![10]), "three have come behind it");
        assert_eq!(holes.came(at(250), number(16)), Arrival::New(16, 1));
        assert_eq!(said(&mut holes, 700), None);
        assert_eq!(said(&mut holes, 800), Some(vec![15]), "for half a second");
        assert_eq!(said(&mut holes, 1_500), None);
        assert_eq!(said(&mut holes, 1_800), Some(vec![]), "each second that all is there");
    }

    #[test]
    fn what_comes_again_is_known() {
        let mut holes = holes();
        holes.came(at(0), number(0));
        holes.came(at(1), number(3));
        assert_eq!(holes.came(at(2), number(1)), Arrival::Repaired(1));
        assert_eq!(holes.came(at(3), number(1)), Arrival::Duplicate);
        assert_eq!(holes.came(at(3), number(3)), Arrival::Duplicate);
        assert_eq!(holes.came(at(4), number(2)), Arrival::Repaired(2));
    }

    proptest! {
        #[test]
        fn each_number_is_new_or_repaired_once_whatever_is_lost(
            lost in prop::collection::vec(any::<bool>(), 1..400), first in 0u16..0xff00, again in any::<bool>(),
        ) {
            let mut holes = holes();
            let mut found = Vec::new();
            let mut missed = 0;
            for step in (0..lost.len()).filter(|step| *step == 0 || !lost[*step]) {
                let sequence = number(first).plus(step as i32);
                if let Arrival::New(extended, before) = holes.came(at(step as u64), sequence) {
                    found.push(extended);
                    missed += before;
                }
            }
            if again {
                for step in (1..lost.len()).filter(|step| lost[*step]) {
                    if let Arrival::Repaired(extended) = holes.came(at(1_000), number(first).plus(step as i32)) {
                        found.push(extended);
                        missed -= 1;
                    }
                }
                prop_assert_eq!(missed, 0);
            }
            found.sort_unstable();
            let before = found.len();
            found.dedup();
            prop_assert_eq!(found.len(), before);
            prop_assert!(found.windows(2).all(|pair| pair[1] > pair[0]));
        }
    }
}
