//! Server and player together.

mod hostile;
mod levels;

use streamgauge_base::{Duration, Event, Instant};
use streamgauge_wire::rdt::{self, Packet};

use super::*;
use crate::app::Input;
use crate::media::{ClipSpec, LevelSpec};
use crate::outbox::MEDIA_END;
use crate::testing::{Pair, Pipe};

const SECONDS: u64 = 60;

/// Makes a plan of a minute at ten frames a second, a key frame each second, at 20, 60 and 150 kbit/s, with sound of 8
/// kbit/s.
fn spec(transport: MediaTransport) -> RealVideoSpec {
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
    let sound = LevelSpec { bit_rate_bps: 8_000, size: (0, 0), clip: clip(20, Duration::from_millis(20), 1) };
    RealVideoSpec {
        ladder: LadderSpec {
            name: "test".into(),
            segment: Duration::from_secs(1),
            video: [20_000, 60_000, 150_000].map(level).into(),
            audio: Some(sound),
        },
        player: PlayerSettings { transport, ..PlayerSettings::of(PlayerKind::RealPlayer8) },
        ..RealVideoSpec::usual()
    }
}

fn pipe() -> Pipe {
    Pipe { stream_bytes_per_s: Some(1_000_000), ..Pipe::default() }
}

fn run(spec: &RealVideoSpec, pipe: Pipe, actions: &[(u64, Input<'static>)]) -> Pair {
    let made = spec.machines("video", 1).unwrap();
    let mut pair = Pair::new(made.server, made.player, pipe);
    for (ms, input) in actions {
        pair.at(Duration::from_millis(*ms), *input);
    }
    pair.run(Instant::from_nanos(300_000_000_000));
    pair
}

fn named<'a>(pair: &'a Pair, name: &str) -> Vec<&'a Event> {
    pair.events.iter().filter(|event| event.name == name).collect()
}

fn sum(pair: &Pair, name: &str) -> f64 {
    named(pair, name).iter().filter_map(|event| event.value).sum()
}

fn end(pair: &Pair) -> (f64, String) {
    let ends = named(pair, MEDIA_END);
    assert_eq!(ends.len(), 1, "{ends:?}");
    (ends[0].value.unwrap(), ends[0].reason.to_string())
}

/// Returns the stream, the rule and the time of each packet of media that the server sent over UDP.
fn sent(pair: &Pair) -> Vec<(u16, u16, u32)> {
    let mut found = Vec::new();
    for datagram in &pair.sent {
        for packet in rdt::parse(&datagram.datagram).map(Result::unwrap) {
            if let Packet::Data(data) = packet {
                found.push((data.stream, data.rule, data.timestamp_ms));
            }
        }
    }
    found
}

#[test]
fn all_of_the_highest_level_is_shown_where_nothing_is_in_the_way() {
    for transport in [MediaTransport::Udp, MediaTransport::Tcp] {
        let pair = run(&spec(transport), pipe(), &[]);
        let (shown, why) = end(&pair);
        assert_eq!(shown, (SECONDS * 10) as f64, "{transport:?}: {why}");
        let levels: Vec<_> = named(&pair, "level_changed").iter().map(|event| event.value.unwrap()).collect();
        assert_eq!(levels, [158_000.0], "{transport:?}");
        for nothing in ["stall", "frame_incomplete", "frame_late", "packets_missed", "session_timeout"] {
            assert!(named(&pair, nothing).is_empty(), "{transport:?}: {nothing}");
        }
    }
}

#[test]
fn the_buffer_is_filled_faster_than_it_is_played_and_then_slower() {
    let pair = run(&spec(MediaTransport::Udp), pipe(), &[]);
    let asked: Vec<_> = named(&pair, "delivery_asked").iter().map(|event| event.value.unwrap()).collect();
    let most = asked.iter().copied().fold(0.0, f64::max);
    assert!(most > 1.5 * 158_000.0 && most <= 4.0 * 158_000.0, "{asked:?}");
    assert!(asked.iter().any(|rate| (rate - 0.75 * 158_000.0).abs() < 1.0), "{asked:?}");
    let buffer = named(&pair, "buffer").iter().map(|event| event.value.unwrap()).fold(0.0, f64::max);
    assert!((20.0..26.0).contains(&buffer), "{buffer}");
}

