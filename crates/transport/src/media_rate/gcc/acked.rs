//! The rate that arrives: the lower of the rates sent and received in the last second or more.
//!
//! Source: libwebrtc's robust throughput estimator (branch 7204): 20 to 500 packets, 1 to 5 s, ten packets at the least; the
//! largest gap between arrivals counts as the second largest.

use std::collections::VecDeque;

use super::super::PacketResult;
use super::super::groups::ms;

const LEAST_PACKETS: usize = 10;
const WINDOW_PACKETS: usize = 20;
const MOST_PACKETS: usize = 500;
const LEAST_MS: f64 = 1000.0;
const MOST_MS: f64 = 5000.0;

#[derive(Clone, Debug, Default)]
pub(in super::super) struct Acked {
    /// When sent, when arrived, ms; bytes. In the order of arrival.
    window: VecDeque<(f64, f64, f64)>,
}

impl Acked {
    /// Adds a packet that arrived.
    pub fn add(&mut self, result: &PacketResult) {
        let Some(arrived) = result.arrived else { return };
        let packet = (ms(result.sent), ms(arrived), f64::from(result.bytes));
        let place = self.window.iter().rposition(|other| other.1 <= packet.1).map_or(0, |place| place + 1);
        self.window.insert(place, packet);
        while self.is_long() {
            self.window.pop_front();
        }
    }

    fn is_long(&self) -> bool {
        let (Some(first), Some(last)) = (self.window.front(), self.window.back()) else { return false };
        let lasts = last.1 - first.1;
        let packets = self.window.len();
        packets > MOST_PACKETS || (packets > WINDOW_PACKETS && lasts > LEAST_MS) || lasts > MOST_MS
    }

    /// Returns it in bit/s; `None` as long as too little has arrived.
    pub fn rate(&self) -> Option<f64> {
        if self.window.len() < LEAST_PACKETS {
            return None;
        }
        let (first, last) = (self.window.front()?, self.window.back()?);
        let mut gaps = [0.0f64; 2];
        for (one, next) in self.window.iter().zip(self.window.iter().skip(1)) {
            let gap = next.1 - one.1;
            if gap > gaps[0] {
                gaps = [gap, gaps[0]];
            } else if gap > gaps[1] {
                gaps[1] = gap;
            }
        }
        let bytes: f64 = self.window.iter().map(|packet| packet.2).sum();
        let by_sent = |a: &&(f64, f64, f64), b: &&(f64, f64, f64)| a.0.total_cmp(&b.0);
        let (sent_first, sent_last) =
            (self.window.iter().min_by(by_sent)?, self.window.iter().max_by(by_sent)?);
        let received_ms = (last.1 - first.1 - gaps[0] + gaps[1]).max(1.0);
        let sent_ms = (sent_last.0 - sent_first.0).max(1.0);
        let received = (bytes - first.2) * 8e3 / received_ms;
        let sent = (bytes - sent_last.2) * 8e3 / sent_ms;
        Some(received.min(sent))
    }
}

#[cfg(test)]
mod tests {
    use streamgauge_base::{Ecn, Instant};

    use super::*;

    fn packet(sent: u64, arrived: u64) -> PacketResult {
        let at = |ms| Instant::from_nanos(ms * 1_000_000);
        PacketResult {
            number: 0,
            bytes: 1250,
            sent: at(sent),
            arrived: Some(at(arrived)),
            ecn: Ecn::NotEct,
            probe: None,
        }
    }

    #[test]
    fn a_packet_each_ten_milliseconds_is_a_megabit() {
        let mut acked = Acked::default();
        for number in 0..200 {
            acked.add(&packet(10 * number, 10 * number + 50));
            assert_eq!(acked.rate().is_some(), number >= 9);
        }
        assert!((acked.rate().unwrap() - 1e6).abs() < 1.0);
    }

    #[test]
    fn a_queue_that_lets_go_at_once_does_not_raise_it() {
        let mut acked = Acked::default();
        for number in 0..100 {
            acked.add(&packet(10 * number, 1_000 + number / 10));
        }
        assert!((acked.rate().unwrap() - 1e6).abs() < 1.0, "no more than was sent");
    }
}
