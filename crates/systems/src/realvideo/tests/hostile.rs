//! The server and a client that is broken or means it ill.

use std::collections::VecDeque;
use std::sync::Arc;

use proptest::prelude::*;
use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_wire::rdt::{self, AckPacket, Packet, SequenceNumber};
use streamgauge_wire::rtsp::{Reader, RtspItem, interleave, names};

use super::super::object::{Object, OneObject};
use super::super::{Preset, RTSP, RealServer, ServerSettings, server};
use super::{FILE, object_of, spec};
use crate::app::{App, ChannelId, Envelope, Input, Io};
use crate::carrier::Carrier;
use crate::rtsp::MediaTransport;

const URL: &str = "rtsp://server/film.rm";

const SECOND: Duration = Duration::from_secs(1);

/// The host under the server.
#[derive(Default)]
struct Host {
    to_server: VecDeque<Chunk>,
    from_server: Vec<Chunk>,
    datagrams: Vec<Chunk>,
    /// Whether the connection accepts no more.
    is_full: bool,
    is_closed: bool,
    pairs: u32,
}

impl Io for Host {
    fn send_as(&mut self, _: ChannelId, datagram: Chunk, _: Envelope) {
        self.datagrams.push(datagram);
    }
    fn write(&mut self, _: ChannelId, chunk: Chunk) -> usize {
        let bytes = if self.is_full { 0 } else { chunk.len() };
        self.from_server.extend((bytes > 0).then_some(chunk));
        bytes
    }
    fn read(&mut self, _: ChannelId, max: usize) -> Option<Chunk> {
        let mut chunk = self.to_server.pop_front()?;
        let rest = chunk.split_off(max);
        if !rest.is_empty() {
            self.to_server.push_front(rest);
        }
        Some(chunk)
    }
    fn close(&mut self, _: ChannelId) {
        self.is_closed = true;
    }
    fn open(&mut self, _: &Carrier) -> ChannelId {
        self.pairs += 1;
        ChannelId(2 * self.pairs - 1)
    }
    fn port(&self, _: ChannelId) -> Option<u16> {
        Some(6970)
    }
    fn direct(&mut self, _: ChannelId, _: u16) {}
}

/// A client's hand on a server.
struct Hand {
    server: RealServer,
    host: Host,
    reader: Reader,
    now: Instant,
    cseq: u32,
    session: String,
    said: Vec<String>,
}

impl Hand {
    fn on(object: Object) -> Self {
        let shelf = Arc::new(OneObject(Arc::new(object)));
        let server = RealServer::new(shelf, ServerSettings::of(Preset::RealServer8), "client", 1);
        let mut hand = Hand {
            server,
            host: Host::default(),
            reader: Reader::default(),
            now: Instant::ZERO,
            cseq: 0,
            session: String::new(),
            said: Vec::new(),
        };
        hand.give(Input::Opened(RTSP));
        hand
    }

    /// Makes a hand with the ladder of the other tests: a minute, 158 kbit/s at most.
    fn of_ladder() -> Self {
        Hand::on(Object::of_ladder(&spec(MediaTransport::Udp).ladder))
    }

    fn give(&mut self, input: Input<'_>) {
        self.server.handle(self.now, input, &mut self.host);
        while let Some(event) = self.server.poll_event() {
            self.said.push(event.name.to_string());
        }
    }

    /// Lets time pass.
    fn wait(&mut self, long: Duration) {
        let until = self.now + long;
        while let Some(at) = self.server.poll_timeout().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.give(Input::Timeout);
        }
        self.now = until;
    }

    fn say(&mut self, bytes: impl Into<Vec<u8>>) {
        self.host.to_server.push_back(Chunk::bytes(bytes.into()));
        self.give(Input::Readable(RTSP));
    }

    /// Returns the statuses of the answers since the last call; media is passed over.
    fn answers(&mut self) -> Vec<u16> {
        self.host.from_server.drain(..).for_each(|chunk| self.reader.push(chunk));
        let mut found = Vec::new();
        for item in self.reader.by_ref() {
            if let Ok(RtspItem::Response(response)) = item {
                if let Some(session) = response.header(&names::SESSION) {
                    self.session = session.as_str().split(';').next().unwrap_or_default().into();
                }
                found.push(response.status().into());
            }
        }
        found
    }

    fn ask(&mut self, method: &str, url: &str, headers: &str) -> u16 {
        self.answers();
        self.cseq += 1;
        let session =
            if self.session.is_empty() { String::new() } else { format!("Session: {}\r\n", self.session) };
        self.say(format!("{method} {url} RTSP/1.0\r\nCSeq: {}\r\n{session}{headers}\r\n", self.cseq));
        let answers = self.answers();
        assert_eq!(answers.len(), 1, "{method} {headers}");
        answers[0]
    }

    fn set(&mut self, headers: &str) -> u16 {
        self.ask("SET_PARAMETER", URL, headers)
    }

    fn set_up(&mut self, transport: &str) -> u16 {
        self.ask("SETUP", &format!("{URL}/streamid=0"), &format!("Transport: {transport}\r\n"))
    }

    fn plays_over_udp() -> Self {
        let mut hand = Hand::of_ladder();
        assert_eq!(hand.set_up("x-real-rdt/udp;client_port=7000;mode=play"), 200);
        assert_eq!(hand.ask("PLAY", URL, "Range: npt=0-\r\n"), 200);
        hand
    }

    fn datagram(&mut self, bytes: &[u8]) {
        self.give(Input::datagram(ChannelId(1), &Chunk::bytes(bytes), Instant::ZERO));
    }

    fn nak(&mut self, stream: u16, first: u16, last: u16) {
        let number = |number| SequenceNumber::new(number).unwrap();
        let ack = Packet::Ack(AckPacket::lost(stream, number(first), number(last))).write();
        self.datagram(ack.head());
    }

    /// Returns the bytes of datagrams that were sent since the last time.
    fn sent(&mut self) -> usize {
        self.host.datagrams.drain(..).map(|datagram| datagram.len()).sum()
    }

    fn resent(&self) -> usize {
        self.said.iter().filter(|name| *name == "packet_resent").count()
    }
}

