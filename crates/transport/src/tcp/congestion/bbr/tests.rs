use super::super::test_ack;
use super::*;
use crate::tcp::RateSample;

const MSS: u64 = 1000;
const RTT: Duration = Duration::from_millis(20);
/// 1,000 segments/s: a product of 20 segments.
const RATE: u64 = 1_000_000;

/// A path that delivers one round trip at a time.
struct Path {
    bbr: Bbr,
    now: Instant,
    delivered: u64,
    /// Bytes/s of the samples.
    rate: u64,
    rtt: Duration,
    /// Bytes lost per acknowledgement, 0 or more.
    lost: u64,
    total_lost: u64,
    repair: Repair,
    app_limited: bool,
}

impl Path {
    fn new(seed: u64) -> Self {
        let mut bbr = Bbr::new(MSS as u32, 10, seed, true);
        bbr.on_open(Instant::ZERO, Some(RTT));
        Path {
            bbr,
            now: Instant::ZERO,
            delivered: 0,
            rate: RATE,
            rtt: RTT,
            lost: 0,
            total_lost: 0,
            repair: Repair::None,
            app_limited: false,
        }
    }

    /// Acknowledges `segments`, `after` the last, sent `round` bytes of delivery ago.
    fn ack(&mut self, after: Duration, segments: u64, round: u64, in_flight: u64) {
        self.now += after;
        self.delivered += segments * MSS;
        let prior = self.delivered.saturating_sub(round.max(segments * MSS));
        self.total_lost += self.lost;
        let delivered = self.delivered - prior;
        let interval = Duration::from_nanos(delivered * 1_000_000_000 / self.rate);
        let rate = Some(RateSample {
            delivered,
            interval,
            prior_delivered: prior,
            total_delivered: self.delivered,
            prior_in_flight: in_flight,
            lost: self.lost,
            total_lost: self.total_lost,
            app_limited: self.app_limited,
        });
        self.bbr.on_ack(&Ack {
            rate,
            in_flight,
            lost: self.lost,
            prior_in_flight: in_flight + segments * MSS,
            repair: self.repair,
            ..test_ack(self.now, segments * MSS, self.rtt)
        });
    }

    /// One round trip in `steps` acknowledgements with the window's worth in flight.
    fn round(&mut self, steps: u64) {
        let round = self.rate * 20 / 1000;
        for _ in 0..steps {
            let segments = round / MSS / steps;
            let in_flight = self.bbr.window().min(2 * round).saturating_sub(segments * MSS);
            self.ack(RTT.div(steps), segments, round, in_flight);
        }
    }

    /// Advances to the first phase of PROBE_BW.
    fn into_probe_bw(mut self) -> Self {
        for _ in 0..20 {
            if self.bbr.mode == Mode::ProbeBw {
                return self;
            }
            self.round(10);
            if self.bbr.mode == Mode::Drain {
                self.ack(RTT, 1, 20 * MSS, 10 * MSS);
            }
        }
        panic!("{:?}", self.bbr);
    }
}

#[test]
fn the_first_rate_is_the_initial_window_per_round_trip_times_the_gain() {
    let path = Path::new(1);
    // 10 segments in 20 ms, times 739/256, less a per cent.
    assert_eq!(path.bbr.pacing_rate(), Some(500_000 * 739 / 256 * 99 / 100));
    assert_eq!((path.bbr.window(), path.bbr.ssthresh()), (10 * MSS, u64::MAX));
}

#[test]
fn start_up_ends_after_three_rounds_that_grow_by_less_than_a_quarter() {
    let mut path = Path::new(1);
    for rate in [500_000, 1_000_000, 2_000_000, 2_600_000] {
        path.rate = rate;
        path.round(1);
        assert_eq!((path.bbr.mode, path.bbr.full_bw_rounds), (Mode::Startup, 0), "at {rate}");
    }
    path.rate = 3_200_000;
    for rounds in 1..=2 {
        path.round(1);
        assert_eq!((path.bbr.mode, path.bbr.full_bw_rounds), (Mode::Startup, rounds));
    }
    path.round(1);
    assert!(path.bbr.full_bw_reached && path.bbr.mode != Mode::Startup);
}

