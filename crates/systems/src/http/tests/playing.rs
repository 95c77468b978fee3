//! A file from our own server, played while it is received: the shown frames, and the times of reading.

use super::*;

/// The numbers of the frames shown are all there are, each once and in order.
fn shows_all(events: &[Event], frames: u64) {
    let shown: Vec<f64> = named(events, "frame_shown").iter().filter_map(|event| event.value).collect();
    assert_eq!(shown, (0..frames).map(|number| number as f64).collect::<Vec<_>>());
    let ends = named(events, crate::MEDIA_END);
    assert_eq!((ends.len(), ends[0].value), (1, Some(frames as f64)), "{ends:?}");
    assert_eq!(ends[0].reason, "all frames were shown or given up");
    assert!(named(events, "frame_late").is_empty() && named(events, "frame_incomplete").is_empty());
}

/// From the first picture on there is media and there are stalls, and nothing else.
fn adds_up(events: &[Event], frames: u64) {
    let start = named(events, "playout_start")[0].at;
    let stalled: Duration = Duration::from_nanos(
        named(events, "resume").iter().map(|event| (event.value.unwrap() * 1e9).round() as u64).sum(),
    );
    let last = named(events, "frame_shown").last().unwrap().at;
    let expected = ms(40) * (frames - 1) + stalled;
    let took = last.saturating_since(start);
    assert!(took.as_nanos().abs_diff(expected.as_nanos()) < 10_000, "{took:?}, {expected:?}");
}

fn run(clip: &ClipSpec, settings: &HttpPlayerSettings, pipe: Pipe, until: u64) -> Pair {
    let mut pair = Pair::new(Box::new(Listening::new(clip)), player(settings), pipe);
    pair.run(at(until));
    pair
}

#[test]
fn a_clip_is_played_while_it_comes() {
    // 50 kB/s of media at 100 kB/s.
    let pair = run(&clip(vec![2_000], ms(10_000)), &usual(), pipe(100_000), 30);
    shows_all(&pair.events, 250);
    adds_up(&pair.events, 250);
    assert!(named(&pair.events, "stall").is_empty());
    let startup = named(&pair.events, "playout_start")[0].value.unwrap();
    // Tables and 2 s of media.
    assert!((1.0..1.1).contains(&startup), "{startup}");
    let requests = named(&pair.events, "http_request");
    assert_eq!((requests.len(), requests[0].reason.as_ref()), (1, "/clip.mp4 the whole"));
    assert_eq!(named(&pair.events, "http_response")[0].value, Some(200.0));
}

#[test]
fn a_starving_player_stalls_and_plays_everything_in_the_end() {
    let clip = clip(vec![2_000], ms(10_000));
    let settings = HttpPlayerSettings { rebuffer: ms(1_000), ..usual() };
    let pair = run(&clip, &settings, pipe(25_000), 60);
    shows_all(&pair.events, 250);
    adds_up(&pair.events, 250);
    let stalls = named(&pair.events, "stall").len();
    assert!(stalls >= 3 && stalls == named(&pair.events, "resume").len(), "{stalls}");
    // A second of media takes two.
    let lasted = named(&pair.events, "resume")[0].value.unwrap();
    assert!((1.8..2.2).contains(&lasted), "{lasted}");
}

#[test]
fn pieces_come_on_one_connection_or_each_on_its_own() {
    let clip = clip(vec![2_000], ms(10_000));
    for persistent in [true, false] {
        let settings = HttpPlayerSettings { request: Some(50_000), persistent, ..usual() };
        let pair = run(&clip, &settings, pipe(100_000), 30);
        shows_all(&pair.events, 250);
        // 500 kB and the tables.
        let requests = named(&pair.events, "http_request");
        assert_eq!(requests.len(), 11);
        assert_eq!(requests[1].reason, "/clip.mp4 bytes=50000-99999");
        assert!(named(&pair.events, "http_response").iter().all(|event| event.value == Some(206.0)));
        assert!(named(&pair.events, "http_failure").is_empty());
    }
}

#[test]
fn who_holds_enough_reads_no_more() {
    let clip = clip(vec![2_000], ms(60_000));
    for request in [None, Some(20_000)] {
        let (most, again) = (ms(8_000), ms(5_000));
        let settings =
            HttpPlayerSettings { request, read_ahead: Some(most), read_again: Some(again), ..usual() };
        let pair = run(&clip, &settings, pipe(1_000_000), 90);
        shows_all(&pair.events, 1_500);
        adds_up(&pair.events, 1_500);
        let (offs, ons) = (named(&pair.events, "download_off"), named(&pair.events, "download_on"));
        // Each 3 s from when the buffer is full.
        assert!((16..=19).contains(&offs.len()) && ons.len().abs_diff(offs.len()) <= 1, "{}", offs.len());
        // Bytes read at once are extra: 64 kB are 1.3 s.
        assert!(offs.iter().all(|event| (8.0..9.4).contains(&event.value.unwrap())));
        assert!(ons.iter().all(|event| (4.9..=5.0).contains(&event.value.unwrap())));
        assert!(named(&pair.events, "http_failure").is_empty());
    }
}

