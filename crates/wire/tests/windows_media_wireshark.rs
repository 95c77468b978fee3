//! Wireshark's dissectors read our MMS, over TCP and UDP, and our RTP and RTCP, correctly.

use std::io::Write as _;
use std::process::{Command, Stdio};

use streamgauge_base::{Chunk, Duration};
use streamgauge_wire::Body;
use streamgauge_wire::mms::{
    ClientLog, Connect, ConnectFunnel, ConnectedEx, DataPacket, EndOfStream, FileReport, FunnelReport,
    MmsMessage, OpenFile, PORT, PacketPairMode, Position, ReadBlock, ResendRequest, StartPlaying,
    StreamSwitch, TCP_PACKET_PAIR_BYTES, TcpHeader, ThinningLevel, attributes, data_flags, write,
};
use streamgauge_wire::rtcp;
use streamgauge_wire::rtcp::nack::windows_media_nacks;
use streamgauge_wire::rtp_asf::{self, AsfUnit, LengthOf, RtpPacketPair};

/// The player's port.
const PLAYER: u16 = 3236;

/// One packet of a capture.
#[derive(Clone, Copy)]
enum Over {
    Tcp,
    Udp,
}

struct Packet {
    over: Over,
    from: u16,
    to: u16,
    payload: Vec<u8>,
}

fn packet(over: Over, from: u16, to: u16, payload: &Chunk) -> Packet {
    let mut payload_bytes = payload.head().to_vec();
    payload_bytes.resize(payload.len(), 0);
    Packet { over, from, to, payload: payload_bytes }
}

/// pcap of raw IPv4, without checksums; TCP's sequence numbers go on.
fn capture(packets: &[Packet]) -> Vec<u8> {
    let mut capture = Vec::new();
    let numbers = |numbers: &[u32]| numbers.iter().flat_map(|n| n.to_be_bytes()).collect::<Vec<_>>();
    // Magic, version 2.4, zone, accuracy, longest packet, LINKTYPE_RAW.
    capture.extend(numbers(&[0xa1b2_c3d4, 0x0002_0004, 0, 0, 65_535, 101]));
    let mut sent = [1u32; 2];
    for (second, Packet { over, from, to, payload }) in (0u32..).zip(packets) {
        let of_server = usize::from(*to == PLAYER);
        let ports = [from.to_be_bytes(), to.to_be_bytes()].concat();
        let (protocol, header) = match over {
            Over::Udp => (17, [&ports[..], &(8 + payload.len() as u16).to_be_bytes(), &[0; 2]].concat()),
            Over::Tcp => {
                let numbers = numbers(&[sent[of_server], sent[1 - of_server], 0x5018_ffff, 0]);
                sent[of_server] += payload.len() as u32;
                (6, [&ports[..], &numbers].concat())
            }
        };
        let bytes = (20 + header.len() + payload.len()) as u32;
        capture.extend(numbers(&[second, 0, bytes, bytes]));
        let mut addresses = [0x0a01_0001, 0x0a02_0001];
        if of_server == 1 {
            addresses.reverse();
        }
        capture.extend(numbers(&[0x4500_0000 | bytes, second << 16, 64 << 24 | protocol << 16]));
        capture.extend(numbers(&addresses));
        capture.extend(&header);
        capture.extend(payload);
    }
    capture
}

/// For each packet the values of `fields`, those of one field separated by commas; `None` without tshark.
fn dissected(packets: &[Packet], as_what: &[&str], fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let mut command = Command::new("tshark");
    command.args(["-r", "-", "-T", "fields", "-E", "separator=|"]);
    command.args(as_what.iter().flat_map(|rule| ["-d", rule]));
    command.args(fields.iter().flat_map(|field| ["-e", field]));
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Ok(mut tshark) = spawned else {
        eprintln!("tshark is not installed: not tested");
        return None;
    };
    // It writes nothing before it has read all.
    tshark.stdin.take().expect("it is piped").write_all(&capture(packets)).unwrap();
    let output = tshark.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(|line| line.split('|').map(str::to_owned).collect()).collect())
}

