//! Vegas (Brakmo, O'Malley, Peterson, "TCP Vegas: New Techniques for Congestion Detection and Avoidance", SIGCOMM 1994), with
//! the parameters and choices of Linux (net/ipv4/tcp_vegas.c).
//!
//! Once per round trip it compares the window with the bytes that the least round trip ever seen would carry at the
//! rate just measured. The difference is the flow's share of the queues; it is held between `ALPHA` and `BETA`
//! segments. Where the paper uses the mean round trip, Linux uses the least of the last one, which delayed
//! acknowledgements do not blur. The paper's own retransmission rules are left to RACK. Losses reduce as Reno's do.

use streamgauge_base::{Duration, Instant};

use super::window::Window;
use super::{Ack, Controller, Repair};

/// Segments in queues below which the window grows.
const ALPHA: u64 = 2;
/// Segments in queues above which it shrinks.
const BETA: u64 = 4;
/// Segments in queues above which slow start ends.
const GAMMA: u64 = 1;
/// If a round trip has at most this many measurements, all of them may have waited for a delayed acknowledgement.
const FEW: u32 = 2;

/// Vegas.
#[derive(Clone, Debug)]
pub struct Vegas {
    window: Window,
    /// Not active after a loss, until it is repaired.
    active: bool,
    repairing: bool,
    /// First byte of the round trip; the window is judged at its end.
    round: u64,
    /// Round trips measured in this one, and the least of them, in us.
    samples: u32,
    least: u64,
    /// The least since sending began from an empty network, in us.
    base: u64,
}

impl Vegas {
    /// Makes a controller for segments of `mss` bytes, starting with `initial` of them.
    pub fn new(mss: u32, initial: u32) -> Self {
        Vegas {
            window: Window::new(mss, initial),
            active: true,
            repairing: false,
            round: 0,
            samples: 0,
            least: u64::MAX,
            base: u64::MAX,
        }
    }

    /// Begins a round that is judged at its end: when the data sent from now on is acknowledged.
    fn begin(&mut self, next: u64) {
        (self.active, self.round) = (true, next);
        (self.samples, self.least) = (0, u64::MAX);
    }

    fn measure(&mut self, rtt: Duration) {
        let us = rtt.as_nanos() / 1_000 + 1;
        self.base = self.base.min(us);
        self.least = self.least.min(us);
        self.samples += 1;
    }

    /// Ends a round trip with enough measurements (section 4.2 and, in slow start, 4.3 of the paper).
    fn judge(&mut self, acked: u32) {
        let (window, slow) = (self.window.segments(), self.window.in_slow_start());
        let queued = u64::from(window) * (self.least - self.base) / self.base;
        if slow && queued > GAMMA {
            let carried = u64::from(window) * self.base / self.least;
            self.window.set(window.min(carried as u32 + 1));
            self.window.cap_threshold();
        } else if slow {
            let _past_threshold = self.window.slow_start(acked);
        } else if queued > BETA {
            self.window.set(window - 1);
            self.window.cap_threshold();
        } else if queued < ALPHA {
            self.window.set(window + 1);
        }
        self.window.raise_threshold();
    }
}

impl Controller for Vegas {
    fn on_ack(&mut self, ack: &Ack) {
        let acked = self.window.acked(ack.delivered);
        if let Some(rtt) = ack.rtt {
            self.measure(rtt);
        }
        if self.repairing && ack.repair == Repair::None {
            self.repairing = false;
            self.begin(ack.next);
        }
        let reno = if !self.active {
            true
        } else if ack.una > self.round {
            let few = self.samples <= FEW;
            if !few {
                self.judge(acked);
            }
            self.begin(ack.next);
            few
        } else {
            if self.window.in_slow_start() {
                let _past_threshold = self.window.slow_start(acked);
            }
            false
        };
        if reno && ack.window_limited {
            self.window.grow_as_reno(acked);
        }
    }

    fn on_congestion_event(&mut self, _now: Instant) {
        self.window.reduce(self.window.segments() / 2);
        (self.active, self.repairing) = (false, true);
    }

    fn on_timeout(&mut self, _now: Instant, repeated: bool) {
        if !repeated {
            self.window.lower(self.window.segments() / 2);
        }
        self.window.collapse();
        (self.active, self.repairing) = (false, true);
    }

    fn on_idle(&mut self, _now: Instant, idle: Duration, rto: Duration) {
        self.window.idle(idle, rto);
    }

