//! Received and missing packets, and the times of reports to the server; the reception quality, the share of packets
//! that arrived in the last `quality_time`; and the loss at which the player requests less.

use std::collections::VecDeque;
use std::sync::Arc;

use streamgauge_base::{Duration, Instant};

use super::settings::PlayerSettings;

/// Numbers that are remembered as missing at most; of a larger gap the first are not waited for.
const MOST_MISSING: usize = 4_096;

/// Length of the intervals that the quality counts in.
const SLOT: Duration = Duration::from_millis(500);

/// Counts of all streams, in packets of media.
#[derive(Clone, Copy, Default, Debug)]
pub struct WmsCame {
    /// Packets, without duplicates.
    pub packets: u64,
    /// Their bytes, with RTP's headers.
    pub bytes: u64,
    /// Those that were seen to be missing.
    pub missed: u64,
    /// Those of them that arrived after they were missed.
    pub repaired: u64,
    /// Packets that had arrived before, or arrived too late.
    pub duplicates: u64,
}

/// The relation of a packet to those before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// It is new; the number of packets missed before it.
    New(u32),
    /// It was missing.
    Repaired,
    /// It has arrived before, or is not waited for.
    Duplicate,
}

struct Missing {
    sequence: u16,
    since: Instant,
    said: u32,
    due: Instant,
}

/// Packets due in an interval, and those of them that did not arrive.
struct Slot {
    begins: Instant,
    expected: u32,
    lost: u32,
}

/// Packets of a stretch of time, by which it is judged whether too much is lost.
#[derive(Clone, Copy)]
struct Judgement {
    from: Instant,
    until: Instant,
    expected: u32,
    lost: u32,
    /// Those of them in runs that `most_run` counts.
    counted: u32,
}

/// Those of a session.
pub struct Losses {
    settings: Arc<PlayerSettings>,
    next: Option<u16>,
    missing: VecDeque<Missing>,
    /// Time when the first of the packets still to be reported falls due.
    first_due: Option<Instant>,
    said_at: Instant,
    /// Time when packets were last seen to be missing.
    missed_at: Option<Instant>,
    slots: VecDeque<Slot>,
    judgement: Option<Judgement>,
}

impl Losses {
    /// Makes the state before any arrival.
    pub fn new(settings: Arc<PlayerSettings>) -> Self {
        Losses {
            settings,
            next: None,
            missing: VecDeque::new(),
            first_due: None,
            said_at: Instant::ZERO,
            missed_at: None,
            slots: VecDeque::new(),
            judgement: None,
        }
    }

    /// Handles a packet that arrived.
    pub fn came(&mut self, now: Instant, sequence: u16) -> Arrival {
        let next = *self.next.get_or_insert(sequence);
        let ahead = sequence.wrapping_sub(next).cast_signed();
        if ahead < 0 {
            let Some(place) = self.missing.iter().position(|one| one.sequence == sequence) else {
                return Arrival::Duplicate;
            };
            let since = self.missing.remove(place).map_or(now, |one| one.since);
            self.first_due = self.earliest();
            if self.settings.recovered_counts
                && let Some(slot) = self.slots.iter_mut().rev().find(|slot| slot.begins <= since)
            {
                slot.lost = slot.lost.saturating_sub(1);
            }
            return Arrival::Repaired;
        }
        let missed = u32::from(ahead.cast_unsigned());
        let due = now + self.settings.nack_wait;
        for step in 0..ahead.cast_unsigned() {
            let sequence = next.wrapping_add(step);
            self.missing.push_back(Missing { sequence, since: now, said: 0, due });
        }
        let before = self.missing.len();
        while self.missing.front().is_some_and(|one| {
            self.missing.len() > MOST_MISSING || one.since + self.settings.missing_kept < now
        }) {
            self.missing.pop_front();
        }
        if missed > 0 {
            self.missed_at = Some(now);
        }
        if missed > 0 || self.missing.len() < before {
            self.first_due = self.earliest();
        }
        self.count(now, missed);
        self.next = Some(sequence.wrapping_add(1));
        Arrival::New(missed)
    }

