//! The columns of `packets.parquet`: one batch of rows in memory, and the digest of batches.

use streamgauge_base::{Direction, Ecn, Fate, Outcome, PacketInfo, packet_flags};
use zerocopy::{Immutable, IntoBytes};

/// Rows in a batch: a row group of the file and a unit of the digest. A power of two, see [`Columns::push`].
pub(crate) const BATCH_ROWS: usize = 65_536;

/// The schema that this version writes.
pub const PACKETS_SCHEMA: &str = "streamgauge.packets/3";

/// A version of the schema.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Version {
    /// Without `fragment_offset`, `t_drop`, `hash` and `protocol`.
    One,
    /// With `flags` of 8 bits, and without `connection`.
    Two,
    /// The version that is written now.
    Three,
}

impl Version {
    pub const ALL: [Version; 3] = [Version::One, Version::Two, Version::Three];
    pub const NEWEST: Version = Version::Three;

    pub fn schema(self) -> &'static str {
        match self {
            Version::One => "streamgauge.packets/1",
            Version::Two => "streamgauge.packets/2",
            Version::Three => PACKETS_SCHEMA,
        }
    }

    pub fn message(self) -> &'static str {
        match self {
            Version::One => MESSAGE_1,
            Version::Two => MESSAGE_2,
            Version::Three => MESSAGE,
        }
    }
}

const MESSAGE_1: &str = "
message packets {
  required int64 pkt (INTEGER(64, false));
  required int32 copy (INTEGER(8, false));
  required int32 flow (INTEGER(16, false));
  required int32 dir (INTEGER(8, false));
  required int32 stage (INTEGER(8, false));
  required int32 kind (INTEGER(8, false));
  required int64 t_in;
  optional int64 t_out;
  required int32 fate (INTEGER(8, false));
  required int32 cause (INTEGER(8, false));
  required int32 wire_bytes (INTEGER(32, false));
  required int32 ip_bytes (INTEGER(32, false));
  required int32 payload_bytes (INTEGER(32, false));
  optional int32 seq (INTEGER(32, false));
  required int32 flags (INTEGER(8, false));
  required int32 queue_bytes (INTEGER(32, false));
  required int32 queue_packets (INTEGER(32, false));
}";

const MESSAGE_2: &str = "
message packets {
  required int64 pkt (INTEGER(64, false));
  required int32 copy (INTEGER(8, false));
  required int32 fragment_offset (INTEGER(16, false));
  required int32 flow (INTEGER(16, false));
  required int32 dir (INTEGER(8, false));
  required int32 stage (INTEGER(8, false));
  required int32 kind (INTEGER(8, false));
  required int64 t_in;
  optional int64 t_out;
  optional int64 t_drop;
  required int32 fate (INTEGER(8, false));
  required int32 cause (INTEGER(8, false));
  required int32 wire_bytes (INTEGER(32, false));
  required int32 ip_bytes (INTEGER(32, false));
  required int32 payload_bytes (INTEGER(32, false));
  optional int32 seq (INTEGER(32, false));
  required int32 flags (INTEGER(8, false));
  required int32 queue_bytes (INTEGER(32, false));
  required int32 queue_packets (INTEGER(32, false));
  required int32 hash (INTEGER(32, false));
  required int32 protocol (INTEGER(8, false));
}";

/// The file's schema. All are plain integers: readers of every language accept them as they are.
pub(crate) const MESSAGE: &str = "
message packets {
  required int64 pkt (INTEGER(64, false));
  required int32 copy (INTEGER(8, false));
  required int32 fragment_offset (INTEGER(16, false));
  required int32 flow (INTEGER(16, false));
  required int32 dir (INTEGER(8, false));
  required int32 stage (INTEGER(8, false));
  required int32 kind (INTEGER(8, false));
  required int64 t_in;
  optional int64 t_out;
  optional int64 t_drop;
  required int32 fate (INTEGER(8, false));
  required int32 cause (INTEGER(8, false));
  required int32 wire_bytes (INTEGER(32, false));
  required int32 ip_bytes (INTEGER(32, false));
  required int32 payload_bytes (INTEGER(32, false));
  optional int32 seq (INTEGER(32, false));
  required int32 flags (INTEGER(16, false));
  required int32 queue_bytes (INTEGER(32, false));
  required int32 queue_packets (INTEGER(32, false));
  required int32 hash (INTEGER(32, false));
  required int32 protocol (INTEGER(8, false));
  optional int32 connection (INTEGER(32, false));
}";

