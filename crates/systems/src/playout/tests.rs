use std::collections::BTreeMap;

use proptest::prelude::*;
use streamgauge_base::Event;

use super::*;

const CLOCK: u32 = 90_000;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// 25 frames a second of `packets` packets each, and the reported events.
struct Bench {
    playout: Playout,
    outbox: Outbox,
    said: Vec<Event>,
    now: Instant,
    packets: u32,
}

impl Bench {
    fn new(manner: Manner, packets: u32, end: Option<u64>, numbered: bool) -> Self {
        Self::of_end(manner, packets, end.map(|end| End { at: ms(end), of_pictures: true }), numbered)
    }

    /// Returns a bench with a track of sound besides, and the longest track's end as its end.
    fn of_end(manner: Manner, packets: u32, end: Option<End>, numbered: bool) -> Self {
        let intervals = [numbered.then(|| ms(40)), None];
        let mut playout = Playout::new(manner, &intervals, 0, Instant::ZERO, Duration::ZERO, end);
        playout.anchor(0, Timeline::new(CLOCK, 7, Duration::ZERO));
        playout.anchor(1, Timeline::new(CLOCK, 0, Duration::ZERO));
        Bench { playout, outbox: Outbox::default(), said: Vec::new(), now: Instant::ZERO, packets }
    }

    /// Performs actions that are due until `then`, as a driver would, and checks the assumptions of drivers.
    fn until(&mut self, then: Instant) {
        while let Some(due) = self.playout.next_event().filter(|due| *due <= then) {
            assert!(due > self.now, "a timer for {due:?} at {:?}", self.now);
            self.now = due;
            self.playout.advance(due, &mut self.outbox);
            self.said.extend(std::iter::from_fn(|| self.outbox.next()));
        }
        self.now = then;
    }

    fn arrive(&mut self, time: Instant, frame: u32, packet: u32) {
        self.until(time);
        let place = Place {
            sequence: frame * self.packets + packet,
            timestamp: 7 + frame * 3600,
            first: packet == 0,
            last: packet + 1 == self.packets,
        };
        self.playout.arrived(time, 0, place, None, &mut self.outbox);
        self.work();
    }

    /// A block of sound of the media's time `ms` arrives; its blocks are 40 ms long.
    fn hear(&mut self, time: Instant, ms: u32) {
        self.until(time);
        let place = Place { sequence: ms / 40, timestamp: ms * (CLOCK / 1000), first: true, last: true };
        self.playout.arrived(time, 1, place, None, &mut self.outbox);
        self.work();
    }

    fn work(&mut self) {
        self.playout.advance(self.now, &mut self.outbox);
        self.said.extend(std::iter::from_fn(|| self.outbox.next()));
    }

    fn of(&self, name: &str) -> Vec<(u64, Option<f64>)> {
        let named = self.said.iter().filter(|e| e.name == name);
        named.map(|e| (e.at.as_nanos() / 1_000_000, e.value)).collect()
    }
}

const DATAGRAMS: Manner = Manner {
    start: Start::Gathered,
    prebuffer: Duration::from_millis(200),
    rebuffer: Duration::from_millis(200),
    gathers: Gathers::Begun,
    host_late: HostLate::Counts,
    stalls: false,
    in_order: false,
};
const REBUFFERS: Manner = Manner { stalls: true, ..DATAGRAMS };
const STREAM: Manner = Manner { stalls: true, in_order: true, ..DATAGRAMS };

#[test]
fn play_begins_once_enough_is_held_and_keeps_the_medias_pace() {
    let mut bench = Bench::new(DATAGRAMS, 1, Some(400), true);
    for frame in 0..10 {
        bench.arrive(at(100 + 10 * u64::from(frame)), frame, 0);
    }
    bench.until(at(5_000));
    // Five frames of 40 ms are 0.2 s: there with the one of 140 ms.
    assert_eq!(bench.of("playout_start"), [(140, Some(0.14))]);
    let expected: Vec<_> = (0..10u32).map(|n| (140 + 40 * u64::from(n), Some(f64::from(n)))).collect();
    assert_eq!(bench.of("frame_shown"), expected);
    assert_eq!(bench.of(MEDIA_END), [(500, Some(10.0))]);
    assert_eq!(bench.playout.startup(), Some(ms(140)));
}

