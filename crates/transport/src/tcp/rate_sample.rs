//! Delivery rate (Cheng and others, draft-cheng-iccrg-delivery-rate-estimation), with Linux's answers where the
//! draft leaves a choice.

use std::collections::VecDeque;

use streamgauge_base::{Duration, Instant};

/// One acknowledgement's sample of the network's delivery rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateSample {
    /// Bytes delivered over `interval`.
    pub delivered: u64,
    /// The longer of the times over which those bytes were sent and acknowledged.
    pub interval: Duration,
    /// Bytes that the connection had delivered when the segment behind this sample was sent.
    pub prior_delivered: u64,
    /// The same until now.
    pub total_delivered: u64,
    /// Bytes that were in flight when that segment was sent, itself included.
    pub prior_in_flight: u64,
    /// Bytes lost between that segment's sending and now.
    pub lost: u64,
    /// Bytes lost since the connection began, copies counted again.
    pub total_lost: u64,
    /// The writer, not the network, set the rate at that segment.
    pub app_limited: bool,
}

/// The connection's state when a segment was last sent (section 3.1.2).
#[derive(Clone, Copy, Debug)]
struct Stamp {
    /// Bytes delivered until then, and when the last of them was.
    delivered: u64,
    delivered_at: Instant,
    /// Send time of the segment that was acknowledged last: the sending interval begins there.
    first_sent: Instant,
    /// Bytes lost until then.
    lost: u64,
    /// Bytes in flight then, itself included.
    in_flight: u64,
    app_limited: bool,
}

/// The last sent of the segments that an acknowledgement covers.
#[derive(Clone, Copy, Debug)]
struct Newest {
    number: u64,
    stamp: Stamp,
    sent: Instant,
}

/// Measures the delivery rate of one connection. Its stamps run beside the segments of the scoreboard, one each, so
/// that connections without a rate-based controller pay nothing.
#[derive(Clone, Debug)]
pub struct Sampler {
    stamps: VecDeque<Stamp>,
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    /// Samples are the writer's until this many bytes are delivered; 0 for none.
    app_limited: u64,
    newest: Option<Newest>,
}

impl Sampler {
    /// Makes the sampler of a connection that has delivered nothing.
    pub fn new() -> Self {
        Sampler {
            stamps: VecDeque::new(),
            delivered: 0,
            delivered_at: Instant::ZERO,
            first_sent: Instant::ZERO,
            app_limited: 0,
            newest: None,
        }
    }

    fn stamp(&self, lost: u64, in_flight: u64) -> Stamp {
        Stamp {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            lost,
            in_flight,
            app_limited: self.app_limited > 0,
        }
    }

