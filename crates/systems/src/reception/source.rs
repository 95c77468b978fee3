//! One source of RTP at its receiver: its packets, its sender reports, and reports about it.

use rtp_types::RtpPacket;
use streamgauge_base::{Chunk, Instant};
use streamgauge_wire::rtcp::{self, Packet, RtcpBlock};

use super::packets::{Arrival, Late, Reception};
use crate::media::{Codec, begins_unit};

/// A session's data about a source before its first packet.
#[derive(Clone, PartialEq, Debug)]
pub struct Announced {
    /// RTP payload type.
    pub payload_type: u8,
    /// RTP ticks per second.
    pub clock_rate: u32,
    /// `None` if it is unsupported.
    pub codec: Option<Codec>,
    /// Pictures.
    pub is_video: bool,
    /// Meaning of a packet behind a later one.
    pub late: Late,
}

/// A packet's place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Its extended sequence number.
    pub sequence: u32,
    /// Its RTP timestamp.
    pub timestamp: u32,
    /// The first of its unit.
    pub first: bool,
    /// The last of its unit.
    pub last: bool,
}

/// A media packet as a playout takes it.
pub struct Media {
    /// Where it belongs.
    pub place: Place,
    /// Where the payload begins, and bytes of padding at its end.
    pub payload_at: usize,
    /// Bytes of padding at the payload's end.
    pub padding: usize,
    /// It ends a unit, and the packet behind it arrived before it.
    pub before_another: bool,
    /// It is the first that was sent.
    pub opens: bool,
}

/// The last sender report of a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SenderReport {
    /// The middle 32 bits of its NTP timestamp.
    pub lsr: u32,
    /// The RTP timestamp of the same moment.
    pub rtp_timestamp: u32,
    /// Its arrival.
    pub arrived: Instant,
}

/// The packets of one source, and its reports.
pub struct Source {
    announced: Announced,
    reception: Reception,
    /// Set by the announcement, or by the first packet.
    ssrc: Option<u32>,
    heard: bool,
    /// The number of the first packet, until it arrives, if the sender has declared it.
    first_sequence: Option<u16>,
    sender_report: Option<SenderReport>,
}

impl Source {
    /// Returns a source without received packets.
    pub fn new(announced: Announced) -> Self {
        Source {
            reception: Reception::new(announced.clock_rate, announced.late),
            announced,
            ssrc: None,
            heard: false,
            first_sequence: None,
            sender_report: None,
        }
    }

    /// Sets its announced synchronisation source.
    pub fn announce(&mut self, ssrc: Option<u32>) {
        self.ssrc = ssrc;
    }

    /// Sets the announced number of its first packet.
    pub fn begins_at(&mut self, sequence: Option<u16>) {
        self.first_sequence = sequence;
    }

    /// Its synchronisation source, if it is known.
    pub fn ssrc(&self) -> Option<u32> {
        self.ssrc
    }

    /// Returns the state of its reception.
    pub fn reception(&self) -> &Reception {
        &self.reception
    }

    /// Returns the RTP header of `packet`; `None` if it is none of this source.
    pub fn accept<'a>(&mut self, packet: &'a Chunk) -> Option<RtpPacket<'a>> {
        let rtp = RtpPacket::parse(packet.head()).ok()?;
        if rtp.payload_type() != self.announced.payload_type {
            return None;
        }
        if !self.heard {
            // Some servers announce another.
            (self.heard, self.ssrc) = (true, Some(rtp.ssrc()));
        }
        (self.ssrc == Some(rtp.ssrc())).then_some(rtp)
    }

    /// Returns whether nothing has come of it yet, and `packet` may be its first.
    pub fn is_awaited(&self, packet: &Chunk) -> bool {
        let rtp = || RtpPacket::parse(packet.head()).ok();
        !self.heard && rtp().is_some_and(|rtp| rtp.payload_type() == self.announced.payload_type)
    }

    /// Counts a packet that was accepted, at `now` by a clock that stops while the sender's does. `None`
    /// unless it is media that has not come before.
    pub fn take(&mut self, now: Instant, rtp: &RtpPacket<'_>, packet: &Chunk) -> Option<Media> {
        let (sequence, marker) = (rtp.sequence_number(), rtp.marker_bit());
        // For unsupported codecs, a block of sound is a packet, and the marker has another meaning.
        let is_block = self.announced.codec.is_none() && !self.announced.is_video;
        let last = marker || is_block;
        let arrival = self.reception.packet(now, sequence, rtp.timestamp(), packet.len(), last);
        let Arrival::First(sequence) = arrival else { return None };
        let first = match (self.reception.follows_an_end(sequence), &self.announced.codec) {
            (Some(follows), _) => follows,
            (None, Some(codec)) => begins_unit(codec, rtp.payload()),
            (None, None) => true,
        };
        let opens = self.first_sequence.take_if(|announced| *announced == sequence as u16).is_some();
        let padding = usize::from(rtp.padding().unwrap_or(0));
        Some(Media {
            place: Place { sequence, timestamp: rtp.timestamp(), first, last },
            payload_at: packet.head().len() - padding - rtp.payload().len(),
            padding,
            opens: opens && first,
            before_another: last && self.reception.follows_an_end(sequence.wrapping_add(2)).is_some(),
        })
    }

    /// Processes a packet of RTCP at `now`, and returns whether it ends the source.
    pub fn control(&mut self, now: Instant, packet: &Packet) -> bool {
        match packet {
            Packet::SenderReport { ssrc, ntp, rtp_timestamp, .. } => {
                if self.ssrc.is_none_or(|source| source == *ssrc) {
                    let (lsr, rtp_timestamp) = ((ntp >> 16) as u32, *rtp_timestamp);
                    self.sender_report = Some(SenderReport { lsr, rtp_timestamp, arrived: now });
                }
                false
            }
            Packet::Bye { sources } => self.ssrc.is_none_or(|source| sources.contains(&source)),
            _ => false,
        }
    }

    /// Returns the last received sender report.
    pub fn sender_report(&self) -> Option<SenderReport> {
        self.sender_report
    }

    /// Returns the block of the receiver report that is sent at `now` (RFC 3550 section 6.4.1); `None` before
    /// the first packet.
    pub fn block(&mut self, now: Instant) -> Option<RtcpBlock> {
        let source = self.ssrc.filter(|_| self.heard)?;
        let report = self.reception.statistics().report();
        let last = self.sender_report;
        Some(RtcpBlock {
            source,
            fraction_lost: report.fraction_lost,
            cumulative_lost: report.cumulative_lost,
            extended_highest: report.extended_highest,
            jitter: report.jitter,
            lsr: last.map_or(0, |last| last.lsr),
            dlsr: last.map_or(0, |last| rtcp::short(now.saturating_since(last.arrived))),
        })
    }
}