#[test]
fn a_retransmission_within_the_deadline_heals_its_frame_and_after_it_does_not() {
    let mut bench = Bench::new(DATAGRAMS, 2, Some(400), true);
    for frame in 0..10 {
        bench.arrive(at(u64::from(frame)), frame, 0);
        if frame != 5 && frame != 7 {
            bench.arrive(at(u64::from(frame)), frame, 1);
        }
    }
    // Play began at 4 ms: frame 5 is due at 204 ms, frame 7 at 284 ms.
    bench.arrive(at(203), 5, 1);
    bench.arrive(at(300), 7, 1);
    bench.until(at(5_000));
    assert_eq!(bench.of("frame_late"), [(300, Some(0.016))]);
    assert_eq!(bench.of("frame_shown").len(), 9);
    assert_eq!(bench.playout.stats().incomplete, 0);
}

#[test]
fn over_datagrams_a_missing_frame_is_a_freeze_and_a_dry_buffer_a_stall_if_it_rebuffers() {
    for (manner, stalls, lost) in [(DATAGRAMS, 0, 17), (REBUFFERS, 1, 1)] {
        let mut bench = Bench::new(manner, 1, Some(4_000), true);
        for frame in (0..20).filter(|&f| f != 3) {
            bench.arrive(at(u64::from(frame)), frame, 0);
        }
        // Due from 5 ms on; dry at 805 ms, and silent for 0.6 s more.
        for frame in 20..100 {
            bench.arrive(at(1_400 + u64::from(frame)), frame, 0);
        }
        bench.until(at(20_000));
        assert_eq!(bench.of("stall").len(), stalls);
        assert_eq!(bench.of("resume").len(), stalls);
        let stats = bench.playout.stats();
        assert_eq!((stats.shown, stats.late + stats.incomplete), (100 - lost, lost));
    }
}

#[test]
fn on_a_stream_nothing_is_lost_however_slow_it_is() {
    let mut bench = Bench::new(STREAM, 2, Some(4_000), true);
    for frame in 0..100 {
        for packet in 0..2 {
            // Half the media's pace.
            bench.arrive(at(80 * u64::from(frame) + 40 * u64::from(packet)), frame, packet);
        }
    }
    bench.until(at(60_000));
    let stats = bench.playout.stats();
    assert_eq!((stats.shown, stats.late, stats.incomplete), (100, 0, 0));
    assert!(stats.stalls > 5);
    assert_eq!(bench.of("stall").len(), bench.of("resume").len());
    assert_eq!(bench.of(MEDIA_END).len(), 1);
}

/// A presentation of 4 s with an unknown last picture: none is counted, or another track may end then.
const UNKNOWN_LAST: [(bool, bool); 3] = [(false, true), (false, false), (true, false)];

/// 100 frames of three packets on a stream, the last second of them 0.7 s apart from `from`, but for the last `lost`.
fn a_slow_end((numbered, of_pictures): (bool, bool), from: u64, lost: u32) -> Bench {
    let end = End { at: ms(4_000), of_pictures };
    let mut bench = Bench::of_end(STREAM, 3, Some(end), numbered);
    for packet in 0..300 - lost {
        let slow = u64::from(packet.saturating_sub(224));
        let time = if slow > 0 { from + 700 * slow } else { u64::from(packet) };
        bench.arrive(at(time), packet / 3, packet % 3);
    }
    bench
}

#[test]
fn on_a_stream_the_rest_of_a_picture_of_the_last_second_is_waited_for() {
    for unknown in UNKNOWN_LAST {
        // The first of them before it is due, and after.
        for from in [2_000, 4_000] {
            let mut bench = a_slow_end(unknown, from, 0);
            bench.until(at(200_000));
            let stats = bench.playout.stats();
            assert_eq!((stats.shown, stats.late, stats.incomplete), (100, 0, 0), "{unknown:?} {from}");
            // The clock continues.
            assert_eq!(stats.stalls, 0);
            assert_eq!(bench.of(MEDIA_END).len(), 1);
        }
    }
}

#[test]
fn a_picture_of_the_last_second_whose_rest_will_not_come_is_given_up() {
    for unknown in UNKNOWN_LAST {
        let mut bench = a_slow_end(unknown, 2_000, 1);
        bench.until(at(100_000));
        assert_eq!((bench.playout.stats().incomplete, bench.of(MEDIA_END).len()), (0, 0));
        bench.playout.nothing_more("the server ended the connection");
        bench.work();
        bench.until(at(200_000));
        let stats = bench.playout.stats();
        assert_eq!((stats.shown, stats.incomplete, bench.of(MEDIA_END).len()), (99, 1, 1));
    }
}

