//! Server and player together.

mod congestion;
mod protocols;
mod requests;
mod rollover;

use streamgauge_base::{Duration, Event, Instant};

use super::*;
use crate::app::Input;
use crate::media::{ClipSpec, LevelSpec};
use crate::outbox::MEDIA_END;
use crate::testing::{Pair, Pipe};

const SECONDS: u64 = 60;

/// Makes a plan of a minute at ten frames a second, a key frame each second, at 40, 120 and 300 kbit/s, with sound of
/// 16 kbit/s.
fn spec(transport: WmTransport) -> WindowsMediaSpec {
    let clip = |mean: u32, interval: Duration, group: usize| ClipSpec {
        name: "test".into(),
        duration: Duration::from_secs(SECONDS),
        frame_interval: interval,
        frame_bytes: (0..group)
            .map(|n| if n == 0 { 2 * mean } else { mean - mean / 9 })
            .collect::<Vec<_>>()
            .into(),
        ..ClipSpec::default()
    };
    let level = |rate: u64| LevelSpec {
        bit_rate_bps: rate,
        size: (0, 0),
        clip: clip((rate / 80) as u32, Duration::from_millis(100), 10),
    };
    let sound =
        LevelSpec { bit_rate_bps: 16_000, size: (0, 0), clip: clip(40, Duration::from_millis(20), 1) };
    WindowsMediaSpec {
        ladder: LadderSpec {
            name: "test".into(),
            segment: Duration::from_secs(1),
            video: [40_000, 120_000, 300_000].map(level).into(),
            audio: Some(sound),
        },
        player: PlayerSettings { transport, ..PlayerSettings::of(PlayerKind::Wmp9) },
        ..WindowsMediaSpec::usual()
    }
}

fn pipe() -> Pipe {
    Pipe { stream_bytes_per_s: Some(1_000_000), ..Pipe::default() }
}

