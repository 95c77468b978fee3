//! The player against our server, end to end.

mod ends;
mod other_servers;

use std::sync::{Arc, Mutex};

use streamgauge_base::{Duration, Event, Instant};
use streamgauge_wire::rtcp::{self, Packet};

use super::*;
use crate::app::ChannelId;
use crate::darwin::DarwinSpec;
use crate::darwin::{DarwinServer, Preset, ServerSettings};
use crate::describe::System;
use crate::media::ClipSpec;
use crate::media::{self, Asset, Bytes, Codec, OneAsset, Unit, UnitKind};
use crate::testing::{Pair, Pipe, Sent};
use streamgauge_plan::TcpSpec;

const FRAMES: usize = 500;

/// Makes a plan of 20 s at 25 frames a second and 280 kbit/s; every tenth frame needs four packets, the rest one.
fn spec(kind: PlayerKind) -> DarwinSpec {
    DarwinSpec {
        clip: ClipSpec {
            name: "test".into(),
            duration: Duration::from_secs(20),
            frame_interval: Duration::from_millis(40),
            frame_bytes: vec![5000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000].into(),
            ..ClipSpec::default()
        },
        server: server_by_the_rules(),
        player: PlayerSettings::of(kind),
        tcp: TcpSpec::default(),
    }
}

/// Returns the public server's rules, without its missed acknowledgements and its repeats.
fn server_by_the_rules() -> ServerSettings {
    ServerSettings { repeats_after_last: true, busy_ack_loss: 0.0, ..ServerSettings::of(Preset::Source) }
}

fn pipe() -> Pipe {
    Pipe { stream_bytes_per_s: Some(1_000_000), ..Pipe::default() }
}

fn run(spec: &DarwinSpec, pipe: Pipe, actions: &[(u64, Input<'static>)]) -> Pair {
    let made = spec.machines("video", 1).unwrap();
    let mut pair = Pair::new(made.server, made.player, pipe);
    for (ms, input) in actions {
        pair.at(Duration::from_millis(*ms), *input);
    }
    pair.run(Instant::from_nanos(90_000_000_000));
    pair
}

fn named<'a>(pair: &'a Pair, name: &str) -> Vec<&'a Event> {
    pair.events.iter().filter(|e| e.name == name).collect()
}

fn end(pair: &Pair) -> (Option<f64>, String) {
    let ends = named(pair, MEDIA_END);
    assert_eq!(ends.len(), 1, "{ends:?}");
    (ends[0].value, ends[0].reason.to_string())
}

/// Returns the RTCP packets of datagrams, with the time of each.
fn control(sent: &[Sent]) -> Vec<(Instant, Packet)> {
    let datagrams = sent.iter().filter(|s| s.channel == ChannelId(2));
    datagrams
        .flat_map(|s| rtcp::parse(s.datagram.head()).map(|p| (s.at, p.unwrap())).collect::<Vec<_>>())
        .collect()
}

fn sequences(sent: &[Sent]) -> Vec<(Instant, u16)> {
    let media = sent.iter().filter(|s| s.channel == ChannelId(1));
    media.map(|s| (s.at, u16::from_be_bytes([s.datagram.head()[2], s.datagram.head()[3]]))).collect()
}