/// Returns 100 frames and 20 s of sound, sent at the media's pace, the sound by `lead` ms before the
/// pictures; from 4 s on nothing arrives for `outage` ms.
fn beside_sound(manner: Manner, numbered: bool, pictures: u32, lead: u32, outage: u64) -> Bench {
    let end = End { at: ms(20_000), of_pictures: false };
    let mut bench = Bench::of_end(manner, 1, Some(end), numbered);
    for block in 0..500 + lead / 40 {
        let time = 40 * u64::from(block);
        let time = at(if time < 4_000 { time } else { time + outage });
        if block < 500 {
            bench.hear(time, 40 * block);
        }
        let picture = block.checked_sub(lead / 40).filter(|&picture| picture < pictures);
        if let Some(picture) = picture {
            bench.arrive(time, picture, 0);
        }
    }
    bench.until(at(200_000));
    bench
}

#[test]
fn sound_that_goes_on_without_pictures_shows_that_none_is_due() {
    for numbered in [false, true] {
        for lead in [0, 2_000] {
            for manner in [STREAM, REBUFFERS, DATAGRAMS] {
                let manner = Manner { prebuffer: ms(1_500), rebuffer: ms(1_500), ..manner };
                let bench = beside_sound(manner, numbered, 100, lead, 0);
                let stats = bench.playout.stats();
                assert_eq!(
                    (stats.shown, stats.late, stats.incomplete),
                    (100, 0, 0),
                    "{numbered} {lead} {manner:?}"
                );
                assert_eq!((stats.stalls, bench.of(MEDIA_END).len()), (0, 1), "{numbered} {lead} {manner:?}");
                // Not before the sound does.
                assert!(bench.of(MEDIA_END)[0].0 > 20_000);
            }
            // A buffer too short to reveal it waits this long for it, and no longer.
            let bench = beside_sound(STREAM, numbered, 100, lead, 0);
            assert_eq!(bench.of("stall").len(), 1);
            let waited = bench.of("resume")[0].1.unwrap();
            assert!((0.5..=1.1).contains(&waited), "{waited} s");
            assert_eq!(bench.of(MEDIA_END).len(), 1);
        }
    }
}

#[test]
fn sound_that_is_sent_ahead_of_the_pictures_hides_no_stall() {
    for numbered in [false, true] {
        for lead in [0, 400, 2_000, 5_000] {
            let bench = beside_sound(STREAM, numbered, 400, lead, 6_000);
            let stats = bench.playout.stats();
            assert_eq!((stats.shown, stats.late, stats.incomplete), (400, 0, 0), "{numbered} {lead}");
            let stalls = bench.of("stall").into_iter().filter(|(at, _)| *at < 10_000);
            assert_eq!(stalls.count(), usize::from(lead < 4_000), "{numbered} {lead}");
        }
    }
}

#[test]
fn after_the_last_picture_it_is_the_sound_that_must_not_run_dry() {
    for numbered in [false, true] {
        let manner = Manner { prebuffer: ms(1_500), rebuffer: ms(1_500), ..STREAM };
        // 2 s of sound were left when the last picture had come.
        let bench = beside_sound(manner, numbered, 40, 0, 6_000);
        assert_eq!((bench.of("stall").len(), bench.of("resume").len()), (1, 1), "{numbered}");
        // Dry 1.5 s after the outage began; then 1.5 s are gathered.
        assert!((5_400..5_600).contains(&bench.of("stall")[0].0), "{:?}", bench.of("stall"));
        assert!((11_400..11_600).contains(&bench.of("resume")[0].0), "{:?}", bench.of("resume"));
        let stats = bench.playout.stats();
        assert_eq!((stats.shown, stats.incomplete), (40, 0));
    }
}

#[test]
fn a_pause_holds_the_clock_and_nothing_else() {
    let mut bench = Bench::new(DATAGRAMS, 1, Some(400), true);
    for frame in 0..10 {
        bench.arrive(at(u64::from(frame)), frame, 0);
    }
    bench.until(at(100));
    bench.playout.pause(at(100));
    bench.until(at(3_100));
    bench.playout.resume(at(3_100));
    bench.until(at(9_000));
    let shown = bench.of("frame_shown");
    assert_eq!((shown.len(), shown[9].0), (10, 4 + 9 * 40 + 3_000));
}

