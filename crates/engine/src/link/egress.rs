//! The path's effects on a packet, applied to its bytes where they leave: marks, fragments, corruption.

use streamgauge_base::{ETHERNET_HEADER_BYTES, Ecn, IPV4_HEADER_BYTES, Item, Protocol};

use super::slab::{Meta, Slab};
use crate::packet::Parts;

const IP: usize = ETHERNET_HEADER_BYTES as usize;
/// Where the IP payload begins when the header has no options.
const ABOVE_IP: usize = IP + IPV4_HEADER_BYTES as usize;

/// A frame that differs from the bytes in its slot: other headers, a slice of the payload, a byte flipped.
/// The payload itself is not copied.
#[derive(Clone, Copy, Debug)]
pub struct Altered {
    header: [u8; ABOVE_IP],
    header_bytes: usize,
    /// The payload is `from..to` of the slot's frame.
    from: usize,
    to: usize,
    /// Place in the slot's frame and value of a byte that replaces the one there.
    flipped: Option<(usize, [u8; 1])>,
}

/// Applies the state of `item` to the bytes of its slot, in place where no other item shares them; otherwise
/// returns how they differ. `None`: the slot's frame is to be sent as it is.
#[inline]
pub fn prepare(slab: &mut Slab, item: &Item, meta: &Meta) -> Option<Altered> {
    let mark = item.ecn == Ecn::Ce && meta.ecn != Ecn::Ce;
    // The first part of a host's own fragment differs from that in length alone.
    let cut = item.fragment != meta.fragment || item.ip_bytes != meta.ip_bytes;
    if !mark && !cut && !item.corrupted { None } else { change(slab, item, meta, mark, cut) }
}

#[cold]
fn change(slab: &mut Slab, item: &Item, meta: &Meta, mark: bool, cut: bool) -> Option<Altered> {
    if !cut && let Some(frame) = slab.own_frame_mut(item.body) {
        if mark {
            mark_congestion(frame);
        }
        if item.corrupted
            && let Some((at, value)) = flip(frame, item, meta, 0)
        {
            frame[at] = value;
        }
        return None;
    }
    let frame = slab.frame(item.body);
    let header_bytes = frame.len().min(ABOVE_IP);
    let mut altered =
        Altered { header: [0; ABOVE_IP], header_bytes, from: header_bytes, to: frame.len(), flipped: None };
    let header = &mut altered.header[..header_bytes];
    header.copy_from_slice(&frame[..header_bytes]);
    if cut && header_bytes == ABOVE_IP {
        let units = usize::from(item.fragment.offset().saturating_sub(meta.fragment.offset()));
        altered.from = (ABOVE_IP + units * 8).min(frame.len());
        let bytes = item.ip_bytes.saturating_sub(IPV4_HEADER_BYTES) as usize;
        altered.to = (altered.from + bytes).min(frame.len());
        header[IP + 2..IP + 4].copy_from_slice(&(item.ip_bytes as u16).to_be_bytes());
        header[IP + 6..IP + 8].copy_from_slice(&item.fragment.word().to_be_bytes());
        header[IP + 10..IP + 12].fill(0);
        let sum = checksum(&header[IP..]);
        header[IP + 10..IP + 12].copy_from_slice(&sum.to_be_bytes());
    }
    if mark {
        mark_congestion(header);
    }
    if item.corrupted
        && let Some((at, value)) = flip(&frame[..altered.to], item, meta, altered.from)
    {
        if at < header_bytes {
            altered.header[at] = value;
        } else if (altered.from..altered.to).contains(&at) {
            altered.flipped = Some((at, [value]));
        }
    }
    Some(altered)
}

impl Altered {
    /// Its bytes, in pieces of itself and of the slot's `frame`.
    pub fn parts<'a>(&'a self, frame: &'a [u8]) -> Parts<'a> {
        let header = &self.header[..self.header_bytes];
        match &self.flipped {
            Some((at, value)) => Parts::of([header, &frame[self.from..*at], value, &frame[at + 1..self.to]]),
            None => Parts::of([header, &frame[self.from..self.to], &[], &[]]),
        }
    }
}

/// Sets the ECN bits of an IPv4 packet to congestion experienced and mends its header checksum (RFC 1624). `frame`
/// may end with the IP header.
fn mark_congestion(frame: &mut [u8]) {
    if !is_ipv4(frame) {
        return;
    }
    let word = |frame: &[u8], at: usize| u32::from(u16::from_be_bytes([frame[at], frame[at + 1]]));
    let old = word(frame, IP);
    frame[IP + 1] |= Ecn::Ce as u8;
    let new = word(frame, IP);
    // HC' = ~(~HC + ~m + m'), in one's complement.
    let sum = fold((!word(frame, IP + 10) & 0xffff) + (!old & 0xffff) + new);
    frame[IP + 10..IP + 12].copy_from_slice(&(!sum).to_be_bytes());
}

fn is_ipv4(frame: &[u8]) -> bool {
    frame.len() >= ABOVE_IP && frame[12..14] == [0x08, 0x00]
}

fn fold(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

/// Returns the checksum of a header of whole words (RFC 791 section 3.1).
fn checksum(header: &[u8]) -> u16 {
    !fold(header.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum())
}

/// Returns a place beyond the IP header and its new byte: with one bit flipped, always the same for the same
/// packet. In the payload where there is any, so that the receiver finds a wrong checksum and not a wrong
/// port or length; in the checksum itself otherwise. `from` is where the payload of a later fragment begins,
/// 0 for a frame that is not cut.
fn flip(frame: &[u8], item: &Item, meta: &Meta, from: usize) -> Option<(usize, u8)> {
    let chance = scramble(item.id.0 ^ u64::from(item.copy) << 56 ^ u64::from(item.fragment.offset()) << 40);
    let bit = 1u8 << (chance % 8);
    if !is_ipv4(frame) {
        // ARP and the like: anything above Ethernet.
        let at = IP + (chance >> 3) as usize % frame.len().checked_sub(IP).filter(|&bytes| bytes > 0)?;
        return Some((at, frame[at] ^ bit));
    }
    let above_ip = IP + usize::from(frame[IP] & 15) * 4;
    let end = frame.len().min(IP + if from == 0 { total_length(frame) } else { usize::MAX - IP });
    let has_header = item.fragment.offset() == 0;
    let header_bytes = if has_header { usize::from(meta.info.header_bytes) } else { 0 };
    let payload = from.max(above_ip) + header_bytes;
    if payload < end {
        let at = payload + (chance >> 3) as usize % (end - payload);
        return Some((at, frame[at] ^ bit));
    }
    let field = above_ip
        + match item.protocol {
            Protocol::Tcp => 16,
            Protocol::Udp => 6,
            Protocol::Icmp => 2,
            Protocol::Other => 0,
        };
    let sum = frame.get(field..field + 2).filter(|_| field + 2 <= end)?;
    // A UDP checksum of zero would mean that there is none (RFC 768).
    let bit = if sum[0] ^ bit == 0 && sum[1] == 0 { bit.rotate_left(1) } else { bit };
    Some((field, sum[0] ^ bit))
}

fn total_length(frame: &[u8]) -> usize {
    usize::from(u16::from_be_bytes([frame[IP + 2], frame[IP + 3]]))
}

/// Returns a number that looks random, the same on every machine (the finaliser of SplitMix64).
fn scramble(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests;
