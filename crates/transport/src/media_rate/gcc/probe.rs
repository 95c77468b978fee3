//! Probes: packets sent faster than the target to measure the path's capacity, and their results.
//!
//! Source: libwebrtc's probe controller and probe bitrate estimator (branch 7204).

use std::collections::VecDeque;

use streamgauge_base::{BitRate, Duration, Instant};

use super::super::groups::ms;
use super::super::{PacketResult, Probe};

/// The first two probes, as multiples of the start rate, and every further one of the last result.
const FIRST: [f64; 2] = [3.0, 6.0];
const FURTHER: f64 = 2.0;
/// A result of more than this share of its probe's rate asks for a further one.
const GOES_ON: f64 = 0.7;
const PACKETS: u32 = 5;
const FIRST_LASTS: Duration = Duration::from_millis(100);
const LASTS: Duration = Duration::from_millis(15);
/// While the sender uses less than its target, one in this time.
const ALR_EVERY: Duration = Duration::from_secs(5);
/// A fall below this share in such a time is checked, at this share of the rate before.
const DROP: f64 = 0.66;
const RECOVERS: f64 = 0.85;
/// The fall is forgotten after.
const DROP_FORGOTTEN: Duration = Duration::from_secs(5);
/// Share of a probe that must arrive.
const ARRIVES: f64 = 0.8;
/// A probe that arrives faster than it was sent by more than this ratio shows nothing.
const MOST_RATIO: f64 = 2.0;
/// Where less than this share of the sent rate arrives, the path is full and some of the result is left.
const FULL: f64 = 0.9;
const FULL_SHARE: f64 = 0.95;
/// A result that does not arrive in this time never will.
const WAITS: Duration = Duration::from_secs(1);

/// Packets of a probe that have been reported.
#[derive(Clone, Debug)]
struct Cluster {
    probe: Probe,
    /// When sent, when arrived, ms; bytes.
    arrived: Vec<(f64, f64, f64)>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Probes {
    most: f64,
    due: VecDeque<(f64, Duration)>,
    given: u32,
    clusters: VecDeque<(u32, Cluster)>,
    /// The rate beyond which a result asks for a further probe, and until when.
    goes_on: Option<(f64, Instant)>,
    last_alr: Option<Instant>,
    dropped: Option<(Instant, f64)>,
}

impl Probes {
    pub fn new(start: f64, most: f64) -> Self {
        let mut probes = Probes { most, ..Probes::default() };
        for multiple in FIRST {
            probes.plan(multiple * start, FIRST_LASTS);
        }
        probes
    }

    fn plan(&mut self, bps: f64, lasts: Duration) {
        let bps = bps.min(self.most);
        if self.due.back().is_none_or(|last| last.0 < bps) {
            self.due.push_back((bps, lasts));
        }
    }

    /// Returns the next probe to send.
    pub fn next(&mut self, now: Instant) -> Option<Probe> {
        let (bps, lasts) = self.due.pop_front()?;
        let probe = Probe { rate: BitRate::from_bps(bps as u64), packets: PACKETS, lasts };
        self.clusters.push_back((self.given, Cluster { probe, arrived: Vec::new() }));
        if self.clusters.len() > 8 {
            self.clusters.pop_front();
        }
        self.given += 1;
        self.goes_on = (bps < self.most).then(|| (GOES_ON * bps, now + WAITS));
        Some(probe)
    }

    /// Handles a reported packet. Returns the result of its probe so far, bit/s.
    pub fn packet(&mut self, result: &PacketResult) -> Option<f64> {
        let (number, arrived) = (result.probe?, result.arrived?);
        let (_, cluster) = self.clusters.iter_mut().find(|(known, _)| *known == number)?;
        cluster.arrived.push((ms(result.sent), ms(arrived), f64::from(result.bytes)));
        measured(cluster)
    }

    /// Notes that a probe showed `bps`.
    pub fn shown(&mut self, now: Instant, bps: f64) {
        if let Some((beyond, until)) = self.goes_on
            && bps > beyond
            && now < until
        {
            self.goes_on = None;
            self.plan(FURTHER * bps, LASTS);
        }
    }