#[test]
fn over_a_clean_path_every_frame_is_shown_and_every_packet_acknowledged_in_time() {
    let pair = run(&spec(PlayerKind::Quicktime), pipe(), &[]);
    assert_eq!(end(&pair), (Some(FRAMES as f64), "all frames were shown or given up".into()));
    for name in ["stall", "frame_late", "frame_incomplete", "rudp_cut", "rudp_retransmit"] {
        assert!(named(&pair, name).is_empty(), "{name}");
    }
    // The server sends at twice the pace: two seconds are there after less than one.
    let start = named(&pair, "playout_start");
    assert_eq!(start.len(), 1);
    assert!((0.1..1.5).contains(&start[0].value.unwrap()), "{start:?}");
    let most = named(&pair, "buffer").iter().filter_map(|e| e.value).fold(0.0, f64::max);
    assert!(most > 4.0, "no overbuffering: {most} s held at most");

    let acks: Vec<(Instant, u16)> = control(&pair.sent_by_player)
        .into_iter()
        .filter_map(|(at, p)| if let Packet::Ack(ack) = p { Some((at, ack)) } else { None })
        .flat_map(|(at, ack)| ack.sequences().map(|s| (at, s)).collect::<Vec<_>>())
        .collect();
    let sent = sequences(&pair.sent);
    assert_eq!(acks.len(), sent.len());
    for ((sent_at, sequence), (acked_at, acked)) in sent.iter().zip(&acks) {
        assert_eq!(sequence, acked);
        // 10 ms on the way; a hint of the server's is 20 to 100 ms.
        assert!(
            *acked_at <= *sent_at + Duration::from_millis(110),
            "{sequence} of {sent_at:?} at {acked_at:?}"
        );
    }
}

#[test]
fn reports_come_at_their_interval_with_what_apples_has() {
    let mut spec = spec(PlayerKind::Quicktime);
    spec.player.overbuffer_window = Some(300_000);
    let pair = run(&spec, pipe(), &[]);
    let reports: Vec<_> = control(&pair.sent_by_player)
        .into_iter()
        .filter_map(|(at, p)| if let Packet::ClientReport(report) = p { Some((at, report)) } else { None })
        .collect();
    assert!((2..=8).contains(&reports.len()), "{}", reports.len());
    assert!(reports.iter().all(|(_, report)| report.overbuffer_window == Some(300_000)));
    let bps = reports[0].1.receive_bps.unwrap();
    assert!((280_000..900_000).contains(&bps), "{bps} bit/s");
    assert_eq!(named(&pair, "jitter").len(), named(&pair, "cumulative_lost").len());
}

#[test]
fn the_plain_player_gets_the_medias_pace_and_sends_no_acknowledgement() {
    let pair = run(&spec(PlayerKind::Vlc), pipe(), &[]);
    assert_eq!(end(&pair).0, Some(FRAMES as f64));
    let ours = control(&pair.sent_by_player);
    assert!(!ours.iter().any(|(_, p)| matches!(p, Packet::Ack(_) | Packet::ClientReport(_))));
    assert!(ours.iter().any(|(_, p)| matches!(p, Packet::ReceiverReport { .. })));
    assert!(matches!(ours.last(), Some((_, Packet::Bye { .. }))), "{:?}", ours.last());
    let start = named(&pair, "playout_start")[0].value.unwrap();
    assert!(start < 1.2, "{start}");
}

#[test]
fn sound_and_pictures_are_played_together() {
    let clip = spec(PlayerKind::Quicktime).clip;
    let mut asset = Asset::of_clip(&clip);
    let block = |n: u64| {
        let at = Duration::from_nanos(n * 1024 * 1_000_000_000 / 48_000);
        Unit { at, shown: at, offset: 0, bytes: 200, kind: UnitKind::Key }
    };
    asset.tracks.push(media::Track {
        codec: Codec::Aac { config: vec![0x11, 0x90], channels: 2 },
        clock_rate: 48_000,
        units: (0..937).map(block).collect(),
        bytes: Bytes::Shared(Arc::new(vec![7u8; 200])),
    });
    for transport in [MediaTransport::Udp, MediaTransport::Tcp] {
        let library = Arc::new(OneAsset(Arc::new(asset.clone())));
        let server = DarwinServer::new(library, server_by_the_rules(), "video", 1);
        let player = PlayerSettings { transport, ..PlayerSettings::of(PlayerKind::Quicktime) };
        let player = DarwinPlayer::new(player, "rtsp://server/clip.mov", "video", 1);
        let (player, kept) = Kept::new(player);
        let mut pair = Pair::new(Box::new(server), Box::new(player), pipe());
        pair.run(Instant::from_nanos(90_000_000_000));
        assert_eq!(end(&pair).0, Some(FRAMES as f64));
        let units = &kept.lock().unwrap().0;
        let sound: Vec<_> = units.iter().filter(|unit| unit.track == 1).collect();
        assert!(sound.len() > 100 && sound.iter().all(|unit| unit.whole && unit.shown), "{}", sound.len());
        assert!(sound.windows(2).all(|pair| pair[0].at < pair[1].at));
    }
}

