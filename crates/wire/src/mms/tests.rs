use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use streamgauge_base::{Chunk, Duration};

use super::*;
use crate::body::Body;

mod broken;
mod vectors;

/// A packet's items, all at once.
fn all(mut reader: Reader, bytes: &[u8]) -> Vec<Result<MmsItem, Problem>> {
    reader.push(Chunk::bytes(bytes));
    reader.collect()
}

/// Text as a field may have it: without zeros, of several planes.
fn any_text() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9/. {}é€😀-]{0,40}"
}

fn any_token() -> impl Strategy<Value = SecurityToken> {
    (any::<(u32, u32)>(), vec(any::<u8>(), 0..40)).prop_map(|((incarnation, cookie), token)| SecurityToken {
        incarnation,
        cookie,
        token,
    })
}

fn any_duration() -> impl Strategy<Value = Duration> {
    prop_oneof![0..1u64 << 51, (0..2_000_000u64).prop_map(|s| s * 1_000_000_000)]
        .prop_map(Duration::from_nanos)
}

fn any_position() -> impl Strategy<Value = Position> {
    prop_oneof![
        any_duration().prop_map(Position::Time),
        (1..u32::MAX).prop_map(Position::Byte),
        (1..u32::MAX).prop_map(Position::Packet),
        Just(Position::Unset),
    ]
}

fn any_switch() -> impl Strategy<Value = StreamSwitch> {
    let stream = || option::of(0..StreamSwitch::NONE);
    (stream(), stream(), 0u16..3).prop_map(|(from, to, level)| StreamSwitch {
        from,
        to,
        level: ThinningLevel::new(level).expect("below 3"),
    })
}

fn any_start() -> impl Strategy<Value = StartPlaying> {
    let stop = (1..1u32 << 31, any::<bool>()).prop_map(|(ms, from_start)| Stop { ms, from_start });
    let acceleration = option::of((any::<(u32, u32)>(), option::of(any::<u32>())));
    (any::<(u32, u32)>(), any_position(), option::of(stop), acceleration).prop_map(
        |((file_id, incarnation), from, stop, accelerated)| StartPlaying {
            file_id,
            from,
            stop,
            incarnation,
            acceleration: accelerated.map(|(acceleration, _)| acceleration),
            link_bps: accelerated.and_then(|(_, link_bps)| link_bps),
        },
    )
}

fn any_log() -> impl Strategy<Value = ClientLog> {
    let texts = proptest::array::uniform12("[a-z0-9/.é]{0,15}");
    (texts, any::<[u64; 5]>(), any::<[u32; 18]>(), any::<(i16, bool)>()).prop_map(
        |(texts, longs, words, (rate, over_udp))| {
            let text = |index: usize| texts[index].clone();
            ClientLog {
                url: text(0),
                channel_url: text(1),
                user_agent: text(2),
                hosting_page: text(3),
                player_version: longs[0],
                language: text(4),
                player_id: text(5),
                host_program: text(6),
                host_program_version: longs[1],
                file_duration_ms: words[0],
                file_bytes: longs[2],
                average_bps: words[1],
                audio_codec: text(7),
                video_codec: text(8),
                start_ms: words[2],
                played_ms: words[3],
                rate,
                bufferings: words[4],
                buffering_ms: words[5],
                bytes_received: longs[3],
                packets_received: words[6],
                packets_lost: words[7],
                lowest_quality_percent: words[8],
                file_id: words[9],
                address: words[10],
                host: text(9),
                system: text(10),
                system_version: longs[4],
                processor: text(11),
                over_udp,
                network_lost: words[11],
                most_lost_in_a_row: words[12],
                resends_asked: words[13],
                recovered: words[14],
                resends_received: words[15],
            }
        },
    )
}

