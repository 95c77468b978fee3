//! Compound RTCP (RFC 3550 section 6), with generic NACKs (RFC 4585), feedback for congestion control and the packets of
//! Apple's Reliable UDP and of RIST.

pub mod congestion;
pub mod nack;
pub mod reliable_udp;
pub mod rist;

use rtcp_types::prelude::*;
use rtcp_types::{
    App, Bye, ReceiverReport, ReportBlock, ReportBlockBuilder, Sdes, SdesChunk, SdesItem, SenderReport,
};
use streamgauge_base::{Duration, Instant};

use congestion::{CongestionFeedback, Feedback, PictureLoss, TransportWide};
use nack::{NackPacket, TRANSPORT_FEEDBACK};
use reliable_udp::{ACK, AckPacket, CLIENT_REPORT, ClientReport, HINT, HINT_SUBTYPE, Hint, OLD_ACK};
use rist::RistApp;

/// The packet type of APP, which Reliable UDP's packets have.
pub const APP: u8 = 204;

/// The header's bit for padding at the packet's end; the last byte counts it.
const PADDED: u8 = 0x20;

/// Report blocks that one report has room for, and sources that one goodbye has.
const MOST: usize = 31;

/// One packet of a compound.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Packet {
    /// SR.
    SenderReport {
        /// The sender.
        ssrc: u32,
        /// When: see [`ntp`].
        ntp: u64,
        /// When, on the stream's clock.
        rtp_timestamp: u32,
        /// RTP packets sent.
        packets: u32,
        /// Payload bytes sent.
        octets: u32,
        /// At most 31 are written.
        blocks: Vec<RtcpBlock>,
    },
    /// RR.
    ReceiverReport {
        /// The receiver.
        ssrc: u32,
        /// At most 31 are written.
        blocks: Vec<RtcpBlock>,
    },
    /// SDES: its first CNAME.
    Cname {
        /// The source.
        ssrc: u32,
        /// At most 255 bytes are written.
        cname: String,
    },
    /// BYE.
    Bye {
        /// The sources that end; at most 31 are written.
        sources: Vec<u32>,
    },
    /// RTPFB with a generic NACK.
    Nack(NackPacket),
    /// RTPFB with transport-wide feedback.
    TransportWide(TransportWide),
    /// RTPFB with congestion control feedback (RFC 8888).
    CongestionFeedback(CongestionFeedback),
    /// PSFB with a picture loss indication (RFC 4585).
    PictureLoss(PictureLoss),
    /// APP `qtak` or `ack `; written as `qtak`.
    Ack(AckPacket),
    /// APP `QTSS`.
    ClientReport(ClientReport),
    /// APP `qtsi`.
    Hint(Hint),
    /// APP `RIST`.
    Rist(RistApp),
    /// Well-formed, and nothing of ours. It is not written.
    Other {
        /// Its type.
        packet_type: u8,
        /// The name, if it is an APP.
        app: Option<[u8; 4]>,
    },
}

/// A report about one source.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RtcpBlock {
    /// The source of the packets.
    pub source: u32,
    /// Lost since the last report, in 1/256.
    pub fraction_lost: u8,
    /// Lost so far; negative if there were more duplicates than losses. Written as far as 24 bits hold it.
    pub cumulative_lost: i32,
    /// Highest sequence number received, with the cycles above it.
    pub extended_highest: u32,
    /// Interarrival jitter in RTP ticks.
    pub jitter: u32,
    /// The middle 32 bits of the last sender report's NTP timestamp; 0 if there was none.
    pub lsr: u32,
    /// Time since that arrived, in 1/65536 s: see [`short`].
    pub dlsr: u32,
}

/// Faults of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// It ends before its packet does.
    #[error("cut short")]
    Truncated,
    /// It is not version 2.
    #[error("not version 2")]
    Version,
    /// Its body does not fit its type.
    #[error("contents that its type has not")]
    Contents,
    /// A client report's subtype is not 0.
    #[error("a subtype other than 0")]
    Subtype,
    /// A known item has another length than it should, or the one that matters is missing.
    #[error("a malformed item")]
    Item,
}

/// A fault, and the type of the packet that has it (0 if even that is missing).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("RTCP packet of type {packet_type}: {fault}")]
pub struct Problem {
    /// The fault.
    pub fault: Fault,
    /// The packet's type.
    pub packet_type: u8,
}

/// Returns the packets of a datagram, in their order. The first problem is the last item. That a compound
/// begins with a report is not demanded.
pub fn parse(datagram: &[u8]) -> Packets<'_> {
    Packets { rest: datagram }
}