#[test]
fn after_a_reset_it_goes_on_where_it_was() {
    let clip = clip(vec![2_000], ms(10_000));
    for request in [None, Some(100_000)] {
        let mut server = Listening::new(&clip);
        server.resets = vec![at(1), at(4)];
        let settings = HttpPlayerSettings { request, ..usual() };
        let mut pair = Pair::new(Box::new(server), player(&settings), pipe(100_000));
        pair.run(at(40));
        shows_all(&pair.events, 250);
        let failures = named(&pair.events, "http_failure");
        assert_eq!(failures.len(), 2, "{failures:?}");
        assert!(failures.iter().all(|event| event.value == Some(1.0)), "bytes came between them");
        assert!(failures[0].reason.starts_with("the connection was reset; "), "{failures:?}");
        let again = named(&pair.events, "http_request")[1].reason.clone();
        assert!(again.starts_with("/clip.mp4 bytes="), "{again}");
    }
}

#[test]
fn a_pause_and_a_stop_are_heeded() {
    let clip = clip(vec![2_000], ms(10_000));
    let make = || Pair::new(Box::new(Listening::new(&clip)), player(&usual()), pipe(100_000));
    let mut paused = make();
    paused.at(ms(3_000), Input::Pause);
    paused.at(ms(63_000), Input::Resume);
    paused.run(at(90));
    shows_all(&paused.events, 250);
    assert!(named(&paused.events, "http_failure").is_empty() && named(&paused.events, "stall").is_empty());
    let last = named(&paused.events, "frame_shown").last().unwrap().at;
    assert!(last > at(70) && last < at(72), "{last:?}");

    let mut stopped = make();
    stopped.at(ms(3_000), Input::Stop);
    stopped.run(at(30));
    let ends = named(&stopped.events, crate::MEDIA_END);
    assert_eq!((ends.len(), ends[0].reason.as_ref(), ends[0].at), (1, "stopped", at(3)));
    assert!(stopped.events.iter().all(|event| event.at <= at(3)), "{:?}", stopped.events.last());
}

#[test]
fn who_wants_the_bytes_gets_all_of_them() {
    struct Taking(Box<HttpPlayer>, Arc<Mutex<u64>>);
    impl App for Taking {
        fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
            self.0.handle(now, input, io);
            while let Some(bytes) = self.0.take_bytes() {
                *self.1.lock().unwrap() += bytes.len() as u64;
            }
        }
        fn poll_timeout(&self) -> Option<Instant> {
            self.0.poll_timeout()
        }
        fn poll_event(&mut self) -> Option<Event> {
            self.0.poll_event()
        }
    }
    let clip = clip(vec![2_000], ms(2_000));
    let (mut keeping, count) = (player(&usual()), Arc::new(Mutex::new(0)));
    keeping.keep_bytes();
    let taking = Taking(keeping, count.clone());
    let mut pair = Pair::new(Box::new(Listening::new(&clip)), Box::new(taking), pipe(100_000));
    pair.run(at(10));
    assert_eq!(*count.lock().unwrap(), MadeFile::of_clip(&clip).unwrap().length());
}

#[test]
fn reading_goes_on_at_five_sixths_of_what_is_held_at_most() {
    let between =
        |read_ahead, read_again| HttpPlayerSettings { read_ahead, read_again, ..usual() }.read_between();
    assert_eq!(HttpPlayerSettings::default().read_between(), Some((ms(30_000), ms(25_000))));
    assert_eq!(between(Some(ms(12_000)), None), Some((ms(12_000), ms(10_000))));
    assert_eq!(between(Some(ms(12_000)), Some(ms(3_000))), Some((ms(12_000), ms(3_000))));
    assert_eq!(between(None, Some(ms(3_000))), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_frame_is_shown_once_whatever_becomes_of_the_connections(
        frames in prop::collection::vec(1u32..6_000, 1..60),
        seconds in 1u64..6,
        rate in 60_000u64..400_000,
        request in prop::option::of(600u64..200_000),
        persistent in any::<bool>(),
        resets in prop::collection::vec(1u64..10_000, 0..4),
        outage in (0u64..6_000, 0u64..5_000),
        prebuffer in 0u64..3_000, rebuffer in 0u64..3_000,
        ahead in prop::option::of(3_000u64..10_000),
    ) {
        let clip = clip(frames, ms(1_000 * seconds));
        let settings = HttpPlayerSettings {
            request, persistent,
            prebuffer: ms(prebuffer), rebuffer: ms(rebuffer),
            read_ahead: ahead.map(ms), read_again: ahead.map(|ahead| ms(ahead / 2)),
            tries: 50, backoff: ms(100),
            ..usual()
        };
        let mut server = Listening::new(&clip);
        server.resets = resets.into_iter().map(|at| Instant::ZERO + ms(at)).collect();
        server.resets.sort_unstable();
        let pipe = Pipe { outage: (ms(outage.0), ms(outage.0 + outage.1)), ..pipe(rate) };
        let mut pair = Pair::new(Box::new(server), player(&settings), pipe);
        pair.run(at(60));
        let count = 25 * seconds;
        shows_all(&pair.events, count);
        adds_up(&pair.events, count);
    }
}
