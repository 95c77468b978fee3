//! The server's answers to messages that no player of ours sends.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use streamgauge_base::Chunk;
use streamgauge_wire::asf::DataPacket as AsfPacket;
use streamgauge_wire::http::{self, HttpItem};
use streamgauge_wire::mms::{self, DataPacket, FunnelReport, MmsItem, MmsMessage, PacketPairMode, TcpHeader};
use streamgauge_wire::wmsp::{self, PacketContent, WmspPacket};

use super::*;
use crate::app::{App, Io};

/// The placeholder in requests for the number that the server's first answer gives.
const CLIENT_ID: &str = "CLIENT";

type Came = Arc<Mutex<Vec<Vec<u8>>>>;

/// Sends messages on connections of its own, each at its time and port.
struct Asker {
    said: Vec<(Duration, u16, Vec<u8>)>,
    channels: Vec<ChannelId>,
    came: Came,
}

impl App for Asker {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Opened(channel) => {
                let place = self.channels.iter().position(|one| *one == channel).unwrap();
                let text = String::from_utf8_lossy(&self.came.lock().unwrap()[0]).into_owned();
                let id = text
                    .split_once("client-id=")
                    .map(|(_, rest)| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
                let said = self.said[place].2.clone();
                let said = match (String::from_utf8(said.clone()), id) {
                    (Ok(text), Some(id)) => text.replace(CLIENT_ID, &id).into_bytes(),
                    _ => said,
                };
                io.write(channel, Chunk::bytes(said));
            }
            Input::Readable(channel) => {
                let place = self.channels.iter().position(|one| *one == channel).unwrap();
                while let Some(chunk) = io.read(channel, 1 << 16) {
                    let mut bytes = chunk.head().to_vec();
                    bytes.resize(chunk.len(), 0);
                    self.came.lock().unwrap()[place].extend(bytes);
                }
            }
            _ => {}
        }
        let due = |n: usize| self.said.get(n).is_some_and(|(at, ..)| Instant::ZERO + *at <= now);
        while due(self.channels.len()) {
            let port = self.said[self.channels.len()].1;
            let settings = TcpSpec::default();
            self.channels.push(io.open(&Carrier::Tcp { port, settings }));
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.said.get(self.channels.len()).map(|(at, ..)| Instant::ZERO + *at)
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}

/// Returns the answers to these messages, each a time in ms, a port and bytes; and all else.
fn asked(said: &[(u64, u16, &[u8])], seconds: u64) -> (Vec<Vec<u8>>, Pair) {
    let made = spec(WmTransport::Rollover).machines("video", 1).unwrap();
    let came = Came::new(Mutex::new(vec![Vec::new(); said.len()]));
    let said = said.iter().map(|(ms, port, bytes)| (Duration::from_millis(*ms), *port, bytes.to_vec()));
    let asker = Asker { said: said.collect(), channels: Vec::new(), came: came.clone() };
    let mut pair = Pair::new(made.server, Box::new(asker), Pipe { begins_with_stream: false, ..pipe() });
    pair.begins_with(&made.channels);
    pair.reserve(made.channels.len());
    pair.run(Instant::ZERO + Duration::from_secs(seconds));
    let came = came.lock().unwrap().clone();
    (came, pair)
}

/// Returns the answers to messages on the connection that a server begins with, which may use any of the three.
fn asked_of_any(bytes: &[u8]) -> Vec<u8> {
    let spec = spec(WmTransport::Tcp);
    let shelf = Arc::new(OneObject(Arc::new(Object::of_ladder(&spec.ladder))));
    let server = WmServer::new(shelf, spec.server, "video", 1).taking_any();
    let came = Came::new(Mutex::new(vec![Vec::new()]));
    let said = vec![(Duration::ZERO, RTSP_PORT, bytes.to_vec())];
    let asker = Asker { said, channels: vec![RTSP], came: came.clone() };
    let mut pair = Pair::new(Box::new(server), Box::new(asker), pipe());
    pair.run(Instant::ZERO + Duration::from_secs(3));
    came.lock().unwrap()[0].clone()
}

/// Returns the status of a response, and the packets of its body.
fn packets(bytes: &[u8]) -> (u16, Vec<PacketContent>) {
    let (mut reader, mut body) = (http::Reader::of_responses(), wmsp::Reader::default());
    reader.push(Chunk::bytes(bytes));
    let mut status = 0;
    for item in reader {
        match item.unwrap() {
            HttpItem::Response(response) => status = response.status,
            HttpItem::Body(chunk) => body.push(chunk),
            _ => {}
        }
    }
    (status, body.map(|packet| packet.unwrap().content).collect())
}

/// Returns the numbers of the streams with media, in the order of their packets.
fn streams(packets: &[PacketContent]) -> Vec<u8> {
    let media = packets.iter().filter_map(|packet| match packet {
        PacketContent::Data(data) => Some(DataPacket::parse(data).unwrap().payload.head().to_vec()),
        _ => None,
    });
    media.map(|packet| AsfPacket::read(&packet).unwrap().payloads[0].stream).collect()
}

const HTTP: u16 = 80;

#[test]
fn a_header_by_http_comes_behind_a_packet_pair_if_that_is_asked_for() {
    let ask = b"GET /clip.wmv HTTP/1.1\r\nHost: s\r\nPragma: packet-pair-experiment=1\r\n\r\n";
    let (came, _) = asked(&[(0, HTTP, ask)], 2);
    let head = came[0].windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    let (status, all) = packets(&came[0]);
    assert_eq!(status, 200);
    let sizes: Vec<usize> = all.iter().map(|one| WmspPacket::from(one.clone()).write().len()).collect();
    // [MS-WMSP] section 2.2.3.7: head and first packet, second and third.
    assert_eq!((head + sizes[0], sizes[1]), (512, 512));
    assert!(all[..3].iter().all(|one| matches!(one, PacketContent::PacketPair { .. })));
    let PacketContent::Header(header) = &all[3] else { panic!("{:?}", all[3]) };
    let header = DataPacket::parse(header).unwrap();
    assert_eq!(sdp::read_head(header.payload.head()).unwrap().streams.len(), 4);
    assert_eq!(all.len(), 4);
}

#[test]
fn streams_are_those_that_are_asked_for_by_http_and_change_as_is_asked() {
    let play =
        b"GET /clip.wmv HTTP/1.1\r\nHost: s\r\nPragma: xPlayStrm=1\r\nPragma: stream-switch-count=2\r\n\
                 Pragma: stream-switch-entry=ffff:1:2 ffff:4:0\r\n\r\n";
    let lower = format!(
        "POST /clip.wmv HTTP/1.1\r\nHost: s\r\nContent-Length: 0\r\nPragma: client-id={CLIENT_ID}\r\n\
         Pragma: stream-switch-count=1\r\nPragma: stream-switch-entry=4:2:0\r\n\r\n"
    );
    let of_another = lower.replace(CLIENT_ID, "1").replace("4:2:0", "4:3:0");
    let said: [(u64, u16, &[u8]); 3] =
        [(0, HTTP, play), (5_000, HTTP, lower.as_bytes()), (8_000, HTTP, of_another.as_bytes())];
    let (came, pair) = asked(&said, 12);
    let mut seen = streams(&packets(&came[0]).1);
    seen.dedup();
    assert_eq!(seen, [4, 2]);
    assert_eq!((packets(&came[1]).0, packets(&came[2]).0), (200, 400));
    assert_eq!(values(&pair, "level_sent"), [300_000.0, 40_000.0]);
    // A client that asks for none gets the best of each.
    let (came, _) = asked(&[(0, HTTP, b"GET / HTTP/1.0\r\nPragma: xPlayStrm=1\r\n\r\n")], 5);
    let mut seen = streams(&packets(&came[0]).1);
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, [1, 4]);
}