proptest! {
    #[test]
    fn whatever_comes_as_rdt_the_server_goes_on(
        datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..20),
    ) {
        let mut hand = Hand::plays_over_udp();
        for datagram in &datagrams {
            hand.datagram(datagram);
            // A datagram that begins as an acknowledgement is read further.
            hand.datagram(&[&[0xc0, 0xff, 0x02], &datagram[..]].concat());
            if let Ok(length) = u16::try_from(datagram.len()) {
                let packet = [&[b'$', 9][..], &length.to_be_bytes(), datagram].concat();
                hand.say(packet);
            }
        }
        hand.sent();
        hand.wait(SECOND);
        prop_assert!(hand.sent() > 1_000);
        prop_assert_eq!(hand.set(""), 200);
    }

    #[test]
    fn whatever_comes_as_rtsp_the_server_does_not_break(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut hand = Hand::plays_over_udp();
        hand.say(bytes);
        hand.say(b"\r\n\r\n".to_vec());
        hand.answers();
        hand.wait(SECOND);
    }
}

#[test]
fn what_is_no_rtsp_has_its_status() {
    let mut hand = Hand::plays_over_udp();
    for (request, status) in [
        ("NO WAY\r\n\r\n", 400),
        ("OPTIONS * RTSP/1.0\r\n\r\n", 400),
        ("OPTIONS * RTSP/3.0\r\nCSeq: 1\r\n\r\n", 505),
        ("FETCH rtsp://server/film.rm RTSP/1.0\r\nCSeq: 1\r\n\r\n", 501),
        ("PLAY rtsp://server/film.rm RTSP/1.0\r\nCSeq: 1\r\nSession: 1\r\n\r\n", 454),
    ] {
        hand.answers();
        hand.say(request);
        assert_eq!(hand.answers(), [status], "{request:?}");
    }
    assert_eq!(hand.set(""), 200, "and the next is heard");
}

#[test]
fn a_transport_that_is_no_transport_is_refused() {
    for transport in
        ["x-real-rdt/udp;client_port=0", "x-real-rdt/udp", "RTP/AVP;unicast", "x-real-rdt/mcast", "?"]
    {
        assert_eq!(Hand::of_ladder().set_up(transport), 461, "{transport}");
    }
    let mut hand = Hand::of_ladder();
    assert_eq!(hand.set_up("x-real-rdt/tcp;interleaved=3"), 200);
    let other = hand.ask(
        "SETUP",
        &format!("{URL}/streamid=1"),
        "Transport: x-real-rdt/tcp;interleaved=3;mode=play\r\n",
    );
    assert_eq!(other, 461, "a channel that the other stream has");
}

#[test]
fn rules_and_rates_that_there_are_not_are_told_and_those_beside_them_are_heeded() {
    let mut hand = Hand::plays_over_udp();
    for wish in [
        "Subscribe: stream=0;rule=6",
        "Subscribe: stream=9;rule=0",
        "Subscribe: stream=1;rule=2",
        "Subscribe: stream=0;rule=65535,stream=0;rule=4",
        "Unsubscribe: stream=0;rule=40",
        "Subscribe: stream=0;rule=70000",
        "Subscribe: everything",
        "SetDeliveryBandwidth: Bandwidth=4294967296;BackOff=0",
        "SetDeliveryBandwidth: Bandwidth=-1;BackOff=0",
        "SetDeliveryBandwidth: a lot",
    ] {
        assert_eq!(hand.set(&format!("{wish}\r\n")), 451, "{wish}");
    }
    // The sound was not set up, and yet there are these of it.
    assert_eq!(hand.set("Subscribe: stream=1;rule=0,stream=1;rule=1\r\n"), 200);
    // One rule of that request, rule 4, exists: the highest level.
    hand.said.clear();
    hand.wait(SECOND + SECOND);
    assert!(hand.said.iter().any(|name| name == "level_sent"), "{:?}", hand.said);
    assert_eq!(hand.set("Subscribe: stream=0;rule=0\r\nSetDeliveryBandwidth: Bandwidth=0\r\n"), 200);
}