fn any_of_player() -> impl Strategy<Value = MmsMessage> {
    let mode = || any::<u32>().prop_map(PacketPairMode);
    let connect = (mode(), any_text(), option::of(any_text()), option::of(any_text()));
    let striding = (any::<(u32, u32)>(), any_position(), prop_oneof![-5.0..-0.001, 0.001..=5.0]);
    prop_oneof![
        connect.prop_map(|(packet_pair, subscriber, host, via)| {
            MmsMessage::Connect(Connect { packet_pair, subscriber, host, via })
        }),
        mode().prop_map(MmsMessage::FunnelInfo),
        (any::<bool>(), "[0-9a-f.:]{1,20}", any::<u16>()).prop_map(|(over_udp, address, port)| {
            MmsMessage::ConnectFunnel(ConnectFunnel { over_udp, address, port })
        }),
        (any::<u32>(), any_text(), vec(any::<u8>(), 0..30)).prop_map(|(incarnation, name, token)| {
            MmsMessage::OpenFile(OpenFile { incarnation, name, token })
        }),
        any::<(u32, u32)>()
            .prop_map(|(file_id, incarnation)| MmsMessage::ReadBlock(ReadBlock { file_id, incarnation })),
        any::<u32>().prop_map(MmsMessage::CancelReadBlock),
        vec(any_switch(), 0..6).prop_map(MmsMessage::StreamSwitch),
        any_start().prop_map(MmsMessage::StartPlaying),
        striding.prop_map(|((file_id, incarnation), from, rate)| {
            MmsMessage::StartStriding { file_id, from, incarnation, rate }
        }),
        any::<(u32, u32)>()
            .prop_map(|(file_id, incarnation)| MmsMessage::StopPlaying { file_id, incarnation }),
        any_log().prop_map(|log| MmsMessage::Logging(Box::new(log))),
        any::<u32>().prop_map(MmsMessage::CloseFile),
        Just(MmsMessage::Pong),
        any_token().prop_map(MmsMessage::SecurityResponse),
    ]
}

fn any_of_server() -> impl Strategy<Value = MmsMessage> {
    let texts = proptest::array::uniform4(any_text());
    let random = (0usize..10, any::<u8>()).prop_map(|(chunks, byte)| vec![byte; 8 * chunks]);
    let file = (any::<[u32; 7]>(), any::<u64>(), any_duration());
    prop_oneof![
        (any::<(u32, u32)>(), texts).prop_map(|((result, mode), texts)| {
            let [server_version, player_version, player_url, authentication] = texts;
            let packet_pair = PacketPairMode(mode);
            MmsMessage::ReportConnectedEx(ConnectedEx {
                result,
                packet_pair,
                server_version,
                player_version,
                player_url,
                authentication,
            })
        }),
        (any::<(u32, u32, u32)>(), random).prop_map(|((result, mode, client_id), random)| {
            let packet_pair = PacketPairMode(mode);
            MmsMessage::ReportFunnelInfo(FunnelReport { result, packet_pair, client_id, random })
        }),
        Just(MmsMessage::ReportConnectedFunnel),
        any::<u32>().prop_map(MmsMessage::ReportDisconnectedFunnel),
        file.prop_map(
            |([result, incarnation, file_id, attributes, packet, rate, header], packets, duration)| {
                MmsMessage::ReportOpenFile(FileReport {
                    result,
                    incarnation,
                    file_id,
                    attributes,
                    duration,
                    packet_bytes: packet,
                    packets,
                    bit_rate_bps: rate,
                    header_bytes: header,
                })
            }
        ),
        (any::<u32>(), any::<bool>(), any_text()).prop_map(|(result, to_proxy, location)| {
            MmsMessage::ReportRedirect(Redirect { result, to_proxy, location })
        }),
        any_token().prop_map(MmsMessage::SecurityChallenge),
        any::<(u32, u32)>()
            .prop_map(|(result, incarnation)| MmsMessage::ReportReadBlock { result, incarnation }),
        any::<u32>().prop_map(MmsMessage::ReportStreamSwitch),
        any::<(u32, u32, u32)>().prop_map(|(result, incarnation, file_id)| {
            MmsMessage::ReportStartedPlaying { result, incarnation, file_id }
        }),
        any::<(u32, u32)>()
            .prop_map(|(result, incarnation)| MmsMessage::ReportStartStriding { result, incarnation }),
        any::<(u32, u32)>().prop_map(|(result, incarnation)| {
            MmsMessage::ReportEndOfStream(EndOfStream { result, incarnation })
        }),
        any::<(u32, u32, u32)>().prop_map(|(packet_bytes, header_bytes, bit_rate_bps)| {
            MmsMessage::ReportStreamChange(StreamChange { packet_bytes, header_bytes, bit_rate_bps })
        }),
        Just(MmsMessage::Ping),
        (0x0004_0100..=u32::MAX, 0usize..5)
            .prop_map(|(mid, chunks)| MmsMessage::Other { mid, body: vec![7; 8 * chunks] }),
    ]
}