#[test]
fn a_source_that_ends_early_ends_the_media_with_what_is_held() {
    let mut bench = Bench::new(REBUFFERS, 1, Some(60_000), true);
    for frame in 0..3 {
        bench.arrive(at(u64::from(frame)), frame, 0);
    }
    bench.playout.nothing_more("the server said goodbye");
    bench.work();
    bench.until(at(5_000));
    assert_eq!(bench.of("frame_shown").len(), 3);
    let end: Vec<_> = bench.said.iter().filter(|e| e.name == MEDIA_END).map(|e| e.reason.clone()).collect();
    assert_eq!(end, ["the server said goodbye"]);
    // The position stops then, and stays for later queries.
    assert_eq!(bench.playout.position(at(5_000)), bench.playout.position(at(60_000)));
    assert!(bench.playout.position(at(5_000)) <= ms(3 * 40));

    let mut silent = Bench::new(REBUFFERS, 1, None, false);
    silent.playout.nothing_more("nothing came");
    silent.work();
    assert_eq!(silent.of(MEDIA_END), [(0, Some(0.0))]);
}

#[test]
fn frames_lost_at_the_very_end_are_not_forgotten() {
    let mut bench = Bench::new(REBUFFERS, 1, Some(400), true);
    for frame in 0..8 {
        bench.arrive(at(u64::from(frame)), frame, 0);
    }
    bench.until(at(5_000));
    assert_eq!((bench.playout.stats().shown, bench.playout.stats().incomplete), (8, 2));
    assert_eq!(bench.of(MEDIA_END).len(), 1);
}

#[test]
fn a_wrong_frame_rate_does_not_merge_frames() {
    // Frames 20 ms apart, declared as 40 ms apart.
    let mut bench = Bench::new(DATAGRAMS, 1, None, true);
    for frame in 0..50u32 {
        bench.until(at(u64::from(frame)));
        let place = Place { sequence: frame, timestamp: 7 + frame * 1800, first: true, last: true };
        bench.playout.arrived(bench.now, 0, place, None, &mut bench.outbox);
        bench.work();
    }
    bench.playout.nothing_more("end");
    bench.until(at(5_000));
    assert_eq!(bench.playout.stats().shown, 50);
}

#[test]
fn kept_units_come_in_order_with_their_payloads_in_order() {
    let mut bench = Bench::new(DATAGRAMS, 2, Some(80), true);
    bench.playout.keep_units();
    for (frame, packet) in [(0, 1), (1, 0), (0, 0)] {
        let place = Place {
            sequence: frame * 2 + packet,
            timestamp: 7 + frame * 3600,
            first: packet == 0,
            last: packet == 1,
        };
        let payload = Chunk::bytes([frame as u8, packet as u8]);
        bench.playout.arrived(Instant::ZERO, 0, place, Some(payload), &mut bench.outbox);
    }
    bench.work();
    bench.until(at(5_000));
    let units: Vec<_> = std::iter::from_fn(|| bench.playout.take_unit()).collect();
    let payloads = |unit: &ReceivedUnit| unit.payloads.iter().map(|p| p.head().to_vec()).collect::<Vec<_>>();
    assert_eq!(
        (units[0].whole, units[0].shown, payloads(&units[0])),
        (true, true, vec![vec![0, 0], vec![0, 1]])
    );
    assert_eq!((units[1].whole, units[1].shown, payloads(&units[1])), (false, false, vec![vec![1, 0]]));
    assert_eq!(units.len(), 2);
}

#[test]
fn what_comes_in_a_pause_or_before_the_host_looks_is_late_where_that_is_forgiven() {
    for (host_late, late, incomplete) in [(HostLate::Forgiven, 1, 0), (HostLate::Counts, 0, 1)] {
        for pauses in [true, false] {
            let mut bench = Bench::new(Manner { host_late, ..DELAYED }, 1, Some(80), true);
            bench.arrive(at(0), 0, 0);
            // Frame 1 is due at 140 ms.
            bench.until(at(200));
            if pauses {
                bench.playout.pause(at(200));
            }
            let place = Place { sequence: 1, timestamp: 7 + 3600, first: true, last: true };
            bench.playout.arrived(at(1_200), 0, place, None, &mut bench.outbox);
            bench.now = at(1_200);
            bench.playout.resume(at(1_200));
            bench.work();
            bench.until(at(9_000));
            assert_eq!(
                (bench.of("frame_late").len(), bench.of("frame_incomplete").len()),
                (late, incomplete)
            );
            assert_eq!((bench.of("frame_shown").len(), bench.of(MEDIA_END).len()), (1, 1));
        }
    }
}

