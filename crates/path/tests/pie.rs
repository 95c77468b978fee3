//! PIE against RFC 8033's pseudo-code, by its properties, and by published results.

mod common;

use std::collections::VecDeque;

use common::aqm::*;
use common::*;
use proptest::prelude::*;
use streamgauge_base::{Cause, Ecn, RandomStream};
use streamgauge_path::spec::{Limit, PieDelay, PieSpec, QueueSpec};
use streamgauge_path::{Pie, QueuedPacket, TransmitState};

/// RFC 8033 sections 4 and 5 as they are written, with a clock that is asked at every update. Delays in
/// seconds.
struct Reference {
    spec: PieSpec,
    limit: usize,
    queue: VecDeque<QueuedPacket>,
    random: RandomStream,
    updates: u64,
    drop_prob: f64,
    current_qdelay: f64,
    qdelay_old: f64,
    burst_allowance: i64,
    accu_prob: f64,
    in_measurement: bool,
    measurement_start: u64,
    dq_count: u64,
    avg_dq_time: f64,
}

impl Reference {
    fn new(spec: &PieSpec) -> Self {
        let Limit::Packets(limit) = spec.limit else { panic!("in packets") };
        Reference {
            spec: spec.clone(),
            limit: limit as usize,
            queue: VecDeque::new(),
            random: RandomStream::named(1, "test", "drop"),
            updates: 0,
            drop_prob: 0.0,
            current_qdelay: 0.0,
            qdelay_old: 0.0,
            burst_allowance: spec.max_burst.as_nanos() as i64,
            accu_prob: 0.0,
            in_measurement: false,
            measurement_start: 0,
            dq_count: 0,
            avg_dq_time: 0.0,
        }
    }

    fn bytes(&self) -> u64 {
        self.queue.iter().map(|packet| u64::from(packet.bytes)).sum()
    }

    fn low(&self, delay: f64) -> bool {
        delay < self.spec.target.as_secs_f64() / 2.0
    }

    /// Every update of the past, one by one: none is left out.
    fn timer(&mut self, now: u64) {
        while (self.updates + 1) * self.spec.update.as_nanos() <= now {
            self.updates += 1;
            if self.spec.delay == PieDelay::DepartureRate {
                self.current_qdelay = self.bytes() as f64 * self.avg_dq_time / 16_384.0;
            }
            let target = self.spec.target.as_secs_f64();
            let mut p = self.spec.alpha * (self.current_qdelay - target)
                + self.spec.beta * (self.current_qdelay - self.qdelay_old);
            if self.drop_prob < 0.000_001 {
                p /= 2048.0;
            } else if self.drop_prob < 0.000_01 {
                p /= 512.0;
            } else if self.drop_prob < 0.000_1 {
                p /= 128.0;
            } else if self.drop_prob < 0.001 {
                p /= 32.0;
            } else if self.drop_prob < 0.01 {
                p /= 8.0;
            } else if self.drop_prob < 0.1 {
                p /= 2.0;
            }
            if self.drop_prob >= 0.1 && p > 0.02 {
                p = 0.02;
            }
            if self.current_qdelay > 0.250 {
                p += 0.02;
            }
            self.drop_prob += p;
            if self.current_qdelay == 0.0 && self.qdelay_old == 0.0 {
                self.drop_prob *= 0.98;
            }
            self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
            self.qdelay_old = self.current_qdelay;
            self.burst_allowance = (self.burst_allowance - self.spec.update.as_nanos() as i64).max(0);
        }
    }

    fn drop_early(&mut self) -> bool {
        if self.low(self.qdelay_old) && self.drop_prob < 0.2 {
            return false;
        }
        if self.bytes() <= 2 * u64::from(self.spec.mean_packet) {
            return false;
        }
        if self.spec.derandomize {
            if self.drop_prob == 0.0 {
                self.accu_prob = 0.0;
            }
            self.accu_prob += self.drop_prob;
            if self.accu_prob < 0.85 {
                return false;
            }
            if self.accu_prob >= 8.5 {
                return true;
            }
        }
        let random = self.random.bits() as f64 / 18_446_744_073_709_551_616.0;
        random < self.drop_prob
    }
}