    fn on_start(&mut self, _now: Instant, _since: Duration, next: u64, _app_limited: bool) {
        // Earlier measurements may no longer hold; Linux resets them too after a timeout.
        self.base = u64::MAX;
        self.begin(next);
    }

    fn on_undo(&mut self, _now: Instant) {
        self.window.undo();
    }
    fn window(&self) -> u64 {
        self.window.bytes()
    }
    fn ssthresh(&self) -> u64 {
        self.window.threshold_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_ack;
    use super::*;

    const MSS: u64 = 1000;
    const BASE_MS: u64 = 20;

    /// A flow alone on a path that carries `capacity` segments in an empty round trip of `BASE_MS`.
    struct Path {
        vegas: Vegas,
        capacity: u64,
        now: Instant,
        una: u64,
    }

    impl Path {
        fn new(initial: u32, capacity: u64) -> Self {
            let mut vegas = Vegas::new(MSS as u32, initial);
            vegas.on_start(Instant::ZERO, Duration::ZERO, 0, true);
            Path { vegas, capacity, now: Instant::ZERO, una: 0 }
        }

        /// Sends and acknowledges one window segment by segment; the excess over the capacity queues.
        fn round(&mut self) {
            let window = self.vegas.window() / MSS;
            let rtt = Duration::from_nanos(BASE_MS * 1_000_000 * window.max(self.capacity) / self.capacity);
            let next = self.una + window * MSS;
            for n in 1..=window {
                let una = self.una + n * MSS;
                self.vegas.on_ack(&Ack { una, next: next + n * MSS, ..test_ack(self.now + rtt, MSS, rtt) });
            }
            self.una = next;
            self.now += rtt;
        }
    }

    #[test]
    fn it_settles_with_two_to_four_segments_queued() {
        for start in [5, 20, 60] {
            let mut path = Path::new(start, 30);
            // Slow start has ended.
            path.vegas.on_congestion_event(Instant::ZERO);
            for _ in 0..80 {
                path.round();
            }
            for _ in 0..20 {
                path.round();
                let queued = path.vegas.window() / MSS - path.capacity;
                assert!((ALPHA..=BETA + 1).contains(&queued), "{queued} from {start}");
            }
        }
    }

    #[test]
    fn one_segment_per_round_trip_up_and_down() {
        let mut path = Path::new(20, 30);
        path.vegas.on_congestion_event(Instant::ZERO);
        path.round();
        for window in 11..=20 {
            path.round();
            assert_eq!(path.vegas.window(), window * MSS);
        }
        path.vegas.window.set(60);
        path.round();
        path.round();
        let before = path.vegas.window();
        path.round();
        assert_eq!(path.vegas.window(), before - MSS);
    }

    #[test]
    fn slow_start_ends_before_the_queue_is_long() {
        let mut path = Path::new(4, 50);
        for window in [8, 16, 32, 64, 128] {
            path.round();
            assert_eq!((path.vegas.window() / MSS, path.vegas.ssthresh()), (window, u64::MAX));
        }
        // The round of 64 lasted 64/50 of the base. Its end is five segments into the next one, where slow start has
        // made the window 133; the path carries 133 * 50/64 segments in the base, and Linux adds one.
        path.round();
        assert_eq!((path.vegas.window(), path.vegas.ssthresh()), (104 * MSS, 104 * MSS));
    }

    #[test]
    fn with_two_measurements_in_a_round_trip_it_grows_as_reno() {
        let mut path = Path::new(2, 1);
        path.vegas.on_congestion_event(Instant::ZERO);
        path.round();
        // Both segments queue, which with more measurements would shrink the window.
        let before = path.vegas.window();
        for _ in 0..4 {
            path.round();
        }
        assert!(path.vegas.window() > before);
    }

    #[test]
    fn a_loss_halves_and_measuring_begins_anew_once_it_is_repaired() {
        let mut path = Path::new(40, 30);
        path.round();
        let window = path.vegas.window();
        path.vegas.on_congestion_event(Instant::ZERO);
        assert_eq!(path.vegas.window(), window / 2 / MSS * MSS);
        assert!(!path.vegas.active);
        path.round();
        assert!(path.vegas.active);
    }

    #[test]
    fn a_start_from_an_empty_network_forgets_the_least_round_trip() {
        let mut path = Path::new(40, 30);
        path.round();
        assert!(path.vegas.base < u64::MAX);
        path.vegas.on_start(path.now, Duration::from_secs(1), path.una, true);
        assert_eq!(path.vegas.base, u64::MAX);
    }
}
