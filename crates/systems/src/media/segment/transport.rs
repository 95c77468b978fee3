//! A demultiplexer of MPEG-2 transport streams (ISO/IEC 13818-1, Rec. ITU-T H.222.0), as far as access units are counted.
//!
//! Bytes come in as they arrive, in packets of 188 B, of 192 B with a time stamp in front, or of 204 B with parity behind.
//! An access unit is counted where its codec marks one: by the access unit delimiter, which every access unit of H.264 has in
//! a transport stream (section 2.14.1), or else by the start of a PES packet with a time stamp.

mod psi;
mod streams;

use std::collections::BTreeSet;

use streamgauge_base::Duration;

use super::{Counted, Pictures, TrackKind};
pub use psi::{Section, Tables, checksum};
use streams::Stream;
pub use streams::stamp_of;

/// The first byte of every packet.
pub const SYNC: u8 = 0x47;

/// Bytes of a packet that count.
const PACKET: usize = 188;

/// How far apart packets begin.
const STRIDES: [usize; 3] = [188, 192, 204];

/// Packets that must follow each other before their beginning is believed.
const IN_STEP: usize = 4;

/// Within this many bytes a packet begins.
const FURTHEST: usize = 204;

/// This many bytes always reveal where packets begin.
const SEARCHED: usize = (IN_STEP + 1) * FURTHEST;

/// Packets of the Program Association Table.
const PAT: u16 = 0;

/// Stuffing.
const NULL: u16 = 0x1fff;

/// A time stamp counts 90 kHz in 33 bits (section 2.4.3.7).
const WRAP: u64 = 1 << 33;

/// Its ticks in a second.
const CLOCK_RATE: u64 = 90_000;

/// Time stamps that are further apart are of different clocks, in ticks.
const JUMP: u64 = 10 * CLOCK_RATE;

/// Streams of a segment, those of former tables included.
const MOST_STREAMS: usize = 128;

/// A transport stream as it arrives.
pub struct TransportStream {
    tables: Tables,
    pat: Section,
    pmt: Section,
    streams: Vec<Stream>,
    /// Received bytes not yet read.
    waiting: Vec<u8>,
    /// How far apart packets begin, once that is known.
    stride: Option<usize>,
    /// Bytes that belong to no packet.
    lost: u64,
    packets: u64,
}

impl TransportStream {
    /// Returns the reader of a stream with these tables from before.
    pub fn new(tables: Tables) -> Self {
        let streams = tables.streams.iter().map(Stream::new).collect();
        TransportStream {
            tables,
            pat: Section::default(),
            pmt: Section::default(),
            streams,
            waiting: Vec::new(),
            stride: None,
            lost: 0,
            packets: 0,
        }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        // The queue stays short, for any amount received at once.
        for part in bytes.chunks(SEARCHED) {
            self.waiting.extend(part);
            self.read(false);
        }
    }

    /// Reads the whole packets in the queue; all of it at the end.
    fn read(&mut self, is_end: bool) {
        let mut at = 0;
        while at < self.waiting.len() {
            let left = self.waiting.len() - at;
            let Some(stride) = self.stride else {
                if left < SEARCHED && !is_end {
                    break;
                }
                match in_step(&self.waiting[at..]) {
                    Some((begins, stride)) => {
                        // In packets with a time stamp in front the first four bytes are the stamp.
                        let stamp = if stride == 192 && self.packets == 0 { 4 } else { 0 };
                        self.lost += begins.saturating_sub(stamp) as u64;
                        (at, self.stride) = (at + begins, Some(stride));
                    }
                    None => {
                        let passed = left.min(FURTHEST);
                        (at, self.lost) = (at + passed, self.lost + passed as u64);
                    }
                }
                continue;
            };
            if left < PACKET || left < stride && !is_end {
                break;
            }
            if self.waiting[at] != SYNC {
                self.stride = None;
                continue;
            }
            let packet: [u8; PACKET] = self.waiting[at..at + PACKET].try_into().unwrap_or([0; PACKET]);
            self.packet(&packet);
            at = (at + stride).min(self.waiting.len());
        }
        self.waiting.drain(..at);
    }

    fn packet(&mut self, packet: &[u8; PACKET]) {
        self.packets += 1;
        let is_damaged = packet[1] & 0x80 != 0;
        let begins = packet[1] & 0x40 != 0;
        let pid = u16::from(packet[1] & 0x1f) << 8 | u16::from(packet[2]);
        let (is_scrambled, has_adaptation, has_payload) =
            (packet[3] & 0xc0 != 0, packet[3] & 0x20 != 0, packet[3] & 0x10 != 0);
        if is_damaged || pid == NULL {
            return;
        }
        let adaptation = if has_adaptation { usize::from(packet[4]) + 1 } else { 0 };
        let breaks = adaptation > 1 && packet[5] & 0x80 != 0;
        let Some(payload) = packet.get(4 + adaptation..).filter(|_| has_payload) else { return };
        let counter = packet[3] & 0x0f;
        if pid == PAT {
            if let Some(section) = self.pat.take(payload, begins)
                && self.tables.programs(&section)
            {
                self.pmt = Section::default();
            }
        } else if Some(pid) == self.tables.pmt {
            if let Some(section) = self.pmt.take(payload, begins)
                && self.tables.program(&section)
            {
                self.follow();
            }
        } else if let Some(stream) = self.streams.iter_mut().find(|stream| stream.pid == pid) {
            stream.packet(counter, breaks, begins, is_scrambled, payload);
        }
    }

