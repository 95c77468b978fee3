//! A sender's reports on its packets and the answers to them, always with a CNAME, and the goodbye (RFC 3550 section
//! 6).

use streamgauge_base::Instant;
use streamgauge_wire::rtcp::{self, Packet, RtcpBlock, ntp};

/// A source, with the counts that a report gives.
pub struct SenderInfo {
    pub ssrc: u32,
    pub rtp_timestamp: u32,
    pub packets: u32,
    pub octets: u32,
}

/// Returns a sender report; `bye` ends the source.
pub fn sender_report(now: Instant, info: &SenderInfo, bye: bool) -> Vec<u8> {
    let &SenderInfo { ssrc, rtp_timestamp, packets, octets } = info;
    let report =
        Packet::SenderReport { ssrc, ntp: ntp(now), rtp_timestamp, packets, octets, blocks: Vec::new() };
    let mut compound = vec![report, Packet::Cname { ssrc, cname: "server".into() }];
    if bye {
        compound.push(Packet::Bye { sources: vec![ssrc] });
    }
    rtcp::write(&compound)
}

/// Returns the block on the source `ours` from the last receiver report of a compound packet. Anything malformed ends
/// the reading.
pub fn block_on(bytes: &[u8], ours: u32) -> Option<RtcpBlock> {
    let reports = rtcp::parse(bytes).map_while(Result::ok).filter_map(|packet| match packet {
        Packet::ReceiverReport { blocks, .. } => Some(blocks),
        _ => None,
    });
    reports.last()?.into_iter().find(|block| block.source == ours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reception::receiver_report;

    #[test]
    fn a_sender_report_is_read_back() {
        let now = Instant::from_nanos(1_500_000_000);
        let info = SenderInfo { ssrc: 7, rtp_timestamp: 8, packets: 9, octets: 10 };
        let read = |bye| rtcp::parse(&sender_report(now, &info, bye)).map(Result::unwrap).collect::<Vec<_>>();
        let (ntp, blocks) = (0x0000_0001_8000_0000, Vec::new());
        let report = Packet::SenderReport { ssrc: 7, ntp, rtp_timestamp: 8, packets: 9, octets: 10, blocks };
        let cname = Packet::Cname { ssrc: 7, cname: "server".into() };
        assert_eq!(read(false)[0], report);
        assert_eq!(read(true), [report, cname, Packet::Bye { sources: vec![7] }]);
    }

    #[test]
    fn a_block_is_read_if_it_is_about_us() {
        let block = RtcpBlock {
            source: 7,
            fraction_lost: 51,
            cumulative_lost: -4,
            extended_highest: 65_549,
            jitter: 900,
            lsr: 0x1_8000,
            dlsr: 0x4000,
        };
        let report = rtcp::write(&receiver_report(99, Some(block)));
        assert_eq!(block_on(&report, 7), Some(block));
        assert_eq!(block_on(&report, 8), None, "not about us");
        assert_eq!(block_on(&rtcp::write(&receiver_report(99, None)), 7), None);
    }

    #[test]
    fn rubbish_is_no_report() {
        assert_eq!(block_on(b"not RTCP", 1), None);
        assert_eq!(block_on(&[], 1), None);
    }
}
