//! How the window that Linux offers grows, as far as it makes acknowledgements quick (tcp_grow_window, tcp_rcv_space_adjust and
//! tcp_rcvbuf_grow in net/ipv4/tcp_input.c, as of 6.18).
//!
//! Linux begins by offering 64 kB and raises that by two segments with every segment in order, as long as the buffer has room.
//! Each rise acknowledges at once. Room comes with the buffer, which follows what was read in a round trip. The window
//! here is open in full from the start; only the times of acknowledgements follow Linux. They decide where HyStart
//! leaves slow start.

use streamgauge_base::{Duration, Instant};

use super::config::Config;

/// What a SYN offers, in bytes (measured).
const FIRST: u32 = 64_240;
/// What the first buffer (the middle value of `tcp_rmem`, 131,072 B) has room for with the memory that a segment of
/// 1,448 bytes takes (measured).
const FIRST_ROOM: u32 = 80_896;
/// Up to here a receive window is a buffer that a program asked for (the usual `net.core.rmem_max`), which is not tuned.
const LARGEST_ASKED: u32 = 212_992;
/// Segments read in the first round trip that call for no larger buffer.
const FIRST_READ: u32 = 10;
/// A shorter segment does not raise the window.
const SHORT: u32 = 128;

/// The window that Linux would offer.
#[derive(Clone, Debug)]
pub struct WindowGrowth {
    mss: u32,
    /// What is offered, what the buffer has room for, and the most that may be, in bytes.
    offered: u32,
    room: u32,
    most: u32,
    /// The round trip in us as the peer's echoes of this end's clock tell it; zero before the first.
    rtt_us: u32,
    last_echo: u32,
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
        WindowGrowth {
            mss,
            offered: most.min(FIRST),
            room: if asked { most } else { FIRST_ROOM },
            most,
            rtt_us: 0,
            last_echo: 0,
            read: 0,
            greatest: FIRST_READ * mss,
            since: Instant::ZERO,
        }
    }

    /// `len` bytes arrived in order and are read at once; `echo` is the clock that they echo and how long ago it showed that.
    /// True if the window is raised.
    pub fn arrived(&mut self, now: Instant, len: u64, echo: (u32, Duration)) -> bool {
        let len = len.min(u64::from(u32::MAX)) as u32;
        if len >= self.mss && echo.0 != self.last_echo {
            self.last_echo = echo.0;
            let us = (echo.1.as_nanos() / 1_000).min(1 << 31) as u32;
            self.rtt_us = if self.rtt_us == 0 { us } else { self.rtt_us - self.rtt_us / 8 + us / 8 };
        }
        let raised = len >= SHORT && self.offered < self.room;
        if raised {
            self.offered = self.room.min(self.offered.saturating_add(2 * self.mss.max(len)));
        }
        self.read = self.read.saturating_add(len);
        if self.rtt_us > 0 && now.saturating_since(self.since) >= Duration::from_micros(self.rtt_us.into()) {
            if self.read > self.greatest {
                // Twice as much, for it is a round trip late, and more if the sender is doubling.
                let (read, greatest) = (u64::from(self.read), u64::from(self.greatest));
                let room = 2 * read + 2 * (2 * read * (read - greatest) / greatest);
                self.room = self.room.max(room.min(self.most.into()) as u32);
                self.greatest = self.read;
            }
            (self.read, self.since) = (0, now);
        }
        raised
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Segments of 1,448 bytes 1.2 ms apart, 20 ms after what they echo; which of them raise the window.
    fn raised(growth: &mut WindowGrowth, segments: std::ops::Range<u64>) -> Vec<u64> {
        let rtt = Duration::from_millis(20);
        let arrive = |&n: &u64| {
            let now = Instant::from_nanos(10_000 * MS + n * 1_200_000);
            growth.arrived(now, 1448, ((n + 1) as u32, rtt))
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
        raised(&mut growth, 0..18);
        // Segments 1 to 17 in 20 ms: 49,232 B, and once more 1.4 times as much, for it grew from 10 to 17.
        assert_eq!(growth.room, 118_156);
        // 37,260 B in steps of 2,896 B.
        assert_eq!(raised(&mut growth, 18..200), (18..31).collect::<Vec<_>>());
    }

    #[test]
    fn a_buffer_asked_for_is_not_tuned() {
        let mut growth = WindowGrowth::new(&Config { receive_window: 70_000, ..Config::default() });
        assert_eq!(raised(&mut growth, 0..300), [0, 1]);
        assert_eq!(growth.offered, 70_000);
        let mut small = WindowGrowth::new(&Config { receive_window: 16_384, ..Config::default() });
        assert_eq!(raised(&mut small, 0..300), []);
    }

    #[test]
    fn short_segments_raise_nothing() {
        let mut growth = WindowGrowth::new(&Config::default());
        assert!(!growth.arrived(Instant::ZERO, 127, (1, Duration::from_millis(20))));
        assert!(growth.arrived(Instant::ZERO, 128, (1, Duration::from_millis(20))));
    }
}
