//! How the window that Linux offers grows, as far as it makes acknowledgements quick (tcp_grow_window, tcp_rcv_space_adjust and
//! tcp_rcvbuf_grow in net/ipv4/tcp_input.c, as of 6.18; without `early_growth` as of 6.1).
//!
//! Linux begins by offering 64 kB and raises that by two segments with every segment in order, as long as the buffer
//! has room. Each rise acknowledges at once. Room grows with the buffer, which follows the bytes read in a round trip
//! and the data ahead of a gap: a gap that is filled is read all at once, so that each fast recovery is followed by
//! many rises. The window here is open in full from the start; only the times of acknowledgements follow Linux. They
//! decide where HyStart leaves slow start.
//!
//! In Linux 6.1 half of the buffer is window regardless of the segments' memory, all of it but a segment is offered at
//! first, so that nothing rises until the buffer is made larger, which is then done by more; and data ahead of a gap
//! does not make room but uses it. Its round trips are whole milliseconds, and no longer than a window takes to arrive;
//! the least counts at once in both, for Linux 6.16 changed that and stable kernels followed (`tcp_rcv_rtt_update`).
//! Where little room is left, acknowledgements cease to be quick. This concerns their times; the window itself is that
//! of Linux 6.1 without `early_growth`, which makes blocks of written data shorter at first, and where a program asked
//! for the buffer, without `scaling_ratio`.

use streamgauge_base::{Duration, Instant};

use super::config::Config;

/// The window offered in a SYN, in bytes (measured).
const FIRST: u32 = 64_240;
/// The room of the first buffer (the middle value of `tcp_rmem`, 131,072 B) with the memory of a segment of 1,448 bytes
/// (measured).
const FIRST_ROOM: u32 = 81_920;
/// Up to here a receive window is a buffer that a program asked for (the usual `net.core.rmem_max`), which is not tuned.
const LARGEST_ASKED: u32 = 212_992;
/// Segments read in the first round trip that call for no larger buffer.
const FIRST_READ: u32 = 10;
/// A shorter segment does not raise the window.
const SHORT: u32 = 128;
/// The first buffer of all (the middle value of `tcp_rmem`), and the share of a buffer that is window in 6.1, as a
/// divisor (`tcp_adv_win_scale` of 1).
const FIRST_BUFFER: u32 = 131_072;
const BUFFER_SHARE: u32 = 2;
/// The part of the first buffer that is window.
pub const FIRST_WINDOW: u32 = FIRST_BUFFER / BUFFER_SHARE;
/// The timestamps of each segment, which the MSS option does not count.
const TIMESTAMPS: u32 = 12;
/// The largest window that a SYN can offer, and the first that needs scaling, as a power of two.
const UNSCALED: u32 = 65_535;
const SCALED_FROM: u32 = 15;
/// Scale of a window that may grow to the maximum of `tcp_rmem`.
const SCALE: u32 = 7;
/// The share of the buffer below which the window is closed, as a divisor.
const LEAST_SHARE: u32 = 16;
/// Memory of an arriving segment of 1,448 bytes (measured), and the amount that Linux adds to the largest one to
/// predict its memory: `MAX_TCP_HEADER` of a kernel without wireless, as Debian's for clouds, and the two structures of
/// a buffer. The windows of that kernel show it.
const SEGMENT_MEMORY: u64 = 2_304;
const OVERHEAD: u32 = 256 + 576;
/// The steps in which 6.1 raises that until half of it holds a segment.
const MEMORY_STEP: u32 = 128;
/// Segments that a buffer of 6.1 has room for beyond the bytes read.
const CUSHION: u64 = 16;

/// The window that Linux would offer.
#[derive(Clone, Debug)]
pub struct WindowGrowth {
    mss: u32,
    /// As in 6.18, not as in 6.1.
    early: bool,
    /// The offered window, the room of the buffer, and the upper bound, in bytes.
    offered: u32,
    room: u32,
    most: u32,
    /// The buffer, in bytes of memory, the scale of the window, the window last offered and the byte that it expected;
    /// for 6.1 only.
    buffer: u32,
    scale: u32,
    told: u32,
    told_at: u64,
    /// The round trip in us from the peer's echoes of this end's clock; zero before the first.
    rtt_us: u32,
    last_echo: Option<u32>,
    /// As of 6.1: a window's bytes have arrived once this one has, and the time since which they are awaited.
    full_at: u64,
    full_since: Option<Instant>,
    /// Bytes since the last measurement, and in the greatest one.
    read: u32,
    greatest: u32,
    since: Instant,
}

