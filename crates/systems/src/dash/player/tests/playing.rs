//! On demand: shown pictures, the times of requests, and abandonments.

use proptest::prelude::*;

use super::*;
use crate::dash::origin::{MASTER, RANGES_MASTER, RANGES_MPD, TIMELINE_MPD};

const FORMS: [&str; 5] = [MPD, TIMELINE_MPD, RANGES_MPD, MASTER, RANGES_MASTER];

/// The numbers of the frames shown are all there are, each once and in order.
pub(super) fn shows_all(events: &[Event], frames: usize) {
    let shown = values(events, "frame_shown");
    let first_wrong = shown.iter().zip(0..).find(|(shown, number)| **shown != f64::from(*number));
    assert!(shown.len() == frames && first_wrong.is_none(), "{} shown, wrong: {first_wrong:?}", shown.len());
    assert_eq!(ended(events), "played to the end");
}

/// From the first picture on there is media and there are stalls, and nothing else.
pub(super) fn adds_up(events: &[Event], seconds: f64) {
    let start = named(events, "playout_start")[0].at;
    let end = named(events, MEDIA_END)[0].at;
    let stalled: f64 = values(events, "resume").iter().sum();
    let took = end.saturating_since(start).as_secs_f64();
    // Sound ends with a block of its own.
    assert!((took - seconds - stalled).abs() < 0.022, "{took} {seconds} {stalled}");
}

#[test]
fn every_form_is_played_to_the_same_end() {
    let ladder = with_sound(ladder(&[200_000, 800_000], 20), 20);
    for form in FORMS {
        let events = play(presented(&ladder), fixed(1), form, pipe(2_000_000), 60);
        shows_all(&events, 500);
        adds_up(&events, 20.0);
        assert!(named(&events, "stall").is_empty(), "{form}");
        // A variant's BANDWIDTH counts its sound (RFC 8216 section 4.3.4.2).
        let rate = if form.contains("m3u8") { 864_000.0 } else { 800_000.0 };
        assert_eq!(values(&events, "segment_shown"), [rate; 10], "{form}");
        assert_eq!(values(&events, "level_changed"), [rate], "{form}");
        assert_eq!(named(&events, "segment_fetched").len(), 10, "{form}");
        assert!(named(&events, "http_failure").is_empty(), "{form}");
    }
}

#[test]
fn on_a_link_that_is_too_narrow_it_stalls_and_shows_everything_in_the_end() {
    let events = play(presented(&ladder(&[400_000], 20)), fixed(0), MPD, pipe(200_000), 100);
    shows_all(&events, 500);
    adds_up(&events, 20.0);
    let stalls = named(&events, "stall").len();
    // Each segment of 2 s takes 4 s.
    assert!((8..=9).contains(&stalls) && named(&events, "resume").len() == stalls, "{stalls}");
}

#[test]
fn a_full_buffer_stops_requests_until_there_is_room() {
    let settings = DashPlayerSettings { buffer: ms(6_000), ..fixed(0) };
    let events = play(presented(&ladder(&[400_000], 40)), settings, MPD, pipe(8_000_000), 60);
    shows_all(&events, 1_000);
    let most = values(&events, "buffer").into_iter().fold(0.0, f64::max);
    assert!((6.0..=8.0).contains(&most), "{most}");
    let (off, on) = (values(&events, "download_off"), values(&events, "download_on"));
    assert!(off.len() > 10 && off.iter().all(|held| *held >= 6.0), "{off:?}");
    assert!(on.iter().all(|held| (5.99..=6.0).contains(held)), "{on:?}");
}

#[test]
fn where_a_segment_must_fit_whole_less_is_held() {
    let settings = DashPlayerSettings { buffer: ms(6_000), fits_whole: true, ..fixed(0) };
    let events = play(presented(&ladder(&[400_000], 40)), settings, MPD, pipe(8_000_000), 60);
    shows_all(&events, 1_000);
    let most = values(&events, "buffer").into_iter().fold(0.0, f64::max);
    assert!((4.0..=6.0).contains(&most), "{most}");
    assert!(values(&events, "download_on").iter().all(|held| (3.49..=4.0).contains(held)));
    // None fits a buffer that is shorter than one.
    let settings = DashPlayerSettings { buffer: ms(1_500), fits_whole: true, ..fixed(0) };
    shows_all(&play(presented(&ladder(&[400_000], 10)), settings, MPD, pipe(8_000_000), 60), 250);
}

#[test]
fn a_player_that_stops_reading_leaves_what_it_asked_for_in_the_connection() {
    let settings = DashPlayerSettings {
        buffer: ms(6_000),
        stops_reading: true,
        pipeline: 2,
        choose_at_percent: 80,
        ..fixed(0)
    };
    let events = play(presented(&ladder(&[400_000], 40)), settings, MPD, pipe(8_000_000), 60);
    shows_all(&events, 1_000);
    assert!(named(&events, "stall").is_empty());
    assert!(!named(&events, "download_off").is_empty());
}

#[test]
fn segments_come_on_one_connection_or_each_on_its_own_or_two_at_once() {
    for (persistent, pipeline) in [(true, 1), (false, 1), (true, 2)] {
        let settings = DashPlayerSettings { persistent, pipeline, choose_at_percent: 50, ..fixed(0) };
        let events = play(presented(&ladder(&[400_000], 20)), settings, MPD, pipe(1_000_000), 60);
        shows_all(&events, 500);
        assert!(named(&events, "http_failure").is_empty(), "{persistent} {pipeline}");
    }
}