/// See [`parse`].
#[derive(Clone, Debug)]
pub struct Packets<'a> {
    rest: &'a [u8],
}

impl Iterator for Packets<'_> {
    type Item = Result<Packet, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let bytes = std::mem::take(&mut self.rest);
        let packet_type = bytes.get(1).copied().unwrap_or(0);
        let problem = |fault| Some(Err(Problem { fault, packet_type }));
        let Some(&[first, _, high, low]) = bytes.first_chunk() else { return problem(Fault::Truncated) };
        if first >> 6 != 2 {
            return problem(Fault::Version);
        }
        let length = (usize::from(u16::from_be_bytes([high, low])) + 1) * 4;
        let Some((packet, rest)) = bytes.split_at_checked(length) else { return problem(Fault::Truncated) };
        // `rtcp-types` subtracts padding longer than an APP's data from the data all the same, and panics.
        let headers = if packet_type == APP { 12 } else { 4 };
        let padding = packet.last().filter(|_| first & PADDED != 0).map_or(0, |bytes| usize::from(*bytes));
        // `rtcp-types` does not support the E bit, and takes padding for entries.
        let nack = (packet_type == TRANSPORT_FEEDBACK).then(|| NackPacket::read(packet)).flatten();
        if let Some(nack) = nack {
            self.rest = if nack.is_ok() { rest } else { &[] };
            return Some(nack.map(Packet::Nack));
        }
        if let Some(feedback) = congestion::read(packet) {
            self.rest = if feedback.is_ok() { rest } else { &[] };
            return Some(feedback.map(|feedback| match feedback {
                Feedback::Wide(wide) => Packet::TransportWide(wide),
                Feedback::Congestion(congestion) => Packet::CongestionFeedback(congestion),
                Feedback::Picture(picture) => Packet::PictureLoss(picture),
            }));
        }
        let packet = match rtcp_types::Packet::parse(packet) {
            Ok(packet) if headers + padding <= length => read(&packet, packet_type),
            _ => Err(Problem { fault: Fault::Contents, packet_type }),
        };
        if packet.is_ok() {
            self.rest = rest;
        }
        Some(packet)
    }
}

fn read(packet: &rtcp_types::Packet<'_>, packet_type: u8) -> Result<Packet, Problem> {
    use rtcp_types::Packet as Kept;
    Ok(match packet {
        Kept::Sr(report) => Packet::SenderReport {
            ssrc: report.ssrc(),
            ntp: report.ntp_timestamp(),
            rtp_timestamp: report.rtp_timestamp(),
            packets: report.packet_count(),
            octets: report.octet_count(),
            blocks: report.report_blocks().map(|block| RtcpBlock::read(&block)).collect(),
        },
        Kept::Rr(report) => Packet::ReceiverReport {
            ssrc: report.ssrc(),
            blocks: report.report_blocks().map(|block| RtcpBlock::read(&block)).collect(),
        },
        Kept::Sdes(sdes) => {
            let cname = sdes.chunks().find_map(|chunk| {
                let item = chunk.items().find(|item| item.type_() == SdesItem::CNAME)?;
                Some(Packet::Cname { ssrc: chunk.ssrc(), cname: item.get_value_string().ok()? })
            });
            cname.unwrap_or(Packet::Other { packet_type, app: None })
        }
        Kept::Bye(bye) => Packet::Bye { sources: bye.ssrcs().collect() },
        Kept::App(app) => match app.name() {
            ACK | OLD_ACK => Packet::Ack(AckPacket::read(app.ssrc(), app.data())?),
            CLIENT_REPORT => Packet::ClientReport(ClientReport::read(app.ssrc(), app.subtype(), app.data())?),
            HINT => Packet::Hint(Hint::read(app.ssrc(), app.data())?),
            rist::NAME => match RistApp::read(app.ssrc(), app.subtype(), app.data())? {
                Some(rist) => Packet::Rist(rist),
                None => Packet::Other { packet_type, app: Some(rist::NAME) },
            },
            name => Packet::Other { packet_type, app: Some(name) },
        },
        _ => Packet::Other { packet_type, app: None },
    })
}

impl RtcpBlock {
    fn read(block: &ReportBlock<'_>) -> Self {
        RtcpBlock {
            source: block.ssrc(),
            fraction_lost: block.fraction_lost(),
            // Sign-extended from 24 bits.
            cumulative_lost: (block.cumulative_lost() << 8) as i32 >> 8,
            extended_highest: block.extended_sequence_number(),
            jitter: block.interarrival_jitter(),
            lsr: block.last_sender_report_timestamp(),
            dlsr: block.delay_since_last_sender_report_timestamp(),
        }
    }