impl WindowGrowth {
    /// Makes the growth of a stream that starts at sequence number `start`.
    pub fn new(start: u64, config: &Config) -> Self {
        let most = config.receive_window.min(u64::from(u32::MAX)) as u32;
        let mss = config.mss;
        let asked = is_asked(config);
        let early = config.mechanisms.early_growth && !halves(config);
        let buffer = if asked { BUFFER_SHARE * most } else { FIRST_BUFFER };
        let room = match (early, asked) {
            (true, true) => most,
            (true, false) => FIRST_ROOM,
            // A segment is kept back (`tcp_init_buffer_space`).
            (false, _) => (buffer / BUFFER_SHARE).saturating_sub(mss).max(2 * mss).min(buffer / BUFFER_SHARE),
        };
        let told = if early { most.min(FIRST) } else { first_told(buffer / BUFFER_SHARE, mss) };
        WindowGrowth {
            mss,
            early,
            offered: told.min(room),
            room,
            most,
            buffer,
            scale: if asked { most.max(1).ilog2().saturating_sub(SCALED_FROM) } else { SCALE },
            told,
            told_at: start,
            rtt_us: 0,
            last_echo: None,
            full_at: start,
            full_since: None,
            read: 0,
            greatest: FIRST_READ * mss,
            since: Instant::ZERO,
        }
    }

    /// Handles `len` bytes that arrived in order; the buffer holds them, with others `held` bytes; `echo` is the clock
    /// that they echo and the age of that value. True if the window is raised.
    pub fn arrived(&mut self, len: u64, held: u64, echo: (u32, Duration)) -> bool {
        self.time(len, echo);
        let len = len.min(u64::from(u32::MAX)) as u32;
        len >= SHORT && self.raise(len, if self.early { u64::from(len) } else { held })
    }

    /// Adds the round trip from a segment of `len` bytes, by the clock value that it echoes and the age of that value.
    pub fn time(&mut self, len: u64, echo: (u32, Duration)) {
        if len < u64::from(self.mss) || Some(echo.0) == self.last_echo {
            return;
        }
        let first = self.last_echo.replace(echo.0).is_none();
        let us = (echo.1.as_nanos() / 1_000).min(1 << 31) as u32;
        let us = if self.early { us } else { (us / 1_000).max(1) * 1_000 };
        let smoothed = self.rtt_us - self.rtt_us / 8 + us / 8;
        self.rtt_us = match self.rtt_us {
            _ if first => 0,
            0 => us,
            rtt if us < rtt => us,
            _ => smoothed,
        };
    }

    /// Handles data that arrived in order, up to `next`. A window's bytes need a round trip at the least; 6.1 treats
    /// this time as one if it is shorter than the echoes' (`tcp_rcv_rtt_measure`), as it is once a gap is filled.
    pub fn fill(&mut self, now: Instant, next: u64) {
        if self.early {
            return;
        }
        if let Some(since) = self.full_since {
            if next < self.full_at {
                return;
            }
            let us = (now.saturating_since(since).as_nanos() / 1_000).clamp(1, 1 << 31) as u32;
            self.rtt_us = if self.rtt_us == 0 { us } else { self.rtt_us.min(us) };
        }
        (self.full_at, self.full_since) = (next + u64::from(self.told), Some(now));
    }

    /// Raises the window for a segment of `len` bytes if there is room; `held` bytes of it are used.
    fn raise(&mut self, len: u32, held: u64) -> bool {
        let room = if self.early {
            u64::from(self.room).saturating_sub(held) as u32
        } else {
            self.room.min(self.free(held))
        };
        let raised = self.offered < room;
        if raised {
            self.offered = room.min(self.offered.saturating_add(2 * self.mss.max(len)));
        }
        raised
    }

    /// Returns the part of the buffer that is window beside `held` bytes of payload, as 6.1 computes it (`tcp_space`).
    fn free(&self, held: u64) -> u32 {
        let memory = held * SEGMENT_MEMORY / u64::from(self.mss);
        u64::from(self.buffer).saturating_sub(memory) as u32 / BUFFER_SHARE
    }

    /// Handles data ahead of a gap: the arrived data ends `span` bytes beyond the expected byte; before it `held` bytes
    /// were in the buffer. True if the window is raised as 6.1 raises it; as of 6.18 the room made is used up at once.
    pub fn ahead(&mut self, span: u64, held: u64) -> bool {
        if self.early {
            self.make_room(2 * u64::from(self.greatest) + span);
        }
        self.raise(self.mss, if self.early { span } else { held }) && !self.early
    }

    /// Returns whether the buffered amount decides: as of 6.1.
    #[inline]
    pub fn counts_memory(&self) -> bool {
        !self.early
    }

    /// Returns the window that 6.1 would offer with `held` bytes in the buffer and full segments of `full` bytes, and
    /// whether little room is left (`__tcp_select_window`).
    fn select(&self, held: u64, full: u32) -> (u32, bool) {
        let all = self.buffer / BUFFER_SHARE;
        let most = self.room.min(all);
        let full = full.min(most).max(1);
        let mut free = self.free(held);
        let little = free < most / 2;
        if little {
            free = free >> self.scale << self.scale;
            if free < all / LEAST_SHARE || free < full {
                return (0, true);
            }
        }
        free = free.min(self.offered);
        if self.scale > 0 {
            return (free.next_multiple_of(1 << self.scale), little);
        }
        // Whole segments, but the offered window stays while it is within one of the free space.
        let kept = self.told <= free && self.told + full > free;
        (if kept { self.told } else { free / full * full }, little)
    }