    /// Notes that a segment is sent for the first time; `alone`: nothing is outstanding before it.
    pub fn sent(&mut self, now: Instant, alone: bool, lost: u64, in_flight: u64) {
        if alone {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        let stamp = self.stamp(lost, in_flight);
        self.stamps.push_back(stamp);
    }

    /// Notes that the segment `at` places behind the oldest outstanding is sent again.
    pub fn sent_again(&mut self, at: usize, lost: u64, in_flight: u64) {
        let stamp = self.stamp(lost, in_flight);
        if let Some(slot) = self.stamps.get_mut(at) {
            *slot = stamp;
        }
    }

    /// Notes that `bytes` of the segment `at` places behind the oldest outstanding are newly known to have arrived;
    /// `number` and `sent` identify the transmission that arrived.
    pub fn arrived(&mut self, at: usize, bytes: u64, number: u64, sent: Instant) {
        self.delivered += bytes;
        if let Some(&stamp) = self.stamps.get(at)
            && self.newest.is_none_or(|newest| number > newest.number)
        {
            self.newest = Some(Newest { number, stamp, sent });
            self.first_sent = sent;
        }
    }

    /// Notes that `bytes` arrived a second time. As in Linux they count as delivered: the path did carry them.
    pub fn repeated(&mut self, bytes: u64) {
        self.delivered += bytes;
    }

    /// Frees memory, as nothing is outstanding.
    pub fn rest(&mut self) {
        self.stamps = VecDeque::new();
    }

    /// Notes that the oldest segment outstanding is acknowledged and leaves.
    pub fn left(&mut self) {
        self.stamps.pop_front();
    }

    /// Notes that the writer has less than a segment to send and `in_flight` bytes are on the way, fewer than could be.
    pub fn starve(&mut self, in_flight: u64) {
        self.app_limited = (self.delivered + in_flight).max(1);
    }

    /// Returns whether the data in flight will be the writer's sample.
    pub fn is_app_limited(&self) -> bool {
        self.app_limited > 0
    }

    /// Ends an acknowledgement; `min_rtt` is the least round trip so far, below which an interval is an artefact of
    /// SACK or of compressed acknowledgements (section 3.3 of the draft), `lost` the bytes lost since the start.
    pub fn finish(&mut self, now: Instant, min_rtt: Duration, lost: u64) -> Option<RateSample> {
        if self.app_limited > 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let Newest { stamp, sent, .. } = self.newest.take()?;
        self.delivered_at = now;
        let sending = sent.saturating_since(stamp.first_sent);
        let interval = sending.max(now.saturating_since(stamp.delivered_at));
        if interval == Duration::ZERO || (min_rtt != Duration::MAX && interval < min_rtt) {
            return None;
        }
        Some(RateSample {
            delivered: self.delivered - stamp.delivered,
            interval,
            prior_delivered: stamp.delivered,
            total_delivered: self.delivered,
            prior_in_flight: stamp.in_flight,
            lost: lost.saturating_sub(stamp.lost),
            total_lost: lost,
            app_limited: stamp.app_limited,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// Sends `count` segments a millisecond apart from `start` on.
    fn send(sampler: &mut Sampler, start: u64, count: u64) {
        for n in 0..count {
            sampler.sent(at(start + n), n == 0, 0, (n + 1) * MSS);
        }
    }

    #[test]
    fn the_rate_is_what_arrived_over_the_longer_of_sending_and_acknowledging() {
        // Four segments a millisecond apart; the acknowledgements arrive two milliseconds apart: 500 bytes/ms.
        let mut sampler = Sampler::new();
        send(&mut sampler, 0, 4);
        let mut last = None;
        for n in 0..4 {
            sampler.arrived(0, MSS, n, at(n));
            sampler.left();
            last = sampler.finish(at(20 + 2 * n), ms(20), 0);
        }
        // All were sent before anything was delivered: 4 segments in 26 ms.
        let sample = last.unwrap();
        assert_eq!((sample.delivered, sample.interval, sample.prior_delivered), (4 * MSS, ms(26), 0));
        assert_eq!((sample.total_delivered, sample.prior_in_flight), (4 * MSS, 4 * MSS));

        // The next one leaves when the last but one was acknowledged at 24 ms: one round trip's worth.
        sampler.sent(at(27), false, 0, MSS);
        sampler.arrived(0, MSS, 4, at(27));
        let sample = sampler.finish(at(47), ms(20), 0).unwrap();
        assert_eq!((sample.delivered, sample.interval, sample.prior_delivered), (MSS, ms(24), 4 * MSS));
    }

    #[test]
    fn acknowledgements_compressed_together_do_not_exceed_the_rate_of_sending() {
        let mut sampler = Sampler::new();
        send(&mut sampler, 0, 1);
        sampler.arrived(0, MSS, 0, at(0));
        sampler.left();
        sampler.finish(at(20), ms(20), 0);
        // Ten segments over 30 ms, all acknowledged within a millisecond.
        for n in 0..10 {
            sampler.sent(at(20 + 3 * n), false, 0, (n + 1) * MSS);
        }
        let mut sample = None;
        for n in 0..10 {
            sampler.arrived(0, MSS, n + 1, at(20 + 3 * n));
            sampler.left();
            sample = sampler.finish(at(70), ms(20), 0).or(sample);
        }
        let sample = sample.unwrap();
        assert_eq!((sample.delivered, sample.interval), (10 * MSS, ms(50)));
    }

    #[test]
    fn an_interval_below_the_least_round_trip_is_no_sample() {
        let mut sampler = Sampler::new();
        send(&mut sampler, 0, 2);
        sampler.arrived(0, MSS, 0, at(0));
        assert_eq!(sampler.finish(at(9), ms(10), 0), None);
        sampler.arrived(1, MSS, 1, at(1));
        assert_eq!(sampler.finish(at(10), ms(10), 0).map(|s| s.delivered), Some(2 * MSS));
        assert_eq!(sampler.finish(at(11), ms(10), 0), None, "nothing arrived");
    }

    #[test]
    fn a_block_counts_by_the_segment_of_it_that_was_sent_last() {
        let mut sampler = Sampler::new();
        send(&mut sampler, 0, 5);
        for n in [3, 4, 2] {
            sampler.arrived(n, MSS, n as u64, at(n as u64));
        }
        let sample = sampler.finish(at(30), ms(20), 2 * MSS).unwrap();
        assert_eq!((sample.delivered, sample.prior_in_flight), (3 * MSS, 5 * MSS));
        assert_eq!((sample.lost, sample.total_lost), (2 * MSS, 2 * MSS));
        // The first is sent again: its stamp is of now.
        sampler.sent_again(0, 2 * MSS, MSS);
        sampler.arrived(0, MSS, 5, at(30));
        let sample = sampler.finish(at(51), ms(20), 2 * MSS).unwrap();
        assert_eq!((sample.delivered, sample.interval, sample.lost), (MSS, ms(26), 0));
        assert_eq!(sample.prior_delivered, 3 * MSS);
    }

    #[test]
    fn samples_are_the_writers_until_what_it_starved_is_delivered() {
        let mut sampler = Sampler::new();
        send(&mut sampler, 0, 2);
        sampler.starve(2 * MSS);
        assert!(sampler.is_app_limited());
        sampler.sent(at(5), false, 0, 3 * MSS);
        let mut marks = Vec::new();
        for (n, sent) in [(0, 0), (1, 1), (2, 5)] {
            sampler.arrived(0, MSS, n, at(sent));
            sampler.left();
            marks.push(sampler.finish(at(20 + sent), ms(20), 0).unwrap().app_limited);
        }
        assert_eq!(marks, [false, false, true]);
        assert!(!sampler.is_app_limited());
    }
}