#[test]
fn a_pause_in_a_stall_counts_once() {
    let mut bench = Bench::new(DELAYED_STREAM, 1, Some(400), true);
    bench.arrive(at(0), 0, 0);
    bench.until(at(200));
    bench.playout.pause(at(200));
    // All is there before the clock continues.
    for frame in 1..10 {
        bench.arrive(at(700), frame, 0);
    }
    bench.until(at(1_200));
    bench.playout.resume(at(1_200));
    bench.work();
    bench.until(at(5_000));
    // Stalled from 140 ms on, without the pause.
    assert_eq!((bench.of("stall"), bench.of("resume")), (vec![(140, Some(1.0))], vec![(1_200, Some(0.06))]));
    assert_eq!(bench.of("frame_shown")[1], (1_200, Some(1.0)));
}

/// Frames of a server that sends at the media's pace: a frame is due 100 ms after its arrival in time.
const DELAYED: Manner = Manner {
    start: Start::Delayed,
    prebuffer: Duration::from_millis(100),
    rebuffer: Duration::from_millis(100),
    gathers: Gathers::Whole,
    host_late: HostLate::Forgiven,
    ..DATAGRAMS
};
const DELAYED_STREAM: Manner = Manner { stalls: true, in_order: true, ..DELAYED };

#[test]
fn a_frame_whole_after_it_was_due_is_late_however_late_the_timer() {
    let mut bench = Bench::new(DELAYED, 1, Some(400), true);
    bench.arrive(at(0), 0, 0);
    bench.until(at(100));
    // Frame 1 was due at 140 ms; the host does not look before 155 ms.
    let place = Place { sequence: 1, timestamp: 7 + 3600, first: true, last: true };
    bench.playout.arrived(at(150), 0, place, None, &mut bench.outbox);
    bench.now = at(155);
    bench.work();
    // Frame 2 is due at 180 ms and is whole only after the player has skipped it.
    bench.arrive(at(500), 2, 0);
    assert_eq!(bench.of("frame_shown"), [(100, Some(0.0))]);
    assert_eq!(bench.of("frame_late"), [(150, Some(0.01)), (500, Some(0.32))]);
    assert!(bench.of("playout_start").is_empty() && bench.of("buffer").is_empty());
}

#[test]
fn a_second_after_it_was_due_a_frame_is_incomplete() {
    let mut bench = Bench::new(DELAYED, 1, Some(400), true);
    bench.arrive(at(0), 0, 0);
    bench.until(at(1_141));
    bench.arrive(at(1_142), 1, 0);
    assert!(bench.of("frame_incomplete").contains(&(140, None)));
    assert!(bench.of("frame_late").is_empty());
}

#[test]
fn what_was_sent_before_the_first_packet_that_came_was_due_before_it() {
    let mut bench = Bench::new(DELAYED, 1, Some(400), true);
    for frame in 3..10 {
        bench.arrive(at(40 * u64::from(frame)), frame, 0);
    }
    bench.until(at(5_000));
    assert_eq!(bench.of("frame_incomplete"), [(100, None), (140, None), (180, None)]);
    assert_eq!(bench.of("frame_shown")[0], (220, Some(3.0)));
    assert_eq!(bench.of(MEDIA_END), [(1_180, Some(7.0))]);
}

#[test]
fn a_stall_ends_when_as_much_is_whole_as_was_waited_for_at_the_start_or_all_is_there() {
    let mut bench = Bench::new(DELAYED_STREAM, 2, Some(400), true);
    let frame = |bench: &mut Bench, frame, first, second| {
        bench.arrive(at(first), frame, 0);
        bench.arrive(at(second), frame, 1);
    };
    frame(&mut bench, 0, 0, 0);
    // 100 ms are three frames of 40 ms, all of each.
    frame(&mut bench, 1, 305, 310);
    frame(&mut bench, 2, 315, 320);
    frame(&mut bench, 3, 325, 330);
    assert_eq!((bench.of("stall"), bench.of("resume")), (vec![(140, Some(1.0))], vec![(330, Some(0.19))]));
    assert_eq!(bench.of("frame_shown"), [(100, Some(0.0)), (330, Some(1.0))]);
    // Three are shown by 410 ms; frame 4 is late, and the stream ends with it.
    frame(&mut bench, 4, 499, 500);
    bench.playout.cut(Duration::ZERO);
    bench.playout.nothing_more("the server closed the stream");
    bench.work();
    bench.until(at(5_000));
    assert_eq!(bench.of("frame_shown").last(), Some(&(500, Some(4.0))));
    assert_eq!(bench.of(MEDIA_END), [(500, Some(5.0))]);
}