fn of_player() -> Vec<(MmsMessage, &'static str, &'static str)> {
    let connect = Connect {
        packet_pair: PacketPairMode::WANTED,
        subscriber: "NSPlayer/9.0.0.2980; {68c0a090-8797-11d2-a2b3-00a0c9b60551}".into(),
        host: None,
        via: None,
    };
    let funnel = ConnectFunnel { over_udp: true, address: "10.1.0.1".into(), port: PLAYER };
    let file = OpenFile { incarnation: 1, name: "media/film.wmv".into(), token: Vec::new() };
    let start = StartPlaying {
        file_id: 1,
        from: Position::Time(Duration::ZERO),
        stop: None,
        incarnation: 4,
        acceleration: Some((1_000_000, 5_000)),
        link_bps: Some(725_000),
    };
    let thin = StreamSwitch { level: ThinningLevel::KeyFrames, ..StreamSwitch::on(2) };
    let switches = vec![StreamSwitch::on(1), thin];
    vec![
        (
            MmsMessage::Connect(connect),
            "msmms.command.player-info",
            "NSPlayer/9.0.0.2980; {68c0a090-8797-11d2-a2b3-00a0c9b60551}",
        ),
        (MmsMessage::FunnelInfo(PacketPairMode::OVER_UDP), "msmms.command.to-server-id", "0x0018"),
        (MmsMessage::ConnectFunnel(funnel), "msmms.command.client-transport-info", r"\\10.1.0.1\UDP\3236"),
        (MmsMessage::OpenFile(file), "msmms.command.server-file", "media/film.wmv"),
        (
            MmsMessage::ReadBlock(ReadBlock { file_id: 1, incarnation: 2 }),
            "msmms.command.to-server-id",
            "0x0015",
        ),
        (MmsMessage::StreamSwitch(switches), "msmms.data.stream-structure-count", "2"),
        (MmsMessage::StartPlaying(start), "msmms.command.to-server-id", "0x0007"),
        (MmsMessage::StopPlaying { file_id: 1, incarnation: 4 }, "msmms.command.to-server-id", "0x0009"),
        (MmsMessage::Logging(Box::<ClientLog>::default()), "msmms.command.to-server-id", "0x0032"),
        (MmsMessage::CloseFile(1), "msmms.command.to-server-id", "0x000d"),
        (MmsMessage::Pong, "msmms.command.to-server-id", "0x001b"),
    ]
}

fn of_server() -> Vec<(MmsMessage, &'static str, &'static str)> {
    let connected = ConnectedEx {
        result: 0,
        packet_pair: PacketPairMode::WANTED,
        server_version: "9.0.0.3372".into(),
        player_version: String::new(),
        player_url: String::new(),
        authentication: "NTLM".into(),
    };
    let funnel = FunnelReport {
        result: 0,
        packet_pair: PacketPairMode::OVER_TCP,
        client_id: 77,
        random: vec![5; TCP_PACKET_PAIR_BYTES[0]],
    };
    let report = FileReport {
        file_id: 1,
        incarnation: 1,
        attributes: attributes::CAN_SEEK,
        duration: Duration::from_secs(90),
        packet_bytes: 1_444,
        packets: 4_000,
        bit_rate_bps: 340_000,
        header_bytes: 5_000,
        result: 0,
    };
    let end = EndOfStream { result: EndOfStream::DONE, incarnation: 4 };
    vec![
        (MmsMessage::ReportConnectedEx(connected), "msmms.command.server-version", "9.0.0.3372"),
        (MmsMessage::ReportFunnelInfo(funnel), "msmms.command.to-client-id", "0x0015"),
        (MmsMessage::ReportConnectedFunnel, "msmms.command.to-client-id", "0x0002"),
        (MmsMessage::ReportDisconnectedFunnel(1), "msmms.command.to-client-id", "0x0003"),
        (MmsMessage::ReportOpenFile(report), "msmms.data.media-packet-length", "1444"),
        (MmsMessage::ReportReadBlock { result: 0, incarnation: 2 }, "msmms.command.to-client-id", "0x0011"),
        (MmsMessage::ReportStreamSwitch(0), "msmms.command.to-client-id", "0x0021"),
        (
            MmsMessage::ReportStartedPlaying { result: 0, incarnation: 4, file_id: 1 },
            "msmms.command.to-client-id",
            "0x0005",
        ),
        (MmsMessage::ReportEndOfStream(end), "msmms.command.to-client-id", "0x001e"),
        (MmsMessage::Ping, "msmms.command.to-client-id", "0x001b"),
    ]
}

