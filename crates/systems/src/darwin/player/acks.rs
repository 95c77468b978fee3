//! Acknowledgements of Reliable UDP: each packet that arrives, also a duplicate, soon and together with others.

use streamgauge_base::{Duration, Instant};
use streamgauge_wire::reliable_udp::AckPacket;
use streamgauge_wire::rtcp::{self, Packet};

/// This many packets are acknowledged at once without waiting for more, so that little waits to be sent.
const MOST_WAITING: usize = 128;

/// Packets of one stream that have yet to be acknowledged.
#[derive(Default)]
pub struct Acks {
    waiting: Vec<u16>,
    due: Option<Instant>,
}

impl Acks {
    /// Notes that packet `sequence` arrived; its acknowledgement waits at most `delay`.
    pub fn arrived(&mut self, now: Instant, sequence: u16, delay: Duration) {
        self.waiting.push(sequence);
        let due = if self.waiting.len() >= MOST_WAITING { now } else { now + delay };
        self.due = Some(self.due.map_or(due, |at| at.min(due)));
    }

    /// Returns when `take` next has a datagram.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Returns the datagram that is due by `now`: a receiver report without blocks, as RFC 3550 section 6.1 requires
    /// one first, and the acknowledgements.
    pub fn take(&mut self, now: Instant, receiver_ssrc: u32, stream_ssrc: u32) -> Option<Vec<u8>> {
        self.due.take_if(|at| *at <= now)?;
        let acks = AckPacket::of(receiver_ssrc, stream_ssrc, &self.waiting);
        self.waiting.clear();
        let report = Packet::ReceiverReport { ssrc: receiver_ssrc, blocks: Vec::new() };
        let packets: Vec<Packet> = std::iter::once(report).chain(acks.into_iter().map(Packet::Ack)).collect();
        Some(rtcp::write(&packets))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_packet_is_acknowledged_in_time_and_none_else(
            start in any::<u16>(),
            arrivals in prop::collection::vec((0u64..30_000_000, -40i16..60), 1..400),
            delay_ms in 0u64..100,
        ) {
            let delay = Duration::from_millis(delay_ms);
            let (mut acks, mut now, mut sequence) = (Acks::default(), Instant::ZERO, start);
            let (mut waiting, mut oldest) = (BTreeSet::new(), None);
            let mut arrivals = arrivals.into_iter().peekable();
            while arrivals.peek().is_some() || acks.due().is_some() {
                let next = arrivals.peek().map(|(gap, _)| now + Duration::from_nanos(*gap));
                match (acks.due(), next) {
                    (Some(due), next) if next.is_none_or(|at| due <= at) => {
                        now = now.max(due);
                        prop_assert!(oldest.is_some_and(|at: Instant| now <= at + delay));
                        let datagram = acks.take(now, 1, 2).expect("it was due");
                        let acked: BTreeSet<u16> = rtcp::parse(&datagram)
                            .filter_map(|p| if let Ok(Packet::Ack(ack)) = p { Some(ack) } else { None })
                            .flat_map(|ack| ack.sequences().collect::<Vec<_>>())
                            .collect();
                        prop_assert_eq!(&acked, &waiting);
                        waiting.clear();
                        oldest = None;
                    }
                    _ => {
                        let (gap, step) = arrivals.next().expect("else an acknowledgement is due");
                        now += Duration::from_nanos(gap);
                        sequence = sequence.wrapping_add_signed(step);
                        acks.arrived(now, sequence, delay);
                        waiting.insert(sequence);
                        oldest = oldest.or(Some(now));
                        prop_assert!(acks.take(now - Duration::from_nanos(1), 1, 2).is_none());
                    }
                }
            }
            prop_assert!(waiting.is_empty());
        }
    }

    #[test]
    fn many_at_once_do_not_wait() {
        let mut acks = Acks::default();
        for n in 0..MOST_WAITING as u16 {
            acks.arrived(Instant::ZERO, n, Duration::from_millis(100));
        }
        assert_eq!(acks.due(), Some(Instant::ZERO));
        assert!(acks.take(Instant::ZERO, 1, 2).is_some_and(|datagram| datagram.len() == 8 + 20 + 16));
    }
}