#[test]
fn media_that_is_cut_short_ends_there_and_not_before_what_came() {
    // Frame 4 never arrives, and is given up a second after it was due.
    for (cut, incomplete, end) in [(200, 1, 1_260), (80, 0, 220)] {
        let mut bench = Bench::new(DELAYED, 1, Some(400), true);
        for frame in 0..4 {
            bench.arrive(at(40 * u64::from(frame)), frame, 0);
        }
        bench.playout.cut(ms(cut));
        bench.until(at(5_000));
        assert_eq!(bench.of("frame_incomplete").len(), incomplete);
        assert_eq!(bench.of(MEDIA_END), [(end, Some(4.0))]);
    }
}

#[test]
fn after_a_silence_of_minutes_what_comes_is_the_medias_still() {
    let mut bench = Bench::new(DELAYED, 1, Some(1_000_000), true);
    bench.arrive(at(0), 0, 0);
    bench.arrive(at(400_000), 10_000, 0);
    bench.until(at(500_000));
    assert_eq!(bench.of("frame_shown"), [(100, Some(0.0)), (400_100, Some(10_000.0))]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn every_frame_has_one_fate_and_no_timer_is_past(
        frames in 1u32..60,
        packets in 1u32..4,
        delays in prop::collection::vec((0u32..10, 0u64..3_000), 1..200),
        stalls: bool,
        delayed: bool,
        whole: bool,
        prebuffer in 0u64..1_000,
        pace in 5u64..80,
        end_known: bool,
        pause in prop::option::of((0u64..3_000, 1u64..2_000)),
    ) {
        let start = if delayed { Start::Delayed } else { Start::Gathered };
        let gathers = if whole { Gathers::Whole } else { Gathers::Begun };
        let (prebuffer, rebuffer) = (ms(prebuffer), ms(prebuffer));
        let manner = Manner { start, prebuffer, rebuffer, gathers, host_late: HostLate::Counts, stalls, in_order: false };
        let end = end_known.then_some(u64::from(frames) * 40);
        let mut bench = Bench::new(manner, packets, end, true);
        // One in ten is lost, two in ten come late.
        let mut arrivals: Vec<(u64, u32, u32)> = Vec::new();
        let mut fate = delays.iter().cycle();
        for frame in 0..frames {
            for packet in 0..packets {
                let (luck, delay) = *fate.next().unwrap();
                if luck > 0 {
                    let delay = if luck < 3 { delay } else { 10 };
                    arrivals.push((u64::from(frame) * pace + delay, frame, packet));
                }
            }
        }
        arrivals.sort_unstable();
        let newest = arrivals.iter().map(|a| a.1).max();
        let mut pause = pause;
        for (time, frame, packet) in arrivals {
            if let Some((from, long)) = pause.filter(|(from, _)| *from <= time) {
                bench.until(at(from));
                bench.playout.pause(at(from));
                bench.until(at(from + long));
                bench.playout.resume(at(from + long));
                bench.work();
                pause = None;
            }
            let time = at(time).max(bench.now);
            bench.arrive(time, frame, packet);
            prop_assert!(bench.playout.buffer(time) <= ms(u64::from(frames) * 40));
        }
        bench.playout.nothing_more("the server said goodbye");
        bench.work();
        bench.until(at(200_000));
        prop_assert_eq!(bench.of(MEDIA_END).len(), 1);
        let mut stats: BTreeMap<u64, u32> = BTreeMap::new();
        for event in &bench.said {
            let number = match event.name.as_ref() {
                "frame_shown" => event.value.unwrap() as u64,
                "frame_late" | "frame_incomplete" => {
                    let digits = event.reason["frame ".len()..].split(':').next().unwrap();
                    digits.parse().unwrap()
                }
                _ => continue,
            };
            *stats.entry(number).or_default() += 1;
        }
        prop_assert!(stats.values().all(|&count| count == 1), "{:?}", stats);
        // Up to the newest received; the last second's missing ones too, where the end is known.
        let known = newest.map_or(0, |newest| u64::from(newest) + 1);
        prop_assert!((known..=u64::from(frames)).contains(&(stats.len() as u64)), "{known} {frames} {:?}", stats);
        let counted = bench.playout.stats();
        prop_assert_eq!(counted.shown + counted.late + counted.incomplete, stats.len() as u64);
        prop_assert_eq!(bench.of("stall").len(), bench.of("resume").len());
        prop_assert!(stalls || bench.of("stall").is_empty());
    }
}
