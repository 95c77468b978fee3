//! Address translation between two captures: packets that are alike but for addresses and ports show which end is which.

use std::collections::HashMap;

use crate::capture::Capture;
use crate::copies::PAYLOAD_BYTES;
use crate::error::CaptureError;
use crate::first_look::CaptureSource;
use crate::hash::{Mixed, mix};
use crate::packet::{End, Packet, PacketTransport};
use crate::translation::Renamed;

/// Packets of each capture that are compared.
const COMPARED: usize = 1 << 18;
/// A translated pair of ends has so many packets in common at least.
const FEWEST: u64 = 8;
/// Shorter payload is alike by chance.
const LEAST_PAYLOAD: usize = 16;

/// The fields that address translation keeps: lengths, TCP's numbers and the payload.
fn print(packet: &Packet<'_>, payload: usize) -> Option<u64> {
    let known = &packet.payload[..packet.payload.len().min(payload)];
    if known.len() < LEAST_PAYLOAD || packet.is_later_fragment() {
        return None;
    }
    let mut hash = mix(u64::from(packet.ip_bytes), u64::from(packet.protocol));
    if let PacketTransport::Tcp(tcp) = packet.transport {
        hash = mix(hash ^ (u64::from(tcp.seq) << 32 | u64::from(tcp.ack)), u64::from(tcp.flags));
    }
    for part in known.chunks(8) {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        hash = mix(hash ^ u64::from_le_bytes(word), 4);
    }
    Some(hash)
}

/// The ends that have other names in `b` than in `a`; none if packets do not show any.
///
/// # Errors
/// A file cannot be read, or is no capture.
pub fn translated(a: &CaptureSource<'_>, b: &CaptureSource<'_>) -> Result<Vec<Renamed>, CaptureError> {
    let mut captures = [Capture::open(a.path, a.only)?, Capture::open(b.path, b.only)?];
    let payload = captures.iter().fold(PAYLOAD_BYTES, |least, capture| least.min(capture.survey.payload));
    let mut seen: HashMap<u64, Option<(End, End)>, Mixed> = HashMap::default();
    let mut is_more = true;
    while is_more && seen.len() < COMPARED {
        is_more = captures[0].next_packet(|packet| {
            if let Some(print) = print(packet, payload) {
                // A print that occurs twice names no end.
                let ends = (packet.source, packet.destination);
                seen.entry(print).and_modify(|one| *one = None).or_insert(Some(ends));
            }
        });
    }
    let mut votes: HashMap<Renamed, u64, Mixed> = HashMap::default();
    let mut compared = 0;
    is_more = true;
    while is_more && compared < COMPARED {
        compared += 1;
        is_more = captures[1].next_packet(|packet| {
            let found = print(packet, payload).and_then(|print| seen.get_mut(&print).and_then(Option::take));
            if let Some((source, destination)) = found {
                *votes.entry((packet.source, source)).or_default() += 1;
                *votes.entry((packet.destination, destination)).or_default() += 1;
            }
        });
    }
    let mut sorted: Vec<(Renamed, u64)> = votes.into_iter().filter(|&(_, count)| count >= FEWEST).collect();
    sorted.sort_unstable_by_key(|&(ends, count)| (std::cmp::Reverse(count), ends));
    let mut found: Vec<Renamed> = Vec::new();
    for ((theirs, ours), _) in sorted {
        if !found.iter().any(|(one, other)| *one == theirs || *other == ours) {
            found.push((theirs, ours));
        }
    }
    found.retain(|(theirs, ours)| theirs != ours);
    Ok(found)
}
