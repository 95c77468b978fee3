//! From stamps to rate, delay and limit.

use super::RATE_BOUND;
use super::expect::ExpectedBottleneck;
use super::probe::Flight;

/// A train's measurement of a bottleneck.
#[derive(Clone, Debug)]
pub struct Filling {
    /// Packets that left the sender.
    pub sent: usize,
    /// Packets that arrived.
    pub received: usize,
    /// From the first departure to the last arrival.
    pub seconds: f64,
    /// Rate of the bottleneck's bytes, over the longest stretch in which it was never idle.
    pub rate_bps: f64,
    /// Most packets that it held at once.
    pub held_packets: u64,
    /// Most bytes that it held at once, as it counts them.
    pub held_bytes: u64,
    /// It refused packets.
    pub overfilled: bool,
    /// Bytes of a packet as it counts them.
    pub packet_bytes: u64,
}

/// Returns the median one-way time of probes less their transmission (`transmission` of their Ethernet bytes,
/// s), s; `None` if none arrived.
pub fn base_delay(probes: &Flight, transmission: impl Fn(usize) -> f64) -> Option<f64> {
    let mut delays: Vec<f64> = probes
        .packets
        .values()
        .filter_map(|seen| Some((seen.received? - seen.sent?) as f64 / 1e9 - transmission(seen.frame)))
        .collect();
    delays.sort_by(f64::total_cmp);
    match delays.len() {
        0 => None,
        n => Some((delays[(n - 1) / 2] + delays[n / 2]) / 2.0),
    }
}

/// A packet that arrived.
struct Passed {
    seq: u32,
    /// It reached the queue (give or take the delay before it, which `out` then has less of), s.
    into: f64,
    /// Its transmission ended, s.
    out: f64,
    bytes: u64,
}

/// Returns the train's measurement; `delay` (s) is the path's beside the queue. `None` if too little arrived
/// for a rate.
pub fn filling(flight: &Flight, delay: f64, bottleneck: &ExpectedBottleneck) -> Option<Filling> {
    let origin = flight.packets.values().filter_map(|seen| seen.sent).min()?;
    let seconds = |stamp: i64| (stamp - origin) as f64 / 1e9;
    let mut passed: Vec<Passed> = Vec::new();
    let mut refused: Vec<u32> = Vec::new();
    for (&seq, seen) in &flight.packets {
        match (seen.sent, seen.received) {
            (Some(sent), Some(received)) => {
                let bytes = bottleneck.counted(seen.frame);
                passed.push(Passed { seq, into: seconds(sent), out: seconds(received) - delay, bytes });
            }
            (Some(_), None) => refused.push(seq),
            (None, _) => {}
        }
    }
    let (mut held_packets, mut held_bytes) = (0, 0);
    // Only the burst fills the queue fast enough that one departure more or less cannot be confused.
    for (index, packet) in passed.iter().enumerate().take_while(|(_, p)| p.seq < flight.burst) {
        let inside = passed[..=index].iter().filter(|p| p.out > packet.into);
        let (packets, bytes) = inside.fold((0, 0), |(n, sum), p| (n + 1, sum + p.bytes));
        held_packets = held_packets.max(packets);
        held_bytes = held_bytes.max(bytes);
    }
    let last = passed.iter().map(|p| p.out).fold(0.0, f64::max);
    Some(Filling {
        sent: passed.len() + refused.len(),
        received: passed.len(),
        seconds: last + delay,
        rate_bps: busy_rate(&passed)?,
        held_packets,
        held_bytes,
        overfilled: refused.iter().any(|&seq| seq < flight.burst),
        packet_bytes: passed.iter().map(|p| p.bytes).max()?,
    })
}

/// Returns the bit/s over the longest stretch without a pause for lack of packets.
fn busy_rate(passed: &[Passed]) -> Option<f64> {
    let mut best: Option<(f64, f64)> = None;
    let mut from = 0;
    for at in 1..=passed.len() {
        // A packet that arrived after the one before had left found the line idle: a new stretch begins.
        let goes_on = at < passed.len() && passed[at].into < passed[at - 1].out;
        if goes_on {
            continue;
        }
        let time = passed[at - 1].out - passed[from].out;
        let bits = 8.0 * passed[from + 1..at].iter().map(|p| p.bytes as f64).sum::<f64>();
        if time > 0.0 && best.is_none_or(|(longest, _)| time > longest) {
            best = Some((time, bits / time));
        }
        from = at;
    }
    best.map(|(_, rate)| rate)
}