#[test]
fn play_may_begin_deep_in_the_media() {
    let mut spec = spec(PlayerKind::Quicktime);
    spec.clip.duration = Duration::from_secs(1_010);
    spec.player.begin = Duration::from_secs(1_000);
    let pair = run(&spec, pipe(), &[]);
    assert_eq!(end(&pair), (Some(250.0), "all frames were shown or given up".into()));
    assert!(named(&pair, "frame_incomplete").is_empty());
}

/// Returns, for 499 frames sent as I P B B P B B, the one that is shown after `sent` others are sent.
fn shown_at(sent: usize) -> usize {
    match sent % 3 {
        1 => sent + 2,
        _ => sent.saturating_sub(1),
    }
}

#[test]
fn pictures_that_refer_to_later_ones_are_shown_in_one_order_and_kept_in_the_other() {
    let mut asset = Asset::of_clip(&spec(PlayerKind::Quicktime).clip);
    let units = &mut asset.tracks[0].units;
    units.truncate(499);
    let interval = Duration::from_millis(40);
    for (sent, unit) in units.iter_mut().enumerate() {
        // As in files: decoded two frames before it is shown, so that no picture is shown before it is decoded.
        unit.shown = interval * (2 + shown_at(sent) as u64);
    }
    asset.duration = interval * 501;
    for transport in [MediaTransport::Udp, MediaTransport::Tcp] {
        let library = Arc::new(OneAsset(Arc::new(asset.clone())));
        let server = DarwinServer::new(library, server_by_the_rules(), "video", 1);
        let player = PlayerSettings { transport, ..PlayerSettings::of(PlayerKind::Quicktime) };
        let (player, kept) = Kept::new(DarwinPlayer::new(player, "rtsp://server/clip.mov", "video", 1));
        let mut pair = Pair::new(Box::new(server), Box::new(player), Pipe { drop: LOSSY, ..pipe() });
        pair.run(Instant::from_nanos(90_000_000_000));
        assert_eq!(end(&pair), (Some(499.0), "all frames were shown or given up".into()));
        assert!(named(&pair, "frame_incomplete").is_empty(), "none is before the first that was sent");
        let shown: Vec<f64> = named(&pair, "frame_shown").iter().filter_map(|event| event.value).collect();
        assert_eq!(shown, (2..501).map(f64::from).collect::<Vec<_>>());
        let units = &kept.lock().unwrap().0;
        let kept: Vec<usize> = units.iter().filter(|u| u.shown).map(|u| u.number as usize - 2).collect();
        assert_eq!(kept, (0..499).map(shown_at).collect::<Vec<_>>());
    }
}

/// One packet in 20, none of them twice in a row.
const LOSSY: fn(u64) -> bool = |n| n % 20 == 7;

#[test]
fn reliable_udp_heals_what_a_lossy_path_takes_and_plain_udp_does_not() {
    let lossy = Pipe { drop: LOSSY, ..pipe() };
    let healed = run(&spec(PlayerKind::Quicktime), lossy.clone(), &[]);
    assert!(named(&healed, "rudp_retransmit").len() > 20);
    assert_eq!(end(&healed).0, Some(FRAMES as f64));

    let plain = run(&spec(PlayerKind::Vlc), lossy, &[]);
    assert!(named(&plain, "rudp_retransmit").is_empty());
    let incomplete = named(&plain, "frame_incomplete").len();
    assert!((20..60).contains(&incomplete), "{incomplete}");
    assert_eq!(named(&plain, "frame_shown").len() + incomplete, FRAMES);
}