#[test]
fn what_is_lost_is_asked_for_once_and_comes() {
    let lossy = Pipe { drop: |n| n % 40 == 7, ..pipe() };
    let pair = run(&spec(MediaTransport::Udp), lossy.clone(), &[]);
    let (missed, again) = (sum(&pair, "packets_missed"), named(&pair, "packet_resent").len() as f64);
    assert!(missed > 20.0 && again <= missed, "{missed} missed, {again} sent again");
    // A packet lost a second time is not sent a third.
    assert!(named(&pair, "frame_incomplete").len() <= 2, "{:?}", named(&pair, "frame_incomplete"));

    let mut deaf = spec(MediaTransport::Udp);
    deaf.player.retransmission = false;
    let pair = run(&deaf, lossy, &[]);
    assert!(named(&pair, "packet_resent").is_empty());
    assert!(end(&pair).0 < (SECONDS * 10) as f64 - 10.0);
}

#[test]
fn a_level_changes_at_key_frames_alone() {
    // Every third datagram is lost: heavy.
    let pair = run(&spec(MediaTransport::Udp), Pipe { drop: |n| n % 3 == 0, ..pipe() }, &[]);
    assert!(named(&pair, "level_changed").len() > 1);
    let mut taken = None;
    for (_, rule, at_ms) in sent(&pair).into_iter().filter(|(stream, ..)| *stream == 0) {
        if taken.is_some_and(|taken| taken != rule / 2) && at_ms % 1000 != 0 {
            // Sent again: of the level before.
            continue;
        }
        if taken != Some(rule / 2) {
            assert_eq!((rule % 2, at_ms % 1000), (0, 0), "a new level begins with a key frame");
        }
        taken = Some(rule / 2);
    }
    assert_eq!(taken, Some(0), "the lowest whole level: loss goes no further");
}

/// Returns the milliseconds before the words, and the text before them.
fn told_at(reason: &str) -> (String, u32) {
    let told = reason.strip_suffix(" s of the media").expect(reason);
    let (what, seconds) = told.rsplit_once(' ').unwrap();
    (what.to_owned(), (seconds.parse::<f64>().unwrap() * 1000.0).round() as u32)
}

#[test]
fn of_each_picture_it_is_told_when_it_is_due_and_in_which_encoding_it_was_sent() {
    let heavy = Pipe { drop: |n| n % 3 == 0, ..pipe() };
    for (transport, pipe) in [(MediaTransport::Udp, heavy), (MediaTransport::Tcp, pipe())] {
        let pair = run(&spec(transport), pipe, &[]);
        let told: Vec<(u16, u32)> = named(&pair, "level_sent")
            .iter()
            .map(|event| told_at(&event.reason))
            .map(|(what, at_ms)| {
                let whole = what.strip_prefix("key frames of ").unwrap_or(&what);
                let encoding = whole.strip_prefix("encoding ").and_then(|what| what.strip_suffix(" from"));
                (encoding.unwrap().parse().unwrap(), at_ms)
            })
            .collect();
        assert!(told.is_sorted_by_key(|(_, at_ms)| *at_ms), "{told:?}");
        for (_, rule, at_ms) in sent(&pair).into_iter().filter(|(stream, ..)| *stream == 0) {
            let place = told.partition_point(|(_, from_ms)| *from_ms <= at_ms);
            assert_eq!(rule / 2, told[place - 1].0, "at {at_ms} ms: {told:?}");
        }
        let shown: Vec<_> = named(&pair, "frame_shown").iter().map(|event| told_at(&event.reason)).collect();
        assert!(shown.iter().all(|(what, at_ms)| what == "at" && at_ms % 100 == 0));
        assert!(shown.windows(2).all(|pair| pair[0].1 < pair[1].1), "{shown:?}");
        let all = shown.len() as u64 == SECONDS * 10;
        assert_eq!(all, transport == MediaTransport::Tcp, "{} of all", shown.len());
    }
}

#[test]
fn a_stream_that_takes_little_brings_the_level_down_to_it() {
    let slow = Pipe { stream_bytes_per_s: Some(6_000), ..pipe() };
    let mut tcp = spec(MediaTransport::Tcp);
    tcp.tcp.send_buffer = Some(16 * 1024);
    let pair = run(&tcp, slow, &[]);
    let levels: Vec<_> = named(&pair, "level_changed").iter().map(|event| event.value.unwrap()).collect();
    assert!(levels.len() > 1 && levels[levels.len() - 1] < 48_000.0, "{levels:?}");
    let delays: Vec<_> = named(&pair, "delay_excess").iter().map(|event| event.value.unwrap()).collect();
    assert!(delays.iter().any(|excess| *excess > 5.0), "{delays:?}");
}

#[test]
fn a_pause_holds_the_server_and_a_stop_ends_it() {
    let pair = run(&spec(MediaTransport::Udp), pipe(), &[(10_000, Input::Pause), (30_000, Input::Resume)]);
    let held = pair.sent.iter().filter(|sent| {
        let at = sent.at.saturating_since(Instant::ZERO);
        (Duration::from_millis(10_500)..Duration::from_millis(30_000)).contains(&at)
    });
    assert_eq!(held.count(), 0);
    assert_eq!(end(&pair).0, (SECONDS * 10) as f64);
    let pair = run(&spec(MediaTransport::Tcp), pipe(), &[(10_000, Input::Stop)]);
    assert_eq!(end(&pair).1, "stopped");
}

