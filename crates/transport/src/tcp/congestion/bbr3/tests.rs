use super::super::test_ack;
use super::*;
use crate::tcp::RateSample;

const MSS: u64 = 1000;
const RTT: Duration = Duration::from_millis(20);
/// 1,000 segments/s: a product of 20 segments.
const RATE: u64 = 1_000_000;
const PRODUCT: u64 = 20 * MSS;

/// A path that receives the content of each acknowledgement.
struct Path {
    bbr: Bbr3,
    now: Instant,
    delivered: u64,
    rate: u64,
    rtt: Duration,
    in_flight: u64,
    /// Per acknowledgement: bytes lost, and bytes lost since the data that it covers was sent.
    lost: (u64, u64),
    repair: Repair,
    states: Vec<(State, Instant)>,
}

impl Path {
    fn new(seed: u64) -> Self {
        let mut bbr = Bbr3::new(MSS as u32, 10, seed);
        bbr.on_open(Instant::ZERO, Some(RTT));
        Path {
            bbr,
            now: Instant::ZERO,
            delivered: 0,
            rate: RATE,
            rtt: RTT,
            in_flight: PRODUCT,
            lost: (0, 0),
            repair: Repair::None,
            states: vec![(State::Startup, Instant::ZERO)],
        }
    }

    fn ack(&mut self, after: Duration, segments: u64) {
        self.now += after;
        self.delivered += segments * MSS;
        let round = (self.rate * 20 / 1000).max(segments * MSS);
        let prior = self.delivered.saturating_sub(round);
        let delivered = self.delivered - prior;
        let rate = Some(RateSample {
            delivered,
            interval: Duration::from_nanos(delivered * 1_000_000_000 / self.rate),
            prior_delivered: prior,
            total_delivered: self.delivered,
            prior_in_flight: self.in_flight,
            lost: self.lost.1,
            total_lost: 0,
            app_limited: false,
        });
        self.bbr.on_ack(&Ack {
            rate,
            in_flight: self.in_flight,
            lost: self.lost.0,
            repair: self.repair,
            ..test_ack(self.now, segments * MSS, self.rtt)
        });
        if self.states.last().unwrap().0 != self.bbr.state {
            self.states.push((self.bbr.state, self.now));
        }
    }

    /// One round trip in ten acknowledgements.
    fn round(&mut self) {
        let segments = self.rate * 20 / 1000 / MSS / 10;
        (0..10).for_each(|_| self.ack(RTT.div(10), segments));
    }

    fn until(mut self, state: State) -> Self {
        for _ in 0..20_000 {
            if self.bbr.state == state {
                return self;
            }
            self.ack(RTT.div(10), 2);
        }
        panic!("never {state:?}: {:?}", self.bbr);
    }
}

#[test]
fn start_up_ends_after_three_rounds_that_grow_by_less_than_a_quarter() {
    let mut path = Path::new(1);
    assert_eq!(path.bbr.pacing_rate(), Some(paced(500_000, STARTUP_GAIN)));
    for rate in [500_000, 1_000_000, 2_000_000] {
        path.rate = rate;
        path.in_flight = 3 * PRODUCT;
        path.ack(RTT, rate * 20 / 1000 / MSS);
        assert_eq!((path.bbr.state, path.bbr.full_bw_rounds), (State::Startup, 0));
    }
    for rounds in 1..=2 {
        path.ack(RTT, 40);
        assert_eq!((path.bbr.state, path.bbr.full_bw_rounds), (State::Startup, rounds));
    }
    path.in_flight = 100 * MSS;
    path.ack(RTT, 40);
    assert_eq!((path.bbr.state, path.bbr.pacing_rate()), (State::Drain, Some(paced(2_000_000, DRAIN_GAIN))));
    // The bytes in flight are one product: there is no queue left to drain, and a cycle begins behind its first phase.
    path.in_flight = 40 * MSS;
    path.ack(RTT, 1);
    assert_eq!((path.bbr.state, path.bbr.pacing_gain), (State::Cruise, UNIT));
}

#[test]
fn start_up_ends_on_a_round_of_too_much_loss() {
    let mut path = Path::new(1);
    (path.repair, path.lost) = (Repair::Recovery, (MSS, MSS));
    path.in_flight = 60 * MSS;
    // 1 of 60 segments is less than 2 per cent; 2 are more.
    for rate in [500_000, 1_000_000, 2_000_000, 4_000_000] {
        path.rate = rate;
        path.round();
    }
    assert_eq!((path.bbr.full_bw_reached, path.bbr.bounds.inflight_hi), (false, u64::MAX));

    let mut path = Path::new(1);
    path.in_flight = 60 * MSS;
    for (n, rate) in [500_000, 1_000_000, 2_000_000, 4_000_000].into_iter().enumerate() {
        path.rate = rate;
        if n >= 2 {
            (path.repair, path.lost) = (Repair::Recovery, (MSS, 2 * MSS));
        }
        path.round();
    }
    assert!(path.bbr.full_bw_reached && path.bbr.bounds.inflight_hi >= PRODUCT);
}

