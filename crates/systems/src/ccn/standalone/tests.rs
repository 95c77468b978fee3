mod proxy;
mod udp;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::json;
use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_wire::ndn::{
    Component, Data, Fragmenter, Interest, LpPacket, Metadata, NackReason, Name, ObjectSize, Packet, Reader,
    Reassembler,
};

use super::*;
use crate::app::{App, ChannelError, ChannelId, CloseReason, Envelope, Input, Io};
use crate::carrier::Carrier;
use crate::media::{self, OpenError, StoredFile};
use crate::standalone::{Clients, Player, Proxy, Served, Server};

const FIRST: ChannelId = ChannelId(0);

/// One packaged file; its bytes count up from its first.
struct Folder(u8);

struct File(Vec<u8>);

const FILE_BYTES: usize = 20_000;

impl StoredFile for File {
    fn length(&self) -> u64 {
        self.0.len() as u64
    }
    fn version(&self) -> &str {
        if self.0[0] == 0 { "a" } else { "b" }
    }
    fn read(&self, first: u64, most: u64) -> Result<Vec<u8>, String> {
        let bytes = &self.0[first as usize..];
        Ok(bytes[..bytes.len().min(most as usize)].to_vec())
    }
}

impl media::Library for Folder {
    fn open(&self, _: &str) -> Result<Arc<media::Asset>, OpenError> {
        Err(OpenError::NotFound)
    }
    fn plain(&self, path: &str) -> Result<Arc<dyn StoredFile>, OpenError> {
        match path {
            "/b/x 1.ts" => {
                Ok(Arc::new(File((0..FILE_BYTES).map(|at| self.0.wrapping_add(at as u8)).collect())))
            }
            "/b/busy.ts" => Err(OpenError::Failed("Too many open files".into())),
            _ => Err(OpenError::NotFound),
        }
    }
}

/// A client's connection.
#[derive(Default)]
struct Client {
    sent: VecDeque<Chunk>,
    got: Vec<u8>,
    /// Bytes that it takes before it is looked at again.
    room: usize,
    opened: Vec<Carrier>,
    datagrams: Vec<Chunk>,
    closed: bool,
}

impl Io for Client {
    fn open(&mut self, carrier: &Carrier) -> ChannelId {
        self.opened.push(carrier.clone());
        ChannelId(self.opened.len() as u32 - 1)
    }
    fn send_as(&mut self, channel: ChannelId, datagram: Chunk, _: Envelope) {
        // The one that was opened last, or that was there.
        assert!(channel.0 as usize + 1 == self.opened.len().max(1) && !self.closed);
        self.datagrams.push(datagram);
    }
    fn write(&mut self, channel: ChannelId, chunk: Chunk) -> usize {
        assert!(channel == FIRST && !self.closed);
        let taken = chunk.len().min(self.room);
        self.room -= taken;
        self.got.extend(&chunk.head()[..taken]);
        taken
    }
    fn read(&mut self, channel: ChannelId, _: usize) -> Option<Chunk> {
        assert!(channel == FIRST);
        self.sent.pop_front()
    }
    fn close(&mut self, _: ChannelId) {
        self.closed = true;
    }
    fn port(&self, _: ChannelId) -> Option<u16> {
        None
    }
    fn direct(&mut self, _: ChannelId, _: u16) {}
}

impl Client {
    fn packets(&mut self) -> Vec<LpPacket> {
        let mut reader = Reader::default();
        reader.push(Chunk::bytes(std::mem::take(&mut self.got)));
        reader.map(|packet| LpPacket::read(packet.unwrap()).unwrap()).collect()
    }

    /// Returns the packets of the datagrams, which must each fit an Ethernet frame, and the number of
    /// datagrams.
    fn pieced(&mut self) -> (Vec<LpPacket>, usize) {
        let mut reassembler = Reassembler::default();
        let datagrams = std::mem::take(&mut self.datagrams);
        assert!(datagrams.iter().all(|datagram| datagram.len() <= 1500 - 48));
        let count = datagrams.len();
        let read = datagrams.into_iter().map(|datagram| LpPacket::read(datagram).unwrap());
        (read.filter_map(|packet| reassembler.push(Instant::ZERO, packet)).collect(), count)
    }
}