    fn count(&mut self, now: Instant, missed: u32) {
        if let Some(judged) = self.judgement.as_mut().filter(|one| (one.from..one.until).contains(&now)) {
            judged.expected += missed + 1;
            judged.lost += missed;
            let longest = self.settings.most_run;
            judged.counted += if longest == 0 || missed <= longest { missed } else { 0 };
        }
        if self.slots.back().is_none_or(|slot| slot.begins + SLOT <= now) {
            self.slots.push_back(Slot { begins: now, expected: 0, lost: 0 });
        }
        let time = self.settings.quality_time;
        while self.slots.front().is_some_and(|slot| slot.begins + time < now) {
            self.slots.pop_front();
        }
        if let Some(slot) = self.slots.back_mut() {
            slot.expected += missed + 1;
            slot.lost += missed;
        }
    }

    /// Returns since when nothing more has been missed, if something ever was: from then on it is calm.
    pub fn calm_from(&self) -> Option<Instant> {
        self.missed_at.map(|at| at + self.settings.calm)
    }

    /// Returns the share of packets that arrived, in the last `quality_time`.
    pub fn quality(&self) -> f64 {
        let of = |count: fn(&Slot) -> u32| self.slots.iter().map(count).sum::<u32>();
        1.0 - f64::from(of(|slot| slot.lost)) / f64::from(of(|slot| slot.expected).max(1))
    }

    /// Notes a request for media: losses are judged soon, if at all.
    pub fn asked(&mut self, now: Instant) {
        if self.settings.heed_loss {
            self.judge_from(now + self.settings.judged_after);
        }
    }

    fn judge_from(&mut self, from: Instant) {
        let until = from + self.settings.judged_for;
        self.judgement = Some(Judgement { from, until, expected: 0, lost: 0, counted: 0 });
    }

    /// Returns when there is something to judge.
    pub fn judges_at(&self) -> Option<Instant> {
        self.judgement.map(|judgement| judgement.until)
    }

    /// Returns the loss in the judged time, if it is time; packets that arrived again count too, and those in long runs
    /// only where they are too many in all.
    pub fn judge(&mut self, now: Instant) -> Option<f64> {
        let judgement = self.judgement.take_if(|one| one.until <= now)?;
        if self.settings.judged_again > Duration::ZERO {
            self.judge_from(judgement.from + self.settings.judged_again);
        }
        let share = |lost: u32| f64::from(lost) / f64::from(judgement.expected.max(1));
        let all = share(judgement.lost);
        Some(if all > self.settings.most_run_loss { all } else { share(judgement.counted) })
    }

    fn earliest(&self) -> Option<Instant> {
        let waits = |one: &&Missing| one.said < self.settings.nack_tries;
        self.missing.iter().filter(waits).map(|one| one.due).min()
    }

    /// Returns when it next has a report.
    pub fn due(&self) -> Option<Instant> {
        let due = self.first_due?.max(self.said_at + self.settings.nack_interval);
        let calm = self.calm_from().filter(|_| self.settings.nack_when_calm);
        Some(calm.map_or(due, |calm| due.max(calm)))
    }