#[test]
fn a_cycle_goes_down_cruises_refills_for_a_round_and_goes_up() {
    let mut path = Path::new(5).until(State::Cruise);
    assert_eq!(path.bbr.pacing_gain, UNIT);
    let down = path.bbr.cycle_began;
    path = path.until(State::Refill);
    let waited = path.now - down;
    // 20 segments: Reno's 20 round trips end before two seconds do.
    let rounds = waited.as_nanos() / RTT.as_nanos();
    assert!((19..=21).contains(&rounds), "{rounds} round trips");
    let refill = path.now;
    path = path.until(State::Up);
    let lasted = (path.now - refill).as_nanos() as f64 / RTT.as_nanos() as f64;
    assert!((0.9..=1.2).contains(&lasted), "{lasted} round trips");
    assert_eq!((path.bbr.pacing_gain, path.bbr.cwnd_gain), (UP_GAIN, UP_CWND_GAIN));
    let up = path.now;
    path.in_flight = 25 * MSS;
    path = path.until(State::Down);
    assert_eq!(path.bbr.pacing_gain, DOWN_GAIN);
    let lasted = (path.now - up).as_nanos() as f64 / RTT.as_nanos() as f64;
    assert!((2.9..=4.2).contains(&lasted), "no growth in three rounds: {lasted}");
}

#[test]
fn on_a_long_path_it_probes_after_two_to_three_seconds() {
    for seed in 0..8 {
        let mut path = Path::new(seed);
        path.rate = 100 * RATE;
        path.in_flight = 100 * PRODUCT;
        let mut down = None;
        for _ in 0..100_000 {
            path.ack(RTT.div(10), 200);
            match (path.bbr.state, down) {
                (State::Down, None) => down = Some(path.now),
                (State::Refill, Some(at)) => {
                    // 63 round trips of 20 ms would be sooner than two seconds.
                    let waited = (path.now - at).as_nanos() / RTT.as_nanos();
                    assert!((61..=64).contains(&waited), "{waited}");
                    down = None;
                    break;
                }
                _ => {}
            }
        }
        assert_eq!(down, None);
    }
}

#[test]
fn too_much_loss_while_probing_sets_the_bound_and_ends_it() {
    let mut path = Path::new(5).until(State::Up);
    path.in_flight = 30 * MSS;
    path.lost = (0, 600);
    path.ack(RTT.div(10), 2);
    assert_eq!((path.bbr.state, path.bbr.bounds.inflight_hi), (State::Up, u64::MAX), "2 % is not too much");
    path.lost = (0, 601);
    path.ack(RTT.div(10), 2);
    assert_eq!((path.bbr.state, path.bbr.bounds.inflight_hi), (State::Down, 30 * MSS));
    path.lost = (0, 0);
    path.in_flight = PRODUCT;
    path = path.until(State::Cruise);
    path.ack(RTT.div(10), 2);
    assert!(path.bbr.window() <= 30 * MSS * 85 / 100, "room is left: {}", path.bbr.window());
}

#[test]
fn a_round_with_loss_lowers_the_short_term_bounds_until_it_probes_again() {
    let mut path = Path::new(5).until(State::Cruise);
    path.round();
    let before = path.bbr.window();
    path.rate = 600_000;
    path.bbr.on_congestion_event(path.now);
    path.lost = (MSS, 0);
    while path.bbr.bounds.bw_lo >= RATE {
        path.ack(RTT.div(10), 1);
    }
    path.lost = (0, 0);
    path.round();
    assert_eq!(path.bbr.bounds.bw_lo, RATE * 7 / 10);
    // Two rounds with loss: that is how long the bandwidth of before counts as delivered of late.
    let bound = path.bbr.bounds.inflight_lo;
    assert!(bound.abs_diff(before * 49 / 100) <= MSS, "{bound} of {before}");
    assert_eq!(path.bbr.window(), bound);
    assert_eq!(path.bbr.pacing_rate(), Some(paced(RATE * 7 / 10, UNIT)));
    path = path.until(State::Refill);
    assert_eq!((path.bbr.bounds.bw_lo, path.bbr.bounds.inflight_lo), (u64::MAX, u64::MAX));
}

#[test]
fn the_round_trip_is_probed_every_five_seconds_at_half_the_product() {
    let mut path = Path::new(5).until(State::Cruise);
    path.rtt = RTT + Duration::from_millis(1);
    let began = path.bbr.probe_rtt_least_at;
    path = path.until(State::ProbeRtt);
    let at = path.now - began;
    assert!(at > PROBE_RTT_INTERVAL && at < PROBE_RTT_INTERVAL + RTT, "{at:?}");
    let entered = path.now;
    path.in_flight = 10 * MSS;
    while path.bbr.state == State::ProbeRtt {
        assert!(path.bbr.window() == 10 * MSS, "{}", path.bbr.window());
        path.ack(Duration::from_millis(5), 2);
    }
    let lasted = (path.now - entered).as_nanos() / 1_000_000;
    assert!((200..=230).contains(&lasted), "{lasted} ms");
    assert_eq!(path.bbr.state, State::Cruise);
}

#[test]
fn a_needless_repair_is_taken_back() {
    let mut path = Path::new(5).until(State::Cruise);
    path.bbr.on_congestion_event(path.now);
    path.lost = (MSS, 0);
    (0..2).for_each(|_| path.round());
    assert!(path.bbr.bounds.bw_lo < u64::MAX);
    path.bbr.on_undo(path.now);
    assert_eq!((path.bbr.bounds.bw_lo, path.bbr.bounds.inflight_lo), (u64::MAX, u64::MAX));
}