fn server(byte: u8, overrides: &[(&str, serde_json::Value)]) -> Box<dyn Served> {
    let known = Server::of::<CcnServerSettings>();
    let mut settings = known.preset("ndn-today").unwrap();
    for (name, value) in overrides {
        settings[*name] = value.clone();
    }
    let clients = known.open(settings, None).map_err(|(_, why)| why).unwrap();
    clients.machine(Arc::new(Folder(byte)), "session 1", 1)
}

fn clients() -> Box<dyn Clients> {
    let known = Server::of::<CcnServerSettings>();
    known.open(known.preset("ndn-today").unwrap(), None).map_err(|(_, why)| why).unwrap()
}

/// Returns the clients of a network without forged addresses.
fn trusting() -> Box<dyn Clients> {
    let known = Server::of::<CcnServerSettings>();
    let mut settings = known.preset("ndn-today").unwrap();
    settings["prove_addresses"] = false.into();
    known.open(settings, None).map_err(|(_, why)| why).unwrap()
}

fn started(byte: u8) -> (Box<dyn Served>, Client) {
    let mut client = Client { room: usize::MAX, ..Client::default() };
    let mut server = server(byte, &[]);
    server.handle(Instant::ZERO, Input::Start, &mut client);
    server.handle(Instant::ZERO, Input::Opened(FIRST), &mut client);
    (server, client)
}

fn interest(name: &str) -> Interest {
    Interest { nonce: Some(7), ..Interest::of(name.parse().unwrap()) }
}

/// Returns the server's answers to these Interests.
fn asked(server: &mut dyn Served, client: &mut Client, interests: &[Interest]) -> Vec<LpPacket> {
    client.sent.extend(interests.iter().map(Interest::write));
    server.handle(Instant::ZERO, Input::Readable(FIRST), client);
    client.packets()
}

fn data(packet: &LpPacket) -> Data {
    match Packet::read(packet.fragment.as_ref().unwrap()).unwrap() {
        Packet::Data(data) if packet.nack.is_none() => data,
        other => panic!("{other:?} {:?}", packet.nack),
    }
}

#[test]
fn a_consumer_learns_of_an_object_and_gets_its_bytes() {
    let (mut server, mut client) = started(0);
    let discovery =
        Interest { can_be_prefix: true, must_be_fresh: true, ..interest("/clip/b/x%201.ts/32=metadata") };
    let told = asked(server.as_mut(), &mut client, &[discovery]);
    let told = Metadata::read(&data(&told[0]).content).unwrap();
    let size = ObjectSize { segment_bytes: 8000, bytes: FILE_BYTES as u64 };
    assert_eq!(told.size, Some(size));
    assert!(told.name.starts_with(&"/clip/b/x%201.ts".parse().unwrap()));
    let names = (0..3).map(|number| told.name.child(Component::segment(number)).unwrap());
    let interests: Vec<Interest> =
        names.map(|name| Interest { nonce: Some(1), ..Interest::of(name) }).collect();
    let segments: Vec<Data> = asked(server.as_mut(), &mut client, &interests).iter().map(data).collect();
    let bytes: Vec<u8> = segments.iter().flat_map(|data| data.content.head().to_vec()).collect();
    assert!(bytes.len() == FILE_BYTES && bytes.iter().zip(0usize..).all(|(byte, at)| *byte == at as u8));
    assert!(segments.iter().all(|data| data.final_block_id == Some(Component::segment(2))));
    assert_eq!(server.counts()[..3], [("interests_received", 4), ("data_sent", 4), ("interests_refused", 0)]);
    assert_eq!(
        (server.plays_over(), server.in_words().as_str()),
        (Some("tcp"), "4 Interests, 4 Data, 0 refused")
    );

    // Another content is another version, and the one before is gone.
    let (mut other, mut client) = started(1);
    let old = Interest { nonce: Some(2), ..Interest::of(told.name.child(Component::segment(0)).unwrap()) };
    let unversioned = interest("/clip/b/x%201.ts/seg=0");
    let answers = asked(other.as_mut(), &mut client, &[old, unversioned]);
    assert_eq!(data(&answers[0]).content_type, Some(3));
    assert_eq!(data(&answers[1]).content.head()[0], 1);
}

