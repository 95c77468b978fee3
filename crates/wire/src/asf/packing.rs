//! One stream's media objects in packets, and when these are sent.

use super::object::MediaObject;
use super::packet::{DataPacket, DataPayload, ObjectFields};
use super::write::{packet_bytes, room};

/// A piece of a media object that does not end with it is no shorter than this, or its packet is left as it
/// is: the fields in front of a payload have 17 B.
const LEAST_PIECE_BYTES: usize = 64;
/// Bytes of the smallest packets: a piece, and the fields in front of it.
pub(super) const LEAST_PACKET_BYTES: u32 = 128;

/// Puts `objects` into packets of `stream` that need at most `most_bytes`, 128 or more, of key frames alone or of others
/// alone, so that the others can be left out. They are sent at 0. The first object has the number `first`.
pub fn pack<'a>(
    objects: &'a [MediaObject<'a>],
    first: u32,
    stream: u8,
    most_bytes: usize,
) -> Vec<DataPacket<'a>> {
    let mut packets = Vec::new();
    let mut open: Vec<DataPayload<'a>> = Vec::new();
    let mut close = |open: &mut Vec<DataPayload<'a>>| {
        let presented = |payload: &DataPayload<'_>| payload.of.map_or(0, |of| of.presentation_ms);
        let (Some(first), Some(last)) = (open.first().map(presented), open.last().map(presented)) else {
            return;
        };
        let duration_ms = last.saturating_sub(first).min(u16::MAX.into()) as u16;
        packets.push(DataPacket { duration_ms, payloads: std::mem::take(open), ..DataPacket::default() });
    };
    for (number, object) in (first..).zip(objects) {
        if open.first().is_some_and(|first| first.is_key != object.is_key) {
            close(&mut open);
        }
        let of = ObjectFields { bytes: object.data.len() as u32, presentation_ms: object.presentation_ms };
        let mut rest = &object.data[..];
        while !rest.is_empty() {
            let room = room(&open, most_bytes).filter(|&room| room >= rest.len().min(LEAST_PIECE_BYTES));
            let Some(room) = room else {
                close(&mut open);
                continue;
            };
            let (data, left) = rest.split_at(rest.len().min(room));
            let offset = of.bytes - rest.len() as u32;
            let is_key = object.is_key;
            // It wraps after 8 bits.
            open.push(DataPayload { stream, is_key, object: number & 0xff, offset, of: Some(of), data });
            rest = left;
        }
    }
    close(&mut open);
    packets
}

/// A packet as a link sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// When it can be sent at the earliest, in ms: when its first media object begins.
    ready_ms: u32,
    /// When it has to be there, in ms: when its first media object is presented.
    deadline_ms: u32,
    /// Without padding.
    bytes: u64,
}

impl Load {
    /// Returns the packets of one stream, with the preroll in their presentation times.
    pub(super) fn of(packets: &[DataPacket<'_>], preroll_ms: u32) -> Vec<Load> {
        let mut ready_ms = 0;
        let load = |packet: &DataPacket<'_>| {
            let times = packet.payloads.iter().filter_map(|payload| payload.of).map(|of| of.presentation_ms);
            ready_ms = times.clone().next().unwrap_or(0).saturating_sub(preroll_ms).max(ready_ms);
            let bytes = packet_bytes(&packet.payloads) as u64;
            Load { ready_ms, deadline_ms: times.min().unwrap_or(0), bytes }
        };
        packets.iter().map(load).collect()
    }

    /// Returns the bytes of all.
    pub(super) fn bytes(loads: &[Load]) -> u64 {
        loads.iter().map(|load| load.bytes).sum()
    }
}

/// Returns the send time of each packet, in ms, and the last one's end, if a link of `rate_bps` carries one
/// after another; `None` if one of them is too late.
pub(super) fn send_times(loads: &[Load], rate_bps: u32) -> Option<(Vec<u32>, u32)> {
    const NS: u64 = 1_000_000;
    let mut free_ns = 0;
    let mut times = Vec::with_capacity(loads.len());
    for load in loads {
        let begins_ns = free_ns.max(u64::from(load.ready_ms) * NS);
        free_ns = begins_ns + (load.bytes * 8_000_000_000).div_ceil(rate_bps.max(1).into());
        if free_ns > u64::from(load.deadline_ms) * NS {
            return None;
        }
        times.push((begins_ns / NS) as u32);
    }
    Some((times, free_ns.div_ceil(NS) as u32))
}

/// Returns the least rate from `from_bps` on at which no packet is too late; `None` if there is none in 32
/// bits.
pub(super) fn least_rate_bps(loads: &[Load], from_bps: u32) -> Option<u32> {
    let fits = |rate| send_times(loads, rate).is_some();
    let (mut low, mut high) = (from_bps.max(1), u32::MAX);
    if fits(low) {
        return Some(low);
    }
    if !fits(high) {
        return None;
    }
    // `low` does not fit, `high` does.
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

/// Returns the highest level of a bucket that drains at `rate_bps`, in ms at that rate, if each media object
/// arrives at its begin.
pub(super) fn bucket_ms(objects: &[MediaObject<'_>], rate_bps: u32) -> u32 {
    let rate = u128::from(rate_bps.max(1));
    // In bits times 1000: the amount drained in a ms is a whole number.
    let (mut level, mut most, mut before_ms) = (0u128, 0, 0);
    for object in objects {
        let passed_ms = object.presentation_ms.saturating_sub(before_ms);
        before_ms = object.presentation_ms.max(before_ms);
        level = level.saturating_sub(u128::from(passed_ms) * rate) + object.data.len() as u128 * 8000;
        most = level.max(most);
    }
    most.div_ceil(rate).min(u32::MAX.into()) as u32
}
