//! Wireshark's dissector reads our RDT packets correctly.

use std::io::Write as _;
use std::process::{Command, Stdio};

use streamgauge_wire::rdt::{
    AckPacket, BandwidthReport, Body, BufferInfo, DataPacket, EndReason, Packet, RttInfo, SequenceNumber,
    StreamEnd, TransportInfo, TransportInfoRequest, types, write,
};

const PORT: u16 = 6970;

/// A capture of datagrams to `PORT`: pcap of raw IPv4, without checksums.
fn capture(datagrams: &[Vec<u8>]) -> Vec<u8> {
    let mut capture = Vec::new();
    let numbers = |numbers: &[u32]| numbers.iter().flat_map(|n| n.to_be_bytes()).collect::<Vec<_>>();
    // Magic, version 2.4, zone, accuracy, longest packet, LINKTYPE_RAW.
    capture.extend(numbers(&[0xa1b2_c3d4, 0x0002_0004, 0, 0, 65_535, 101]));
    for (second, payload) in (0u32..).zip(datagrams) {
        let (udp, ip) = (8 + payload.len() as u16, 28 + payload.len() as u16);
        capture.extend(numbers(&[second, 0, ip.into(), ip.into()]));
        let protocol = 64 << 24 | 17 << 16;
        capture.extend(numbers(&[0x4500_0000 | u32::from(ip), 0, protocol, 0x0a01_0001, 0x0a02_0001]));
        capture.extend([PORT + 2, PORT, udp, 0].map(u16::to_be_bytes).concat());
        capture.extend(payload);
    }
    capture
}

/// For each datagram the values of `fields`, those of one field separated by commas; `None` without tshark.
fn dissected(datagrams: &[Vec<u8>], fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let told = ["-r", "-", "-d", &format!("udp.port=={PORT},rdt"), "-T", "fields", "-E", "separator=|"];
    let mut command = Command::new("tshark");
    command.args(told).args(fields.iter().flat_map(|field| ["-e", field]));
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Ok(mut tshark) = spawned else {
        eprintln!("tshark is not installed: not tested");
        return None;
    };
    // A capture of a few kB fits into the pipe.
    tshark.stdin.take().expect("it is piped").write_all(&capture(datagrams)).unwrap();
    let output = tshark.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(|line| line.split('|').map(str::to_owned).collect()).collect())
}

fn sequence(number: u16) -> SequenceNumber {
    SequenceNumber::new(number).expect("below 0xff00")
}

