//! Writes pictures of given sizes as H.264 in a transport stream of one program.

use super::{PACKET_BYTES, STAMPS, SYNC};
use crate::media::segment::checksum;

/// Packet identifiers of the table of programs, of the program's map and of its pictures; the last two are FFmpeg's.
const PAT: u16 = 0;
const PMT: u16 = 0x1000;
const VIDEO: u16 = 0x100;
/// Types of streams: H.264 (table 2-34).
const H264: u8 = 0x1b;

/// Bytes of a packet without its header.
const ROOM: usize = PACKET_BYTES - 4;
/// Bytes of an adaptation field with a clock reference.
const CLOCK: usize = 8;
/// Bytes of the header of a PES packet with one time stamp.
const PES: usize = 14;
/// Bytes of that header that its length counts.
const PES_COUNTED: u32 = 8;

/// The time stamp of a picture with the clock reference 0: pictures are shown 100 ms after their clock reference.
pub const FIRST_STAMP: u64 = 9_000;

/// The access unit delimiter and the start of a slice: of a key picture, and of another.
const KEY: [u8; 11] = [0, 0, 0, 1, 9, 0x10, 0, 0, 0, 1, 0x65];
const OTHER: [u8; 11] = [0, 0, 0, 1, 9, 0x30, 0, 0, 0, 1, 0x41];

/// Bytes that follow, from any place of the first half on: none is part of a start code.
const PATTERN: [u8; 512] = {
    let mut bytes = [0; 512];
    let mut place = 0;
    while place < bytes.len() {
        bytes[place] = 0x80 | (place as u8).wrapping_mul(37);
        place += 1;
    }
    bytes
};

/// A transport stream as it is written.
#[derive(Clone, Debug, Default)]
pub struct Muxer {
    /// The next continuity counter of each identifier.
    pat: u8,
    pmt: u8,
    video: u8,
}

/// Returns the packets of a picture of so many bytes, with the two tables in front or without.
pub fn packets_of(bytes: u32, with_tables: bool) -> u64 {
    let bytes = bytes as usize + PES + CLOCK;
    bytes.div_ceil(ROOM) as u64 + if with_tables { 2 } else { 0 }
}

impl Muxer {
    /// Returns the packets of the picture with this clock reference in ticks and so many bytes.
    pub fn picture(&mut self, ticks: u64, bytes: u32, is_key: bool, with_tables: bool) -> Vec<u8> {
        let mut out = Vec::with_capacity(packets_of(bytes, with_tables) as usize * PACKET_BYTES);
        if with_tables {
            self.tables(&mut out);
        }
        let stamp = (ticks + FIRST_STAMP) % STAMPS;
        let (header, start) = (pes(stamp, bytes), if is_key { KEY } else { OTHER });
        let mut unit = Unit { header, start, at: 0, end: PES + bytes as usize };
        let mut is_first = true;
        while unit.left() > 0 {
            let begins = out.len();
            let clock = if is_first { CLOCK } else { 0 };
            let part = unit.left().min(ROOM - clock);
            head(&mut out, VIDEO, is_first, clock > 0 || part < ROOM, &mut self.video);
            if is_first {
                adaptation(&mut out, ROOM - part, Some(ticks % STAMPS), is_key);
            } else if part < ROOM {
                adaptation(&mut out, ROOM - part, None, false);
            }
            unit.put(&mut out, part);
            debug_assert_eq!(out.len() - begins, PACKET_BYTES);
            is_first = false;
        }
        out
    }

    fn tables(&mut self, out: &mut Vec<u8>) {
        let programs = [0, 1, 0xe0 | (PMT >> 8) as u8, PMT as u8];
        section(out, PAT, 0, &programs, &mut self.pat);
        let clock = [0xe0 | (VIDEO >> 8) as u8, VIDEO as u8, 0xf0, 0];
        let stream = [H264, 0xe0 | (VIDEO >> 8) as u8, VIDEO as u8, 0xf0, 0];
        section(out, PMT, 2, &[&clock[..], &stream[..]].concat(), &mut self.pmt);
    }
}

/// A PES packet, as far as it is written.
struct Unit {
    header: [u8; PES],
    start: [u8; 11],
    at: usize,
    end: usize,
}

impl Unit {
    fn left(&self) -> usize {
        self.end - self.at
    }

    fn put(&mut self, out: &mut Vec<u8>, bytes: usize) {
        let until = self.at + bytes;
        let starts = PES + self.start.len();
        while self.at < until {
            let part = match self.at {
                at if at < PES => &self.header[at..until.min(PES)],
                at if at < starts => &self.start[at - PES..until.min(starts) - PES],
                at => {
                    let place = at % 256;
                    &PATTERN[place..(place + until - at).min(PATTERN.len())]
                }
            };
            out.extend_from_slice(part);
            self.at += part.len();
        }
    }
}

/// Writes a packet's header (section 2.4.3.2).
fn head(out: &mut Vec<u8>, pid: u16, begins: bool, is_adapted: bool, counter: &mut u8) {
    let start = if begins { 0x40 } else { 0 };
    let control = if is_adapted { 0x30 } else { 0x10 };
    out.extend([SYNC, start | (pid >> 8) as u8, pid as u8, control | *counter]);
    *counter = (*counter + 1) & 0x0f;
}

/// Writes an adaptation field of so many bytes, 1 or more (section 2.4.3.4).
fn adaptation(out: &mut Vec<u8>, bytes: usize, clock: Option<u64>, is_key: bool) {
    let end = out.len() + bytes;
    out.push((bytes - 1) as u8);
    if bytes > 1 {
        out.push(if clock.is_some() { 0x10 } else { 0 } | if is_key { 0x40 } else { 0 });
    }
    if let Some(base) = clock {
        // 33 bits of 90 kHz, six reserved ones, nine of 27 MHz, which are 0.
        out.extend([(base >> 25) as u8, (base >> 17) as u8, (base >> 9) as u8, (base >> 1) as u8]);
        out.extend([(base << 7) as u8 & 0x80 | 0x7e, 0]);
    }
    out.resize(end, 0xff);
}

/// Returns the header of a PES packet of a picture (section 2.4.3.6).
fn pes(stamp: u64, bytes: u32) -> [u8; PES] {
    // A length beyond 16 bits is 0: pictures may leave it open.
    let length = u16::try_from(bytes.saturating_add(PES_COUNTED)).unwrap_or(0).to_be_bytes();
    let part = |shift: u32, mask: u64| (stamp >> shift & mask) as u8;
    [
        0,
        0,
        1,
        0xe0,
        length[0],
        length[1],
        0x80,
        0x80,
        5,
        0x21 | part(30, 7) << 1,
        part(22, 0xff),
        part(15, 0x7f) << 1 | 1,
        part(7, 0xff),
        part(0, 0x7f) << 1 | 1,
    ]
}

/// Writes a section in a packet of its own (section 2.4.4).
fn section(out: &mut Vec<u8>, pid: u16, table: u8, content: &[u8], counter: &mut u8) {
    let end = out.len() + PACKET_BYTES;
    head(out, pid, true, false, counter);
    // The section begins behind this pointer.
    out.push(0);
    let begins = out.len();
    let length = content.len() + 9;
    out.extend([table, 0xb0 | (length >> 8) as u8, length as u8, 0, 1, 0xc1, 0, 0]);
    out.extend_from_slice(content);
    let check = checksum(&out[begins..]);
    out.extend(check.to_be_bytes());
    out.resize(end, 0xff);
}
