//! A whole flow over a simple pipe.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use streamgauge_base::{Chunk, Duration, Event, Instant};
use streamgauge_wire::http::EntityTag;

use super::consumer::window::{Retransmission, WindowControl};
use super::spec::Fragmentation;
use super::*;
use crate::dash::origin::Presentation;
use crate::http::{Busy, Library, Resource};
use crate::media::{ClipSpec, LevelSpec};
use crate::outbox::MEDIA_END;
use crate::testing::{Pair, Pipe};

/// 25 frames a second of equal size, a key frame each 2 s.
fn level(bit_rate_bps: u64, seconds: u64) -> LevelSpec {
    let clip = ClipSpec {
        name: format!("{bit_rate_bps}"),
        duration: Duration::from_secs(seconds),
        frame_interval: Duration::from_millis(40),
        frame_bytes: vec![(bit_rate_bps / 200) as u32; 50].into(),
        key_frames: vec![0].into(),
        ..ClipSpec::default()
    };
    LevelSpec { bit_rate_bps, size: (320, 180), clip }
}

fn spec(preset: CcnPreset, rates: &[u64], seconds: u64) -> CcnSpec {
    let video = rates.iter().map(|rate| level(*rate, seconds)).collect();
    let ladder =
        LadderSpec { name: "ladder".into(), segment: Duration::from_millis(2_000), video, audio: None };
    CcnSpec { ladder, network: CcnSettings::of(preset), ..CcnSpec::usual() }
}

fn play(spec: &CcnSpec, pipe: Pipe, until: u64) -> Vec<Event> {
    let machines = spec.machines("video", 1).unwrap();
    let stream_bytes_per_s = spec.tcp.is_some().then_some(500_000);
    let pipe = Pipe { stream_bytes_per_s, begins_with_stream: false, ..pipe };
    let mut pair = Pair::new(machines.server, machines.player, pipe);
    for channel in &machines.channels {
        if let Carrier::Listener { port, .. } = channel.carrier {
            pair.listens(channel.id, port);
        }
    }
    pair.run(Instant::ZERO + Duration::from_secs(until));
    pair.events
}

fn values(events: &[Event], name: &str) -> Vec<f64> {
    events.iter().filter(|event| event.name == name).filter_map(|event| event.value).collect()
}

fn shows_all(events: &[Event], frames: usize) {
    let shown = values(events, "frame_shown");
    let ends: Vec<&Event> = events.iter().filter(|event| event.name == MEDIA_END).collect();
    assert_eq!(ends.len(), 1, "{ends:?}");
    assert_eq!((shown.len(), &*ends[0].reason), (frames, "played to the end"));
    assert!(shown.iter().zip(0..).all(|(shown, number)| *shown == f64::from(number)));
}

#[test]
fn every_preset_plays_to_the_end_over_udp_and_tcp() {
    for (_, preset) in CcnPreset::NAMED {
        for tcp in [None, Some(TcpSpec::default())] {
            let spec = CcnSpec { tcp, ..spec(preset, &[200_000, 800_000], 20) };
            let events = play(&spec, Pipe::default(), 60);
            shows_all(&events, 500);
            assert!(values(&events, "interest_timeout").is_empty() && values(&events, "stall").is_empty());
            assert!(values(&events, "object_failed").is_empty() && values(&events, "face_down").is_empty());
        }
    }
}

#[test]
fn byte_ranges_and_playlists_are_played_where_metadata_tells_sizes() {
    for format in crate::dash::FORMATS {
        let mut spec = spec(CcnPreset::NdnToday, &[200_000, 800_000], 20);
        spec.player.format = format.into();
        shows_all(&play(&spec, Pipe::default(), 60), 500);
    }
    let mut spec = spec(CcnPreset::CcnxPaper, &[200_000], 20);
    spec.player.format = "hls-ranges".into();
    let (key, what) = spec.machines("video", 1).err().unwrap();
    assert!(key == "app.ccn.player.format" && what.contains("metadata: on"), "{key} {what}");
}

#[test]
fn a_player_that_tells_of_itself_is_heard_by_the_proxy() {
    let mut spec = spec(CcnPreset::NdnToday, &[400_000], 20);
    spec.player.cmcd = true;
    let events = play(&spec, Pipe::default(), 60);
    shows_all(&events, 500);
    let told: Vec<&Event> = events.iter().filter(|event| event.name == "cmcd").collect();
    let asked = values(&events, "http_request").len();
    assert!(
        told.len() == asked && told.iter().any(|event| event.reason.contains("br=400")),
        "{asked} {told:?}"
    );
}

#[test]
fn a_loss_costs_the_paper_s_player_a_lifetime_and_others_less() {
    let one_in_fifty: fn(u64) -> bool = |datagram| datagram % 50 == 49;
    let took = |preset| {
        let spec = spec(preset, &[400_000], 20);
        let events = play(&spec, Pipe { drop: one_in_fifty, ..Pipe::default() }, 400);
        shows_all(&events, 500);
        assert!(!values(&events, "interest_timeout").is_empty());
        values(&events, "resume").iter().sum::<f64>()
    };
    let (paper, later) = (took(CcnPreset::CcnxPaper), took(CcnPreset::Ccnx08));
    // 250 Data, with five lost: each holds up all behind it.
    assert!(paper > 5.0, "{paper} {later}");
    assert!(later < 0.5, "{paper} {later}");
}