#[test]
fn wireshark_reads_messages() {
    let of_player = of_player().into_iter().map(|message| (message, PLAYER, PORT));
    let of_server = of_server().into_iter().map(|message| (message, PORT, PLAYER));
    let all: Vec<_> = of_player.chain(of_server).collect();
    let packets: Vec<_> = (0..)
        .zip(&all)
        .map(|(sequence, ((message, _, _), from, to))| {
            let header = TcpHeader { sequence, time_sent_ms: 0 };
            let bytes = Chunk::bytes(write(header, std::slice::from_ref(message)));
            packet(Over::Tcp, *from, *to, &bytes)
        })
        .collect();
    let mut fields = vec!["_ws.malformed", "_ws.expert.severity", "msmms.command.sequence-number"];
    fields.extend(all.iter().map(|((_, field, _), _, _)| field));
    // tshark fills the last of two columns that are the same.
    let column = |field| fields.iter().rposition(|one| one == field).expect("it is among them");
    let Some(read) = dissected(&packets, &[], &fields) else { return };
    assert_eq!(read.len(), all.len());
    for ((sequence, ((message, field, value), _, _)), read) in (0..).zip(&all).zip(&read) {
        let told = (&*read[0], &*read[1], read[2].parse(), &*read[column(field)]);
        assert_eq!(told, ("", "", Ok::<u32, _>(sequence), *value), "{message:?}");
    }
    // A fault would be found.
    let mut cut = packet(Over::Tcp, PLAYER, PORT, &Chunk::bytes(packets[0].payload.clone()));
    cut.payload.truncate(44);
    let found = dissected(&[cut], &[], &["_ws.malformed", "msmms.command.player-info"]);
    assert_ne!(
        found.expect("it is installed")[0][1],
        "NSPlayer/9.0.0.2980; {68c0a090-8797-11d2-a2b3-00a0c9b60551}"
    );
}

#[test]
fn wireshark_reads_media() {
    let media = DataPacket { location: 7, incarnation: 4, flags: 9, payload: Body::filler(1_300) };
    let header =
        DataPacket { location: 0, incarnation: 2, flags: data_flags::WHOLE, payload: Body::filler(500) };
    // Over TCP it identifies media by numbers that are flags of headers too.
    let first = DataPacket { flags: 0, ..media };
    let resend = ResendRequest { client_id: 77, source: 1, sequences: vec![8, 10] };
    let packets = [
        packet(Over::Udp, PORT, PLAYER, &media.write()),
        packet(Over::Udp, PLAYER, PORT, &Chunk::bytes(resend.write())),
        packet(Over::Tcp, PORT, PLAYER, &first.write()),
        packet(Over::Tcp, PORT, PLAYER, &header.write()),
    ];
    let fields = [
        "_ws.malformed",
        "msmms.data.sequence",
        "msmms.data.packet-length",
        "msmms.data.udp-sequence",
        "msmms.data.client-id",
        "msmms.data.packet-to-resend",
    ];
    let as_what = [&*format!("udp.port=={PORT},msmms")];
    let Some(read) = dissected(&packets, &as_what, &fields) else { return };
    assert_eq!(read[0][..4], ["", "7", "1308", "9"]);
    assert_eq!((&*read[1][0], &*read[1][4], &*read[1][5]), ("", "0x0000004d", "8,10"));
    assert_eq!(read[2][..3], ["", "7", "1308"]);
    assert_eq!(read[3][..3], ["", "0", "508"]);
}

/// RTP's header (RFC 3550 section 5.1) before a payload.
fn rtp(marker: bool, sequence: u16, timestamp: u32, payload: &Chunk) -> Chunk {
    let [high, low] = sequence.to_be_bytes();
    let mut bytes = vec![0x80, 96 | if marker { 0x80 } else { 0 }, high, low];
    bytes.extend(timestamp.to_be_bytes());
    bytes.extend(0x2f73_682bu32.to_be_bytes());
    bytes.extend(payload.head());
    Chunk::with_filler(bytes, (payload.len() - payload.head().len()) as u32)
}

#[test]
fn wireshark_reads_rtp_and_rtcp() {
    let unit = AsfUnit::packet(true, Body::filler(1_444));
    let media = rtp_asf::write(&[unit], LengthOf::HeaderAndPacket);
    let pair = RtpPacketPair { is_first: true, random: Body::filler(1_454) }.write();
    let [nacks] = &windows_media_nacks(7, 0x2f73_682b, 9, &[100, 101, 117])[..] else { panic!("one") };
    let packets = [
        packet(Over::Udp, 5004, PLAYER, &rtp(true, 9, 40, &media)),
        packet(Over::Udp, 5004, PLAYER, &rtp(true, 10, 0, &pair)),
        packet(Over::Udp, PLAYER + 1, 5005, &Chunk::bytes(rtcp::write(nacks))),
    ];
    let fields = [
        "_ws.malformed",
        "_ws.expert.severity",
        "rtp.seq",
        "rtp.timestamp",
        "rtp.marker",
        "rtcp.pt",
        "rtcp.sdes.text",
    ];
    let as_what = [&*format!("udp.port=={PLAYER},rtp"), "udp.port==5005,rtcp"];
    let Some(read) = dissected(&packets, &as_what, &fields) else { return };
    assert_eq!(read[0][..5], ["", "", "9", "40", "1"]);
    assert_eq!(read[1][..5], ["", "", "10", "0", "1"]);
    let cname = "796092459@WMS:7ff42e07-3c7c-4eb5-9c17-6bdd11ad90de";
    assert_eq!((&*read[2][0], &*read[2][5], &*read[2][6]), ("", "201,202,205", cname));
}
