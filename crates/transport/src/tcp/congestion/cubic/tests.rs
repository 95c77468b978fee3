use super::super::test_ack;
use super::super::window::{HZ, jiffies};
use super::*;

const MSS: u64 = 1000;

fn at_window(segments: u32) -> Cubic {
    Cubic::new(MSS as u32, segments, Hystart::Off)
}

/// Acknowledges `rounds` windows of data, one round trip of `rtt_ms` each, spread evenly.
fn run(cubic: &mut Cubic, now: &mut Instant, rtt_ms: u64, rounds: u32) {
    for _ in 0..rounds {
        let acks = (cubic.window() / MSS).max(1);
        for _ in 0..acks {
            *now += Duration::from_nanos(rtt_ms * 1_000_000 / acks);
            cubic.on_ack(&test_ack(*now, MSS, Duration::from_millis(rtt_ms)));
        }
    }
}

#[test]
fn a_loss_reduces_to_seven_tenths() {
    let mut cubic = at_window(1000);
    cubic.on_congestion_event(Instant::ZERO);
    assert_eq!((cubic.window(), cubic.ssthresh()), (700 * MSS, 700 * MSS));
    let mut small = at_window(2);
    small.on_congestion_event(Instant::ZERO);
    assert_eq!(small.window(), 2 * MSS);
}

#[test]
fn the_window_follows_the_curve_back_to_w_max_and_beyond() {
    let mut cubic = at_window(1000);
    cubic.on_congestion_event(Instant::ZERO);
    let mut now = Instant::ZERO;
    let k = libm::cbrt(300.0 / 0.4);
    let mut growth = Vec::new();
    for _ in 0..180 {
        let last = cubic.window();
        run(&mut cubic, &mut now, 100, 1);
        growth.push((cubic.window() - last) / MSS);
        let since = jiffies(now) - cubic.curve.epoch_start().unwrap();
        let d = f64::from(since) / f64::from(HZ) - k;
        let curve = 0.4 * d * d * d + 1000.0;
        let window = (cubic.window() / MSS) as f64;
        assert!((window / curve - 1.0).abs() < 0.02, "{since} jiffies: {window}, {curve}");
    }
    // Concave, then flat near K (9.1 s), then convex.
    assert!(growth[10] > growth[50] && growth[50] > growth[88], "{growth:?}");
    assert!(growth[179] > growth[130] && growth[130] > growth[95], "{growth:?}");
}

#[test]
fn at_a_small_product_it_grows_as_reno_would() {
    // 20 segments at 20 ms: the cubic curve needs 2.5 s, the friendly line 6 * 15 / 8 round trips = 0.23 s.
    let mut cubic = at_window(20);
    cubic.on_congestion_event(Instant::ZERO);
    let mut now = Instant::ZERO;
    let mut rounds = 0;
    while cubic.window() < 20 * MSS {
        run(&mut cubic, &mut now, 20, 1);
        rounds += 1;
    }
    assert!((10..=16).contains(&rounds), "{rounds} round trips");
    // It continues past the old window: Linux does not turn to Reno's slope there.
    let before = cubic.window();
    run(&mut cubic, &mut now, 20, 15);
    let grown = (cubic.window() - before) / MSS;
    assert!((7..=9).contains(&grown), "{grown}");
}

#[test]
fn a_timeout_forgets_the_plateau_and_growth_is_a_twentieth() {
    let mut cubic = at_window(100);
    cubic.on_timeout(Instant::ZERO, false);
    assert_eq!((cubic.window(), cubic.ssthresh(), cubic.curve.max()), (MSS, 70 * MSS, 0));
    let mut now = Instant::ZERO;
    run(&mut cubic, &mut now, 100, 7);
    let before = cubic.window();
    assert!((70 * MSS..75 * MSS).contains(&before), "{before}");
    run(&mut cubic, &mut now, 100, 1);
    assert!((3..=4).contains(&((cubic.window() - before) / MSS)));
}

#[test]
fn an_undone_reduction_restores_the_window() {
    let mut cubic = at_window(100);
    cubic.on_congestion_event(Instant::ZERO);
    cubic.on_undo(Instant::ZERO);
    assert_eq!((cubic.window(), cubic.ssthresh()), (100 * MSS, u64::MAX));
}

#[test]
fn an_idle_time_does_not_count_as_probing() {
    let mut cubic = at_window(100);
    cubic.on_congestion_event(Instant::ZERO);
    let mut now = Instant::ZERO;
    run(&mut cubic, &mut now, 100, 3);
    let start = cubic.curve.epoch_start().unwrap();
    now += Duration::from_millis(720);
    cubic.on_start(now, Duration::from_millis(720), 0, true);
    assert_eq!(cubic.curve.epoch_start().unwrap(), start + 720 * HZ / 1000);
    // Never into the future.
    cubic.on_start(now, Duration::from_nanos(now.as_nanos()), 0, true);
    assert_eq!(cubic.curve.epoch_start().unwrap(), jiffies(now));
}

/// Runs a slow start over a path that carries `capacity` segments in 40 ms; returns window and round trip at its end.
fn slow_start(hystart: Hystart, capacity: u64) -> (u64, u64) {
    let mut cubic = Cubic::new(MSS as u32, 10, hystart);
    let (mut now, mut una) = (Instant::ZERO, 0);
    let gap = Duration::from_nanos(40_000_000 / capacity);
    for round in 1..=40 {
        let window = cubic.window() / MSS;
        let queued = gap * window.saturating_sub(capacity);
        let next = una + window * MSS;
        let mut at = now + Duration::from_millis(40);
        for n in 1..=window {
            let rtt = Duration::from_millis(40) + gap * n.saturating_sub(capacity) + queued.div(2);
            let ack =
                Ack { una: una + n * MSS, next: una + n * MSS + cubic.window(), ..test_ack(at, MSS, rtt) };
            cubic.on_ack(&ack);
            at += gap;
        }
        (now, una) = (now + Duration::from_millis(40).max(gap * window), next);
        if cubic.ssthresh() < u64::MAX || window > 16 * capacity {
            return (cubic.window() / MSS, round);
        }
    }
    (cubic.window() / MSS, 40)
}

#[test]
fn each_way_out_of_slow_start_has_its_place() {
    let capacity = 100;
    let (linux, _) = slow_start(Hystart::Linux, capacity);
    let (plus, _) = slow_start(Hystart::PlusPlus, capacity);
    let (off, _) = slow_start(Hystart::Off, capacity);
    // A train of half a round trip: half of the capacity, which slow start has doubled by then.
    assert!((capacity / 2..=capacity * 3 / 2).contains(&linux), "{linux}");
    // HyStart++ waits for delay, then grows by a quarter in each of five rounds.
    assert!((4 * capacity..=6 * capacity).contains(&plus), "{plus}");
    assert!(off > 16 * capacity, "{off}");
}
