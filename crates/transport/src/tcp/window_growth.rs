//! How the window that Linux offers grows, as far as it makes acknowledgements quick (tcp_grow_window, tcp_rcv_space_adjust and
//! tcp_rcvbuf_grow in net/ipv4/tcp_input.c, as of 6.18; without `early_growth` as of 6.1).
//!
//! Linux begins by offering 64 kB and raises that by two segments with every segment in order, as long as the buffer has room.
//! Each rise acknowledges at once. Room comes with the buffer, which follows what was read in a round trip, and what waits
//! ahead of a gap: a gap that is filled is read all at once, so that each fast recovery is followed by many rises. The
//! window here is open in full from the start; only the times of acknowledgements follow Linux. They decide where HyStart
//! leaves slow start.
//!
//! In Linux 6.1 half of the buffer is window whatever segments take, all of it but a segment is offered at first, so that
//! nothing rises until the buffer is made larger, which is then done by more; and what waits ahead of a gap makes no room but
//! takes it. Its round trips are whole milliseconds.

use streamgauge_base::{Duration, Instant};

use super::config::Config;

/// What a SYN offers, in bytes (measured).
const FIRST: u32 = 64_240;
/// What the first buffer (the middle value of `tcp_rmem`, 131,072 B) has room for with the memory that a segment of
/// 1,448 bytes takes (measured).
const FIRST_ROOM: u32 = 81_920;
/// Up to here a receive window is a buffer that a program asked for (the usual `net.core.rmem_max`), which is not tuned.
const LARGEST_ASKED: u32 = 212_992;
/// Segments read in the first round trip that call for no larger buffer.
const FIRST_READ: u32 = 10;
/// A shorter segment does not raise the window.
const SHORT: u32 = 128;
/// The first buffer of all (the middle value of `tcp_rmem`), and what of a buffer is window in 6.1, as a divisor
/// (`tcp_adv_win_scale` of 1).
const FIRST_BUFFER: u32 = 131_072;
const BUFFER_SHARE: u32 = 2;
/// The timestamps of each segment, which the MSS option does not count.
const TIMESTAMPS: u32 = 12;
/// Memory that a segment of 1,448 bytes takes as it arrives (measured), and what Linux adds to the largest one to reckon what it
/// will take: `MAX_TCP_HEADER`, and the two structures of a buffer.
const SEGMENT_MEMORY: u64 = 2_304;
const OVERHEAD: u32 = 320 + 576;
/// In steps of which 6.1 raises that until half of it holds a segment.
const MEMORY_STEP: u32 = 128;
/// Segments that a buffer of 6.1 has room for beyond what was read.
const CUSHION: u64 = 16;

/// The window that Linux would offer.
#[derive(Clone, Debug)]
pub struct WindowGrowth {
    mss: u32,
    /// As in 6.18, not as in 6.1.
    early: bool,
    /// What is offered, what the buffer has room for, and the most that may be, in bytes.
    offered: u32,
    room: u32,
    most: u32,
    /// The buffer, in bytes of memory; for 6.1 only.
    buffer: u32,
    /// The round trip in us as the peer's echoes of this end's clock tell it; zero before the first.
    rtt_us: u32,
    last_echo: Option<u32>,
    /// Bytes since the last measurement, and in the greatest one.
    read: u32,
    greatest: u32,
    since: Instant,
}

impl WindowGrowth {
    pub fn new(config: &Config) -> Self {
        let most = config.receive_window.min(u64::from(u32::MAX)) as u32;
        let mss = config.mss;
        let asked = most <= LARGEST_ASKED;
        let early = config.mechanisms.early_growth;
        let buffer = if asked { BUFFER_SHARE * most } else { FIRST_BUFFER };
        let room = match (early, asked) {
            (true, true) => most,
            (true, false) => FIRST_ROOM,
            (false, _) => (buffer / BUFFER_SHARE).saturating_sub(mss + TIMESTAMPS),
        };
        WindowGrowth {
            mss,
            early,
            offered: if early { most.min(FIRST) } else { room.min(FIRST) },
            room,
            most,
            buffer,
            rtt_us: 0,
            last_echo: None,
            read: 0,
            greatest: FIRST_READ * mss,
            since: Instant::ZERO,
        }
    }

    /// `len` bytes arrived in order, and the buffer holds them; `echo` is the clock that they echo and how long ago it showed that. True if the
    /// window is raised.
    pub fn arrived(&mut self, len: u64, echo: (u32, Duration)) -> bool {
        let len = len.min(u64::from(u32::MAX)) as u32;
        if len >= self.mss && Some(echo.0) != self.last_echo {
            let first = self.last_echo.replace(echo.0).is_none();
            let us = (echo.1.as_nanos() / 1_000).min(1 << 31) as u32;
            let us = if self.early { us } else { (us / 1_000).max(1) * 1_000 };
            let smoothed = self.rtt_us - self.rtt_us / 8 + us / 8;
            self.rtt_us = match self.rtt_us {
                _ if first => 0,
                0 => us,
                rtt if us < rtt && self.early => us,
                _ => smoothed,
            };
        }
        len >= SHORT && self.raise(len, u64::from(len))
    }

