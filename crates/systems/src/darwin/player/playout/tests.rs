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

/// 25 frames a second of `packets` packets each, and what was said of them.
struct Bench {
    playout: Playout,
    outbox: Outbox,
    said: Vec<Event>,
    now: Instant,
    packets: u32,
}

impl Bench {
    fn new(manner: Manner, packets: u32, end: Option<u64>, numbered: bool) -> Self {
        let interval = numbered.then(|| ms(40));
        let end = end.map(|end| End { at: ms(end), of_pictures: true });
        let mut playout = Playout::new(manner, &[interval], 0, Instant::ZERO, Duration::ZERO, end);
        playout.anchor(0, Timeline::new(CLOCK, 7, Duration::ZERO));
        Bench { playout, outbox: Outbox::default(), said: Vec::new(), now: Instant::ZERO, packets }
    }

    /// Does what is due until `then`, as a driver would, and looks at what a driver relies on.
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

    fn work(&mut self) {
        self.playout.advance(self.now, &mut self.outbox);
        self.said.extend(std::iter::from_fn(|| self.outbox.next()));
    }

    fn of(&self, name: &str) -> Vec<(u64, Option<f64>)> {
        let named = self.said.iter().filter(|e| e.name == name);
        named.map(|e| (e.at.as_nanos() / 1_000_000, e.value)).collect()
    }
}

const DATAGRAMS: Manner = Manner { prebuffer: Duration::from_millis(200), stalls: false, in_order: false };
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
    assert_eq!(bench.playout.fates().incomplete, 0);
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
        let fates = bench.playout.fates();
        assert_eq!((fates.shown, fates.late + fates.incomplete), (100 - lost, lost));
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
    let fates = bench.playout.fates();
    assert_eq!((fates.shown, fates.late, fates.incomplete), (100, 0, 0));
    assert!(fates.stalls > 5);
    assert_eq!(bench.of("stall").len(), bench.of("resume").len());
    assert_eq!(bench.of(MEDIA_END).len(), 1);
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
    assert_eq!((bench.playout.fates().shown, bench.playout.fates().incomplete), (8, 2));
    assert_eq!(bench.of(MEDIA_END).len(), 1);
}

#[test]
fn a_wrong_frame_rate_does_not_merge_frames() {
    // Frames 20 ms apart, said to be 40 ms apart.
    let mut bench = Bench::new(DATAGRAMS, 1, None, true);
    for frame in 0..50u32 {
        bench.until(at(u64::from(frame)));
        let place = Place { sequence: frame, timestamp: 7 + frame * 1800, first: true, last: true };
        bench.playout.arrived(bench.now, 0, place, None, &mut bench.outbox);
        bench.work();
    }
    bench.playout.nothing_more("end");
    bench.until(at(5_000));
    assert_eq!(bench.playout.fates().shown, 50);
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn every_frame_has_one_fate_and_no_timer_is_past(
        frames in 1u32..60,
        packets in 1u32..4,
        delays in prop::collection::vec((0u32..10, 0u64..3_000), 1..200),
        stalls: bool,
        prebuffer in 0u64..1_000,
        pace in 5u64..80,
        end_known: bool,
        pause in prop::option::of((0u64..3_000, 1u64..2_000)),
    ) {
        let manner = Manner { prebuffer: ms(prebuffer), stalls, in_order: false };
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
        let mut fates: BTreeMap<u64, u32> = BTreeMap::new();
        for event in &bench.said {
            let number = match event.name.as_ref() {
                "frame_shown" => event.value.unwrap() as u64,
                "frame_late" | "frame_incomplete" => {
                    let digits = event.reason["frame ".len()..].split(':').next().unwrap();
                    digits.parse().unwrap()
                }
                _ => continue,
            };
            *fates.entry(number).or_default() += 1;
        }
        prop_assert!(fates.values().all(|&count| count == 1), "{:?}", fates);
        // Up to the newest that came; the last second's missing ones too, where the end is known.
        let known = newest.map_or(0, |newest| u64::from(newest) + 1);
        prop_assert!((known..=u64::from(frames)).contains(&(fates.len() as u64)), "{known} {frames} {:?}", fates);
        let counted = bench.playout.fates();
        prop_assert_eq!(counted.shown + counted.late + counted.incomplete, fates.len() as u64);
        prop_assert_eq!(bench.of("stall").len(), bench.of("resume").len());
        prop_assert!(stalls || bench.of("stall").is_empty());
    }
}