    /// Applies the streams of a new table: earlier ones continue, and the counts of others stay.
    fn follow(&mut self) {
        let told = &self.tables.streams;
        for stream in &mut self.streams {
            stream.is_gone = !told.iter().any(|facts| stream.is(facts));
        }
        self.streams.retain(|stream| !stream.is_gone || stream.units().0 > 0);
        for facts in told {
            if self.streams.len() < MOST_STREAMS && !self.streams.iter().any(|stream| stream.is(facts)) {
                self.streams.push(Stream::new(facts));
            }
        }
    }

    /// Returns the counts, and the tables for the next segment.
    pub fn finish(mut self) -> (Counted, Tables) {
        self.read(true);
        let is_cut = !self.waiting.is_empty();
        let mut left_out: BTreeSet<String> = self.tables.left_out();
        let (gone, here): (Vec<&Stream>, Vec<&Stream>) = self
            .streams
            .iter()
            .filter(|stream| stream.kind == TrackKind::Pictures)
            .partition(|stream| stream.is_gone);
        let before = gone.iter().map(|stream| stream.units().0).fold(0, u32::saturating_add);
        let mut of_pictures = here.into_iter();
        let first = of_pictures.next();
        left_out.extend(of_pictures.map(|second| format!("a second stream of pictures ({})", second.name)));
        let pictures = match first {
            _ if self.packets == 0 => Pictures::Unknown("no packets of MPEG-TS".into()),
            _ if self.tables.pmt.is_none() => {
                Pictures::Unknown("MPEG-TS without a Program Association Table".into())
            }
            _ if self.tables.streams.is_empty() => {
                Pictures::Unknown("MPEG-TS without a Program Map Table".into())
            }
            None => Pictures::Counted { count: before, times: Vec::new() },
            Some(stream) if stream.is_scrambled => {
                Pictures::Unknown(format!("{} that is scrambled", stream.name))
            }
            Some(stream) => {
                let (count, stamps) = stream.units();
                let count = count.saturating_add(before);
                Pictures::Counted { count, times: shown(stamps, count) }
            }
        };
        let is_media = self.streams.iter().any(|stream| stream.kind != TrackKind::Other);
        (Counted { pictures, is_media, left_out, is_cut }, self.tables)
    }
}

/// Returns where the first packet begins that others follow, and how far apart they are.
fn in_step(bytes: &[u8]) -> Option<(usize, usize)> {
    (0..bytes.len().min(FURTHEST)).filter(|at| bytes[*at] == SYNC).find_map(|begins| {
        let follows = |stride: &usize| {
            let mut places = (begins..).step_by(*stride).take_while(|at| *at < bytes.len()).take(IN_STEP + 1);
            let count = places.clone().count();
            (count > 1 || bytes.len() - begins >= PACKET) && places.all(|at| bytes[at] == SYNC)
        };
        Some((begins, STRIDES.into_iter().find(follows)?))
    })
}

/// Returns when each of `count` pictures is shown, from the first; none where not each has a time stamp, or
/// where the clock jumps.
fn shown(stamps: &[u64], count: u32) -> Vec<Duration> {
    if stamps.len() != count as usize {
        return Vec::new();
    }
    // Pictures are decoded in another order than they are shown, so either way from the first is near.
    let Some(&first) = stamps.first() else { return Vec::new() };
    let from_first = |stamp: u64| {
        let ahead = stamp.wrapping_sub(first) % WRAP;
        if ahead < WRAP / 2 { ahead as i64 } else { ahead as i64 - WRAP as i64 }
    };
    let mut ticks: Vec<i64> = stamps.iter().map(|stamp| from_first(*stamp)).collect();
    ticks.sort_unstable();
    let is_apart = |two: &[i64]| (two[1] - two[0]) as u64 > JUMP;
    if ticks.windows(2).any(is_apart) {
        return Vec::new();
    }
    let earliest = ticks[0];
    let time = |tick: &i64| {
        let nanos = i128::from(tick - earliest) * 1_000_000_000 / i128::from(CLOCK_RATE);
        Duration::from_nanos(nanos as u64)
    };
    ticks.iter().map(time).collect()
}