#[test]
fn what_is_nobody_s_gets_a_quick_no_and_tokens_come_back() {
    let (mut server, mut client) = started(0);
    let elsewhere = LpPacket {
        pit_token: Some([1, 2, 3, 4].as_slice().into()),
        ..LpPacket::of(interest("/elsewhere/seg=0").write())
    };
    client.sent.push_back(elsewhere.write());
    let unknown = ["/clip/none.mpd/seg=0", "/clip/b/..%2Fx%201.ts/seg=0", "/clip/b/x%201.ts/seg=3", "/clip"];
    let mut interests: Vec<Interest> = unknown.iter().map(|name| interest(name)).collect();
    interests.push(interest("/clip/b/busy.ts/seg=0"));
    let answers = asked(server.as_mut(), &mut client, &interests);
    assert_eq!(
        (answers[0].nack, answers[0].pit_token.as_deref()),
        (Some(NackReason::NoRoute), Some(&[1, 2, 3, 4][..]))
    );
    for (answer, name) in answers[1..5].iter().zip(unknown) {
        assert_eq!((data(answer).content_type, data(answer).name), (Some(3), name.parse().unwrap()));
    }
    assert_eq!(answers[5].nack, Some(NackReason::Congestion));
    assert_eq!(server.counts()[..3], [("interests_received", 6), ("data_sent", 0), ("interests_refused", 6)]);
    assert!(server.plays_over().is_none() && !client.closed);
}

#[test]
fn bytes_that_are_no_packets_end_the_face_and_a_wrong_packet_is_passed_over() {
    let (mut server, mut client) = started(0);
    let good = interest("/clip/b/x%201.ts/seg=0");
    // An Interest without a name, and one without a nonce.
    client.sent.extend([Chunk::bytes([5, 2, 10, 0]), Interest::of(good.name.clone()).write()]);
    assert_eq!(asked(server.as_mut(), &mut client, std::slice::from_ref(&good)).len(), 1);
    assert!(server.counts().contains(&("packets_dropped", 2)));
    client.sent.push_back(Chunk::bytes(*b"GET / HTTP/1.1\r\n\r\n"));
    assert!(asked(server.as_mut(), &mut client, &[good]).is_empty() && client.closed);
    assert_eq!(server.poll_event().unwrap().name, "face_down");
    assert_eq!(server.poll_timeout(), None);
}

#[test]
fn who_asks_and_does_not_read_takes_bounded_room_and_gets_everything_later() {
    let (mut server, mut client) = started(0);
    client.room = 10_000;
    let interests = vec![interest("/clip/b/x%201.ts/seg=0"); 500];
    client.sent.extend(interests.iter().map(Interest::write));
    server.handle(Instant::ZERO, Input::Readable(FIRST), &mut client);
    assert!(server.counts()[0].1 < 30 && client.sent.len() > 400, "{:?}", server.counts());
    client.room = usize::MAX;
    server.handle(Instant::ZERO, Input::Writable(FIRST), &mut client);
    assert_eq!((client.packets().len(), server.counts()[1].1), (500, 500));
}

#[test]
fn a_silent_face_is_closed() {
    let mut client = Client { room: usize::MAX, ..Client::default() };
    let second = Duration::from_secs(1);
    let mut server = server(0, &[("idle", json!(2_000_000_000u64))]);
    server.handle(Instant::ZERO, Input::Start, &mut client);
    client.sent.push_back(interest("/clip/x").write());
    server.handle(Instant::ZERO + second, Input::Readable(FIRST), &mut client);
    assert_eq!(server.poll_timeout(), Some(Instant::ZERO + second * 3));
    server.handle(Instant::ZERO + second * 2, Input::Timeout, &mut client);
    assert!(!client.closed);
    server.handle(Instant::ZERO + second * 3, Input::Timeout, &mut client);
    client.datagrams.clear();
    assert!(client.closed && server.has_lost_its_client());
}

#[test]
fn who_finished_gets_what_he_asked_for_before() {
    let (mut server, mut client) = started(0);
    client.sent.push_back(interest("/clip/b/x%201.ts/seg=2").write());
    server.handle(Instant::ZERO, Input::Closed(FIRST, CloseReason::Finished), &mut client);
    assert_eq!((client.packets().len(), client.closed), (1, true));
}

