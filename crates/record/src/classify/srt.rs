//! Secure Reliable Transport (draft-sharabayko-srt-01 section 3). A data packet has a flag for repetition.

use streamgauge_base::PacketKind;

use super::reader::{Datagram, DatagramReader, Shown};

/// Bytes of a header.
const HEADER: u32 = 16;
/// The first bit of control packets.
const CONTROL: u32 = 1 << 31;
/// Set in the second word of a data packet that was sent before.
const RETRANSMITTED: u32 = 1 << 26;
/// Types of control packets that report arrivals: ACK, NAK and ACKACK.
const REPORTS: [u32; 3] = [2, 3, 6];

/// The SRT of one flow.
#[derive(Default)]
pub struct Srt;

fn word(head: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*head.get(at..)?.first_chunk()?))
}

impl DatagramReader for Srt {
    fn read(&mut self, datagram: &Datagram<'_>) -> Option<Shown> {
        let (first, second) = (word(datagram.head, 0)?, word(datagram.head, 4)?);
        if datagram.bytes < HEADER {
            return None;
        }
        if first & CONTROL == 0 {
            return Some(Shown { kind: None, seq: Some(first), again: second & RETRANSMITTED != 0 });
        }
        let is_report = REPORTS.contains(&(first >> 16 & 0x7fff));
        Some(Shown::kind(if is_report { PacketKind::Ack } else { PacketKind::Signalling }))
    }
}
