//! Packets that wait for their match.

use std::collections::{HashMap, VecDeque};

use crate::copies::fingerprint;
use crate::feedback::Numbered;
use crate::hash::Mixed;
use crate::packet::{Packet, PacketTransport, flag};
use crate::reports::{RtpNumber, rtp_number};

/// A packet that waits for its match.
#[derive(Clone, Copy)]
pub struct Waiting {
    pub at_ns: i64,
    pub print: u64,
    pub flow: u32,
    pub from: u8,
    pub ecn: u8,
    pub is_matched: bool,
    pub is_sender: bool,
    pub ip_bytes: u32,
    pub payload_bytes: u32,
    pub seq: Option<u32>,
    /// Sequence numbers that it takes.
    pub length: u32,
    pub rtp: Option<RtpNumber>,
    /// Its numbers in streams that the receiver may give feedback on.
    pub numbered: [Option<Numbered>; 2],
    /// The number of the next packet with this print; 0 for none.
    pub next: u64,
    /// See [`MatchedPacket::number`].
    pub number: u64,
}

/// The waiting packets of one capture, numbered from 1.
#[derive(Default)]
pub struct WaitingLine {
    pub packets: VecDeque<Waiting>,
    pub first: u64,
    pub by_print: HashMap<u64, u64, Mixed>,
}

impl WaitingLine {
    pub fn push(&mut self, packet: Waiting) {
        if self.packets.is_empty() {
            self.first = self.first.max(1);
        }
        let number = self.first + self.packets.len() as u64;
        match self.by_print.get(&packet.print).copied() {
            Some(mut at) => {
                while let Some(one) = self.get(at).filter(|one| one.next != 0) {
                    at = one.next;
                }
                if let Some(one) = self.get_mut(at) {
                    one.next = number;
                }
            }
            None => {
                self.by_print.insert(packet.print, number);
            }
        }
        self.packets.push_back(packet);
    }

    pub fn get(&self, number: u64) -> Option<&Waiting> {
        self.packets.get(number.checked_sub(self.first)? as usize)
    }

    pub fn get_mut(&mut self, number: u64) -> Option<&mut Waiting> {
        self.packets.get_mut(number.checked_sub(self.first)? as usize)
    }

    /// The first packet of this print without a match, which then has one; or whether there was one with a match.
    pub fn take(&mut self, print: u64) -> Result<Waiting, bool> {
        let mut at = self.by_print.get(&print).copied().unwrap_or(0);
        let mut had = false;
        while let Some(one) = self.get_mut(at) {
            if !one.is_matched {
                one.is_matched = true;
                return Ok(*one);
            }
            had = true;
            at = one.next;
        }
        Err(had)
    }

    pub fn pop(&mut self) -> Option<Waiting> {
        let packet = self.packets.pop_front()?;
        if self.by_print.get(&packet.print) == Some(&self.first) {
            if packet.next != 0 {
                self.by_print.insert(packet.print, packet.next);
            } else {
                self.by_print.remove(&packet.print);
            }
        }
        self.first += 1;
        Some(packet)
    }
}

/// A packet as matching needs it; its flow is not known yet.
pub fn waiting(packet: &Packet<'_>, payload: usize) -> Waiting {
    let (seq, length) = match packet.transport {
        PacketTransport::Tcp(tcp) => {
            let controls = u32::from(tcp.flags & flag::SYN != 0) + u32::from(tcp.flags & flag::FIN != 0);
            (Some(tcp.seq), packet.payload_bytes + controls)
        }
        _ => (None, 0),
    };
    Waiting {
        at_ns: packet.at_ns,
        print: fingerprint(packet, payload),
        flow: 0,
        from: 0,
        ecn: packet.ecn,
        is_matched: false,
        is_sender: false,
        ip_bytes: packet.ip_bytes,
        payload_bytes: packet.payload_bytes,
        seq,
        length,
        rtp: rtp_number(packet),
        numbered: [None; 2],
        next: 0,
        number: 0,
    }
}