/// Returns a receiver report of `ssrc`'s, with the name that every compound packet has (RFC 3550 section
/// 6.1).
pub fn receiver_report(ssrc: u32, block: Option<RtcpBlock>) -> Vec<Packet> {
    vec![
        Packet::ReceiverReport { ssrc, blocks: block.into_iter().collect() },
        Packet::Cname { ssrc, cname: "player".into() },
    ]
}

#[cfg(test)]
mod tests {
    use rtp_types::RtpPacketBuilder;
    use streamgauge_base::Duration;

    use super::*;

    fn source() -> Source {
        let codec = Some(Codec::Sizes);
        Source::new(Announced {
            payload_type: 96,
            clock_rate: 90_000,
            codec,
            is_video: true,
            late: Late::Reordered,
        })
    }

    fn packet(payload_type: u8, ssrc: u32, sequence: u16) -> Chunk {
        let mut bytes = vec![0; 14];
        RtpPacketBuilder::<&[u8], &[u8]>::new()
            .payload_type(payload_type)
            .marker_bit(true)
            .sequence_number(sequence)
            .ssrc(ssrc)
            .payload(&[0x41, 0])
            .write_into(&mut bytes)
            .unwrap();
        Chunk::bytes(bytes)
    }

    fn take(source: &mut Source, packet: &Chunk) -> bool {
        let Some(rtp) = source.accept(packet) else { return false };
        source.take(Instant::ZERO, &rtp, packet).is_some()
    }

    #[test]
    fn the_first_packet_says_who_sends_and_others_are_not_heard() {
        let mut source = source();
        source.announce(Some(1));
        assert!(!take(&mut source, &packet(97, 7, 1)), "another payload type");
        assert!(source.is_awaited(&packet(96, 7, 1)) && !source.is_awaited(&packet(97, 7, 1)));
        assert!(take(&mut source, &packet(96, 7, 1)));
        assert!(!take(&mut source, &packet(96, 8, 2)));
        assert!(!take(&mut source, &packet(96, 7, 1)), "it came before");
        assert!(take(&mut source, &packet(96, 7, 2)));
        assert_eq!((source.ssrc(), source.reception().counts().packets), (Some(7), 3));
    }

    #[test]
    fn a_block_tells_how_long_the_sender_report_waited() {
        let mut source = source();
        assert_eq!(source.block(Instant::ZERO), None);
        assert!(take(&mut source, &packet(96, 7, 1)));
        let block = source.block(Instant::ZERO).unwrap();
        assert_eq!((block.source, block.lsr, block.dlsr), (7, 0, 0));
        let report = |ssrc, ntp| Packet::SenderReport {
            ssrc,
            ntp,
            rtp_timestamp: 5,
            packets: 1,
            octets: 2,
            blocks: Vec::new(),
        };
        assert!(!source.control(Instant::ZERO, &report(7, 0x1234_5678_9abc_def0)));
        assert!(!source.control(Instant::ZERO, &report(8, 0)), "not its own");
        let block = source.block(Instant::ZERO + Duration::from_millis(250)).unwrap();
        assert_eq!((block.lsr, block.dlsr), (0x5678_9abc, 0x4000));
        assert!(!source.control(Instant::ZERO, &Packet::Bye { sources: vec![8] }));
        assert!(source.control(Instant::ZERO, &Packet::Bye { sources: vec![8, 7] }));
    }
}