    /// Raises the window for a segment of `len` bytes if there is room, of which `held` bytes are taken.
    fn raise(&mut self, len: u32, held: u64) -> bool {
        let (room, largest) = if self.early {
            (u64::from(self.room).saturating_sub(held) as u32, self.mss)
        } else {
            let memory = held * SEGMENT_MEMORY / u64::from(self.mss);
            let left = u64::from(self.buffer).saturating_sub(memory) as u32;
            (self.room.min(left / BUFFER_SHARE), self.mss + TIMESTAMPS)
        };
        let raised = self.offered < room;
        if raised {
            self.offered = room.min(self.offered.saturating_add(2 * largest.max(len)));
        }
        raised
    }

    /// Something arrived ahead of a gap: what has arrived ends `span` bytes beyond what is expected. True if the window is
    /// raised as 6.1 raises it; as of 6.18 what makes room takes as much.
    pub fn ahead(&mut self, span: u64) -> bool {
        if self.early {
            self.make_room(2 * u64::from(self.greatest) + span);
        }
        self.raise(self.mss, span) && !self.early
    }

    /// The reader took `len` bytes and leaves `queued`; what has arrived ahead of a gap ends `span` bytes beyond what is
    /// expected. `now`: when a segment last arrived.
    pub fn read(&mut self, now: Instant, len: u64, queued: u64, span: u64) {
        self.read = self.read.saturating_add(len.min(u64::from(u32::MAX)) as u32);
        let rtt = Duration::from_micros(self.rtt_us.into());
        if self.rtt_us == 0 || now.saturating_since(self.since) < rtt {
            return;
        }
        let (read, greatest) = (u64::from(self.read).saturating_sub(queued), u64::from(self.greatest));
        if read > greatest {
            // Twice as much, for it is a round trip late, and more if the sender is doubling.
            if self.early {
                self.make_room(2 * read + 2 * (2 * read * (read - greatest) / greatest) + span);
            } else {
                let window = 2 * read + CUSHION * u64::from(self.mss + TIMESTAMPS);
                self.make_larger(window + 2 * (window * (read - greatest) / greatest));
            }
            self.greatest = read as u32;
        }
        (self.read, self.since) = (0, now);
    }

    fn make_room(&mut self, room: u64) {
        self.room = self.room.max(room.min(self.most.into()) as u32);
    }