impl Discipline for Reference {
    fn push(&mut self, now: u64, mut packet: QueuedPacket, link: &TransmitState, drops: &mut Drops) {
        self.timer(now);
        if self.queue.len() + link.sending_packets as usize >= self.limit {
            self.accu_prob = 0.0;
            drops.push((packet, Cause::QueueFull));
            return;
        }
        if self.drop_prob == 0.0 && self.low(self.current_qdelay) && self.low(self.qdelay_old) {
            self.burst_allowance = self.spec.max_burst.as_nanos() as i64;
        }
        if self.burst_allowance == 0 && self.drop_early() {
            self.accu_prob = 0.0;
            if self.spec.ecn && self.drop_prob <= self.spec.mark_below && packet.item.ecn != Ecn::NotEct {
                packet.marked = packet.item.ecn != Ecn::Ce;
                packet.item.ecn = Ecn::Ce;
            } else {
                drops.push((packet, Cause::Aqm));
                return;
            }
        }
        self.queue.push_back(packet);
    }

    fn pop(&mut self, now: u64, _: &TransmitState, _: &mut Drops) -> Option<QueuedPacket> {
        self.timer(now);
        let packet = self.queue.pop_front()?;
        if self.spec.delay == PieDelay::Timestamps {
            let sojourn = now - packet.t_in.as_nanos();
            self.current_qdelay = if self.queue.is_empty() { 0.0 } else { sojourn as f64 / 1e9 };
            return Some(packet);
        }
        if !self.in_measurement && self.bytes() >= 16_384 {
            self.in_measurement = true;
            self.measurement_start = now;
            self.dq_count = 0;
        }
        if self.in_measurement {
            self.dq_count += u64::from(packet.bytes);
            if self.dq_count >= 16_384 {
                let dq_time = (now - self.measurement_start) as f64 / 1e9;
                let weight = 16_384.0 / 65_536.0;
                self.avg_dq_time = if self.avg_dq_time == 0.0 {
                    dq_time
                } else {
                    dq_time * weight + self.avg_dq_time * (1.0 - weight)
                };
                self.in_measurement = false;
            }
        }
        Some(packet)
    }

    fn probability(&self) -> f64 {
        self.drop_prob
    }
}

fn real(spec: &PieSpec) -> Real<Pie> {
    Real(Pie::new(spec, RandomStream::named(1, "test", "drop")), Pie::drop_probability)
}

