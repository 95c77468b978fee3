//! Progressive download across a bottleneck: everything is shown, at the pace that the path allows, and connections
//! open and close.

mod common;

use std::sync::{Arc, Mutex};

use common::*;
use streamgauge_base::{Chunk, Direction, Duration, Event, Instant, PacketKind};
use streamgauge_path::spec::{Limit, PathSpec};
use streamgauge_plan::{Keep, TcpSpec, TrialPlan};
use streamgauge_sim::{run_machines, simulate};
use streamgauge_systems::http::{HttpPlayerSettings, HttpSpec, PATH, PORT};
use streamgauge_systems::{App, Carrier, ChannelId, CloseReason, Input, Io, System};

fn usual() -> HttpPlayerSettings {
    HttpSpec::usual().player
}

/// Checks that all `frames` were shown, once each, with media and stalls alone; returns the stalls.
fn played(record: &Rows, frames: u64) -> usize {
    let ends = record.named("media_end");
    assert_eq!((ends.len(), ends[0].value), (1, Some(frames as f64)), "{ends:?}");
    let shown: Vec<_> = record.named("frame_shown").iter().filter_map(|event| event.value).collect();
    assert_eq!(shown, (0..frames).map(|number| number as f64).collect::<Vec<_>>());
    let start = record.named("playout_start")[0].at;
    let stalled: f64 = record.named("resume").iter().filter_map(|event| event.value).sum();
    let took = record.named("frame_shown").last().unwrap().at.saturating_since(start).as_secs_f64();
    let media = 0.04 * (frames - 1) as f64;
    assert!((took - media - stalled).abs() < 1e-6, "{took} s of {media} s and {stalled} s");
    record.named("stall").len()
}

fn trial(bps: u64, probability: f64, player: HttpPlayerSettings, seed: u64) -> TrialPlan {
    let down = vec![loss(probability), bottleneck(bps, Limit::Packets(50)), delay(20)];
    let path = PathSpec { down, up: vec![loss(probability), delay(20)] };
    plan(path, vec![http("video", 20, player)], 200, seed)
}

#[test]
fn everything_is_shown_whatever_is_lost() {
    let pieces = |persistent| HttpPlayerSettings { request: Some(100_000), persistent, ..usual() };
    for (seed, player) in (1..).zip([usual(), pieces(true), pieces(false)]) {
        let (_, record) = Rows::of(&trial(2_000_000, 0.02, player.clone(), seed));
        played(&record, 500);
        assert!(record.named("http_failure").is_empty());
        let (_, again) = Rows::of(&trial(2_000_000, 0.02, player, seed));
        assert!(record.events == again.events && record.rows.len() == again.rows.len());
    }
}

#[test]
fn a_path_below_the_clips_rate_makes_it_stall_and_go_on() {
    // 470 kbit/s of media on 300.
    let (summary, record) = Rows::of(&trial(300_000, 0.0, usual(), 1));
    assert!(played(&record, 500) >= 3);
    // Every byte of the file, and no more than heads beside it.
    let media = 500 / 12 * (11 * 2_000 + 6_000) + 6_000 + 7 * 2_000;
    let received = summary.flows[0].player_received_bytes;
    assert!((media + 2_000..media + 4_000).contains(&received), "{received} of {media}");
}

#[test]
fn who_holds_enough_stops_reading_and_the_window_closes() {
    let settings = HttpPlayerSettings { read_ahead: Some(ms(4_000)), read_again: Some(ms(3_000)), ..usual() };
    let mut plan = trial(10_000_000, 0.0, settings, 1);
    let mut spec: HttpSpec = plan.flows[0].app.settings().unwrap();
    spec.tcp = tcp("cubic", 65_536);
    plan.flows[0].app = spec.app();
    let (_, record) = Rows::of(&plan);
    assert_eq!(played(&record, 500), 0);
    assert!(record.named("download_off").len() >= 8);
    // Though the path would need a second for the whole file.
    let last =
        record.at(0, 1).filter(|(_, info, way)| *way == Direction::Down && info.payload_bytes > 0).last();
    assert!(last.unwrap().0.t_in.as_nanos() > 10_000_000_000);
}

#[test]
fn heads_are_signalling_and_bodies_are_media() {
    let (_, record) = Rows::of(&trial(2_000_000, 0.0, usual(), 1));
    let of = |way: Direction, kind: PacketKind| {
        record.rows.iter().filter(|(_, info, direction)| *direction == way && info.kind == kind).count()
    };
    assert!(of(Direction::Up, PacketKind::Signalling) > 0 && of(Direction::Up, PacketKind::Media) == 0);
    assert!(of(Direction::Down, PacketKind::Media) > 500);
}