    /// Returns whether an acknowledgement may leave as soon as two segments have arrived: its window would be no
    /// smaller than the last one. If not, it leaves as they are read. Also whether little room is left.
    pub fn is_open(&self, held: u64, full: u32) -> (bool, bool) {
        let (window, little) = self.select(held, full);
        (window >= self.told, little)
    }

    /// Notes an acknowledgement that expects `next`, with the window that is returned; and whether little room is left
    /// (`tcp_select_window`). The window's right edge never moves left.
    pub fn tell(&mut self, next: u64, held: u64, full: u32) -> (u32, bool) {
        let left = (self.told_at + u64::from(self.told)).saturating_sub(next) as u32;
        let (mut window, little) = self.select(held, full);
        if window < left {
            window = left.next_multiple_of(1 << self.scale);
        }
        let window = window.min(UNSCALED << self.scale);
        (self.told, self.told_at) = (window, next);
        (window, little)
    }

    /// Returns whether the last offered window is at most half of the largest, and would double after the bytes read.
    pub fn doubles(&self, next: u64, held: u64, full: u32) -> bool {
        let left = (self.told_at + u64::from(self.told)).saturating_sub(next);
        2 * left <= u64::from(self.room) && {
            let (window, _) = self.select(held, full);
            window > 0 && u64::from(window) >= 2 * left
        }
    }

    /// Handles a read of `len` bytes that leaves `queued`; data ahead of a gap ends `span` bytes beyond the expected
    /// byte. `now`: when a segment last arrived.
    pub fn read(&mut self, now: Instant, len: u64, queued: u64, span: u64) {
        // 6.1 checks after each segment that it reads; as of 6.18 unread data does not count.
        let (first, queued) = if self.early { (len, queued) } else { (len.min(self.mss.into()), 0) };
        self.read = self.read.saturating_add(first.min(u64::from(u32::MAX)) as u32);
        let rtt = Duration::from_micros(self.rtt_us.into());
        if self.rtt_us > 0 && now.saturating_since(self.since) >= rtt {
            self.adapt(u64::from(self.read).saturating_sub(queued), span);
            (self.read, self.since) = (0, now);
        }
        self.read = self.read.saturating_add((len - first).min(u64::from(u32::MAX)) as u32);
    }

    /// Adapts to `read` bytes that were read in a round trip.
    fn adapt(&mut self, read: u64, span: u64) {
        let greatest = u64::from(self.greatest);
        if read > greatest {
            // Twice as much, for it is a round trip late, and more if the sender is doubling.
            if self.early {
                self.make_room(2 * read + 2 * (2 * read * (read - greatest) / greatest) + span);
            } else {
                let window = 2 * read + CUSHION * u64::from(self.mss);
                self.make_larger(window + 2 * (window * (read - greatest) / greatest));
            }
            self.greatest = read as u32;
        }
    }

    fn make_room(&mut self, room: u64) {
        self.room = self.room.max(room.min(self.most.into()) as u32);
    }

    /// Makes the buffer large enough for `window` bytes, as 6.1 reckons it.
    fn make_larger(&mut self, window: u64) {
        let largest = self.mss;
        let short = (BUFFER_SHARE * largest).saturating_sub(largest + OVERHEAD);
        let memory = largest + OVERHEAD + short.div_ceil(MEMORY_STEP) * MEMORY_STEP;
        let buffer = (window / u64::from(largest) * u64::from(memory)).min(self.most.into()) as u32;
        if buffer > self.buffer && self.most > LARGEST_ASKED {
            (self.buffer, self.room) = (buffer, buffer / BUFFER_SHARE);
        }
    }
}

/// Returns whether the receive window is a buffer that a program asked for, with half of it as window, as in Linux
/// before 6.6.
pub fn halves(config: &Config) -> bool {
    !config.mechanisms.scaling_ratio && is_asked(config)
}

/// Returns whether the receive window is a buffer that a program asked for, which is not tuned.
pub fn is_asked(config: &Config) -> bool {
    config.receive_window <= u64::from(LARGEST_ASKED)
}

/// Returns whether the window itself is that of Linux 6.1, not only its times: if half of the buffer is window, or if
/// no program set it.
pub fn tells_window(config: &Config) -> bool {
    halves(config) || (!config.mechanisms.early_growth && !is_asked(config))
}

/// Returns the window that a SYN of 6.1 offers for that many bytes: whole segments, without scaling
/// (`tcp_select_initial_window`).
pub fn first_told(most: u32, mss: u32) -> u32 {
    let segment = mss + TIMESTAMPS;
    let whole = if most > segment { most / segment * segment } else { most };
    whole.min(UNSCALED)
}

#[cfg(test)]
#[path = "window_growth_tests.rs"]
mod tests;