fn specs() -> impl Strategy<Value = PieSpec> {
    let limit = prop_oneof![Just(1000u32), 3..100u32];
    let delay = prop_oneof![Just(PieDelay::Timestamps), Just(PieDelay::DepartureRate)];
    (limit, delay, any::<bool>(), any::<bool>(), 0..300u64, 1..40u64).prop_map(
        |(limit, delay, ecn, derandomize, max_burst, update)| PieSpec {
            limit: Limit::Packets(limit),
            delay,
            ecn,
            derandomize,
            max_burst: ms(max_burst),
            update: ms(update),
            ..PieSpec::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn decides_as_the_rfc(spec in specs(), arrivals in loads()) {
        let ours = lockstep(&mut real(&spec), NS_PER_BYTE, &arrivals);
        prop_assert_eq!(ours, lockstep(&mut Reference::new(&spec), NS_PER_BYTE, &arrivals));
    }

    #[test]
    fn is_sound(spec in specs(), arrivals in loads(), seed in any::<u64>()) {
        assert_sound(&QueueSpec::Pie(spec), seed, &arrivals);
    }
}

/// Makes packets of 1 ms each that arrive at `load` times the link's rate for `seconds`, evenly but for a small jitter.
fn overload(load: f64, seconds: u64, ecn: Ecn) -> Vec<Arrival> {
    let gap = (1e6 / load) as u64;
    let mut random = RandomStream::named(7, "overload", "test");
    (0..seconds * 1_000_000_000 / gap)
        .map(|n| Arrival { at: n * gap + random.below(gap), bytes: 1000, hash: 0, ecn })
        .collect()
}

/// Returns the mean queueing delay, ms, of the packets sent in the second half, and the share dropped or marked there.
fn second_half(verdicts: &[Verdict]) -> (f64, f64) {
    let half = verdicts.last().unwrap().at / 2;
    let later: Vec<_> = verdicts.iter().filter(|verdict| verdict.at > half).collect();
    let sent: Vec<_> = later.iter().filter(|verdict| verdict.cause == Cause::None).collect();
    let delay = sent.iter().map(|verdict| (verdict.at - verdict.t_in) as f64 / 1e6 - 1.0).sum::<f64>();
    let signals = later.iter().filter(|verdict| verdict.cause != Cause::None || verdict.marked).count();
    (delay / sent.len() as f64, signals as f64 / later.len() as f64)
}

#[test]
fn a_saturating_load_waits_for_about_the_target() {
    for delay in [PieDelay::Timestamps, PieDelay::DepartureRate] {
        for load in [1.05, 1.25, 2.0] {
            let spec = PieSpec { delay, ..PieSpec::default() };
            let (waited, dropped) =
                second_half(&lockstep(&mut real(&spec), NS_PER_BYTE, &overload(load, 60, Ecn::NotEct)));
            assert!((10.0..20.0).contains(&waited), "{delay:?} {load}: {waited} ms");
            let excess = 1.0 - 1.0 / load;
            assert!((dropped - excess).abs() < 0.02, "{delay:?} {load}: {dropped}, not {excess}");
        }
    }
}

#[test]
fn a_burst_after_a_rest_passes() {
    // 100 packets at once are a queue of 100 ms, less than the burst allowance of 150 ms.
    let mut arrivals: Vec<_> =
        (0..100).map(|_| Arrival { at: 0, bytes: 1000, hash: 0, ecn: Ecn::NotEct }).collect();
    arrivals.extend(arrivals.clone().iter().map(|first| Arrival { at: 10_000_000_000, ..*first }));
    let verdicts = lockstep(&mut real(&PieSpec::default()), NS_PER_BYTE, &arrivals);
    assert!(verdicts.iter().all(|verdict| verdict.cause == Cause::None));
}

#[test]
fn marks_up_to_a_tenth_and_then_drops() {
    let spec = PieSpec { ecn: true, ..PieSpec::default() };
    let low = lockstep(&mut real(&spec), NS_PER_BYTE, &overload(1.02, 30, Ecn::Ect0));
    // Marks do not relieve the queue, so that the probability rises past the bound in the end.
    let first = low.iter().position(|verdict| verdict.cause == Cause::Aqm).expect("drops");
    assert!(low[..first].iter().any(|verdict| verdict.marked));
    assert!(low.iter().all(|verdict| verdict.cause != Cause::Aqm || verdict.probability > 0.1));
}

#[test]
fn evenly_spaced_drops_without_chance() {
    // The share is the controller's, but no two drops lie closer than 0.85 / p packets.
    let even = lockstep(&mut real(&PieSpec::default()), NS_PER_BYTE, &overload(1.1, 60, Ecn::NotEct));
    let dropped: Vec<_> = even.iter().filter(|verdict| verdict.cause == Cause::Aqm).collect();
    assert!(dropped.len() > 1_000, "{}", dropped.len());
    for pair in dropped.windows(2) {
        let highest = pair[0].probability.max(pair[1].probability);
        let least = (0.5 / highest) as u64;
        assert!(pair[1].id - pair[0].id >= least.min(3), "{pair:?}");
    }
}