    /// A buffer for `window` bytes, as 6.1 reckons it.
    fn make_larger(&mut self, window: u64) {
        let largest = self.mss + TIMESTAMPS;
        let short = (BUFFER_SHARE * largest).saturating_sub(largest + OVERHEAD);
        let memory = largest + OVERHEAD + short.div_ceil(MEMORY_STEP) * MEMORY_STEP;
        let buffer = (window / u64::from(largest) * u64::from(memory)).min(self.most.into()) as u32;
        if buffer > self.buffer && self.most > LARGEST_ASKED {
            (self.buffer, self.room) = (buffer, buffer / BUFFER_SHARE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::mechanisms::Mechanisms;

    const MS: u64 = 1_000_000;

    /// Segments of 1,448 bytes 1.2 ms apart, 20 ms after what they echo; which of them raise the window.
    fn raised(growth: &mut WindowGrowth, segments: std::ops::Range<u64>) -> Vec<u64> {
        let rtt = Duration::from_millis(20);
        let arrive = |&n: &u64| {
            let raised = growth.arrived(1448, ((n + 1) as u32, rtt));
            growth.read(Instant::from_nanos(10_000 * MS + n * 1_200_000), 1448, 0, 0);
            raised
        };
        segments.filter(arrive).collect()
    }

    #[test]
    fn the_first_buffer_has_room_for_six_rises() {
        let mut growth = WindowGrowth::new(&Config::default());
        assert_eq!(raised(&mut growth, 0..17), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn the_buffer_follows_what_is_read_in_a_round_trip() {
        let mut growth = WindowGrowth::new(&Config::default());
        raised(&mut growth, 0..19);
        // Segments 2 to 18 in 20 ms: 49,232 B, and once more 1.4 times as much, for it grew from 10 to 17.
        assert_eq!(growth.room, 118_156);
        // 36,236 B in steps of 2,896 B.
        assert_eq!(raised(&mut growth, 19..200), (19..32).collect::<Vec<_>>());
    }

    #[test]
    fn a_buffer_asked_for_is_not_tuned() {
        let mut growth = WindowGrowth::new(&Config { receive_window: 70_000, ..Config::default() });
        assert_eq!(raised(&mut growth, 0..300), [0, 1]);
        // What the segment itself takes is not offered.
        assert_eq!(growth.offered, 68_552);
        let mut small = WindowGrowth::new(&Config { receive_window: 16_384, ..Config::default() });
        assert_eq!(raised(&mut small, 0..300), []);
    }

    #[test]
    fn short_segments_raise_nothing() {
        let mut growth = WindowGrowth::new(&Config::default());
        assert!(!growth.arrived(127, (1, Duration::from_millis(20))));
        assert!(growth.arrived(128, (1, Duration::from_millis(20))));
    }

    #[test]
    fn what_waits_behind_a_gap_makes_room_and_counts_as_read_once_it_is_filled() {
        let mut growth = WindowGrowth::new(&Config::default());
        raised(&mut growth, 0..3);
        growth.ahead(60 * 1448);
        assert_eq!(growth.room, (2 * 10 + 60) * 1448);
        // The buffer holds what is ahead: nothing more is offered.
        assert_eq!(growth.offered, FIRST + 3 * 2 * 1448);
        let filled = Instant::from_nanos(10_030 * MS);
        growth.read(filled, 61 * 1448, 0, 0);
        // With segment 2 that is 62 in one round trip after 10.
        assert_eq!(growth.room, ((2.0 * 62.0 + 4.0 * 62.0 * 5.2) * 1448.0) as u32);
    }

    #[test]
    fn what_is_not_read_yet_does_not_count() {
        let mut growth = WindowGrowth::new(&Config::default());
        raised(&mut growth, 0..3);
        growth.read(Instant::from_nanos(10_030 * MS), 30 * 1448, 31 * 1448, 0);
        assert_eq!((growth.room, growth.greatest), (FIRST_ROOM, 10 * 1448));
    }

    fn late() -> WindowGrowth {
        let mut mechanisms = Mechanisms::default();
        assert!(mechanisms.switch_off("early_growth"));
        WindowGrowth::new(&Config { mechanisms, ..Config::default() })
    }

    /// The course of a trial of Linux 6.1 at 10 Mbit/s and 20 ms: nothing rises in the first two round trips, then each segment.
    #[test]
    fn in_6_1_nothing_rises_until_the_buffer_is_made_larger_and_then_more() {
        let mut growth = late();
        assert_eq!((raised(&mut growth, 0..19), growth.offered), (vec![], 131_072 / 2 - 1_460));
        // Segments 2 to 18 in 20 ms: (2 * 24,616 + 16 * 1,460) * (1 + 2 * 10,136 / 14,480) of 1,460 each, of which one takes
        // 2,996 B of memory.
        assert_eq!(growth.room, 119 * 2_996 / 2);
        // 114,186 B, less half of the 2,304 B that the segment itself takes, in steps of 2,920 B.
        assert_eq!(raised(&mut growth, 19..60), (19..58).collect::<Vec<_>>());
    }

    #[test]
    fn in_6_1_what_waits_behind_a_gap_makes_no_room_but_takes_it() {
        let mut growth = late();
        raised(&mut growth, 0..19);
        let room = growth.room;
        assert!(!growth.ahead(200 * 1448));
        assert_eq!((growth.room, growth.offered), (room, 64_076));
        assert!(growth.ahead(50 * 1448));
        assert_eq!((growth.room, growth.offered), (room, 64_076 + 2_920));
    }

    #[test]
    fn in_6_1_a_buffer_asked_for_offers_all_but_a_segment_at_once() {
        let mut mechanisms = Mechanisms::default();
        assert!(mechanisms.switch_off("early_growth"));
        let mut growth =
            WindowGrowth::new(&Config { receive_window: 50_000, mechanisms, ..Config::default() });
        assert_eq!((raised(&mut growth, 0..300), growth.offered), (vec![], 48_540));
    }

    #[test]
    fn in_6_1_a_shorter_round_trip_is_believed_gradually_too_and_counts_in_ms() {
        let mut growth = late();
        let mut told = |echo, us| {
            growth.arrived(1448, (echo, Duration::from_micros(us)));
            growth.rtt_us
        };
        assert_eq!([told(1, 50_000), told(2, 100_900), told(3, 20_000)], [0, 100_000, 90_000]);
    }

    #[test]
    fn a_shorter_round_trip_is_believed_at_once_and_a_longer_one_gradually() {
        let mut growth = WindowGrowth::new(&Config::default());
        let mut told = |echo, ms| {
            growth.arrived(1448, (echo, Duration::from_millis(ms)));
            growth.rtt_us
        };
        // What the first segment echoes, an acknowledgement without data may have echoed before.
        assert_eq!(
            [told(1, 50), told(2, 100), told(2, 10), told(3, 180), told(4, 20)],
            [0, 100_000, 100_000, 110_000, 20_000]
        );
    }
}