impl Filling {
    /// Returns the differences from `expected`, in words.
    pub fn judge(&self, name: &str, expected: &ExpectedBottleneck) -> Vec<String> {
        use streamgauge_path::spec::Limit;
        let mut errors = Vec::new();
        let asked = expected.rate_bps as f64;
        if (self.rate_bps - asked).abs() > RATE_BOUND * asked {
            errors.push(format!(
                "{name} rate is {:.4} Mbit/s, not {:.4} Mbit/s (bound {} %)",
                self.rate_bps / 1e6,
                asked / 1e6,
                RATE_BOUND * 100.0
            ));
        }
        if !self.overfilled {
            errors.push(format!(
                "{name} queue took {} packets ({} bytes) at once and refused none",
                self.held_packets, self.held_bytes
            ));
        }
        match (expected.limit, expected.limit_bytes()) {
            (Limit::Packets(limit), _) => {
                let limit = u64::from(limit);
                // One packet for the moment at which one leaves while another arrives.
                if self.held_packets.abs_diff(limit) > 1.max(limit / 100) {
                    errors.push(format!("{name} queue holds {} packets, not {limit}", self.held_packets));
                }
            }
            (_, limit) => {
                let limit = limit.unwrap_or_default();
                let slack = self.packet_bytes.max(limit / 100);
                if self.held_bytes > limit + slack || self.held_bytes + self.packet_bytes + slack <= limit {
                    errors.push(format!("{name} queue holds {} bytes, not {limit}", self.held_bytes));
                }
            }
        }
        errors
    }
}

#[cfg(test)]
mod tests {
    use streamgauge_path::spec::{Layer, Limit};

    use super::*;
    use crate::preflight::probe::Seen;

    /// Returns a train of 1,000-byte packets, 1 us apart, through 1 Mbit/s and 20 ms with room for `room`
    /// packets.
    fn train(room: usize, sent: u32) -> Flight {
        let mut flight = Flight { burst: sent, ..Flight::default() };
        let mut free = 0i64;
        let mut inside: Vec<i64> = Vec::new();
        for seq in 0..sent {
            let now = i64::from(seq) * 1_000;
            inside.retain(|&out| out > now);
            let mut seen = Seen { sent: Some(now + 7), received: None, frame: 1000 };
            if inside.len() < room {
                free = free.max(now) + 8_000_000;
                inside.push(free);
                seen.received = Some(free + 20_000_007);
            }
            flight.packets.insert(seq, seen);
        }
        flight
    }

    fn bottleneck(limit: Limit) -> ExpectedBottleneck {
        ExpectedBottleneck { rate_bps: 1_000_000, limit, layer: Layer::Ethernet }
    }

    #[test]
    fn finds_rate_and_limit_of_an_ideal_queue() {
        let asked = bottleneck(Limit::Packets(50));
        let found = filling(&train(50, 70), 0.02, &asked).unwrap();
        assert!((found.rate_bps - 1e6).abs() < 1.0, "{}", found.rate_bps);
        assert_eq!((found.held_packets, found.held_bytes, found.sent, found.received), (50, 50_000, 70, 50));
        assert_eq!(found.judge("down", &asked), Vec::<String>::new());
        assert!(found.judge("down", &bottleneck(Limit::Bytes(50_999))).is_empty());
    }

    #[test]
    fn a_wrong_rate_or_limit_is_an_error() {
        let wrong = |asked: &ExpectedBottleneck, room, sent| {
            filling(&train(room, sent), 0.02, asked).unwrap().judge("down", asked)
        };
        assert!(
            wrong(&ExpectedBottleneck { rate_bps: 2_000_000, ..bottleneck(Limit::Packets(50)) }, 50, 70)[0]
                .contains("rate")
        );
        assert!(wrong(&bottleneck(Limit::Packets(50)), 40, 70)[0].contains("holds 40 packets"));
        assert!(wrong(&bottleneck(Limit::Bytes(60_000)), 50, 70)[0].contains("holds 50000 bytes"));
        assert!(wrong(&bottleneck(Limit::Packets(50)), 1000, 70)[0].contains("refused none"));
    }

    #[test]
    fn an_idle_gap_does_not_lower_the_rate() {
        let mut flight = train(50, 70);
        // Twenty more after a second of silence.
        for seq in 70..90u32 {
            let sent = 2_000_000_000 + i64::from(seq - 70) * 1_000;
            let received = 2_020_000_000 + i64::from(seq - 69) * 8_000_000;
            flight.packets.insert(seq, Seen { sent: Some(sent), received: Some(received), frame: 1000 });
        }
        let found = filling(&flight, 0.02, &bottleneck(Limit::Packets(50))).unwrap();
        assert!((found.rate_bps - 1e6).abs() < 1.0, "{}", found.rate_bps);
    }
}
