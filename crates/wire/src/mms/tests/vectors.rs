//! Published bytes of others: the first bytes of a connection, and values of the specification.

use super::*;

/// The first packet of a player's connection, as captured and published with its fields' names at
/// <https://www.cnblogs.com/zephor/p/3515039.html>; its session GUID is the one that FFmpeg has.
const CONNECT: &str = "
    01000000cefa0bb0c00000004d4d532018000000000000000000000000000000
    1600000001000300000000000b0004001c0003004e00530050006c0061007900
    650072002f0037002e0030002e0030002e0031003900350036003b0020007b00
    37004500360036003700460035004400 2d0041003600360031002d0034003900
    350045002d0041003500310032002d00 46003500350036003800360044004400
    41003100370038007d003b0020004800 6f00730074003a0020006d006d007300
    2e0063006e0072002e0063006e000000";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<_> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let byte = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// A message alone in a packet: its bytes without the packet's header.
fn written(message: &MmsMessage) -> Vec<u8> {
    let packet = write(TcpHeader::default(), std::slice::from_ref(message));
    assert_eq!(parse(&packet), Ok((TcpHeader::default(), vec![message.clone()])));
    packet[TCP_HEADER_BYTES..].to_vec()
}

/// Its fields as 32-bit numbers, from `chunkLen` and `MID` on.
fn words(message: &MmsMessage) -> Vec<u32> {
    written(message).chunks(4).map(|word| u32::from_le_bytes(*word.first_chunk().unwrap())).collect()
}

#[test]
fn a_captured_connect() {
    let connect = MmsMessage::Connect(Connect {
        packet_pair: PacketPairMode(0),
        subscriber: "NSPlayer/7.0.0.1956; {7E667F5D-A661-495E-A512-F55686DDA178}; Host: mms.cnr.cn".into(),
        host: None,
        via: None,
    });
    let captured = bytes(CONNECT);
    assert_eq!(parse(&captured), Ok((TcpHeader::default(), vec![connect.clone()])));
    assert_eq!(write(TcpHeader::default(), &[connect]), captured);
}

/// [MS-MMSP] section 2.2.4.21: behind `abc.asf` a token begins at byte 16.
#[test]
fn a_token_is_behind_the_name() {
    let file = OpenFile { incarnation: 1, name: "abc.asf".into(), token: b"abc\0".to_vec() };
    let words = words(&MmsMessage::OpenFile(file));
    assert_eq!(words[..6], [6, mids::OPEN_FILE, 1, 0, 16, 4]);
    assert_eq!(words[10], u32::from_le_bytes(*b"abc\0"));
}

/// [MS-MMSP] sections 4.6.1 and 4.6.2: `cbAuthenPackage` counts the zero at its end.
#[test]
fn the_scheme_is_counted_with_its_zero() {
    for (authentication, units) in [("BASIC", 6), ("NTLM", 5), ("", 0)] {
        let report = ConnectedEx {
            result: 0,
            packet_pair: PacketPairMode::WANTED,
            server_version: "9.0.0.3372".into(),
            player_version: String::new(),
            player_url: String::new(),
            authentication: authentication.into(),
        };
        let words = words(&MmsMessage::ReportConnectedEx(report));
        assert_eq!(
            words[1..8],
            [mids::REPORT_CONNECTED_EX, 0, 0xf0f0_f0f0, 0x4_000b, 0x3_001c, 0, 0x3ff0_0000]
        );
        assert_eq!(words[8..16], [1, 1, 0x8000, 0x0098_9680, 11, 0, 0, units]);
    }
}

