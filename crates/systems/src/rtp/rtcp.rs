//! RTCP compound packets (RFC 3550 section 6): reports, always with a CNAME, and the goodbye.

use rtcp_types::{
    Bye, Compound, Packet, ReceiverReport, ReportBlock, RtcpPacketWriter, RtcpPacketWriterExt, Sdes,
    SdesChunk, SdesItem, SenderReport,
};
use streamgauge_base::Instant;
use streamgauge_transport::rtp::Report;

/// The 24 bits of the cumulative number of packets lost.
const LOST_MASK: u32 = 0xff_ffff;

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
    pub block: Option<Feedback>,
    pub bye: bool,
}

/// The times of a sender report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SenderTimes {
    /// The middle 32 bits of its NTP timestamp.
    pub lsr: u32,
    pub rtp_timestamp: u32,
}

/// A report block about our own packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Feedback {
    /// In 1/256.
    pub fraction_lost: u8,
    /// Negative if there were more duplicates than losses.
    pub cumulative_lost: i32,
    /// RTP ticks.
    pub jitter: u32,
    /// The middle 32 bits of our sender report's NTP timestamp; 0 if the receiver had none.
    pub lsr: u32,
    /// In 1/65536 s.
    pub dlsr: u32,
}

/// An NTP timestamp: seconds in the high half. Its epoch is the trial's start, which RFC 3550 section 6.4.1
/// allows where there is no wall clock.
pub fn ntp(at: Instant) -> u64 {
    ((u128::from(at.as_nanos()) << 32) / 1_000_000_000) as u64
}

/// The middle 32 bits of an NTP timestamp, in 1/65536 s.
pub fn ntp_middle(at: Instant) -> u32 {
    (ntp(at) >> 16) as u32
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
    let report = SenderReport::builder(info.ssrc)
        .ntp_timestamp(ntp(now))
        .rtp_timestamp(info.rtp_timestamp)
        .packet_count(info.packets)
        .octet_count(info.octets);
    let compound = Compound::builder().add_packet(report).add_packet(cname(info.ssrc, "server"));
    if bye {
        return write(&compound.add_packet(Bye::builder().add_source(info.ssrc)));
    }
    write(&compound)
}

/// A receiver report on `source`.
pub fn receiver_report(
    now: Instant,
    ssrc: u32,
    source: u32,
    block: Option<Report>,
    last: Option<LastReport>,
) -> Vec<u8> {
    let mut report = ReceiverReport::builder(ssrc);
    if let Some(block) = block {
        let mut builder = ReportBlock::builder(source)
            .fraction_lost(block.fraction_lost)
            .cumulative_lost(block.cumulative_lost as u32 & LOST_MASK)
            .extended_sequence_number(block.extended_highest)
            .interarrival_jitter(block.jitter);
        if let Some(last) = last {
            let delay = (u128::from(now.saturating_since(last.arrived).as_nanos()) << 16) / 1_000_000_000;
            builder = builder
                .last_sender_report_timestamp(last.lsr)
                .delay_since_last_sender_report_timestamp(u32::try_from(delay).unwrap_or(u32::MAX));
        }
        report = report.add_report_block(builder);
    }
    write(&Compound::builder().add_packet(report).add_packet(cname(ssrc, "player")))
}

/// Reads a compound packet; `ours` is our own source. Anything malformed ends the reading.
pub fn parse(bytes: &[u8], ours: u32) -> Arrival {
    let mut arrival = Arrival::default();
    let Ok(compound) = Compound::parse(bytes) else { return arrival };
    for packet in compound.map_while(Result::ok) {
        match packet {
            Packet::Sr(report) => {
                let lsr = (report.ntp_timestamp() >> 16) as u32;
                arrival.sender_report = Some(SenderTimes { lsr, rtp_timestamp: report.rtp_timestamp() });
            }
            Packet::Rr(report) => {
                arrival.block = report.report_blocks().find(|b| b.ssrc() == ours).map(|b| Feedback {
                    fraction_lost: b.fraction_lost(),
                    // Sign-extended from 24 bits.
                    cumulative_lost: (b.cumulative_lost() << 8) as i32 >> 8,
                    jitter: b.interarrival_jitter(),
                    lsr: b.last_sender_report_timestamp(),
                    dlsr: b.delay_since_last_sender_report_timestamp(),
                });
            }
            Packet::Bye(_) => arrival.bye = true,
            _ => {}
        }
    }
    arrival
}

fn cname(ssrc: u32, name: &'static str) -> rtcp_types::SdesBuilder<'static> {
    let chunk = SdesChunk::builder(ssrc).add_item(SdesItem::builder(SdesItem::CNAME, name));
    Sdes::builder().add_chunk(chunk)
}

fn write(packet: &impl RtcpPacketWriter) -> Vec<u8> {
    let mut bytes = vec![0; packet.calculate_size().expect("few items, short names")];
    packet.write_into(&mut bytes).expect("the size was just asked for");
    bytes
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
        let expected =
            Feedback { fraction_lost: 51, cumulative_lost: -4, jitter: 900, lsr: 0x1_8000, dlsr: 0x4000 };
        assert_eq!(arrival.block, Some(expected));
        assert_eq!(parse(&receiver_report(later, 99, 7, Some(block), None), 8).block, None, "not about us");
    }

    #[test]
    fn rubbish_is_no_report() {
        assert_eq!(parse(b"not RTCP", 1), Arrival::default());
        assert_eq!(parse(&[], 1), Arrival::default());
    }
}