fn any_message() -> impl Strategy<Value = MmsMessage> {
    prop_oneof![any_of_player(), any_of_server()]
}

fn any_header() -> impl Strategy<Value = TcpHeader> {
    any::<(u16, u64)>().prop_map(|(sequence, time_sent_ms)| TcpHeader { sequence, time_sent_ms })
}

const PAYLOAD: &[u8] = b"an ASF data packet";

fn any_data() -> impl Strategy<Value = DataPacket<'static>> {
    let payload = prop_oneof![
        (0..PAYLOAD.len()).prop_map(|bytes| Body::from(&PAYLOAD[..bytes])),
        (0u32..3000).prop_map(Body::filler),
    ];
    (any::<(u32, u8, u8)>(), payload).prop_map(|((location, incarnation, flags), payload)| DataPacket {
        location,
        incarnation,
        flags,
        payload,
    })
}

proptest! {
    #[test]
    fn messages_are_read_as_written(header in any_header(), messages in vec(any_message(), 0..4)) {
        let written = write(header, &messages);
        prop_assert_eq!(written.len() % 8, 0);
        prop_assert_eq!(parse(&written), Ok((header, messages)));
    }

    #[test]
    fn media_is_read_as_written(packet in any_data()) {
        let written = packet.write();
        prop_assert_eq!(written.head().len(), DATA_HEADER_BYTES + packet.payload.head().len());
        prop_assert_eq!(DataPacket::parse(&written), Ok(packet));
    }

    #[test]
    fn requests_to_send_again_are_read_as_written(
        (client_id, source) in any::<(u32, u16)>(),
        sequences in vec(any::<u32>(), 1..=MOST_RESENDS),
    ) {
        let request = ResendRequest { client_id, source, sequences };
        prop_assert_eq!(ResendRequest::parse(&request.write()), Ok(request));
    }

    /// Messages and media come out of a connection in their order, wherever it is cut.
    #[test]
    fn a_connection_may_be_cut_anywhere(
        parts in vec(prop_oneof![any_message().prop_map(Ok), any_data().prop_map(Err)], 0..6),
        cuts in vec(1usize..50, 0..40),
    ) {
        let mut expected = Vec::new();
        let mut connection = Vec::new();
        for (sequence, part) in (0..).zip(&parts) {
            let header = TcpHeader { sequence, time_sent_ms: 0 };
            match part {
                Ok(message) => {
                    expected.push(Ok(MmsItem::Message(message.clone())));
                    connection.push(Chunk::bytes(write(header, std::slice::from_ref(message))));
                }
                // It would be taken for a message: see `Reader`.
                Err(data) if data.incarnation == 0xce && data.flags == 0xfa => {}
                Err(data) => {
                    expected.push(Ok(MmsItem::Data(data.write())));
                    connection.push(data.write());
                }
            }
        }
        let mut reader = Reader::of_responses();
        let mut read = Vec::new();
        let mut cuts = cuts.into_iter().cycle();
        for mut chunk in connection {
            while !chunk.is_empty() {
                let rest = chunk.split_off(cuts.next().unwrap_or(usize::MAX));
                reader.push(chunk);
                read.extend(reader.by_ref());
                chunk = rest;
            }
        }
        prop_assert_eq!(read, expected);
        prop_assert!(reader.is_between_packets());
    }

    /// The number that is nearest has the low bits, and no other nearer one has.
    #[test]
    fn numbers_are_found_by_their_low_bits(expected: u32, ahead in -128i32..128) {
        let sent = expected.wrapping_add_signed(ahead);
        prop_assert_eq!(sequence_near(sent as u8, expected), sent);
    }
}
