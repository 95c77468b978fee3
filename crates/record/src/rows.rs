//! One row of `packets.parquet`: the decision of a path about one item in one stage.

use streamgauge_base::{Fate, packet_flags};

use crate::columns::Columns;

/// The part of a row that a path alone decides; the same path must decide it again. Times in ns since the trial's
/// start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketRow {
    /// The packet's number.
    pub pkt: u64,
    /// 0 the original.
    pub copy: u8,
    /// In units of 8 bytes.
    pub fragment_offset: u16,
    /// The flow's code.
    pub flow: u16,
    /// The stage's code.
    pub stage: u8,
    /// Time when it arrived at the stage.
    pub t_in: u64,
    /// Time when it left, if it did.
    pub t_out: Option<u64>,
    /// Time when it was dropped, if it was.
    pub t_drop: Option<u64>,
    /// The outcome's code.
    pub fate: u8,
    /// The cause's code.
    pub cause: u8,
    /// Ethernet bytes.
    pub wire_bytes: u32,
    /// IP bytes.
    pub ip_bytes: u32,
    /// All bits of `packet_flags`.
    pub flags: u16,
    /// The stage's content at its arrival.
    pub queue_bytes: u32,
    /// The stage's content at its arrival.
    pub queue_packets: u32,
    /// Hash of addresses and ports.
    pub hash: u32,
    /// The protocol's code.
    pub protocol: u8,
}

impl PacketRow {
    /// Returns the row that [`crate::PacketWriter`] writes of `fate`; `info_flags` are the classifier's.
    pub fn of(fate: &Fate, info_flags: u16) -> Self {
        let item = &fate.item;
        PacketRow {
            pkt: item.id.0,
            copy: item.copy,
            fragment_offset: item.fragment.offset(),
            flow: item.flow.0,
            stage: fate.stage.0,
            t_in: fate.t_in.as_nanos(),
            t_out: fate.t_out().map(|t| t.as_nanos()),
            t_drop: fate.t_drop().map(|t| t.as_nanos()),
            fate: fate.outcome as u8,
            cause: fate.cause as u8,
            wire_bytes: item.bytes,
            ip_bytes: item.ip_bytes,
            flags: crate::columns::flags(fate, info_flags),
            queue_bytes: fate.queue.bytes,
            queue_packets: fate.queue.packets,
            hash: item.hash,
            protocol: item.protocol as u8,
        }
    }

    /// Returns the key of a row within a record.
    pub fn key(&self) -> (u64, u8, u8, u16) {
        (self.pkt, self.stage, self.copy, self.fragment_offset)
    }

    /// Returns its row as far as the path decides it: without the classifier's findings in its headers.
    pub fn decided(mut self) -> Self {
        self.flags &= !packet_flags::RETRANSMIT;
        self
    }
}

impl Columns {
    pub fn row(&self, i: usize) -> PacketRow {
        PacketRow {
            pkt: self.pkt[i],
            copy: self.copy[i],
            fragment_offset: self.fragment_offset[i],
            flow: self.flow[i],
            stage: self.stage[i],
            t_in: self.t_in[i],
            t_out: self.t_out_known[i].then_some(self.t_out[i]),
            t_drop: self.t_drop_known[i].then_some(self.t_drop[i]),
            fate: self.fate[i],
            cause: self.cause[i],
            wire_bytes: self.wire_bytes[i],
            ip_bytes: self.ip_bytes[i],
            flags: self.flags[i],
            queue_bytes: self.queue_bytes[i],
            queue_packets: self.queue_packets[i],
            hash: self.hash[i],
            protocol: self.protocol[i],
        }
    }
}