/// A column of one batch. Its length is fixed so that an index below [`BATCH_ROWS`] needs no check.
type Column<T> = Box<[T; BATCH_ROWS]>;

fn column<T: Clone + Default>() -> Column<T> {
    let values = vec![T::default(); BATCH_ROWS].into_boxed_slice();
    values.try_into().unwrap_or_else(|_| unreachable!("made with BATCH_ROWS values"))
}

/// One batch of rows by column. Where a nullable column is null its value is 0.
pub(crate) struct Columns {
    rows: usize,
    pub pkt: Column<u64>,
    pub copy: Column<u8>,
    pub fragment_offset: Column<u16>,
    pub flow: Column<u16>,
    pub dir: Column<u8>,
    pub stage: Column<u8>,
    pub kind: Column<u8>,
    pub t_in: Column<u64>,
    pub t_out: Column<u64>,
    pub t_out_known: Column<bool>,
    pub t_drop: Column<u64>,
    pub t_drop_known: Column<bool>,
    pub fate: Column<u8>,
    pub cause: Column<u8>,
    pub wire_bytes: Column<u32>,
    pub ip_bytes: Column<u32>,
    pub payload_bytes: Column<u32>,
    pub seq: Column<u32>,
    pub seq_known: Column<bool>,
    pub flags: Column<u16>,
    pub queue_bytes: Column<u32>,
    pub queue_packets: Column<u32>,
    pub hash: Column<u32>,
    pub protocol: Column<u8>,
    pub connection: Column<u32>,
    pub connection_known: Column<bool>,
}