#[test]
fn a_plan_that_cannot_be_played_is_refused_by_its_key() {
    let refused = |change: fn(&mut RealVideoSpec)| {
        let mut spec = spec(MediaTransport::Udp);
        change(&mut spec);
        spec.machines("video", 1).err().map_or_else(String::new, |(key, _)| key.into_owned())
    };
    assert_eq!(refused(|_| {}), "");
    assert_eq!(refused(|spec| spec.server.packet_bytes = 10), "app.realvideo.server.packet_bytes");
    assert_eq!(refused(|spec| spec.player.enough_share = 0.0), "app.realvideo.player.enough_share");
    assert_eq!(refused(|spec| spec.ladder.video.clear()), "app.realvideo.ladder.video");
    assert_eq!(
        refused(|spec| spec.ladder.video =
            (1..40).map(|n| LevelSpec { bit_rate_bps: n * 1000, ..spec.ladder.video[0].clone() }).collect()),
        "app.realvideo.ladder.video"
    );
}

/// 2 s of RealVideo at ten frames a second and of sound, as ffmpeg writes it.
const FILE: &[u8] = include_bytes!("../../../wire/src/rm/tests/whole.rm");

fn object_of(file: &[u8]) -> Result<Object, String> {
    file::object_of("whole.rm", &[("whole.rm".into(), file.to_vec())])
}

#[test]
fn a_file_is_played_whole_over_both() {
    let object = Arc::new(object_of(FILE).unwrap());
    let frames = object.streams[0].encodings[0].count();
    assert_eq!((object.streams.len(), frames), (2, 20));
    for transport in [MediaTransport::Udp, MediaTransport::Tcp] {
        let shelf = Arc::new(OneObject(object.clone()));
        let server = RealServer::new(shelf, ServerSettings::of(Preset::RealServer8), "video", 1);
        let settings = PlayerSettings { transport, ..PlayerSettings::of(PlayerKind::RealPlayer8) };
        let player = RealPlayer::new(settings, "rtsp://server/whole.rm");
        let mut pair = Pair::new(Box::new(server), Box::new(player), pipe());
        pair.run(Instant::from_nanos(60_000_000_000));
        assert_eq!(end(&pair).0, frames as f64, "{transport:?}");
    }
}

#[test]
fn over_udp_a_files_frames_go_in_parts_that_give_them_back() {
    let object = object_of(FILE).unwrap();
    let encoding = &object.streams[0].encodings[0];
    let mut stream = server::stream_over_udp(&object);
    let mut assembler = streamgauge_wire::rm::Assembler::default();
    let mut found = Vec::new();
    while let Some(packet) = stream.next(640, None) {
        assert!(packet.payload.len() <= 640);
        found.extend(assembler.push(packet.payload).unwrap());
    }
    assert_eq!(found.len() as u64, encoding.count());
    for (number, frame) in (0..).zip(found) {
        assert_eq!(frame.media, encoding.media(number, encoding.frame(number).unwrap()));
    }
}

#[test]
fn over_tcp_frames_go_whole_and_share_a_packet_only_where_they_are_small() {
    // One packet of many would hold up the sound that is due beside them for the time that the rate needs to send it.
    let object = object_of(FILE).unwrap();
    let encoding = &object.streams[0].encodings[0];
    for limit in [100, 640, 1400] {
        let mut stream = server::stream_over_tcp(&object);
        let mut assembler = streamgauge_wire::rm::Assembler::default();
        let mut number = 0;
        while let Some(packet) = stream.next(limit, None) {
            let bytes = packet.payload.len();
            let frames = assembler.push(packet.payload).unwrap();
            assert!(frames.len() == 1 || frames.len() > 1 && bytes <= limit as usize, "{bytes} B of {limit}");
            for frame in frames {
                assert_eq!(frame.media, encoding.media(number, encoding.frame(number).unwrap()));
                number += 1;
            }
        }
        assert_eq!(number, encoding.count());
    }
}

#[test]
fn what_is_no_realmedia_is_refused_and_what_is_cut_short_plays_to_there() {
    assert!(object_of(b"RIFF....").is_err());
    assert!(object_of(&FILE[..100]).is_err());
    let cut = object_of(&FILE[..FILE.len() * 2 / 3]).unwrap();
    assert!((1..20).contains(&cut.streams[0].encodings[0].count()));
}