/// [MS-MMSP] section 3.2.5.4: packets of 512, 512 and 1,056 B.
#[test]
fn a_packet_pair_over_tcp() {
    let sizes = TCP_PACKET_PAIR_BYTES.map(|random| {
        let report = FunnelReport {
            result: 0,
            packet_pair: PacketPairMode::OVER_TCP,
            client_id: 9,
            random: vec![1; random],
        };
        let words = words(&MmsMessage::ReportFunnelInfo(report.clone()));
        let constants = [0, 0xf0f0_f0f1, 8, 1, 0x1_0000, 9, 0, 1, 0, 0, 0x0101_0101];
        assert_eq!(words[1], mids::REPORT_FUNNEL_INFO);
        assert_eq!(words[2..13], constants);
        write(TcpHeader::default(), &[MmsMessage::ReportFunnelInfo(report)]).len()
    });
    assert_eq!(sizes, [512, 512, 1_056]);
}

/// [MS-MMSP] sections 3.2.5.8 and 4.4.1.
#[test]
fn a_packet_pair_over_udp() {
    let pair = [0, 1].map(|place| {
        DataPacket::packet_pair(place, Body::filler(DataPacket::PACKET_PAIR_BYTES as u32)).write()
    });
    assert_eq!(pair[0].head(), b"\x00\xf0\xf0\xf0\xff\x10\xc0\x05");
    assert_eq!(pair[1].head(), b"\x01\xf0\xf0\xf0\xff\x10\xc0\x05");
    assert_eq!(pair[0].len(), 1_500 - 20 - 8);
    assert_eq!(DataPacket::parse(&pair[1]).unwrap().place_in_pair(), Some(1));
    assert_eq!(DataPacket::default().place_in_pair(), None);
}

/// [MS-MMSP] sections 2.2.2 and 2.2.5, field by field.
#[test]
fn datagrams() {
    let data = DataPacket { location: 0x0102, incarnation: 4, flags: 0xfe, payload: Body::from(&b"asf"[..]) };
    assert_eq!(data.write(), Chunk::bytes(*b"\x02\x01\0\0\x04\xfe\x0b\0asf"));
    let resend = ResendRequest { client_id: 9, source: 3, sequences: vec![1, 0x0203_0405] };
    assert_eq!(resend.write(), b"\x0d\xf0\xef\xbe\x09\0\0\0\x03\0\x02\0\x01\0\0\0\x05\x04\x03\x02");
}

