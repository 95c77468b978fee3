//! Reports of both ends, always with a CNAME, and the goodbye (RFC 3550 section 6).

use streamgauge_base::Instant;
use streamgauge_transport::rtp::Report;
use streamgauge_wire::rtcp::{self, Block, Packet, ntp, short};

/// What the receiver remembers of the last sender report.
#[derive(Clone, Copy, Debug)]
pub struct LastReport {
    /// The middle 32 bits of its NTP timestamp.
    pub lsr: u32,
    pub arrived: Instant,
}

/// What arrived in a compound packet, as far as our ends use it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Arrival {
    pub sender_report: Option<SenderTimes>,
    /// About our own packets.
    pub block: Option<Block>,
    pub bye: bool,
}

/// The times of a sender report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SenderTimes {
    /// The middle 32 bits of its NTP timestamp.
    pub lsr: u32,
    pub rtp_timestamp: u32,
}

/// The end of the source, with the counts that a report gives.
pub struct SenderInfo {
    pub ssrc: u32,
    pub rtp_timestamp: u32,
    pub packets: u32,
    pub octets: u32,
}

/// A sender report; `bye` ends the source.
pub fn sender_report(now: Instant, info: &SenderInfo, bye: bool) -> Vec<u8> {
    let &SenderInfo { ssrc, rtp_timestamp, packets, octets } = info;
    let report =
        Packet::SenderReport { ssrc, ntp: ntp(now), rtp_timestamp, packets, octets, blocks: Vec::new() };
    let mut compound = vec![report, cname(ssrc, "server")];
    if bye {
        compound.push(Packet::Bye { sources: vec![ssrc] });
    }
    rtcp::write(&compound)
}

/// A receiver report on `source`.
pub fn receiver_report(
    now: Instant,
    ssrc: u32,
    source: u32,
    block: Option<Report>,
    last: Option<LastReport>,
) -> Vec<u8> {
    let block = block.map(|report| Block {
        source,
        fraction_lost: report.fraction_lost,
        cumulative_lost: report.cumulative_lost,
        extended_highest: report.extended_highest,
        jitter: report.jitter,
        lsr: last.map_or(0, |last| last.lsr),
        dlsr: last.map_or(0, |last| short(now.saturating_since(last.arrived))),
    });
    rtcp::write(&[Packet::ReceiverReport { ssrc, blocks: Vec::from_iter(block) }, cname(ssrc, "player")])
}

/// Reads a compound packet; `ours` is our own source. Anything malformed ends the reading.
pub fn parse(bytes: &[u8], ours: u32) -> Arrival {
    let mut arrival = Arrival::default();
    for packet in rtcp::parse(bytes).map_while(Result::ok) {
        match packet {
            Packet::SenderReport { ntp, rtp_timestamp, .. } => {
                arrival.sender_report = Some(SenderTimes { lsr: (ntp >> 16) as u32, rtp_timestamp });
            }
            Packet::ReceiverReport { blocks, .. } => {
                arrival.block = blocks.into_iter().find(|block| block.source == ours);
            }
            Packet::Bye { .. } => arrival.bye = true,
            _ => {}
        }
    }
    arrival
}

fn cname(ssrc: u32, name: &str) -> Packet {
    Packet::Cname { ssrc, cname: name.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_read_back() {
        let now = Instant::from_nanos(1_500_000_000);
        let info = SenderInfo { ssrc: 7, rtp_timestamp: 8, packets: 9, octets: 10 };
        let arrival = parse(&sender_report(now, &info, true), 99);
        assert_eq!(arrival.sender_report, Some(SenderTimes { lsr: 0x0001_8000, rtp_timestamp: 8 }));
        assert!(arrival.bye);

        let block = Report { fraction_lost: 51, cumulative_lost: -4, extended_highest: 65_549, jitter: 900 };
        let last = LastReport { lsr: 0x0001_8000, arrived: now };
        let later = Instant::from_nanos(1_750_000_000);
        let arrival = parse(&receiver_report(later, 99, 7, Some(block), Some(last)), 7);
        let expected = Block {
            source: 7,
            fraction_lost: 51,
            cumulative_lost: -4,
            extended_highest: 65_549,
            jitter: 900,
            lsr: 0x1_8000,
            dlsr: 0x4000,
        };
        assert_eq!(arrival.block, Some(expected));
        assert_eq!(parse(&receiver_report(later, 99, 7, Some(block), None), 8).block, None, "not about us");
    }

    #[test]
    fn rubbish_is_no_report() {
        assert_eq!(parse(b"not RTCP", 1), Arrival::default());
        assert_eq!(parse(&[], 1), Arrival::default());
    }
}