#[test]
fn an_object_that_never_comes_whole_is_given_up() {
    let mut spec = spec(CcnPreset::NdnToday, &[400_000], 20);
    spec.player.tries = 2;
    let events = play(&spec, Pipe { drop: |datagram| datagram > 100, ..Pipe::default() }, 200);
    assert!(!values(&events, "object_failed").is_empty());
    let end = events.iter().find(|event| event.name == MEDIA_END).unwrap();
    assert!(end.reason.contains("did not come") && end.reason.contains("504"), "{}", end.reason);
}

/// A library with one file that cannot be read to its end, the first time.
struct Torn(Presentation, Arc<AtomicBool>);

struct TornFile(Arc<dyn Resource>, Arc<AtomicBool>);

impl Library for Torn {
    fn find(&self, path: &str, now: Instant) -> Result<Option<Arc<dyn Resource>>, Busy> {
        let found = self.0.find(path, now)?;
        let is_torn = path.ends_with("/3.m4s");
        Ok(found.map(|file| {
            if is_torn { Arc::new(TornFile(file, self.1.clone())) as Arc<dyn Resource> } else { file }
        }))
    }
}

impl Resource for TornFile {
    fn length(&self) -> u64 {
        self.0.length()
    }
    fn tag(&self) -> EntityTag {
        self.0.tag()
    }
    fn content_type(&self) -> &str {
        self.0.content_type()
    }
    fn read(&self, first: u64, most: u64) -> Result<Chunk, String> {
        if first >= 16_000 && !self.1.swap(true, Ordering::Relaxed) {
            return Err("the disk is gone".into());
        }
        self.0.read(first, most)
    }
}

#[test]
fn an_answer_that_cannot_be_ended_is_broken_off_and_the_segment_asked_for_again() {
    for metadata in [true, false] {
        let mut spec = spec(CcnPreset::NdnToday, &[400_000], 20);
        // In order: the answer has then begun when the refusal arrives.
        (spec.network.metadata, spec.network.window_control) = (metadata, WindowControl::InOrder);
        (spec.network.interest_window, spec.network.freshness) = (1, Duration::ZERO);
        let machines = spec.machines("video", 1).unwrap();
        let presentation = presented("ladder", &spec.ladder, &OriginSettings::default()).unwrap();
        let torn = Arc::new(Torn(presentation, Arc::default()));
        let prefix = "/clip".parse().unwrap();
        let face = Face::udp(FACE, Fragmentation::Ndnlp);
        let server = ProducerHost::new(prefix, torn, &spec.network, face);
        let pipe = Pipe { begins_with_stream: false, ..Pipe::default() };
        let mut pair = Pair::new(Box::new(server), machines.player, pipe);
        pair.run(Instant::ZERO + Duration::from_secs(60));
        shows_all(&pair.events, 500);
        let failures: Vec<&Event> = pair.events.iter().filter(|event| event.name == "http_failure").collect();
        assert_eq!(failures.len(), 1, "{failures:?}");
        assert!(failures[0].reason.contains("reset; 16000 B of it came"), "{}", failures[0].reason);
    }
}

#[test]
fn more_levels_than_a_ladder_may_have_are_refused() {
    let many: Vec<u64> = (1..=65).map(|level| level * 100_000).collect();
    let many = spec(CcnPreset::NdnToday, &many, 4);
    assert_eq!(many.machines("video", 1).err().unwrap().0, "app.ccn.ladder.video");
}

#[test]
fn the_same_is_the_same_again_and_controllers_find_a_window() {
    for (_, window_control) in WindowControl::NAMED {
        let mut spec = spec(CcnPreset::CcnxPaper, &[400_000, 1_500_000], 20);
        spec.network.window_control = window_control;
        spec.network.interest_window = 64;
        spec.network.retransmission = Retransmission::Rto;
        let pipe = || Pipe { drop: |datagram| datagram % 97 == 96, ..Pipe::default() };
        let events = play(&spec, pipe(), 200);
        shows_all(&events, 500);
        assert_eq!(events, play(&spec, pipe(), 200), "{window_control:?}");
        let windows = values(&events, "interest_window");
        assert!(windows.iter().all(|window| (1.0..=64.0).contains(window)), "{window_control:?} {windows:?}");
        let is_given = matches!(window_control, WindowControl::InOrder | WindowControl::Fixed);
        let widths: BTreeSet<u64> = windows.iter().map(|window| *window as u64).collect();
        assert_eq!(widths.len() == 1, is_given, "{window_control:?} {windows:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn whatever_is_lost_everything_is_shown_in_the_end(
        seed: u64, control in 0usize..6, window in 1u32..40, chunk in 500u32..8000, rto: bool, cut: bool,
        metadata: bool, store in prop_oneof![Just(0u64), Just(1 << 20)],
    ) {
        let mut spec = spec(CcnPreset::CcnxPaper, &[150_000, 300_000], 8);
        spec.network.window_control = WindowControl::NAMED[control].1;
        (spec.network.interest_window, spec.network.chunk_bytes, spec.network.metadata) = (window, chunk, metadata);
        spec.network.interest_lifetime = Duration::from_millis(300);
        spec.network.store_bytes = store;
        if rto { spec.network.retransmission = Retransmission::Rto }
        if cut { spec.network.fragmentation = Fragmentation::Ndnlp }
        let machines = spec.machines("video", seed).unwrap();
        let pipe = Pipe { drop: |datagram| datagram % 11 == 7, begins_with_stream: false, ..Pipe::default() };
        let mut pair = Pair::new(machines.server, machines.player, pipe);
        pair.run(Instant::ZERO + Duration::from_secs(300));
        shows_all(&pair.events, 200);
    }
}