#[test]
fn a_writer_that_is_slow_does_not_end_start_up() {
    let mut path = Path::new(1);
    path.app_limited = true;
    for _ in 0..20 {
        path.round(10);
    }
    assert_eq!((path.bbr.mode, path.bbr.full_bw_reached), (Mode::Startup, false));
}

#[test]
fn drain_ends_once_what_is_in_flight_is_the_product() {
    let mut path = Path::new(1);
    while path.bbr.mode == Mode::Startup {
        path.round(10);
    }
    // 20 segments and room for three bursts of two.
    assert_eq!(path.bbr.ssthresh(), 26 * MSS);
    path.ack(RTT, 1, 20 * MSS, 27 * MSS);
    assert_eq!(path.bbr.mode, Mode::Drain);
    assert_eq!(path.bbr.pacing_rate(), Some(paced(RATE, DRAIN_GAIN)));
    path.ack(RTT, 1, 20 * MSS, 26 * MSS);
    assert_eq!(path.bbr.mode, Mode::ProbeBw);
    assert_eq!(path.bbr.cwnd_gain, CWND_GAIN);
}

#[test]
fn a_cycle_has_eight_phases_of_a_round_trip_and_begins_anywhere_but_in_the_second() {
    let mut first = std::collections::BTreeSet::new();
    for seed in 0..100 {
        let path = Path::new(seed).into_probe_bw();
        first.insert(path.bbr.phase);
    }
    assert_eq!(first.into_iter().collect::<Vec<_>>(), [0, 2, 3, 4, 5, 6, 7]);

    let mut path = Path::new(3).into_probe_bw();
    let mut gains = Vec::new();
    for _ in 0..40 {
        path.ack(RTT + Duration::from_micros(100), 10, 20 * MSS, 40 * MSS);
        gains.push(path.bbr.pacing_gain);
    }
    let start = gains.iter().position(|&gain| gain > UNIT).unwrap();
    assert_eq!(gains[start..start + 8], CYCLE);
    assert_eq!(gains[start + 8..start + 16], CYCLE);
    assert_eq!(path.bbr.pacing_rate(), Some(paced(RATE, *gains.last().unwrap())));
}

#[test]
fn the_window_is_twice_the_product_and_room_for_bursts() {
    let mut path = Path::new(3).into_probe_bw();
    for _ in 0..40 {
        path.round(10);
    }
    // 40 segments, three bursts of two, two more in the first phase, and the aggregated ones.
    let window = path.bbr.window() / MSS;
    assert!((46..=52).contains(&window), "{window}");
}

#[test]
fn the_round_trip_is_probed_every_ten_seconds_for_200_ms_with_four_segments() {
    let mut path = Path::new(3).into_probe_bw();
    // A queue remains from now on: the least round trip is not seen again.
    path.rtt = RTT + Duration::from_millis(1);
    let began = path.bbr.min_rtt_at;
    while path.bbr.mode != Mode::ProbeRtt {
        path.ack(Duration::from_millis(2), 2, 20 * MSS, 20 * MSS);
    }
    let at = path.now - began;
    assert!(at > MIN_RTT_WINDOW && at <= MIN_RTT_WINDOW + RTT, "{at:?}");
    assert_eq!(path.bbr.min_rtt, Some(RTT + Duration::from_millis(1)));
    let entered = path.now;
    let before = path.bbr.prior_window;
    while path.bbr.mode == Mode::ProbeRtt {
        path.ack(Duration::from_millis(5), 1, 4 * MSS, 4 * MSS);
        assert!(
            path.bbr.mode != Mode::ProbeRtt || (path.bbr.window() == 4 * MSS && path.bbr.limits_itself())
        );
    }
    let lasted = path.now - entered;
    assert!((200..=215).contains(&(lasted.as_nanos() / 1_000_000)), "{lasted:?}");
    assert!(path.bbr.window() > before / 2, "{} of {before}", path.bbr.window());
}

