use super::super::test_ack;
use super::*;

const MSS: u32 = 1000;
const RTT: Duration = Duration::from_millis(100);

fn open() -> Tfrc {
    let mut tfrc = Tfrc::new(MSS);
    tfrc.on_open(Instant::ZERO, Some(RTT));
    tfrc
}

/// Delivers the sent bytes, up to `capacity` bytes per second, for `rounds` round trips, an acknowledgement per 10 ms;
/// one segment is lost whenever `every` have been sent (0: never). Returns the rate after each round.
fn run(tfrc: &mut Tfrc, now: &mut Instant, rounds: u32, capacity: f64, every: u64) -> Vec<f64> {
    let (mut rates, mut sent, mut lost) = (Vec::new(), 0.0, 0);
    for _ in 0..rounds {
        for _ in 0..10 {
            *now += RTT.div(10);
            let bytes = tfrc.rate.min(capacity) / 100.0;
            sent += bytes / f64::from(MSS);
            let newly = (sent as u64).checked_div(every).map_or(0, |all| all - lost);
            lost += newly;
            let losses = newly * u64::from(MSS);
            let delivered = (bytes as u64).saturating_sub(losses);
            tfrc.on_ack(&Ack { lost: losses, ..test_ack(*now, delivered, RTT) });
        }
        rates.push(tfrc.rate);
    }
    rates
}

#[test]
fn it_starts_with_4380_bytes_in_a_round_trip() {
    for (mss, bytes) in [(500, 2_000.0), (1_000, 4_000.0), (1_448, 4_380.0), (3_000, 6_000.0)] {
        let mut tfrc = Tfrc::new(mss);
        assert_eq!(tfrc.pacing_rate(), Some(u64::from(mss)));
        tfrc.on_open(Instant::ZERO, Some(RTT));
        assert_eq!(tfrc.rate, bytes / 0.1, "{mss}");
    }
}

#[test]
fn the_rate_doubles_per_round_trip_up_to_twice_what_is_received() {
    let (mut tfrc, mut now) = (open(), Instant::ZERO);
    let initial = tfrc.rate;
    let rates = run(&mut tfrc, &mut now, 12, 1e6, 0);
    for (n, rate) in rates[..4].iter().enumerate() {
        assert!((rate / initial / f64::from(2 << n) - 1.0).abs() < 0.01, "{rates:?}");
    }
    assert!(rates.iter().all(|&rate| rate <= 2e6 + 1.0), "{rates:?}");
    assert!((rates[11] / 2e6 - 1.0).abs() < 0.01, "{rates:?}");
}

#[test]
fn under_steady_loss_it_settles_at_what_the_equation_says() {
    for every in [50, 200, 1_000] {
        let (mut tfrc, mut now) = (open(), Instant::ZERO);
        run(&mut tfrc, &mut now, 600, 1e9, every);
        let rates = run(&mut tfrc, &mut now, 200, 1e9, every);
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let expected = throughput(MSS, RTT, 1.0 / every as f64);
        assert!((mean / expected - 1.0).abs() < 0.1, "every {every}: {mean}, {expected} expected");
        // Without TCP's sawtooth.
        let (low, high) = rates.iter().fold((f64::MAX, 0.0f64), |(l, h), &r| (l.min(r), h.max(r)));
        assert!(high / low < 1.25, "{low} to {high}");
    }
}

#[test]
fn losses_within_a_round_trip_are_one_event() {
    let (mut tfrc, mut now) = (open(), Instant::ZERO);
    run(&mut tfrc, &mut now, 5, 1e6, 0);
    let before = tfrc.intervals.clone();
    tfrc.lose(now);
    let p = tfrc.intervals.rate();
    assert!(before.is_empty() && p > 0.0);
    tfrc.lose(now + RTT);
    assert_eq!(tfrc.intervals.rate(), p);
    tfrc.intervals.count(1.0);
    tfrc.lose(now + RTT + Duration::from_nanos(1));
    assert!(tfrc.intervals.rate() > p);
}

#[test]
fn the_first_loss_leaves_the_rate_that_came_through() {
    let (mut tfrc, mut now) = (open(), Instant::ZERO);
    run(&mut tfrc, &mut now, 12, 1e6, 0);
    tfrc.on_ack(&Ack { lost: MSS.into(), ..test_ack(now, 0, RTT) });
    assert!((tfrc.rate / 1e6 - 1.0).abs() < 0.05, "{}", tfrc.rate);
}

#[test]
fn without_feedback_the_rate_halves_each_time() {
    let (mut tfrc, mut now) = (open(), Instant::ZERO);
    run(&mut tfrc, &mut now, 600, 1e9, 200);
    for _ in 0..30 {
        let before = tfrc.rate;
        now += Duration::from_secs(1);
        tfrc.on_timeout(now, true);
        assert!(tfrc.rate <= before / 2.0 || tfrc.rate == tfrc.least_rate(), "{before}, {}", tfrc.rate);
    }
    // One packet in 64 s.
    assert_eq!(tfrc.rate, 1000.0 / 64.0);
}

#[test]
fn idling_decays_to_the_initial_rate() {
    let (mut tfrc, mut now) = (open(), Instant::ZERO);
    run(&mut tfrc, &mut now, 12, 1e6, 0);
    let (before, initial) = (tfrc.rate, tfrc.initial_rate(RTT));
    tfrc.on_idle(now, Duration::from_millis(401), RTT);
    assert_eq!(tfrc.rate, before / 2.0);
    tfrc.on_idle(now, Duration::from_secs(60), RTT);
    assert_eq!(tfrc.rate, initial);
}

#[test]
fn the_window_is_far_more_than_the_rate_puts_in_flight() {
    let (mut tfrc, mut now) = (open(), Instant::ZERO);
    assert_eq!(tfrc.window(), 20_000);
    run(&mut tfrc, &mut now, 12, 1e6, 0);
    assert!(tfrc.window() as f64 >= 4.9 * tfrc.rate * 0.1);
}
