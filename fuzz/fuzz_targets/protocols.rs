//! Any payload through the reader of each protocol: a byte says which, then come pieces, each after two bytes for its
//! length, one segment or datagram after the other. What is sent again at once is of the kind that it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use streamgauge_base::{Direction, FlowId, Headers, TransportHeader, packet_flags};
use streamgauge_plan::{DatagramProtocol, Protocols, Role, StreamProtocol};
use streamgauge_record::Classifier;

fuzz_target!(|bytes: &[u8]| {
    let Some((which, mut rest)) = bytes.split_first() else { return };
    let protocols = match which % 16 {
        0 => Protocols::tcp(StreamProtocol::Http),
        1 => Protocols::tcp(StreamProtocol::Rtsp),
        2 => Protocols::udp(DatagramProtocol::Quic),
        3 => Protocols::udp(DatagramProtocol::Rtp),
        4 => Protocols::udp(DatagramProtocol::ReliableUdp),
        6 => Protocols::tcp(StreamProtocol::RtspRdt),
        7 => Protocols::udp(DatagramProtocol::Rdt),
        8 => Protocols::udp(DatagramProtocol::Srt),
        9 => Protocols::udp(DatagramProtocol::Rist),
        _ => Protocols::default(),
    };
    let (over_tcp, is_cut) = (which & 0x80 == 0, which & 0x40 != 0);
    let mut classifier = Classifier::new([(Role::Subject, protocols)]);
    let mut seq = u32::MAX - 1_000;
    while let [low, high, tail @ ..] = rest {
        let length =
            usize::from(u16::from_le_bytes([*low, *high])).clamp(1, tail.len().max(1)).min(tail.len());
        let (payload, after) = tail.split_at(length);
        let transport =
            if over_tcp { TransportHeader::Tcp { seq, ack: 0, flags: 16 } } else { TransportHeader::Udp };
        // Of some, not all bytes are known.
        let payload_head = &payload[..if is_cut { length.min(64) } else { length }];
        let headers = Headers { transport, header_bytes: 20, payload_bytes: length as u32, payload_head };
        let mut classify = || classifier.classify(FlowId(0), Direction::Down, 1, &headers);
        let (first, again) = (classify(), classify());
        assert_eq!(first.kind, again.kind);
        if over_tcp && length > 0 {
            assert!(again.flags & packet_flags::RETRANSMIT != 0);
        }
        seq = seq.wrapping_add(length as u32);
        rest = after;
    }
});