    /// Returns the packets to request again, if it is time.
    pub fn take(&mut self, now: Instant) -> Vec<u16> {
        if self.due().is_none_or(|due| due > now) {
            return Vec::new();
        }
        self.said_at = now;
        let (tries, repeat) = (self.settings.nack_tries, self.settings.nack_repeat);
        let due = self.missing.iter_mut().filter(|one| one.said < tries && one.due <= now);
        let told = due
            .take(self.settings.most_nacks as usize)
            .map(|one| {
                (one.said, one.due) = (one.said + 1, now + repeat);
                one.sequence
            })
            .collect();
        self.first_due = self.earliest();
        told
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::settings::PlayerKind;
    use super::*;

    fn losses(change: impl FnOnce(&mut PlayerSettings)) -> Losses {
        let mut settings = PlayerSettings::of(PlayerKind::Wmp9);
        change(&mut settings);
        Losses::new(Arc::new(settings))
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn what_is_missing_is_said_twice() {
        let mut losses = losses(|_| ());
        assert_eq!(losses.came(at(0), 65_534), Arrival::New(0));
        assert_eq!(losses.came(at(10), 1), Arrival::New(2));
        assert!(losses.take(at(100)).is_empty());
        assert_eq!(losses.take(at(110)), [65_535, 0]);
        assert_eq!(losses.came(at(200), 0), Arrival::Repaired);
        assert_eq!(losses.came(at(201), 0), Arrival::Duplicate);
        assert!(losses.take(at(1_600)).is_empty());
        assert_eq!(losses.take(at(1_610)), [65_535]);
        assert_eq!(losses.due(), None);
    }

    #[test]
    fn repair_may_wait_until_nothing_more_is_lost() {
        let mut losses = losses(|settings| {
            (settings.nack_when_calm, settings.calm) = (true, Duration::from_secs(5));
            settings.missing_kept = Duration::from_secs(60);
        });
        for n in 0..40u16 {
            // Each second one of two is lost, for 40 s.
            losses.came(at(1_000 * u64::from(n)), 2 * n);
            assert!(losses.take(at(1_000 * u64::from(n) + 999)).is_empty());
        }
        assert_eq!(losses.due(), Some(at(44_000)));
        assert_eq!(losses.take(at(44_000)).len(), 32);
        assert_eq!(losses.take(at(44_050)).len(), 7);
    }

    #[test]
    fn quality_is_of_the_last_half_minute() {
        let mut losses = losses(|settings| settings.recovered_counts = false);
        for n in 0..400u16 {
            // In the first 10 s every second one is lost.
            if n >= 100 || n % 2 == 0 {
                losses.came(at(u64::from(n) * 100), n);
            }
            if n == 99 {
                assert!((losses.quality() - 0.5).abs() < 0.02);
            }
        }
        assert_eq!(losses.quality(), 1.0);
    }

    #[test]
    fn what_is_lost_is_judged_once_soon_after_media_is_asked_for() {
        let mut losses = losses(|settings| {
            settings.judged_after = Duration::from_secs(1);
            settings.judged_for = Duration::from_secs(2);
        });
        let mut judged = Vec::new();
        for n in 0..400u16 {
            if n % 10 != 5 {
                losses.came(at(u64::from(n) * 20), n);
            }
            if n == 100 {
                losses.asked(at(2_000));
                assert_eq!(losses.judges_at(), Some(at(5_000)));
            }
            judged.extend(losses.judge(at(u64::from(n) * 20)));
        }
        assert_eq!(judged.len(), 1);
        assert!((judged[0] - 0.1).abs() < 0.02, "{judged:?}");
        assert_eq!(losses.judges_at(), None);
    }

    #[test]
    fn bursts_that_overflow_a_queue_are_not_judged_unless_they_are_too_many() {
        // A run of `run` packets is lost in each 25.
        let judged = |run: u16, most_run: u32| {
            let mut losses = losses(|settings| {
                (settings.most_run, settings.most_run_loss) = (most_run, 0.4);
                settings.judged_after = Duration::ZERO;
            });
            losses.asked(at(0));
            for n in (0..400u16).filter(|n| n % 25 >= run) {
                losses.came(at(10 * u64::from(n)), n);
            }
            losses.judge(at(4_000)).unwrap()
        };
        assert!(judged(1, 2) > 0.035 && judged(2, 2) > 0.07);
        assert_eq!(judged(6, 2), 0.0);
        assert!((judged(6, 0) - 0.24).abs() < 0.02);
        assert!((judged(15, 2) - 0.6).abs() < 0.03);
    }

    proptest! {
        #[test]
        fn every_packet_counts_once_whatever_is_lost(
            lost in prop::collection::vec(any::<bool>(), 1..400), first in any::<u16>(), recovered in any::<bool>(),
        ) {
            let mut losses = losses(|settings| settings.recovered_counts = recovered);
            let numbers: Vec<u16> = (0..lost.len() as u16).map(|n| first.wrapping_add(n)).collect();
            let came = |n: &usize| *n == 0 || *n + 1 == lost.len() || !lost[*n];
            let mut missed = 0;
            for n in (0..lost.len()).filter(came) {
                match losses.came(at(n as u64), numbers[n]) {
                    Arrival::New(before) => missed += before as usize,
                    other => prop_assert!(false, "{other:?}"),
                }
                losses.take(at(n as u64));
                prop_assert_eq!(losses.first_due, losses.earliest());
            }
            prop_assert_eq!(missed, (0..lost.len()).filter(|n| !came(n)).count());
            let share = missed as f64 / lost.len() as f64;
            prop_assert!((1.0 - losses.quality() - share).abs() < 1e-9);
            for n in (0..lost.len()).filter(|n| !came(n)) {
                prop_assert_eq!(losses.came(at(500), numbers[n]), Arrival::Repaired);
                prop_assert_eq!(losses.came(at(500), numbers[n]), Arrival::Duplicate);
                prop_assert_eq!(losses.first_due, losses.earliest());
            }
            let left = if recovered { 0.0 } else { share };
            prop_assert!((1.0 - losses.quality() - left).abs() < 1e-9);
        }
    }
}
