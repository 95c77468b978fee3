//! One interface of the router: a ring in, batches out.

use streamgauge_base::{Direction, Ecn, FlowId, PacketId};

use super::slab::{Slab, Slot};
use super::stats::PortStats;
use crate::packet::{MAX_BATCH, Ring};

/// A packet that has left its path and waits for the system call.
#[derive(Clone, Copy, Debug)]
pub struct Outbound {
    /// Its bytes.
    pub slot: Slot,
    /// The packet.
    pub id: PacketId,
    /// Its flow.
    pub flow: FlowId,
    /// Its direction.
    pub direction: Direction,
    /// Ethernet bytes as the path counts them.
    pub bytes: u32,
    /// Logical departure on CLOCK_MONOTONIC, ns.
    pub due: i64,
    /// It belongs to the trial.
    pub recorded: bool,
}

/// An interface.
pub struct Port {
    /// What comes in.
    pub ring: Ring,
    /// What goes out next.
    pub out: Vec<Outbound>,
    /// Since the last reset.
    pub stats: PortStats,
    drops_before: u64,
}

impl Port {
    /// Around an open ring.
    pub fn new(ring: Ring) -> Self {
        Port { ring, out: Vec::with_capacity(MAX_BATCH), stats: PortStats::default(), drops_before: 0 }
    }

    /// Reads the kernel's count of lost frames.
    pub fn read_drops(&mut self) {
        self.stats.ring_drops = self.ring.drops() - self.drops_before;
    }

    /// Counts from zero.
    pub fn reset(&mut self) {
        self.drops_before = self.ring.drops();
        self.stats = PortStats::default();
    }
}

/// Sets the ECN bits of an IPv4 packet to congestion experienced and mends its header checksum (RFC 1624).
pub fn mark_congestion(slab: &mut Slab, slot: Slot) {
    const IP: usize = streamgauge_base::ETHERNET_HEADER_BYTES as usize;
    let frame = slab.frame_mut(slot);
    if frame.len() < IP + 20 || frame[12..14] != [0x08, 0x00] {
        return;
    }
    let word = |frame: &[u8], at: usize| u32::from(u16::from_be_bytes([frame[at], frame[at + 1]]));
    let old = word(frame, IP);
    frame[IP + 1] |= Ecn::Ce as u8;
    let new = word(frame, IP);
    // HC' = ~(~HC + ~m + m'), in one's complement.
    let mut sum = (!word(frame, IP + 10) & 0xffff) + (!old & 0xffff) + new;
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    frame[IP + 10..IP + 12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use streamgauge_base::{PacketInfo, PacketKind};

    use super::*;
    use crate::link::slab::Meta;

    fn checksum(header: &[u8]) -> u16 {
        let sum: u32 = header.chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        !((sum & 0xffff) + (sum >> 16)) as u16
    }

    #[test]
    fn a_marked_header_still_checks() {
        for (tos, ident) in [(0x02u8, 0u16), (0x01, 0xffff), (0xb9, 0x1234), (0x03, 7)] {
            let mut frame = vec![0u8; 14];
            frame[12..14].copy_from_slice(&[0x08, 0x00]);
            let mut header =
                vec![0x45, tos, 0x05, 0xdc, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 1, 0, 1, 10, 2, 0, 1];
            header[4..6].copy_from_slice(&ident.to_be_bytes());
            let sum = checksum(&header);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
            frame.extend(&header);
            let mut slab = Slab::new(1);
            let info = PacketInfo { kind: PacketKind::Other, flags: 0, payload_bytes: 0, seq: None };
            let meta = Meta { id: PacketId(0), info, ecn: Ecn::Ect0, egress: 0, length: 0 };
            let slot = slab.insert(meta, &frame).unwrap();
            mark_congestion(&mut slab, slot);
            let marked = slab.frame(slot);
            assert_eq!(marked[15], tos | 3);
            assert_eq!(checksum(&marked[14..34]), 0, "tos {tos:#x}");
        }
    }
}
