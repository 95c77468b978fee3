//! Follows the pictures of a transport stream with gaps.

use std::collections::VecDeque;

use streamgauge_base::{Duration, Instant};

use super::{PACKET_BYTES, SYNC};
use crate::media::segment::{Section, Tables, stamp_of};

/// The packet identifier of the table of programs.
const PAT: u16 = 0;

/// Bytes of a PES packet's header that are needed for its time stamp.
const PES: usize = 14;
/// Bytes in front of those that its length counts.
const UNCOUNTED: u32 = 6;

/// A picture that arrived, at least in part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadPicture {
    /// Its time stamp, in ticks of 90 kHz; 33 bits.
    pub stamp: u64,
    /// All of it arrived.
    pub is_whole: bool,
    /// When its last part was delivered.
    pub at: Instant,
    /// The longest that a datagram of it took beyond the usual way.
    pub wait: Duration,
}

/// A picture that has begun.
#[derive(Clone, Copy, Debug)]
struct Open {
    picture: ReadPicture,
    /// Bytes to come, if its header has its length.
    left: Option<u32>,
}

/// Reads datagrams of whole packets, in order.
#[derive(Default)]
pub struct PictureReader {
    tables: Tables,
    pat: Section,
    pmt: Section,
    /// The identifier of the pictures.
    video: Option<u16>,
    open: Option<Open>,
    done: VecDeque<ReadPicture>,
}

impl PictureReader {
    /// Notes that datagrams are missing before the next one.
    pub fn gap(&mut self) {
        if let Some(open) = &mut self.open {
            open.picture.is_whole = false;
        }
    }

    /// Takes a datagram that was delivered at `at`, `wait` later than the quickest way would have it.
    pub fn push(&mut self, at: Instant, wait: Duration, datagram: &[u8]) {
        for packet in datagram.chunks_exact(PACKET_BYTES).filter(|packet| packet[0] == SYNC) {
            self.packet(at, wait, packet);
        }
    }

    /// Ends the stream: a picture that has begun is whole if nothing of it is known to be missing.
    pub fn finish(&mut self) {
        self.close();
    }

    /// Returns the next picture that is whole or past.
    pub fn next_picture(&mut self) -> Option<ReadPicture> {
        self.done.pop_front()
    }

    fn packet(&mut self, at: Instant, wait: Duration, packet: &[u8]) {
        let begins = packet[1] & 0x40 != 0;
        let pid = u16::from(packet[1] & 0x1f) << 8 | u16::from(packet[2]);
        let adaptation = if packet[3] & 0x20 != 0 { usize::from(packet[4]) + 1 } else { 0 };
        let Some(payload) = packet.get(4 + adaptation..).filter(|_| packet[3] & 0x10 != 0) else { return };
        if Some(pid) == self.video {
            let is_last = adaptation > 0 && is_stuffed(&packet[4..4 + adaptation]);
            self.part(at, wait, begins, is_last, payload);
        } else if pid == PAT {
            if let Some(section) = self.pat.take(payload, begins)
                && self.tables.programs(&section)
            {
                (self.pmt, self.video) = (Section::default(), None);
            }
        } else if Some(pid) == self.tables.pmt
            && let Some(section) = self.pmt.take(payload, begins)
            && self.tables.program(&section)
        {
            self.video = self.tables.pictures();
        }
    }

    fn part(&mut self, at: Instant, wait: Duration, begins: bool, is_last: bool, payload: &[u8]) {
        if begins {
            self.close();
            let Some(stamp) = payload.get(..PES).and_then(stamp_of) else { return };
            let length = u32::from(u16::from_be_bytes([payload[4], payload[5]]));
            let picture = ReadPicture { stamp, is_whole: true, at, wait };
            self.open = Some(Open { picture, left: (length > 0).then_some(length + UNCOUNTED) });
        }
        let Some(open) = &mut self.open else { return };
        (open.picture.at, open.picture.wait) = (at, open.picture.wait.max(wait));
        let is_done = match &mut open.left {
            Some(left) => {
                *left = left.saturating_sub(payload.len() as u32);
                *left == 0
            }
            // The last packet of a picture without a length is stuffed, unless it is full.
            None => is_last,
        };
        if is_done {
            self.close();
        }
    }

    fn close(&mut self) {
        if let Some(Open { mut picture, left }) = self.open.take() {
            picture.is_whole &= left.is_none_or(|left| left == 0);
            self.done.push_back(picture);
        }
    }
}

/// Returns whether an adaptation field has stuffing (section 2.4.3.4).
fn is_stuffed(field: &[u8]) -> bool {
    let Some(flags) = field.get(1) else { return true };
    let bits = |mask: u8, bytes: usize| if flags & mask != 0 { bytes } else { 0 };
    // Fields of a length of their own are rare, and no live encoder writes them.
    flags & 0x03 == 0 && field.len() > 2 + bits(0x10, 6) + bits(0x08, 6) + bits(0x04, 1)
}
