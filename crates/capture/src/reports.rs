//! RTCP's receiver reports (RFC 3550 section 6.4): how many packets of a source never arrived, up to which number.
//!
//! Between two reports a receiver lost some packets and got the others. Some of the sender's packets in that range are
//! not in the receiver's capture. If these are as many as were lost, all of them were lost. If none was lost, the
//! capture missed all of them. Otherwise it stays open.

use std::collections::HashMap;

use crate::hash::Mixed;
use crate::packet::{Packet, PacketTransport};
use crate::rtcp::rtcp_parts;

/// Sources, and reports of each, that are kept.
const MOST_SOURCES: usize = 256;
const MOST_REPORTS: usize = 4096;
/// A longer range looks like one of another round of numbers.
const LONGEST_RANGE: u32 = 1 << 15;
/// The longest time (ns) between a packet and its report.
const LATEST_NS: i64 = 30_000_000_000;
const VERSION: u8 = 2;

/// A packet of RTP by its source and number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RtpNumber {
    pub source: u32,
    pub number: u16,
}

/// The source and number of a packet, if it may be RTP.
pub fn rtp_number(packet: &Packet<'_>) -> Option<RtpNumber> {
    let head: &[u8; 12] = packet.payload.first_chunk()?;
    let is_rtp = packet.transport == PacketTransport::Udp
        && !packet.is_later_fragment()
        && head[0] >> 6 == VERSION
        && !(192..=223).contains(&head[1]);
    is_rtp.then(|| RtpNumber {
        source: u32::from_be_bytes([head[8], head[9], head[10], head[11]]),
        number: u16::from_be_bytes([head[2], head[3]]),
    })
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Report {
    at_ns: i64,
    highest: u32,
    /// Signed: copies count against losses.
    lost: i32,
}

/// The range of a source between two reports.
pub type Range = (u32, usize);

/// The reports that a capture shows.
#[derive(Default)]
pub struct Reports {
    by_source: HashMap<u32, Vec<Report>, Mixed>,
    /// For each source that sends here: its latest number, and whether it sent any again. A number that arrives at its
    /// second attempt is no loss for a report.
    sent: HashMap<u32, (u16, bool), Mixed>,
}

impl Reports {
    /// Takes a packet of RTP that its sender sends here.
    pub fn send(&mut self, packet: RtpNumber) {
        let is_full = self.sent.len() >= MOST_SOURCES;
        match self.sent.get_mut(&packet.source) {
            Some((latest, is_again)) => {
                if packet.number.wrapping_sub(*latest).cast_signed() > 0 {
                    *latest = packet.number;
                } else {
                    *is_again = true;
                }
            }
            None if is_full => {}
            None => {
                self.sent.insert(packet.source, (packet.number, false));
            }
        }
    }

    /// Whether each number of a source was sent once.
    pub fn sends_once(&self, source: u32) -> bool {
        self.sent.get(&source).is_some_and(|&(_, is_again)| !is_again)
    }

    /// Takes the reports of a packet, if it is RTCP.
    pub fn take(&mut self, packet: &Packet<'_>, at_ns: i64) {
        if packet.transport != PacketTransport::Udp || packet.is_later_fragment() {
            return;
        }
        for part in rtcp_parts(packet.payload) {
            for block in part.blocks() {
                let word =
                    |at: usize| u32::from_be_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
                let lost = ((word(4) << 8).cast_signed()) >> 8;
                self.push(word(0), Report { at_ns, highest: word(8), lost });
            }
        }
    }

    fn push(&mut self, source: u32, report: Report) {
        let is_full = self.by_source.len() >= MOST_SOURCES;
        let own = match self.by_source.get_mut(&source) {
            Some(own) => own,
            None if is_full => return,
            None => self.by_source.entry(source).or_default(),
        };
        if own.len() < MOST_REPORTS && own.last().is_none_or(|last| last.highest != report.highest) {
            own.push(report);
        }
    }

    /// The range between two reports that a packet of this time is in.
    pub fn range(&self, packet: RtpNumber, at_ns: i64) -> Option<Range> {
        let own = self.by_source.get(&packet.source)?;
        let first = own.partition_point(|report| report.at_ns < at_ns);
        let later = own.iter().enumerate().skip(first.max(1));
        let in_time = later.take_while(|(_, report)| report.at_ns.saturating_sub(at_ns) <= LATEST_NS);
        let holds = |&(at, report): &(usize, &Report)| {
            let length = report.highest.wrapping_sub(own[at - 1].highest);
            let place = packet.number.wrapping_sub(own[at - 1].highest as u16);
            length < LONGEST_RANGE && place > 0 && u32::from(place) <= length
        };
        in_time.into_iter().find(holds).map(|(at, _)| (packet.source, at))
    }

    /// Returns whether the packets of a range were lost that the receiver's capture lacks: `without` packets, beside
    /// `known` losses. `None` if that stays open.
    pub fn are_lost(&self, (source, at): Range, without: u32, known: u32) -> Option<bool> {
        let own = self.by_source.get(&source)?;
        let lost = own.get(at)?.lost.wrapping_sub(own.get(at.checked_sub(1)?)?.lost);
        match u32::try_from(i64::from(lost) - i64::from(known)) {
            Ok(0) => Some(false),
            Ok(lost) if lost == without => Some(true),
            _ => None,
        }
    }
}