#[test]
fn nobody_is_sent_more_than_sixteen_times_the_highest_rate_or_less_than_a_thousand_bits() {
    let most = 16 * (150_000 + 8_000) / 8;
    let mut hand = Hand::plays_over_udp();
    let wish = "Subscribe: stream=0;rule=4,stream=0;rule=5\r\nSetDeliveryBandwidth: Bandwidth=4294967295\r\n";
    assert_eq!(hand.set(wish), 200);
    hand.sent();
    // All of the highest level, a minute of it.
    let mut seconds = 0;
    loop {
        hand.wait(SECOND);
        let sent = hand.sent();
        assert!(sent <= most + most / 5, "{sent} bytes in a second");
        if sent == 0 {
            break;
        }
        seconds += 1;
    }
    assert!((2..10).contains(&seconds), "{seconds}");

    let mut hand = Hand::plays_over_udp();
    assert_eq!(hand.set("SetDeliveryBandwidth: Bandwidth=0;BackOff=0\r\n"), 200);
    hand.wait(SECOND * 20);
    assert!(hand.sent() < 10_000);
}

#[test]
fn a_packet_is_sent_again_once_however_often_it_is_asked_for_and_one_never_sent_is_not() {
    let mut hand = Hand::plays_over_udp();
    hand.wait(SECOND * 5);
    let packets = hand.host.datagrams.len();
    hand.sent();
    hand.nak(0, 20_000, 20_500);
    hand.nak(7, 0, 100);
    hand.nak(1, 0, 100);
    assert_eq!((hand.resent(), hand.sent()), (0, 0));
    for _ in 0..1_000 {
        hand.nak(0, 0, packets as u16 + 500);
    }
    assert_eq!(hand.resent(), packets, "each of them, once");
    assert_eq!(hand.set(""), 200);
    // Long after they were sent they are not kept.
    hand.wait(SECOND * 16);
    let before = hand.resent();
    hand.nak(0, 0, 5);
    assert_eq!(hand.resent(), before);
}

#[test]
fn of_a_datagram_of_questions_one_is_answered() {
    let mut hand = Hand::plays_over_udp();
    hand.sent();
    let questions = rdt::write(&vec![Packet::RttRequest; 1_000]);
    hand.datagram(questions.head());
    assert_eq!(hand.host.datagrams.len(), 1);
    hand.answers();
    hand.say(interleave(3, &questions).head());
    let bytes: usize = hand.host.from_server.iter().map(Chunk::len).sum();
    assert!(bytes < 100, "{bytes}");
}

#[test]
fn a_player_that_has_vanished_is_given_up() {
    // Over UDP it sends nothing; packets sent to it are no sign of life.
    let mut hand = Hand::plays_over_udp();
    hand.wait(SECOND * 59);
    assert!(!hand.host.is_closed);
    hand.wait(SECOND * 2);
    assert!(hand.host.is_closed && hand.said.iter().any(|name| name == "session_timeout"));
    assert_eq!(hand.server.poll_timeout(), None);
    hand.sent();
    hand.nak(0, 0, 100);
    assert_eq!(hand.sent(), 0, "its packets are gone");

    // Its RDT is one.
    let mut hand = Hand::plays_over_udp();
    for _ in 0..10 {
        hand.wait(SECOND * 30);
        hand.nak(0, 0, 0);
    }
    assert!(!hand.host.is_closed);

    // Over TCP its reads are one, and it reads nothing.
    let mut hand = Hand::of_ladder();
    assert_eq!(hand.set_up("x-pn-tng/tcp;mode=play"), 200);
    assert_eq!(hand.ask("PLAY", URL, ""), 200);
    hand.wait(SECOND * 10);
    hand.host.is_full = true;
    hand.wait(SECOND * 61);
    assert!(hand.host.is_closed && hand.said.iter().any(|name| name == "session_timeout"));

    // The connection is closed, and with it the session.
    let mut hand = Hand::plays_over_udp();
    hand.give(Input::Closed(RTSP, crate::app::CloseReason::Reset));
    hand.sent();
    hand.wait(SECOND * 5);
    assert_eq!((hand.sent(), hand.server.poll_timeout()), (0, None));
}

#[test]
fn what_is_kept_for_sending_again_is_bounded() {
    let mut stream = server::stream_over_udp(&object_of(FILE).unwrap());
    let number = |number| SequenceNumber::new(number).unwrap();
    for sequence in 0..10_000 {
        stream.keep(Instant::ZERO, number(sequence), Chunk::bytes(vec![0; 1_400]), SECOND * 15);
    }
    let mut again = |sequence| stream.again(Instant::ZERO, number(sequence), SECOND * 15, false).is_some();
    let there: Vec<u16> = (0..10_000).filter(|sequence| again(*sequence)).collect();
    assert_eq!(there.len(), (4 << 20) / 1_400);
    assert_eq!(there.last(), Some(&9_999));
}