/// Each other message, field by field as [MS-MMSP] sections 2.2.4.1 to 2.2.4.28 have them.
#[test]
fn fields_are_where_they_are_specified() {
    let one_hour = Duration::from_secs(3600);
    assert_eq!(words(&MmsMessage::FunnelInfo(PacketPairMode::OVER_UDP)), [2, 0x3_0018, 0xf0f0_f901, 0]);
    let read = MmsMessage::ReadBlock(ReadBlock { file_id: 1, incarnation: 2 });
    assert_eq!(
        words(&read),
        [7, 0x3_0015, 1, 0, 0, 0x8000, u32::MAX, 0, 0, 0, 0, 0x40ac_2000, 2, 0],
        "a deadline of 3600 s, as FFmpeg has it"
    );
    let on = |stream, level| StreamSwitch { level, ..StreamSwitch::on(stream) };
    let switch = MmsMessage::StreamSwitch(vec![on(1, ThinningLevel::All), on(2, ThinningLevel::KeyFrames)]);
    assert_eq!(words(&switch), [3, 0x3_0033, 2, 0x0001_ffff, 0xffff_0000, 0x0001_0002]);
    let start = StartPlaying {
        file_id: 1,
        from: Position::Time(Duration::ZERO),
        stop: None,
        incarnation: 3,
        acceleration: None,
        link_bps: None,
    };
    let unset = u32::MAX;
    assert_eq!(words(&MmsMessage::StartPlaying(start)), [5, 0x3_0007, 1, 0, 0, 0, unset, unset, 0, 3]);
    let fast = StartPlaying {
        from: Position::Packet(77),
        stop: Some(Stop { ms: 5, from_start: true }),
        acceleration: Some((1_000_000, 5_000)),
        link_bps: Some(2_000_000),
        ..start
    };
    let [low, high] = [u32::MAX, 0x7fef_ffff];
    assert_eq!(
        words(&MmsMessage::StartPlaying(fast)),
        [7, 0x3_0007, 1, 0, low, high, unset, 77, 0x8000_0005, 3, 1_000_000, 5_000, 2_000_000, 0]
    );
    let without_link = StartPlaying { link_bps: None, ..fast };
    assert_eq!(words(&MmsMessage::StartPlaying(without_link))[10..], [1_000_000, 5_000]);
    let from = Position::Byte(5_000);
    let striding = MmsMessage::StartStriding { file_id: 1, from, incarnation: 2, rate: -5.0 };
    assert_eq!(words(&striding), [6, 0x3_0028, 1, 0, low, high, 5_000, unset, 0, 2, 0, 0xc014_0000]);
    assert_eq!(words(&MmsMessage::StopPlaying { file_id: 1, incarnation: 2 }), [2, 0x3_0009, 1, 2]);
    assert_eq!(words(&MmsMessage::CloseFile(7)), [2, 0x3_000d, 0, 7]);
    assert_eq!(words(&MmsMessage::CancelReadBlock(7)), [2, 0x3_0025, 7, 0]);
    assert_eq!(words(&MmsMessage::Pong), [2, 0x3_001b, 0, 0]);
    assert_eq!(words(&MmsMessage::Ping), [2, 0x4_001b, 0, 0]);
    assert_eq!(words(&MmsMessage::ReportDisconnectedFunnel(9)), [2, 0x4_0003, 9, 0]);
    assert_eq!(words(&MmsMessage::ReportReadBlock { result: 0, incarnation: 2 }), [3, 0x4_0011, 0, 2, 0, 0]);
    assert_eq!(words(&MmsMessage::ReportStreamSwitch(0)), [2, 0x4_0021, 0, 0]);
    let started = MmsMessage::ReportStartedPlaying { result: 0, incarnation: 3, file_id: 1 };
    assert_eq!(words(&started), [5, 0x4_0005, 0, 3, 1, 0, 0, 0, 0, 0]);
    let striding = MmsMessage::ReportStartStriding { result: 0, incarnation: 3 };
    assert_eq!(words(&striding), [3, 0x4_000a, 0, 3, 0, 0]);
    let end = EndOfStream { result: EndOfStream::MORE, incarnation: 3 };
    assert_eq!(words(&MmsMessage::ReportEndOfStream(end)), [2, 0x4_001e, 1, 3]);
    let change = StreamChange { packet_bytes: 1, header_bytes: 2, bit_rate_bps: 3 };
    assert_eq!(words(&MmsMessage::ReportStreamChange(change)), [4, 0x4_0020, 0, 0xff, 1, 2, 3, 0]);
    let report = FileReport {
        result: 0,
        incarnation: 1,
        file_id: 2,
        attributes: attributes::CAN_SEEK,
        duration: one_hour + Duration::from_nanos(1),
        packet_bytes: 1_444,
        packets: 6,
        bit_rate_bps: 7,
        header_bytes: 8,
    };
    let words = words(&MmsMessage::ReportOpenFile(report));
    assert_eq!(words[..8], [15, 0x4_0006, 0, 1, 2, 0, 0, 0x0100_0000]);
    assert_eq!((words[9], words[10]), (0x40ac_2000, 3_601), "rounded up");
    assert_eq!(words[11..20], [0, 0, 0, 0, 1_444, 6, 0, 7, 8]);
    assert_eq!(words[20..], [0; 10]);
    let log = written(&MmsMessage::Logging(Box::default()));
    assert_eq!(log.len(), (8 + 1_490usize).next_multiple_of(8));
    assert_eq!(log[8..18], *b"\xd2\x05\0\0\x76\x04\0\0-\0");
    assert_eq!(log[8 + 1_454..][..20], *b"mms\0\0\0\0\0TCP\0\0\0\0\0\0\0\0\0");
}