#[test]
fn mms_on_a_connection_measures_the_link_by_three_messages_if_that_is_asked_for() {
    let ask = mms::write(TcpHeader::default(), &[MmsMessage::FunnelInfo(PacketPairMode::OVER_TCP)]);
    let (came, _) = asked(&[(0, mms::PORT, &ask)], 2);
    let mut reader = mms::Reader::of_responses();
    reader.push(Chunk::bytes(came[0].as_slice()));
    let random: Vec<usize> = reader
        .map(|item| match item.unwrap() {
            MmsItem::Message(MmsMessage::ReportFunnelInfo(FunnelReport { random, .. })) => random.len(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(random, mms::TCP_PACKET_PAIR_BYTES);
    assert_eq!(came[0].len(), 512 + 512 + 1_056, "[MS-MMSP] section 3.2.5.4");
}

#[test]
fn one_connection_speaks_whatever_its_first_bytes_are() {
    let rtsp = asked_of_any(b"OPTIONS rtsp://s/clip.wmv RTSP/1.0\r\nCSeq: 1\r\n\r\n");
    assert!(rtsp.starts_with(b"RTSP/1.0 200 "), "{}", String::from_utf8_lossy(&rtsp));
    let (status, all) = packets(&asked_of_any(b"GET /clip.wmv HTTP/1.1\r\nHost: s\r\n\r\n"));
    assert_eq!((status, all.len()), (200, 1));
    let connect = mms::Connect {
        packet_pair: PacketPairMode::DISABLED,
        subscriber: "NSPlayer/9.0.0.2980".into(),
        host: None,
        via: None,
    };
    let mut reader = mms::Reader::of_responses();
    let said = mms::write(TcpHeader::default(), &[MmsMessage::Connect(connect)]);
    reader.push(Chunk::bytes(asked_of_any(&said)));
    let answers: Vec<_> = reader.map(Result::unwrap).collect();
    assert!(
        matches!(&answers[..], [MmsItem::Message(MmsMessage::ReportConnectedEx(report))] if report.result == 0),
        "{answers:?}"
    );
    assert!(asked_of_any(b"GE").is_empty(), "it waits for more");
}

#[test]
fn what_is_no_request_is_refused() {
    let refused: [(&[u8], &str); 3] = [
        (b"PUT /clip.wmv HTTP/1.1\r\nHost: s\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 400"),
        (b"GET / HTTP/1.1\r\nHost: s\r\nPragma: xPlayStrm=2\r\n\r\n", "HTTP/1.1 400"),
        (
            b"GET / HTTP/1.1\r\nHost: s\r\nPragma: xPlayStrm=1\r\nPragma: stream-switch-entry=9:8:0\r\n\r\n",
            "HTTP/1.1 400",
        ),
    ];
    for (said, answer) in refused {
        let (came, _) = asked(&[(0, HTTP, said)], 2);
        let came = String::from_utf8_lossy(&came[0]).into_owned();
        assert!(came.starts_with(answer), "{came}");
    }
    // MMS has no word for it: the connection ends.
    assert!(asked(&[(0, mms::PORT, b"GET / HTTP/1.1\r\n\r\n")], 2).0[0].is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_break_the_server(bytes in prop::collection::vec(any::<u8>(), 0..400), port in 0usize..3) {
        let port = [RTSP_PORT, mms::PORT, HTTP][port];
        asked(&[(0, port, &bytes)], 1);
    }

    /// Messages that are whole, in any order and with any content.
    #[test]
    fn no_order_of_messages_breaks_the_server(
        order in prop::collection::vec((0usize..9, any::<u32>()), 1..20),
    ) {
        let message = |(which, number): (usize, u32)| match which {
            0 => MmsMessage::FunnelInfo(PacketPairMode(PacketPairMode::DISABLED.0 + number % 4)),
            1 => MmsMessage::ConnectFunnel(mms::ConnectFunnel {
                over_udp: number % 2 == 0,
                address: "10.0.0.1".into(),
                port: number as u16,
            }),
            2 => MmsMessage::OpenFile(mms::OpenFile::default()),
            3 => MmsMessage::ReadBlock(mms::ReadBlock { file_id: number, incarnation: number }),
            4 => MmsMessage::StreamSwitch(vec![mms::StreamSwitch {
                from: mms::StreamSwitch::stream(number as u16 % 6),
                to: mms::StreamSwitch::stream((number >> 16) as u16 % 6),
                ..mms::StreamSwitch::default()
            }]),
            5 => MmsMessage::StartPlaying(mms::StartPlaying {
                file_id: number,
                from: mms::Position::Time(Duration::from_millis(number.into())),
                stop: None,
                incarnation: number,
                acceleration: Some((number, number)),
                link_bps: None,
            }),
            6 => MmsMessage::StopPlaying { file_id: number, incarnation: number },
            7 => MmsMessage::CloseFile(number),
            _ => MmsMessage::Pong,
        };
        let said: Vec<u8> =
            order.into_iter().flat_map(|one| mms::write(TcpHeader::default(), &[message(one)])).collect();
        let (came, _) = asked(&[(0, mms::PORT, &said)], 2);
        let mut reader = mms::Reader::of_responses();
        reader.push(Chunk::bytes(came[0].as_slice()));
        for item in reader {
            prop_assert!(item.is_ok());
        }
    }
}
