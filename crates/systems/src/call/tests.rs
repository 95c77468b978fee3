use streamgauge_base::{Duration, Event, Instant};

use super::*;
use crate::app::{App, Input, Io};
use crate::testing::{Pair, Pipe};

/// A receiver that never sends anything.
struct Mute;

impl App for Mute {
    fn handle(&mut self, _: Instant, _: Input<'_>, _: &mut dyn Io) {}
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}

fn spec(controller: &str) -> CallSpec {
    CallSpec { controller: controller.into(), ..CallSpec::usual() }
}

fn pair(spec: &CallSpec, pipe: Pipe) -> Pair {
    let made = spec.machines("call", 1).unwrap();
    let mut pair = Pair::new(made.server, made.player, pipe);
    pair.begins_with(&made.channels);
    pair
}

fn at(s: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(s)
}

fn count(pair: &Pair, name: &str) -> usize {
    pair.events.iter().filter(|event| event.name == name).count()
}

fn last(pair: &Pair, name: &str) -> f64 {
    pair.events.iter().rev().find(|event| event.name == name).and_then(|event| event.value).unwrap()
}

fn sum(pair: &Pair, name: &str) -> f64 {
    pair.events.iter().filter(|event| event.name == name).filter_map(|event| event.value).sum()
}

#[test]
fn on_a_path_without_bounds_every_controller_reaches_the_most_and_every_frame_is_shown() {
    for controller in ["gcc", "gcc-draft", "nada", "scream-v2"] {
        let mut pair = pair(&spec(controller), Pipe::default());
        pair.run(at(40));
        let rate = last(&pair, "encoder_rate");
        assert!(rate > 1.4e6, "{controller}: {rate}");
        let shown = count(&pair, "frame_shown");
        assert!((1_190..=1_200).contains(&shown), "{controller}: {shown} frames shown");
        assert_eq!(count(&pair, "frame_incomplete") + count(&pair, "frame_skipped"), 0, "{controller}");
        assert!(last(&pair, "live_latency") < 0.1, "{controller}: {}", last(&pair, "live_latency"));
    }
}

#[test]
fn what_never_moves_stays_at_the_start_rate() {
    let mut pair = pair(&spec("fixed"), Pipe::default());
    pair.run(at(20));
    assert_eq!(last(&pair, "estimate"), 300_000.0);
    let rate = last(&pair, "encoder_rate");
    assert!((270e3..300e3).contains(&rate), "headers are left out: {rate}");
}

#[test]
fn what_is_lost_is_sent_again() {
    let pipe = Pipe { drop: |number| number % 40 == 39, ..Pipe::default() };
    let mut pair = pair(&spec("fixed"), pipe);
    pair.run(at(20));
    assert!(sum(&pair, "nack") > 10.0 && sum(&pair, "repeated") > 10.0);
    assert_eq!((count(&pair, "frame_incomplete"), sum(&pair, "unrepaired")), (0, 0.0));
    assert_eq!(count(&pair, "key_frame"), 1);
}

#[test]
fn without_repetition_a_key_frame_mends_the_picture() {
    let pipe = Pipe { drop: |number| number % 200 == 199, ..Pipe::default() };
    let mut pair = pair(&CallSpec { retransmission: false, ..spec("fixed") }, pipe);
    pair.run(at(20));
    assert_eq!(sum(&pair, "nack"), 0.0);
    assert!(count(&pair, "key_frame_asked") > 1 && count(&pair, "key_frame") > 2);
    assert!(count(&pair, "frame_incomplete") > 3 && count(&pair, "stall") > 1);
    assert!(count(&pair, "frame_shown") > 450, "{} frames shown", count(&pair, "frame_shown"));
}

#[test]
fn without_reports_the_rate_falls_to_its_floor_if_the_breaker_is_there() {
    for (circuit_breaker, floor) in [(true, true), (false, false)] {
        let spec = CallSpec { start_rate_bps: 1_200_000, circuit_breaker, ..spec("nada") };
        let made = spec.machines("call", 1).unwrap();
        let mut pair = Pair::new(made.server, Box::new(Mute), Pipe::default());
        pair.run(at(20));
        let rate = last(&pair, "encoder_rate");
        assert_eq!(rate < 151e3, floor, "{rate}");
        assert_eq!(count(&pair, "circuit_breaker") > 0, circuit_breaker);
    }
}

#[test]
fn a_pause_sends_nothing_and_a_key_frame_ends_it() {
    let mut pair = pair(&spec("gcc"), Pipe::default());
    pair.at(Duration::from_secs(10), Input::Pause);
    pair.at(Duration::from_secs(15), Input::Resume);
    pair.at(Duration::from_secs(20), Input::Stop);
    pair.run(at(25));
    let inside =
        |from: u64, to: u64| pair.sent.iter().filter(|sent| at(from) < sent.at && sent.at < at(to)).count();
    assert_eq!((inside(10, 15), inside(20, 25)), (0, 0));
    assert!(inside(15, 20) > 300);
    assert_eq!((count(&pair, "key_frame"), count(&pair, "media_end")), (2, 2));
}

#[test]
fn feedback_is_of_the_kind_that_the_controller_needs() {
    // The packet type is 205; its format 15 of transport-wide feedback, 11 of RFC 8888.
    for (controller, format) in [("gcc", 15), ("scream-v2", 11)] {
        let mut pair = pair(&spec(controller), Pipe::default());
        pair.run(at(2));
        let formats: Vec<u8> =
            pair.sent_by_player.iter().map(|sent| sent.datagram.head()[0] & 0x1f).collect();
        assert!(formats.len() > 30 && formats.iter().all(|found| *found == format), "{formats:?}");
    }
}

#[test]
fn the_same_seed_is_the_same_call_and_another_is_not() {
    let run = |seed| {
        let made = spec("gcc").machines("call", seed).unwrap();
        let mut pair = Pair::new(made.server, made.player, Pipe::default());
        pair.begins_with(&made.channels);
        pair.run(at(5));
        pair.sent.iter().map(|sent| (sent.at, sent.datagram.len())).collect::<Vec<_>>()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn refuses_what_it_cannot_send() {
    for (bad, key) in [
        (spec("nobody"), "controller"),
        (CallSpec { max_payload: 10, ..spec("gcc") }, "max_payload"),
        (CallSpec { frame_rate: 0.0, ..spec("gcc") }, "frame_rate"),
        (CallSpec { most_rate_bps: 1_000, ..spec("gcc") }, "floor"),
    ] {
        let refusal = bad.machines("call", 1).err().unwrap();
        assert!(refusal.0.ends_with(key), "{refusal:?}");
    }
}