#[test]
fn a_server_that_grants_no_reliable_udp_is_played_without() {
    let mut refused = spec(PlayerKind::Quicktime);
    refused.server.reliable_udp = false;
    let pair = run(&refused, Pipe { drop: LOSSY, ..pipe() }, &[]);
    assert!(!control(&pair.sent_by_player).iter().any(|(_, p)| matches!(p, Packet::Ack(_))));
    assert!(named(&pair, "frame_incomplete").len() > 20);
    assert_eq!(named(&pair, MEDIA_END).len(), 1);
}

#[test]
fn interleaved_on_a_slow_connection_it_stalls_and_shows_everything() {
    let mut tcp = spec(PlayerKind::Quicktime);
    tcp.player.transport = MediaTransport::Tcp;
    let wide = run(&tcp, pipe(), &[]);
    assert_eq!(end(&wide).0, Some(FRAMES as f64));
    assert!(named(&wide, "stall").is_empty());
    assert!(wide.sent.is_empty() && wide.sent_by_player.is_empty(), "all of it on the connection");

    // The clip is 35 kB/s.
    let slow = run(&tcp, Pipe { stream_bytes_per_s: Some(28_000), ..Pipe::default() }, &[]);
    assert!(!named(&slow, "stall").is_empty());
    assert_eq!(named(&slow, "stall").len(), named(&slow, "resume").len());
    let (shown, dropped) = (named(&slow, "frame_shown").len(), named(&slow, "stale_drop").len());
    assert!(shown + dropped >= FRAMES, "{shown} shown, {dropped} packets dropped by the server");
}

#[test]
fn a_pause_holds_server_and_playout_and_nothing_is_lost_by_it() {
    for kind in [PlayerKind::Quicktime, PlayerKind::Vlc] {
        let pair = run(&spec(kind), pipe(), &[(5_000, Input::Pause), (9_000, Input::Resume)]);
        let quiet = 5_100_000_000..9_000_000_000;
        let media: Vec<_> = sequences(&pair.sent);
        assert!(!media.iter().any(|(at, _)| quiet.contains(&at.as_nanos())), "{kind:?}");
        let shown = named(&pair, "frame_shown");
        assert_eq!(shown.len(), FRAMES, "{kind:?}");
        assert!(!shown.iter().any(|e| (5_000_000_001..9_000_000_000).contains(&e.at.as_nanos())));
        assert!(named(&pair, "stall").is_empty());
        assert_eq!(end(&pair).1, "all frames were shown or given up");
    }
}

#[test]
fn a_stop_says_goodbye_and_sends_nothing_after() {
    let pair = run(&spec(PlayerKind::Quicktime), pipe(), &[(5_000, Input::Stop)]);
    assert_eq!(end(&pair).1, "stopped");
    let last = pair.sent_by_player.last().unwrap();
    assert!(last.at <= Instant::from_nanos(5_000_000_000));
    assert!(control(&pair.sent_by_player).iter().any(|(_, p)| matches!(p, Packet::Bye { .. })));
}

/// A player with units that are removed as they arrive, and its last report.
struct Kept(DarwinPlayer, Shelf);

type Shelf = Arc<Mutex<(Vec<ReceivedUnit>, PlayerReport)>>;

impl Kept {
    fn new(mut player: DarwinPlayer) -> (Self, Shelf) {
        player.keep_units(true);
        let shelf = Shelf::default();
        (Kept(player, shelf.clone()), shelf)
    }
}

impl App for Kept {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        self.0.handle(now, input, io);
        let mut shelf = self.1.lock().unwrap();
        shelf.0.extend(std::iter::from_fn(|| self.0.take_unit()));
        shelf.1 = self.0.report_at(now);
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.0.poll_timeout()
    }
    fn poll_event(&mut self) -> Option<Event> {
        self.0.poll_event()
    }
}