#[test]
fn the_first_round_of_a_recovery_conserves_packets_and_its_end_restores_the_window() {
    let mut path = Path::new(3).into_probe_bw();
    path.round(10);
    let before = path.bbr.window();
    path.bbr.on_congestion_event(path.now);
    (path.repair, path.lost) = (Repair::Recovery, 3 * MSS);
    path.ack(Duration::from_millis(1), 2, 20 * MSS, 15 * MSS);
    assert_eq!(path.bbr.window(), 17 * MSS);
    path.lost = 0;
    path.ack(Duration::from_millis(1), 2, 10 * MSS, 15 * MSS);
    assert_eq!(path.bbr.window(), 17 * MSS);
    // A round trip on the window may grow again.
    path.ack(RTT, 2, 0, 17 * MSS);
    path.ack(RTT, 2, 0, 17 * MSS);
    assert!(path.bbr.window() > 17 * MSS);
    path.repair = Repair::None;
    path.ack(Duration::from_millis(1), 1, 20 * MSS, 15 * MSS);
    assert!(path.bbr.window() >= before, "{} < {before}", path.bbr.window());
    assert_eq!(path.bbr.bw.get(), RATE, "losses do not touch the model");
}

#[test]
fn after_a_timeout_it_starts_from_one_segment_and_comes_back() {
    let mut path = Path::new(3).into_probe_bw();
    path.round(10);
    let before = path.bbr.window();
    path.bbr.on_timeout(path.now, false);
    assert_eq!(path.bbr.window(), MSS);
    path.repair = Repair::Timeout;
    path.ack(RTT, 1, MSS, 0);
    assert_eq!(path.bbr.window(), 4 * MSS);
    path.repair = Repair::None;
    path.ack(RTT, 1, MSS, MSS);
    assert!(path.bbr.window() >= before);
}

#[test]
fn sending_after_a_pause_of_the_writer_begins_at_the_bandwidth() {
    let mut path = Path::new(3).into_probe_bw();
    path.bbr.on_start(path.now, Duration::from_secs(20), 0, true);
    assert_eq!(path.bbr.pacing_rate(), Some(paced(RATE, UNIT)));
    // The pause was no time in which the round trip could be seen: no PROBE_RTT for it.
    path.now += Duration::from_secs(20);
    path.ack(RTT, 1, MSS, MSS);
    assert_eq!(path.bbr.mode, Mode::ProbeBw);
}

#[test]
fn a_policer_is_found_by_two_lossy_stretches_of_one_rate_and_forgotten_after_48_rounds() {
    let mut path = Path::new(3).into_probe_bw();
    path.rate = 600_000;
    path.lost = MSS;
    let mut rounds = 0;
    while path.bbr.long_term.policed().is_none() {
        path.round(3);
        rounds += 1;
        assert!(rounds < 20, "{:?}", path.bbr.long_term);
    }
    assert!(rounds >= 8, "two stretches of four rounds: {rounds}");
    let policed = path.bbr.long_term.policed().unwrap();
    assert!(policed.abs_diff(600_000) < 60_000, "{policed}");
    assert_eq!(path.bbr.pacing_gain, UNIT);
    path.lost = 0;
    let mut rounds = 0;
    while path.bbr.long_term.policed().is_some() {
        path.round(3);
        assert!(path.bbr.mode != Mode::ProbeBw || path.bbr.pacing_gain == UNIT || rounds >= 47);
        rounds += 1;
    }
    assert!((48..=49).contains(&rounds), "{rounds}");
}

#[test]
fn bursts_of_acknowledgements_make_the_window_larger() {
    let steady = |steps: u64| {
        let mut path = Path::new(3).into_probe_bw();
        for _ in 0..30 {
            path.round(steps);
        }
        path.bbr.extra[0].max(path.bbr.extra[1])
    };
    // One acknowledgement per round trip carries a whole product beyond the expected bytes.
    assert!(steady(20) <= 2 * MSS, "{}", steady(20));
    assert!(steady(1) >= 19 * MSS, "{}", steady(1));
}
