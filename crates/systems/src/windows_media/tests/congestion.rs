//! During congestion and after it: starving, repair, a buffer that is refilled; and bursts.

use super::*;

/// Makes a player with the changes of `change`, by RTSP over UDP.
fn with(change: impl FnOnce(&mut WindowsMediaSpec)) -> WindowsMediaSpec {
    let mut spec = spec(WmTransport::Udp);
    change(&mut spec);
    spec
}

/// Returns when datagrams of media were sent, in seconds.
fn sent_at(pair: &Pair) -> Vec<f64> {
    let media = pair.sent.iter().filter(|sent| sent.datagram.len() > 100);
    media.map(|sent| sent.at.saturating_since(Instant::ZERO).as_secs_f64()).collect()
}

fn seconds(event: &Event) -> f64 {
    event.at.saturating_since(Instant::ZERO).as_secs_f64()
}

#[test]
fn where_few_pictures_are_whole_the_server_is_paused_and_an_error_follows() {
    let lossy = Pipe { drop: |n| n > 700 && n % 2 == 0, ..pipe() };
    let spec = with(|spec| {
        spec.player.retransmission = false;
        spec.player.heed_loss = false;
        spec.player.starved_share = 0.5;
        spec.player.starved_pause = Duration::from_secs(10);
        spec.player.starved_after = Duration::from_secs(20);
    });
    let pair = run(&spec, lossy.clone(), &[]);
    let (shown, why) = end(&pair);
    assert!(shown > 0.0 && why.starts_with("an error: less than 50 %") && why.ends_with("for 20 s"), "{why}");
    let ended = seconds(named(&pair, MEDIA_END)[0]);
    let last = *sent_at(&pair).last().unwrap();
    assert!((8.5..11.5).contains(&(ended - last)), "media until {last} s, the error at {ended} s");
    // By the old rule some picture of one packet is always whole, and nothing happens.
    let pair = run(
        &with(|spec| spec.player = PlayerSettings { starved_share: 0.0, ..spec.player.clone() }),
        lossy,
        &[],
    );
    assert!(!end(&pair).1.starts_with("an error"));
}

#[test]
fn after_a_loss_the_buffer_is_filled_anew_once_it_is_calm() {
    let lossy = Pipe { drop: |n| (700..800).contains(&n) && n % 2 == 0, ..pipe() };
    let asked = |refill: f64| {
        let spec = with(|spec| {
            spec.player.retransmission = false;
            spec.player.heed_loss = false;
            spec.player.buffered = Duration::from_secs(10);
            spec.player.calm = Duration::from_secs(2);
            spec.player.refill = refill;
        });
        let pair = run(&spec, lossy.clone(), &[]);
        (values(&pair, "delivery_asked"), *sent_at(&pair).last().unwrap())
    };
    let (before, last) = asked(0.0);
    let (after, sooner) = asked(2.0);
    assert_eq!(before.len(), 2, "faster than it plays, and then no more: {before:?}");
    assert_eq!(after[..2], before[..]);
    assert_eq!(after[2..3], [2.0 * 316_000.0]);
    assert!(sooner < last - 4.0, "all is sent at {sooner} s for {last} s");
}

#[test]
fn repair_that_waits_for_calm_comes_after_the_losses() {
    let lossy = Pipe { drop: |n| (700..800).contains(&n) && n % 4 == 0, ..pipe() };
    let spec = with(|spec| {
        spec.player.heed_loss = false;
        spec.player.nack_when_calm = true;
        spec.player.calm = Duration::from_secs(2);
        spec.server.resend_keep = Duration::from_secs(30);
    });
    let pair = run(&spec, lossy, &[]);
    let missed = seconds(named(&pair, "packets_missed").last().unwrap());
    let resent: Vec<f64> = named(&pair, "packet_resent").iter().map(|event| seconds(event)).collect();
    assert!(
        resent.len() >= 25 && resent[0] >= missed + 2.0,
        "missed until {missed} s, sent again at {resent:?}"
    );
}

#[test]
fn bursts_may_be_smaller_once_media_goes_at_its_own_rate() {
    let apart = |steady_ms: Option<u64>, from_s: u64| {
        let change = with(|spec| {
            spec.server.steady_burst = steady_ms.map(Duration::from_millis);
            spec.server.steady_from = Duration::from_secs(from_s);
        });
        let pair = run(&change, pipe(), &[]);
        let at: Vec<f64> = sent_at(&pair).into_iter().filter(|at| (40.0..50.0).contains(at)).collect();
        at.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 0.05).fold(0.0, f64::max)
    };
    let all = apart(None, 0);
    assert!((0.47..0.48).contains(&all), "{all}");
    let later = apart(Some(300), 600);
    assert!((0.47..0.48).contains(&later), "{later}");
    let smaller = apart(Some(300), 0);
    assert!((0.29..0.31).contains(&smaller), "{smaller}");
}