    /// Notes that the estimate moved from one rate to another; `is_idle` where the sender does not use it.
    pub fn estimated(&mut self, now: Instant, before: f64, bps: f64, is_idle: bool) {
        if is_idle && bps < DROP * before {
            self.dropped = Some((now, before));
        }
        if !is_idle {
            (self.last_alr, self.dropped) = (None, None);
            return;
        }
        let since = *self.last_alr.get_or_insert(now);
        let fallen = self.dropped.filter(|(at, rate)| {
            now.saturating_since(*at) < DROP_FORGOTTEN && bps < DROP * rate && *at < now
        });
        if let Some((_, rate)) = fallen {
            self.dropped = None;
            self.plan(RECOVERS * rate, LASTS);
        } else if now.saturating_since(since) >= ALR_EVERY && bps < self.most {
            self.last_alr = Some(now);
            self.plan(FURTHER * bps, LASTS);
        }
    }
}

/// Returns a cluster's result: the lower of the rates at which its packets were sent and arrived.
fn measured(cluster: &Cluster) -> Option<f64> {
    let arrived = &cluster.arrived;
    let bytes: f64 = arrived.iter().map(|packet| packet.2).sum();
    let wanted = cluster.probe.rate.as_bps() as f64 * cluster.probe.lasts.as_secs_f64() / 8.0;
    if (arrived.len() as f64) < ARRIVES * f64::from(cluster.probe.packets) || bytes < ARRIVES * wanted {
        return None;
    }
    let span = |of: fn(&(f64, f64, f64)) -> f64| {
        let low = arrived.iter().min_by(|a, b| of(a).total_cmp(&of(b)))?;
        let high = arrived.iter().max_by(|a, b| of(a).total_cmp(&of(b)))?;
        (of(high) > of(low)).then(|| (of(high) - of(low), low.2, high.2))
    };
    let (sent_ms, _, last_sent) = span(|packet| packet.0)?;
    let (arrived_ms, first_arrived, _) = span(|packet| packet.1)?;
    let sent = (bytes - last_sent) * 8e3 / sent_ms;
    let received = (bytes - first_arrived) * 8e3 / arrived_ms;
    if received > MOST_RATIO * sent {
        return None;
    }
    Some(if received < FULL * sent { FULL_SHARE * received } else { received.min(sent) })
}

#[cfg(test)]
mod tests {
    use streamgauge_base::Ecn;

    use super::*;

    fn at(us: u64) -> Instant {
        Instant::from_nanos(us * 1_000)
    }

    /// Returns the results of a probe at its rate over a link of `capacity` bit/s.
    fn sent(probes: &mut Probes, number: u32, capacity: f64) -> (f64, Option<f64>) {
        let probe = probes.next(at(0)).unwrap();
        let bps = probe.rate.as_bps() as f64;
        let packets = (bps * probe.lasts.as_secs_f64() / 9600.0).ceil().max(5.0) as u64 + 1;
        let mut shown = None;
        for packet in 0..packets {
            let sent = (packet as f64 * 9600.0 / bps * 1e6) as u64;
            let arrived = 50_000 + (packet as f64 * 9600.0 / bps.min(capacity) * 1e6) as u64;
            let result = PacketResult {
                number: packet,
                bytes: 1200,
                sent: at(sent),
                arrived: Some(at(arrived)),
                ecn: Ecn::NotEct,
                probe: Some(number),
            };
            shown = probes.packet(&result).or(shown);
        }
        (bps, shown)
    }

    #[test]
    fn a_start_of_300_kbit_s_is_probed_at_900_and_1800() {
        let mut probes = Probes::new(300e3, 1e9);
        let (first, shown) = sent(&mut probes, 0, 1.2e6);
        assert_eq!(first, 900e3);
        assert!((shown.unwrap() / 900e3 - 1.0).abs() < 0.01);
        let (second, shown) = sent(&mut probes, 1, 1.2e6);
        assert_eq!(second, 1.8e6);
        // The path is full: 0.95 of its capacity.
        assert!((shown.unwrap() / 1.14e6 - 1.0).abs() < 0.02, "{shown:?}");
        assert_eq!(probes.next(at(0)), None);
    }

    #[test]
    fn a_result_beyond_0_7_of_its_probe_asks_for_a_further_one_at_twice_the_result() {
        for (shown, further) in [(1.3e6, Some(2.6e6)), (1.2e6, None)] {
            let mut probes = Probes::new(300e3, 1e9);
            let _ = (probes.next(at(0)), probes.next(at(0)));
            probes.shown(at(200_000), shown);
            assert_eq!(probes.next(at(0)).map(|probe| probe.rate.as_bps() as f64), further);
        }
    }

    #[test]
    fn an_idle_sender_probes_each_five_seconds() {
        let mut probes = Probes::new(300e3, 2e6);
        while probes.next(at(0)).is_some() {}
        let asked = |probes: &mut Probes, s: u64| {
            probes.estimated(at(s * 1_000_000), 500e3, 500e3, true);
            probes.next(at(s * 1_000_000)).map(|probe| probe.rate.as_bps())
        };
        assert_eq!(
            [0, 4, 5, 9, 10].map(|s| asked(&mut probes, s)),
            [None, None, Some(1_000_000), None, Some(1_000_000)]
        );
    }
}