    fn builder(&self) -> ReportBlockBuilder {
        let lost = self.cumulative_lost.clamp(-0x80_0000, 0x7f_ffff);
        ReportBlock::builder(self.source)
            .fraction_lost(self.fraction_lost)
            .cumulative_lost(lost.cast_unsigned() & 0xff_ffff)
            .extended_sequence_number(self.extended_highest)
            .interarrival_jitter(self.jitter)
            .last_sender_report_timestamp(self.lsr)
            .delay_since_last_sender_report_timestamp(self.dlsr)
    }
}

/// Returns the datagram of `packets`. RFC 3550 section 6.1 requires a report first and a CNAME in each.
pub fn write(packets: &[Packet]) -> Vec<u8> {
    let mut datagram = Vec::new();
    for packet in packets {
        match packet {
            Packet::SenderReport { ssrc, ntp, rtp_timestamp, packets, octets, blocks } => {
                let report = SenderReport::builder(*ssrc)
                    .ntp_timestamp(*ntp)
                    .rtp_timestamp(*rtp_timestamp)
                    .packet_count(*packets)
                    .octet_count(*octets);
                let blocks = blocks.iter().take(MOST);
                append(&mut datagram, &blocks.fold(report, |r, block| r.add_report_block(block.builder())));
            }
            Packet::ReceiverReport { ssrc, blocks } => {
                let report = ReceiverReport::builder(*ssrc);
                let blocks = blocks.iter().take(MOST);
                append(&mut datagram, &blocks.fold(report, |r, block| r.add_report_block(block.builder())));
            }
            Packet::Cname { ssrc, cname } => {
                let end = (0..=cname.len().min(255)).rev().find(|&end| cname.is_char_boundary(end));
                let cname = &cname[..end.unwrap_or(0)];
                let chunk = SdesChunk::builder(*ssrc).add_item(SdesItem::builder(SdesItem::CNAME, cname));
                append(&mut datagram, &Sdes::builder().add_chunk(chunk));
            }
            Packet::Bye { sources } => {
                let sources = sources.iter().take(MOST);
                append(&mut datagram, &sources.fold(Bye::builder(), |bye, ssrc| bye.add_source(*ssrc)));
            }
            Packet::Nack(nack) => nack.append_to(&mut datagram),
            Packet::TransportWide(wide) => wide.append_to(&mut datagram),
            Packet::CongestionFeedback(feedback) => feedback.append_to(&mut datagram),
            Packet::PictureLoss(loss) => loss.append_to(&mut datagram),
            Packet::Ack(ack) => app(&mut datagram, ack.receiver_ssrc, "qtak", 0, &ack.data()),
            Packet::ClientReport(report) => {
                app(&mut datagram, report.client_ssrc, "QTSS", 0, &report.data());
            }
            Packet::Hint(hint) => app(&mut datagram, hint.server_ssrc, "qtsi", HINT_SUBTYPE, &hint.data()),
            Packet::Rist(rist) => {
                let (source, subtype, data) = rist.parts();
                app(&mut datagram, source, "RIST", subtype, &data);
            }
            Packet::Other { .. } => {}
        }
    }
    datagram
}

fn app(datagram: &mut Vec<u8>, ssrc: u32, name: &str, subtype: u8, data: &[u8]) {
    append(datagram, &App::builder(ssrc, name).subtype(subtype).data(data));
}

fn append(datagram: &mut Vec<u8>, packet: &impl RtcpPacketWriter) {
    let start = datagram.len();
    datagram.resize(start + packet.calculate_size().expect("within the format's bounds"), 0);
    packet.write_into(&mut datagram[start..]).expect("the size was just asked for");
}

/// Returns an NTP timestamp: seconds in the high half. Its epoch is the trial's start, which RFC 3550 section
/// 6.4.1 allows where there is no wall clock.
pub fn ntp(at: Instant) -> u64 {
    ((u128::from(at.as_nanos()) << 32) / 1_000_000_000) as u64
}

/// Returns the middle 32 bits of an NTP timestamp, in 1/65536 s.
pub fn ntp_middle(at: Instant) -> u32 {
    (ntp(at) >> 16) as u32
}

/// Returns a length of time in 1/65536 s, limited to 32 bits.
pub fn short(time: Duration) -> u32 {
    u32::try_from((u128::from(time.as_nanos()) << 16) / 1_000_000_000).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