#[test]
fn every_request_and_answer_is_a_message_of_the_record_whatever_is_lost_or_kept() {
    let pieces = HttpPlayerSettings { request: Some(100_000), persistent: false, ..usual() };
    let mut plan = trial(2_000_000, 0.02, pieces, 3);
    let (_, record) = Rows::of(&plan);
    let messages = record.named("message");
    let of = |way: &str| -> Vec<_> {
        let said = |event: &&Event| Some((event.value?, event.reason.strip_prefix(way)?.to_owned()));
        messages.iter().filter_map(said).collect()
    };
    // One after another, each on a connection of its own.
    let (requests, answers) = (of("up GET /"), of("down 206 "));
    assert_eq!(requests.len(), record.named("http_request").len());
    assert_eq!((requests.len() + answers.len(), answers.len()), (messages.len(), requests.len()));
    for (number, ((asked, target), (answered, phrase))) in requests.iter().zip(&answers).enumerate() {
        assert_eq!((*asked, *answered), (number as f64, number as f64));
        assert!(target.ends_with(&PATH[1..]) && phrase == "Partial Content", "{target} {phrase}");
    }
    let folder = std::env::temp_dir().join(format!("streamgauge-{}-messages", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let kept = [Keep::Packets, Keep::Events].map(|keep| {
        plan.keep = keep;
        simulate(&plan, &folder).unwrap().events_digest.unwrap()
    });
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(kept[0], kept[1]);
}

/// One connection after another, each with one request.
struct Clients {
    left: u32,
    channel: Option<ChannelId>,
    /// Bytes, and connections that ended as they should.
    came: Arc<Mutex<(u64, u32)>>,
}

impl Clients {
    fn open(&mut self, io: &mut dyn Io) {
        if self.left > 0 {
            self.left -= 1;
            self.channel = Some(io.open(&Carrier::Tcp { port: PORT, settings: TcpSpec::default() }));
        }
    }
}

impl App for Clients {
    fn handle(&mut self, _: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Start => self.open(io),
            Input::Opened(channel) => {
                let text = format!(
                    "GET {PATH} HTTP/1.1\r\nHost: a\r\nRange: bytes=0-999\r\nConnection: close\r\n\r\n"
                );
                assert_eq!(io.write(channel, Chunk::bytes(text.as_bytes())), text.len());
            }
            Input::Readable(channel) => {
                while let Some(chunk) = io.read(channel, usize::MAX) {
                    self.came.lock().unwrap().0 += chunk.len() as u64;
                }
            }
            Input::Closed(channel, CloseReason::Finished) => {
                self.came.lock().unwrap().1 += 1;
                io.close(channel);
                self.open(io);
            }
            Input::Closed(_, why) => panic!("{why:?}"),
            Input::Refused(_, why) => panic!("{why}"),
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}

#[test]
fn ten_thousand_clients_come_and_go() {
    let mut plan = plan(path(1_000_000_000, Limit::Packets(10_000), 1), vec![http("x", 20, usual())], 300, 1);
    plan.keep = Keep::Metrics;
    let came = Arc::new(Mutex::new((0, 0)));
    let clients = Clients { left: 10_000, channel: None, came: came.clone() };
    let mut clients = Some(Box::new(clients));
    run_machines(
        &plan,
        |flow| {
            let mut made =
                streamgauge_systems::machines(flow, 1, &streamgauge_systems::media::Contents::NONE)?;
            made.player = clients.take().expect("one flow");
            Ok(made)
        },
        (),
    )
    .unwrap();
    let (bytes, finished) = *came.lock().unwrap();
    assert_eq!(finished, 10_000);
    assert!((12_000_000..13_000_000).contains(&bytes), "{bytes}: 1,000 and a head, each time");
}

#[test]
fn a_listener_that_goes_away_is_told_of() {
    let mut plan = trial(2_000_000, 0.0, HttpPlayerSettings { tries: 2, ..usual() }, 1);
    plan.flows[0].actions = vec![(Duration::from_secs(3), streamgauge_plan::Action::Stop)];
    let (_, record) = Rows::of(&plan);
    let ends = record.named("media_end");
    assert_eq!((ends.len(), ends[0].reason.as_ref()), (1, "stopped"));
}
