use streamgauge_base::{Duration, Instant};
use streamgauge_hosted::webrtc;

use super::*;
use crate::app::Input;
use crate::testing::{Pair, Pipe};

fn pair(spec: &WebRtcSpec, seed: u64, pipe: Pipe) -> Pair {
    let made = spec.machines("call", seed).unwrap();
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

#[test]
fn the_named_version_and_bounds_are_those_of_the_library() {
    let hosted = WebRtcSpec::HOSTED.unwrap();
    assert_eq!((hosted.version, hosted.is_built), (webrtc::VERSION, true));
    let bounds = |what: &str| {
        let spec = WebRtcSpec { datagram: what.parse().unwrap(), ..WebRtcSpec::usual() };
        spec.machines("call", 1).is_ok()
    };
    assert!(bounds(&webrtc::LEAST_DATAGRAM_BYTES.to_string()));
    assert!(!bounds(&(webrtc::LEAST_DATAGRAM_BYTES - 1).to_string()));
    assert!(!bounds(&(webrtc::MOST_DATAGRAM_BYTES + 1).to_string()));
    assert_eq!(WebRtcSpec::usual().datagram, webrtc::USUAL_DATAGRAM_BYTES);
}

#[test]
fn on_a_path_without_bounds_it_reaches_the_most_and_shows_every_frame() {
    let mut pair = pair(&WebRtcSpec::usual(), 1, Pipe::default());
    pair.at(Duration::from_secs(30), Input::Stop);
    pair.run(at(32));
    let rate = last(&pair, "encoder_rate");
    assert!(rate > 1.4e6, "{rate}");
    let shown = count(&pair, "frame_shown");
    assert!((880..=900).contains(&shown), "{shown} frames shown");
    assert!(last(&pair, "live_latency") < 0.1, "{}", last(&pair, "live_latency"));
    let others = ["frame_incomplete", "stall", "call_failed"].map(|name| count(&pair, name));
    assert_eq!((others, count(&pair, "connected"), count(&pair, "media_end")), ([0; 3], 1, 2));
}

#[test]
fn a_larger_share_of_the_estimate_makes_a_larger_first_rate() {
    let first = |share| {
        let mut pair = pair(&WebRtcSpec { encoder_share: share, ..WebRtcSpec::usual() }, 1, Pipe::default());
        pair.run(at(1));
        pair.events.iter().find(|event| event.name == "encoder_rate").and_then(|event| event.value).unwrap()
    };
    assert_eq!((first(0.5), first(0.9)), (150e3, 270e3));
}

#[test]
fn the_same_seed_is_the_same_call_and_another_is_not() {
    let run = |seed, phase| {
        let spec = WebRtcSpec { clock_phase: phase, ..WebRtcSpec::usual() };
        let pipe = Pipe { drop: |number| number % 40 == 39, ..Pipe::default() };
        let mut pair = pair(&spec, seed, pipe);
        pair.run(at(5));
        pair.sent.iter().map(|sent| (sent.at, sent.datagram.len())).collect::<Vec<_>>()
    };
    assert_eq!(run(1, None), run(1, None));
    assert_ne!(run(1, None), run(2, None));
}

#[test]
fn a_pause_sends_no_frame_and_a_key_frame_ends_it() {
    let mut pair = pair(&WebRtcSpec::usual(), 1, Pipe::default());
    pair.at(Duration::from_secs(5), Input::Pause);
    pair.at(Duration::from_secs(8), Input::Resume);
    pair.at(Duration::from_secs(12), Input::Stop);
    pair.run(at(14));
    let inside = |from: u64, to: u64| {
        let shown = pair.events.iter().filter(|event| event.name == "frame_shown");
        shown.filter(|event| at(from) < event.at && event.at < at(to)).count()
    };
    assert_eq!(inside(6, 8), 0);
    assert!(inside(8, 12) > 100, "{}", inside(8, 12));
    assert_eq!(count(&pair, "key_frame"), 2);
}

#[test]
fn refuses_what_it_cannot_send() {
    for (bad, key) in [
        (WebRtcSpec { datagram: 100, ..WebRtcSpec::usual() }, "datagram"),
        (WebRtcSpec { frame_rate: 0.0, ..WebRtcSpec::usual() }, "frame_rate"),
        (WebRtcSpec { encoder_share: 2.0, ..WebRtcSpec::usual() }, "encoder_share"),
        (WebRtcSpec { most_rate_bps: 1_000, ..WebRtcSpec::usual() }, "floor"),
    ] {
        let refusal = bad.machines("call", 1).err().unwrap();
        assert!(refusal.0.ends_with(key), "{refusal:?}");
    }
}