#[test]
fn a_pause_is_no_stall() {
    let mut pair = Pair::new(
        serving(presented(&ladder(&[400_000], 20))),
        Box::new(DashPlayer::new(fixed(0), source(MPD), 1)),
        pipe(2_000_000),
    );
    pair.at(Duration::from_secs(5), Input::Pause);
    pair.at(Duration::from_secs(15), Input::Resume);
    pair.run(at(60));
    shows_all(&pair.events, 500);
    assert!(named(&pair.events, "stall").is_empty());
    let shown: Vec<Instant> = named(&pair.events, "frame_shown").iter().map(|event| event.at).collect();
    let widest = shown.windows(2).map(|pair| pair[1].saturating_since(pair[0])).max().unwrap();
    assert!((10.0..10.1).contains(&widest.as_secs_f64()), "{widest:?}");
}

#[test]
fn client_data_tells_what_is_held() {
    let settings = DashPlayerSettings { cmcd: true, ..fixed(0) };
    let events = play(presented(&ladder(&[400_000], 10)), settings, MPD, pipe(2_000_000), 30);
    shows_all(&events, 250);
}

#[test]
fn a_segment_that_is_given_up_comes_at_the_level_that_the_rule_named() {
    let ladder = ladder(&[100_000, 500_000, 2_000_000], 60);
    let outage = (ms(6_000), ms(12_000));
    let abandoning = |abandonment| {
        let settings =
            DashPlayerSettings { rule: "throughput".into(), abandonment, ..DashPlayerSettings::default() };
        play(presented(&ladder), settings, MPD, Pipe { outage, ..pipe(4_000_000) }, 100)
    };
    let events = abandoning(true);
    shows_all(&events, 1_500);
    let given_up = named(&events, "segment_abandoned");
    assert_eq!(given_up.len(), 1, "{given_up:?}");
    // "segment 7 at 2000 kbit/s, for 100 kbit/s: ..."
    let words: Vec<&str> = given_up[0].reason.split(' ').collect();
    let (number, to) = (words[1], words[6]);
    let fetched = named(&events, "segment_fetched");
    let again =
        fetched.iter().find(|event| event.reason.starts_with(&format!("segment {number} at "))).unwrap();
    assert!(again.reason.starts_with(&format!("segment {number} at {to} kbit/s")), "{}", again.reason);
    assert!(fetched.len() == 30 && again.at > given_up[0].at);
    assert!(named(&abandoning(false), "segment_abandoned").is_empty());
}

/// A player with kept bytes, which it shares with its reader.
struct Keeping(Arc<std::sync::Mutex<DashPlayer>>);

impl App for Keeping {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        self.0.lock().unwrap().handle(now, input, io);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.0.lock().unwrap().poll_timeout()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.0.lock().unwrap().poll_event()
    }
}

#[test]
fn what_is_kept_is_what_came_whole() {
    let ladder = ladder(&[100_000, 500_000, 2_000_000], 60);
    let outage = (ms(6_000), ms(12_000));
    let settings = DashPlayerSettings { rule: "throughput".into(), ..DashPlayerSettings::default() };
    let mut player = DashPlayer::new(settings, source(MPD), 1);
    player.keep_bytes();
    let player = Arc::new(std::sync::Mutex::new(player));
    let pipe = Pipe { outage, ..pipe(4_000_000) };
    let mut pair = Pair::new(serving(presented(&ladder)), Box::new(Keeping(player.clone())), pipe);
    pair.run(at(100));
    let mut player = player.lock().unwrap();
    let kept: usize = std::iter::from_fn(|| player.take_bytes()).map(|chunk| chunk.len()).sum();
    let given_up: f64 = values(&pair.events, "segment_abandoned").iter().sum();
    assert!(given_up > 0.0);
    // All bodies but the manifest's and the abandoned ones.
    let manifest = presented(&ladder).find(MPD, Instant::ZERO).unwrap().unwrap().length();
    assert_eq!(kept as u64 + given_up as u64 + manifest, player.bytes());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn whatever_the_link_everything_is_shown_and_time_adds_up(
        kbps in 300u64..4_000, level in 0u32..3, buffer_s in 2u64..20, pipeline in 1u32..3,
        persistent: bool, parallel: bool, stops_reading: bool, form in 0usize..5, sound: bool,
        rule in prop::sample::select(vec!["fixed", "bba-0", "dashjs-dynamic"]), fast_switch: bool,
    ) {
        let plain = ladder(&[100_000, 250_000, 500_000], 12);
        let ladder = if sound { with_sound(plain, 12) } else { plain };
        let settings = DashPlayerSettings {
            buffer: Duration::from_secs(buffer_s), pipeline, persistent, parallel, stops_reading, fast_switch,
            rule: rule.into(), ..fixed(level)
        };
        let events = play(presented(&ladder), settings, FORMS[form], pipe(kbps * 1000), 200);
        shows_all(&events, 300);
        adds_up(&events, 12.0);
        prop_assert!(named(&events, "http_failure").is_empty());
    }
}