fn bytes(packets: &[Packet<'_>]) -> Vec<u8> {
    write(packets).head().to_vec()
}

#[test]
fn wireshark_reads_data() {
    let small = DataPacket {
        stream: 1,
        sequence: sequence(300),
        rule: 3,
        timestamp_ms: 70_000,
        payload: Body::from(&[7; 600][..]),
        ..DataPacket::default()
    };
    let large = DataPacket {
        stream: 500,
        sequence: sequence(0xfeff),
        is_reliable: true,
        total_reliable: Some(44),
        is_back_to_back: true,
        is_slow: true,
        rule: 600,
        ..small
    };
    let datagrams = [
        bytes(&[Packet::Data(small)]),
        bytes(&[Packet::Data(large)]),
        bytes(&[Packet::LatencyReport { server_time_ms: 12_345 }, Packet::Data(large)]),
    ];
    let fields = [
        "rdt.stream-id",
        "rdt.stream-id-expansion",
        "rdt.sequence-number",
        "rdt.asm-rule",
        "rdt.asm-rule-expansion",
        "rdt.timestamp",
        "rdt.is-reliable",
        "rdt.total-reliable",
        "rdt.back-to-back",
        "rdt.slow-data",
        "rdt.packet-length",
        "rdt.lrpt-server-out-time",
        "_ws.malformed",
        "rdt.invalid_packet_length",
    ];
    let Some(read) = dissected(&datagrams, &fields) else { return };
    let expected = [
        ["1", "", "300", "3", "", "70000", "0", "", "0", "0", "", "", "", ""],
        ["31", "500", "65279", "63", "600", "70000", "1", "44", "1", "1", "", "", "", ""],
        ["31", "500", "65279", "63", "600", "70000", "1", "44", "1", "1", "9", "12345", "", ""],
    ];
    assert_eq!(read, expected);
}

#[test]
fn wireshark_reads_the_other_packets() {
    let ack = AckPacket::of(2, sequence(0), sequence(9), |number| number.get() % 2 == 1);
    let end =
        StreamEnd { stream: 4, packet_sent: true, sequence: 9, timestamp_ms: 5, ..StreamEnd::default() };
    let reason = Some(EndReason { code: 0x8004_0005, text: b"why" });
    let buffer = BufferInfo { stream: 1, lowest_timestamp_ms: 2, highest_timestamp_ms: 3, bytes: 4 };
    let info = TransportInfo {
        rtt: Some(RttInfo { request_time_ms: 21, response_time_ms: Some(22) }),
        buffers: Some(vec![buffer, BufferInfo { bytes: 5, ..buffer }]),
    };
    let report = BandwidthReport { interval: 1, bandwidth_bps: 34_000, sequence: 6 };
    let request = TransportInfoRequest { rtt_ms: Some(21), wants_buffers: true };
    let other =
        |packet_type, body: &'static [u8]| Packet::Other { packet_type, flags: 0x80, body: body.into() };
    let data = Packet::Data(DataPacket { payload: Body::from(&b"media"[..]), ..DataPacket::default() });
    // A packet, the name of its field, and Wireshark's reading of it.
    let packets = [
        (Packet::Ack(AckPacket::lost(0, sequence(1), sequence(3))), "rdt.lost-high", "1"),
        (Packet::Ack(ack), "rdt.lost-high", "0"),
        (Packet::RttRequest, "rdt.packet-type", "0xff03"),
        (Packet::RttResponse { seconds: 8, micros: 9 }, "rdt.rtrp-ts-usec", "9"),
        (Packet::Congestion { send: 10, receive: 11 }, "rdt.cong-recv-mult", "11"),
        (Packet::StreamEnd(end), "rdt.stre-seqno", "9"),
        (Packet::LatencyReport { server_time_ms: 12 }, "rdt.lrpt-server-out-time", "12"),
        (Packet::BandwidthReport(report), "rdt.bwid-report-bandwidth", "34000"),
        (Packet::TransportInfoRequest(request), "rdt.tirq-request-time-msec", "21"),
        (Packet::TransportInfo(info), "rdt.tirp-buffer-info-bytes-buffered", "4,5"),
        (other(types::REPORT, b"\0\x09some"), "rdt.packet-type", "0xff07"),
        (other(types::BANDWIDTH_PROBE, b"\0\x0e\x07\0\0\0\x01some"), "rdt.bwpp-seqno", "7"),
        (
            Packet::StreamEnd(StreamEnd { stream: 31, total_reliable: Some(3), reason, ..end }),
            "rdt.stre-reason-code",
            "0x80040005",
        ),
    ];
    let datagrams: Vec<_> =
        packets.iter().map(|(packet, _, _)| bytes(std::slice::from_ref(packet))).collect();
    let mut fields = vec!["_ws.malformed", "rdt.invalid_packet_length"];
    fields.extend(packets.iter().map(|(_, field, _)| field));
    // tshark fills the last of two columns that are the same.
    let column = |field| fields.iter().rposition(|one| one == field).expect("it is among them");
    let Some(read) = dissected(&datagrams, &fields) else { return };
    for ((packet, field, value), read) in packets.iter().zip(&read) {
        assert_eq!((&*read[0], &*read[1], &*read[column(field)]), ("", "", *value), "{packet:?}");
    }
    assert_eq!(read.len(), packets.len());

    // Before data in a datagram. (Wireshark 4.0 takes a transport info and a reason to be the last.)
    let before: Vec<_> =
        packets[..9].iter().map(|(packet, _, _)| bytes(&[packet.clone(), data.clone()])).collect();
    let read = dissected(&before, &["_ws.malformed", "rdt.invalid_packet_length", "rdt.asm-rule"]);
    assert_eq!(read.expect("it is installed"), vec![["", "", "0"]; before.len()]);
    // A fault would be found.
    let cut = dissected(&[b"\0\xff\x04\0".to_vec()], &["_ws.malformed"]).expect("it is installed");
    assert_ne!(cut, [[""]]);
}