impl Columns {
    pub fn new() -> Self {
        Columns {
            rows: 0,
            pkt: column(),
            copy: column(),
            fragment_offset: column(),
            flow: column(),
            dir: column(),
            stage: column(),
            kind: column(),
            t_in: column(),
            t_out: column(),
            t_out_known: column(),
            t_drop: column(),
            t_drop_known: column(),
            fate: column(),
            cause: column(),
            wire_bytes: column(),
            ip_bytes: column(),
            payload_bytes: column(),
            seq: column(),
            seq_known: column(),
            flags: column(),
            queue_bytes: column(),
            queue_packets: column(),
            hash: column(),
            protocol: column(),
            connection: column(),
            connection_known: column(),
        }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn is_full(&self) -> bool {
        self.rows == BATCH_ROWS
    }

    pub fn clear(&mut self) {
        self.rows = 0;
    }

    /// Sets the number of rows after the columns were filled by a reader; at most [`BATCH_ROWS`].
    pub fn set_rows(&mut self, rows: usize) {
        debug_assert!(rows <= BATCH_ROWS);
        self.rows = rows;
    }

    /// Adds a row to a batch that is not full.
    #[inline]
    pub fn push(&mut self, fate: &Fate, info: &PacketInfo, direction: Direction) {
        debug_assert!(!self.is_full());
        // Shows the compiler that every index below is in range.
        let i = self.rows % BATCH_ROWS;
        let item = &fate.item;
        self.pkt[i] = item.id.0;
        self.copy[i] = item.copy;
        self.fragment_offset[i] = item.fragment.offset();
        self.flow[i] = item.flow.0;
        self.dir[i] = direction as u8;
        self.stage[i] = fate.stage.0;
        self.kind[i] = info.kind as u8;
        self.t_in[i] = fate.t_in.as_nanos();
        self.t_out[i] = fate.t_out().map_or(0, |t| t.as_nanos());
        self.t_out_known[i] = fate.outcome == Outcome::Delivered;
        self.t_drop[i] = fate.t_drop().map_or(0, |t| t.as_nanos());
        self.t_drop_known[i] = fate.outcome == Outcome::Dropped;
        self.fate[i] = fate.outcome as u8;
        self.cause[i] = fate.cause as u8;
        self.wire_bytes[i] = item.bytes;
        self.ip_bytes[i] = item.ip_bytes;
        self.payload_bytes[i] = info.payload_bytes_in(item);
        self.seq[i] = info.seq.unwrap_or(0);
        self.seq_known[i] = info.seq.is_some();
        self.flags[i] = flags(fate, info.flags);
        self.queue_bytes[i] = fate.queue.bytes;
        self.queue_packets[i] = fate.queue.packets;
        self.hash[i] = item.hash;
        self.protocol[i] = item.protocol as u8;
        self.connection[i] = info.connection.unwrap_or(0);
        self.connection_known[i] = info.connection.is_some();
        self.rows = i + 1;
    }

    /// Feeds the digest: the number of rows, then each column's values in file order, little-endian; before the
    /// values of a nullable column one byte a row, 1 where there is a value.
    pub fn digest(&self, version: Version, hasher: &mut blake3::Hasher) {
        let n = self.rows;
        hasher.update(&(n as u64).to_le_bytes());
        put(hasher, &self.pkt[..n], u64::to_le_bytes);
        hasher.update(&self.copy[..n]);
        if version >= Version::Two {
            put(hasher, &self.fragment_offset[..n], u16::to_le_bytes);
        }
        put(hasher, &self.flow[..n], u16::to_le_bytes);
        hasher.update(&self.dir[..n]);
        hasher.update(&self.stage[..n]);
        hasher.update(&self.kind[..n]);
        put(hasher, &self.t_in[..n], u64::to_le_bytes);
        put(hasher, &self.t_out_known[..n], |known| [u8::from(known)]);
        put(hasher, &self.t_out[..n], u64::to_le_bytes);
        if version >= Version::Two {
            put(hasher, &self.t_drop_known[..n], |known| [u8::from(known)]);
            put(hasher, &self.t_drop[..n], u64::to_le_bytes);
        }
        hasher.update(&self.fate[..n]);
        hasher.update(&self.cause[..n]);
        put(hasher, &self.wire_bytes[..n], u32::to_le_bytes);
        put(hasher, &self.ip_bytes[..n], u32::to_le_bytes);
        put(hasher, &self.payload_bytes[..n], u32::to_le_bytes);
        put(hasher, &self.seq_known[..n], |known| [u8::from(known)]);
        put(hasher, &self.seq[..n], u32::to_le_bytes);
        if version >= Version::Three {
            put(hasher, &self.flags[..n], u16::to_le_bytes);
        } else {
            // Nothing wider is read from such a file.
            put(hasher, &self.flags[..n], |flags| [flags as u8]);
        }
        put(hasher, &self.queue_bytes[..n], u32::to_le_bytes);
        put(hasher, &self.queue_packets[..n], u32::to_le_bytes);
        if version >= Version::Two {
            put(hasher, &self.hash[..n], u32::to_le_bytes);
            hasher.update(&self.protocol[..n]);
        }
        if version >= Version::Three {
            put(hasher, &self.connection_known[..n], |known| [u8::from(known)]);
            put(hasher, &self.connection[..n], u32::to_le_bytes);
        }
    }
}

/// Hashes `values` as little-endian bytes: where memory has them so, as they lie there.
fn put<T: Copy + IntoBytes + Immutable, const WIDTH: usize>(
    hasher: &mut blake3::Hasher,
    values: &[T],
    bytes: impl Fn(T) -> [u8; WIDTH],
) {
    if cfg!(target_endian = "little") && WIDTH == size_of::<T>() {
        hasher.update(values.as_bytes());
    } else {
        hasher.update(values.iter().flat_map(|&value| bytes(value)).collect::<Vec<_>>().as_slice());
    }
}

/// Returns the classifier's flags with those that only the stage has.
pub(crate) fn flags(fate: &Fate, info_flags: u16) -> u16 {
    let ecn = if fate.item.ecn == Ecn::NotEct { 0 } else { packet_flags::ECN_IN };
    let marked = if fate.marked { packet_flags::CE_MARKED } else { 0 };
    let corrupted = if fate.item.corrupted { packet_flags::CORRUPTED } else { 0 };
    let more = if fate.item.fragment.more() { packet_flags::MORE_FRAGMENTS } else { 0 };
    let whole = if fate.item.fragment.dont_fragment() { packet_flags::DONT_FRAGMENT } else { 0 };
    info_flags | ecn | marked | corrupted | more | whole
}
