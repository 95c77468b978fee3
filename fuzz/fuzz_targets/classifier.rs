//! A train of frames of any bytes through reader and classifier, each after a byte for flow and direction and two
//! for its length. One flow is told what it speaks, of the other nothing is known.
#![no_main]

use libfuzzer_sys::fuzz_target;
use streamgauge_base::{Direction, FlowId, PacketKind, TransportHeader};
use streamgauge_plan::{DatagramProtocol, Protocols, Role, StreamProtocol};
use streamgauge_record::{Classifier, parse_frame};

fuzz_target!(|bytes: &[u8]| {
    let told = Protocols {
        tcp: vec![StreamProtocol::Http, StreamProtocol::Rtsp],
        udp: vec![DatagramProtocol::ReliableUdp, DatagramProtocol::Quic],
    };
    let mut classifier = Classifier::new([(Role::Subject, told), (Role::Rival, Protocols::default())]);
    let mut rest = bytes;
    while let [way, low, high, tail @ ..] = rest {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(tail.len());
        let (packet, after) = tail.split_at(length);
        let frame = parse_frame(packet);
        let direction = if way & 1 == 0 { Direction::Down } else { Direction::Up };
        let info = classifier.classify(
            FlowId(u16::from(way >> 1)),
            direction,
            frame.connection(direction),
            &frame.headers,
        );
        assert_eq!(info.payload_bytes, frame.headers.payload_bytes);
        let is_tcp = matches!(frame.headers.transport, TransportHeader::Tcp { .. });
        assert_eq!(info.connection.is_some(), is_tcp);
        assert!(info.kind != PacketKind::Ack || !is_tcp || info.payload_bytes == 0);
        rest = after;
    }
});