#[test]
fn who_comes_to_a_full_server_is_told_of_congestion() {
    let clients = clients();
    for (bytes, answers) in [(interest("/clip/x").write(), 1), (Chunk::bytes(*b"hello"), 0)] {
        let mut client = Client { room: usize::MAX, ..Client::default() };
        client.sent.push_back(bytes);
        clients.turn_away().handle(Instant::ZERO, Input::Readable(FIRST), &mut client);
        let packets = client.packets();
        assert_eq!((packets.len(), client.closed), (answers, true));
        assert!(packets.iter().all(|packet| packet.nack == Some(NackReason::Congestion)));
    }
}

#[test]
fn settings_are_checked_and_a_wrong_one_is_named() {
    let known = Server::of::<CcnServerSettings>();
    assert_eq!(known.facts.ports, [6363, 6363]);
    for preset in known.facts.presets {
        let settings = known.preset(preset).unwrap();
        assert!(known.read(&settings).is_ok() && known.open(settings, None).is_ok(), "{preset}");
    }
    assert_eq!(known.preset("ccnx-paper").unwrap()["chunk_bytes"], 4096);
    for (name, value) in [
        ("prefix", json!("clip")),
        ("prefix", json!("/a/seg=x")),
        ("chunk_bytes", json!(9000)),
        ("idle", json!(1)),
    ] {
        let mut settings = known.preset("ndn-today").unwrap();
        settings[name] = value;
        let (field, why) = known.open(settings, None).err().unwrap();
        assert!(field.is_some_and(|field| name.starts_with(field)), "{name} {field:?} {why}");
    }
    let settings = known.preset("ndn-today").unwrap();
    assert_eq!(known.open(settings, Some(Duration::from_millis(1))).err().unwrap().0, None);

    let player = Player::of::<CcnPlayerSettings>();
    let settings = player.preset("dashjs", "tcp").unwrap();
    // Those of the player are beside those of the consumer.
    for name in ["rule", "buffer", "interest_window", "retransmission", "store_bytes"] {
        assert!(settings.get(name).is_some(), "{name}");
    }
    let read: CcnPlayerSettings = serde_json::from_value(settings.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), settings);
    for (name, value) in [("interest_window", json!(0)), ("rule", json!("none"))] {
        let mut wrong = settings.clone();
        wrong[name] = value;
        assert_eq!(player.open(wrong, "ndn://h/clip/a.mpd", false, 1).err().unwrap().0, name);
    }
}

#[test]
fn the_player_opens_its_face_and_asks_by_the_url_s_path() {
    let player = Player::of::<CcnPlayerSettings>();
    let settings = player.preset("dashjs", "tcp").unwrap();
    let url = "ndn://h:7000/clip/a%20b/manifest.mpd";
    let mut playing = player.open(settings, url, false, 1).map_err(|(_, why)| why).unwrap();
    let mut client = Client { room: usize::MAX, ..Client::default() };
    playing.handle(Instant::ZERO, Input::Start, &mut client);
    assert!(matches!(client.opened[..], [Carrier::Tcp { port: 7000, .. }]));
    playing.handle(Instant::ZERO, Input::Opened(FIRST), &mut client);
    let packets = client.packets();
    let Ok(Packet::Interest(first)) = Packet::read(packets[0].fragment.as_ref().unwrap()) else { panic!() };
    assert_eq!(first.name, "/clip/a%20b/manifest.mpd/32=metadata".parse::<Name>().unwrap());
    assert!(first.can_be_prefix && first.must_be_fresh);
    assert_eq!(playing.figures(Instant::ZERO)["interests"], 1);
    // Nothing has this name: the player is notified at once.
    let none = Data { content_type: Some(3), ..Data::of(first.name, Chunk::default()) };
    client.sent.push_back(none.write());
    playing.handle(Instant::ZERO, Input::Readable(FIRST), &mut client);
    assert_eq!(playing.refused(), Some(404));
    let counted: BTreeMap<String, serde_json::Value> = playing.figures(Instant::ZERO).into_iter().collect();
    assert_eq!((&counted["interests"], &counted["interests_expired"]), (&json!(1), &json!(0)));
}