fn run(spec: &WindowsMediaSpec, pipe: Pipe, actions: &[(u64, Input<'static>)]) -> Pair {
    run_listening(spec, pipe, actions, |_| true)
}

/// Runs the same where the server listens at some of its ports alone.
fn run_listening(
    spec: &WindowsMediaSpec,
    pipe: Pipe,
    actions: &[(u64, Input<'static>)],
    listens: fn(u16) -> bool,
) -> Pair {
    let made = spec.machines("video", 1).unwrap();
    let begins_with_stream = spec.player.transport.begins_connected();
    let mut pair = Pair::new(made.server, made.player, Pipe { begins_with_stream, ..pipe });
    if !begins_with_stream {
        let is_there = |channel: &Channel| match channel.carrier {
            Carrier::Listener { port, .. } => listens(port),
            _ => true,
        };
        // Their numbers are theirs whether they are there or not.
        let there: Vec<Channel> = made.channels.iter().filter(|one| is_there(one)).cloned().collect();
        pair.begins_with(&there);
        pair.reserve(made.channels.len());
    }
    for (ms, input) in actions {
        pair.at(Duration::from_millis(*ms), *input);
    }
    pair.run(Instant::from_nanos(300_000_000_000));
    pair
}

fn named<'a>(pair: &'a Pair, name: &str) -> Vec<&'a Event> {
    pair.events.iter().filter(|event| event.name == name).collect()
}

fn values(pair: &Pair, name: &str) -> Vec<f64> {
    named(pair, name).iter().filter_map(|event| event.value).collect()
}

fn end(pair: &Pair) -> (f64, String) {
    let ends = named(pair, MEDIA_END);
    assert_eq!(ends.len(), 1, "{ends:?}");
    (ends[0].value.unwrap(), ends[0].reason.to_string())
}

#[test]
fn all_of_the_highest_rate_is_shown_where_nothing_is_in_the_way() {
    for transport in [WmTransport::Udp, WmTransport::Tcp] {
        let pair = run(&spec(transport), pipe(), &[]);
        let (shown, why) = end(&pair);
        assert_eq!(shown, (SECONDS * 10) as f64, "{transport:?}: {why}");
        assert_eq!(values(&pair, "level_changed"), [316_000.0], "{transport:?}");
        for nothing in ["stall", "frame_incomplete", "frame_late", "packets_missed", "session_timeout"] {
            assert!(named(&pair, nothing).is_empty(), "{transport:?}: {nothing}");
        }
    }
}

#[test]
fn media_comes_after_a_silence_and_faster_than_it_plays_until_the_buffer_is_full() {
    let pair = run(&spec(WmTransport::Udp), pipe(), &[]);
    let media = pair.sent.iter().filter(|sent| sent.datagram.len() > 100);
    let times: Vec<f64> = media.map(|sent| sent.at.saturating_since(Instant::ZERO).as_secs_f64()).collect();
    assert!(times[2] < 1.0, "packets that measure the link come at once: {:?}", &times[..4]);
    assert!((4.9..5.2).contains(&times[3]), "{:?}", &times[..5]);
    let full = times[3] + values(&pair, "playout_start")[0];
    let rate = |from: f64, to: f64| {
        let came = pair
            .sent
            .iter()
            .filter(|sent| (from..to).contains(&sent.at.saturating_since(Instant::ZERO).as_secs_f64()));
        8.0 * came.map(|sent| sent.datagram.len() as f64).sum::<f64>() / (to - from)
    };
    let asked = values(&pair, "delivery_asked");
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(rate(5.0, full) > 2.0 * rate(full + 6.0, full + 26.0), "{}", rate(5.0, full));
}

#[test]
fn what_is_lost_is_asked_for_and_comes() {
    let lossy = Pipe { drop: |n| n % 60 == 17, ..pipe() };
    let pair = run(&spec(WmTransport::Udp), lossy.clone(), &[]);
    let (missed, again) =
        (values(&pair, "packets_missed").iter().sum::<f64>(), named(&pair, "packet_resent").len());
    assert!(missed > 20.0 && again as f64 >= missed, "{missed} missed, {again} sent again");
    assert_eq!(end(&pair).0, (SECONDS * 10) as f64);

    let mut deaf = spec(WmTransport::Udp);
    (deaf.player.retransmission, deaf.player.heed_loss) = (false, false);
    let pair = run(&deaf, lossy, &[]);
    assert!(named(&pair, "packet_resent").is_empty());
    assert!(end(&pair).0 < (SECONDS * 10) as f64 - 10.0);
}

#[test]
fn who_loses_too_much_takes_less_and_less() {
    let mut stubborn = spec(WmTransport::Udp);
    stubborn.player.retransmission = false;
    stubborn.player.judged_again = Duration::from_secs(5);
    let lossy = Pipe { drop: |n| n % 10 == 3, ..pipe() };
    let pair = run(&stubborn, lossy, &[]);
    let taken = values(&pair, "level_changed");
    assert_eq!(taken, [316_000.0, 136_000.0, 56_000.0, 16_000.0, 16_000.0]);
    let sent = values(&pair, "level_sent");
    assert_eq!(sent.first(), Some(&316_000.0));
    assert_eq!(sent.last(), Some(&16_000.0));
    assert!(sent.windows(2).all(|pair| pair[1] < pair[0]), "{sent:?}");
}

#[test]
fn the_rate_that_fits_the_link_is_taken_at_first() {
    for (preference, taken) in
        [(1_000_000, 316_000.0), (200_000, 136_000.0), (60_000, 56_000.0), (20_000, 56_000.0)]
    {
        let mut told = spec(WmTransport::Udp);
        (told.player.packet_pair, told.player.preference_bps) = (false, preference);
        let pair = run(&told, pipe(), &[]);
        assert_eq!(values(&pair, "level_changed"), [taken], "{preference}");
        assert!(named(&pair, "estimate").is_empty());
    }
}

#[test]
fn a_pause_holds_the_server_and_a_stop_ends_it() {
    let pair = run(&spec(WmTransport::Udp), pipe(), &[(20_000, Input::Pause), (40_000, Input::Resume)]);
    let held = pair.sent.iter().filter(|sent| {
        let at = sent.at.saturating_since(Instant::ZERO);
        (Duration::from_millis(20_600)..Duration::from_millis(40_000)).contains(&at)
    });
    assert_eq!(held.count(), 0);
    assert_eq!(end(&pair).0, (SECONDS * 10) as f64);
    let pair = run(&spec(WmTransport::Tcp), pipe(), &[(10_000, Input::Stop)]);
    assert_eq!(end(&pair).1, "stopped");
}

#[test]
fn who_starves_beside_a_helix_server_stops_with_an_error() {
    let mut spec = spec(WmTransport::Udp);
    spec.player = PlayerSettings {
        starved_after: Duration::from_secs(20),
        ..PlayerSettings::of(PlayerKind::Wmp9Helix)
    };
    // Most of it is lost, and nothing is sent again.
    let pair = run(&spec, Pipe { drop: |n| n % 10 > 0, ..pipe() }, &[]);
    let (_, why) = end(&pair);
    assert_eq!(why, "an error: nothing could be shown for 20 s");
    assert!(named(&pair, "packet_resent").is_empty() && values(&pair, "level_changed").len() == 1);
}

#[test]
fn a_plan_that_cannot_be_played_is_refused_by_its_key() {
    let refused = |change: fn(&mut WindowsMediaSpec)| {
        let mut spec = spec(WmTransport::Udp);
        change(&mut spec);
        spec.machines("video", 1).err().map_or_else(String::new, |(key, _)| key.into_owned())
    };
    assert_eq!(refused(|_| {}), "");
    assert_eq!(refused(|spec| spec.server.packet_bytes = 10), "app.windows_media.server.packet_bytes");
    assert_eq!(refused(|spec| spec.player.fit_share = 0.0), "app.windows_media.player.fit_share");
    assert_eq!(refused(|spec| spec.ladder.video.clear()), "app.windows_media.ladder.video");
    assert_eq!(
        refused(|spec| spec.ladder.video =
            (1..20).map(|n| LevelSpec { bit_rate_bps: n * 1000, ..spec.ladder.video[0].clone() }).collect()),
        "app.windows_media.ladder.video"
    );
}