/// A server that stops dead.
struct Vanishing(Box<dyn App + Send>, Instant);

impl App for Vanishing {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        if now < self.1 {
            self.0.handle(now, input, io);
        }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.0.poll_timeout().filter(|at| *at < self.1)
    }
    fn poll_event(&mut self) -> Option<Event> {
        self.0.poll_event()
    }
}

#[test]
fn a_server_that_vanishes_is_given_up_after_what_is_held_was_shown() {
    for (kind, stalls) in [(PlayerKind::Quicktime, 1), (PlayerKind::Vlc, 0)] {
        let mut spec = spec(kind);
        spec.player.give_up_after = Duration::from_secs(10);
        let made = spec.machines("video", 1).unwrap();
        let dead = Instant::from_nanos(4_000_000_000);
        let mut pair = Pair::new(Box::new(Vanishing(made.server, dead)), made.player, pipe());
        pair.run(Instant::from_nanos(90_000_000_000));
        let (shown, why) = end(&pair);
        assert!((60.0..300.0).contains(&shown.unwrap()), "{kind:?}: {shown:?}");
        assert_eq!(why, "nothing came from the server for 10 s");
        assert_eq!(named(&pair, "stall").len(), stalls, "{kind:?}");
    }
    // Not even a connection.
    let made = spec(PlayerKind::Quicktime).machines("video", 1).unwrap();
    let mut pair = Pair::new(Box::new(Vanishing(made.server, Instant::ZERO)), made.player, pipe());
    pair.run(Instant::from_nanos(90_000_000_000));
    assert_eq!(end(&pair), (Some(0.0), "nothing came from the server for 30 s".into()));
}

#[test]
fn the_network_sees_the_same_whether_the_player_rebuffers_or_not() {
    let outage = (Duration::from_secs(3), Duration::from_secs(3));
    let drop: fn(u64) -> bool = |n| (150..230).contains(&n) || n % 31 == 3;
    let with = |rebuffer| {
        let mut spec = spec(PlayerKind::Quicktime);
        spec.player.rebuffer = rebuffer;
        spec.player.prebuffer = Duration::from_millis(100);
        let pair = run(&spec, Pipe { drop, outage, ..pipe() }, &[]);
        let sent = |sent: &[Sent]| sequences(sent).into_iter().take(600).collect::<Vec<_>>();
        sent(&pair.sent)
    };
    assert_eq!(with(true), with(false));
}

#[test]
fn units_are_kept_whole_for_who_asks_and_the_report_agrees_with_the_events() {
    let spec = spec(PlayerKind::Quicktime);
    let made = spec.machines("video", 1).unwrap();
    let player = DarwinPlayer::new(spec.player.clone(), "rtsp://server/clip.mov", "video", 1);
    let (player, kept) = Kept::new(player);
    let mut pair = Pair::new(made.server, Box::new(player), Pipe { drop: LOSSY, ..pipe() });
    pair.run(Instant::from_nanos(90_000_000_000));
    let (units, report) = &*kept.lock().unwrap();
    assert_eq!(units.len(), FRAMES);
    assert!(units.iter().zip(0..).all(|(unit, n)| unit.number == n && unit.whole && unit.shown));
    let bytes = |unit: &ReceivedUnit| unit.payloads.iter().map(Chunk::len).sum::<usize>();
    // A cut frame loses its NAL header and gains two bytes a fragment.
    assert_eq!((bytes(&units[10]), bytes(&units[11])), (5000 - 1 + 2 * 4, 1000));
    assert_eq!(report.frames.shown, FRAMES as u64);
    assert!(report.reliable_udp && report.retransmitted > 20 && report.lost == 0, "{report:?}");
    assert_eq!(report.duration, Some(Duration::from_secs(20)));
}
