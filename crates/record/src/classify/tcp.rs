//! TCP: a flow's connections, and which bytes they have sent before.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use streamgauge_base::{Direction, TcpFlags};

pub const FIN: TcpFlags = 1;
pub const SYN: TcpFlags = 2;
pub const RST: TcpFlags = 4;
pub const ACK: TcpFlags = 16;

/// The connections of one flow, counted from 0 in order of their first packets.
#[derive(Default)]
pub struct Connections {
    /// Once there are several; most flows have one all their life.
    numbers: Option<Box<Numbers>>,
    /// The one used last.
    last: Option<(u64, u32)>,
    /// By the connection's number: each direction's sequence number after the last one sent, once there is one.
    next: Vec<[Option<u32>; 2]>,
}

type Numbers = HashMap<u64, u32, BuildHasherDefault<Mixed>>;

/// A hasher of keys that are hashes already, or small numbers.
#[derive(Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }
    fn write_u64(&mut self, key: u64) {
        self.0 = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// The relation of a segment to its connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent {
    /// The connection's number.
    pub connection: u32,
    /// Whether some of it was sent before.
    pub again: bool,
}

/// Returns whether `a` is before `b` in sequence space (RFC 9293 section 3.4).
fn before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() < 0
}

impl Connections {
    /// Notes a segment sent between the ports behind `key`, which are the same in both directions.
    pub fn sent(&mut self, key: u64, way: Direction, seq: u32, payload_bytes: u32, flags: TcpFlags) -> Sent {
        let mut connection = self.number(key);
        if flags & RST != 0 {
            return Sent { connection, again: false };
        }
        let controls = u32::from(flags & SYN != 0) + u32::from(flags & FIN != 0);
        let length = payload_bytes.wrapping_add(controls);
        let end = seq.wrapping_add(length);
        let next = &mut self.next[connection as usize][way as usize];
        let Some(expected) = *next else {
            *next = Some(end);
            return Sent { connection, again: false };
        };
        // A SYN elsewhere in sequence space opens a new connection between the same ports; the answer to it is its own.
        if flags & SYN != 0 && seq.wrapping_add(1) != expected {
            if flags & ACK == 0 {
                connection = self.open(key);
            }
            self.next[connection as usize][way as usize] = Some(end);
            return Sent { connection, again: false };
        }
        if before(expected, end) {
            *next = Some(end);
        }
        Sent { connection, again: length > 0 && before(seq, expected) }
    }

    #[inline]
    fn number(&mut self, key: u64) -> u32 {
        match self.last {
            Some((last, number)) if last == key => number,
            _ => match self.numbers.as_ref().and_then(|numbers| numbers.get(&key)) {
                Some(&number) => {
                    self.last = Some((key, number));
                    number
                }
                None => self.open(key),
            },
        }
    }

    #[cold]
    fn open(&mut self, key: u64) -> u32 {
        let number = self.next.len() as u32;
        if let Some(before) = self.last {
            // Without a map there was one connection, the last.
            self.numbers.get_or_insert_with(|| Box::new(Numbers::from_iter([before]))).insert(key, number);
        } else {
            self.next.reserve_exact(1);
        }
        self.next.push([None; 2]);
        self.last = Some((key, number));
        number
    }
}
