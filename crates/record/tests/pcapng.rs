//! `capture.pcapng`: judged by a reader of blocks written from the specification, and by Wireshark's tools where they
//! are installed.

mod common;

use std::path::Path;
use std::process::Command;

use common::Scratch;
use proptest::prelude::*;
use streamgauge_record::{PacketDirection, PcapngWriter, RecordError};

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// Returns the type and body of each block; panics where lengths do not agree.
fn blocks(mut bytes: &[u8]) -> Vec<(u32, &[u8])> {
    let mut blocks = Vec::new();
    while !bytes.is_empty() {
        let length = u32_at(bytes, 4) as usize;
        assert!(length.is_multiple_of(4) && length >= 12 && length <= bytes.len());
        assert_eq!(u32_at(bytes, length - 4) as usize, length);
        blocks.push((u32_at(bytes, 0), &bytes[8..length - 4]));
        bytes = &bytes[length..];
    }
    blocks
}

proptest! {
    /// Every frame is read back with its place, its time and any content.
    #[test]
    fn frames_come_back(
        frames in proptest::collection::vec(
            (any::<bool>(), any::<u64>(), any::<bool>(), proptest::collection::vec(any::<u8>(), 0..100)),
            0..20,
        ),
        name in ".{0,20}",
    ) {
        let mut file = Vec::new();
        let mut writer = PcapngWriter::new(&mut file, Path::new("c")).unwrap();
        let taps = [writer.interface(&name).unwrap(), writer.interface("client").unwrap()];
        for (second, at, out, frame) in &frames {
            let direction = if *out { PacketDirection::Outbound } else { PacketDirection::Inbound };
            writer.packet(taps[usize::from(*second)], *at, direction, frame).unwrap();
        }
        prop_assert_eq!(writer.finish().unwrap(), frames.len() as u64);
        let blocks = blocks(&file);
        let kinds: Vec<_> = blocks.iter().take(3).map(|b| b.0).collect();
        prop_assert_eq!(kinds, [0x0a0d_0d0a, 1, 1]);
        let read = blocks[3..].iter().map(|(kind, body)| {
            assert_eq!(*kind, 6);
            let length = u32_at(body, 12) as usize;
            let at = u64::from(u32_at(body, 4)) << 32 | u64::from(u32_at(body, 8));
            let options = 20 + length.next_multiple_of(4);
            assert_eq!((u32_at(body, 16) as usize, &body[options..options + 4]), (length, &[2, 0, 4, 0][..]));
            (u32_at(body, 0) == 1, at, u32_at(body, options + 4) == 2, body[20..20 + length].to_vec())
        });
        prop_assert_eq!(read.collect::<Vec<_>>(), frames);
    }
}

#[test]
fn an_interface_of_another_capture_is_refused() {
    let mut other = PcapngWriter::new(Vec::new(), Path::new("a")).unwrap();
    let tap = other.interface("x").unwrap();
    let mut writer = PcapngWriter::new(Vec::new(), Path::new("b")).unwrap();
    let error = writer.packet(tap, 0, PacketDirection::Inbound, &[0; 60]).unwrap_err();
    assert!(matches!(error, RecordError::Invalid { .. }));
    assert!(writer.statistics(tap, 0, 1, 0).is_err());
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let error = PcapngWriter::new(full, Path::new("capture.pcapng")).unwrap().finish().unwrap_err();
    assert!(error.to_string().starts_with("capture.pcapng: writing: No space left on device"), "{error}");
}

/// Wireshark's own words about a small capture.
#[test]
fn wireshark_reads_it() {
    if Command::new("tshark").arg("--version").output().is_err() {
        eprintln!("tshark is not installed: not tested");
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.join("capture.pcapng");
    let mut writer = PcapngWriter::create(&path).unwrap();
    let taps = [writer.interface("server").unwrap(), writer.interface("client").unwrap()];
    let mut frame = Vec::new();
    etherparse::PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4([10, 1, 0, 1], [10, 2, 0, 1], 64)
        .udp(5004, 6000)
        .write(&mut frame, b"seven b")
        .unwrap();
    let at = 1_700_000_000_123_456_789;
    writer.packet(taps[0], at, PacketDirection::Inbound, &frame).unwrap();
    writer.packet(taps[1], at + 10_000_001, PacketDirection::Outbound, &frame).unwrap();
    for (tap, dropped) in taps.into_iter().zip([0, 3]) {
        writer.statistics(tap, at, at + 20_000_000, dropped).unwrap();
    }
    assert_eq!(writer.finish().unwrap(), 2);
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).arg(&path).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let fields = ["frame.interface_name", "frame.time_epoch", "frame.packet_flags_direction", "udp.dstport"];
    let mut arguments = vec!["-T", "fields", "-E", "separator=,"];
    fields.iter().for_each(|field| arguments.extend(["-e", field]));
    arguments.push("-r");
    let text = run("tshark", &arguments);
    let lines: Vec<Vec<&str>> = text.lines().map(|l| l.split(',').collect()).collect();
    let direction = |name: &str| if name == "in" { ["1", "0x00000001"] } else { ["2", "0x00000002"] };
    for (line, (tap, stamp, way)) in lines
        .iter()
        .zip([("server", "1700000000.123456789", "in"), ("client", "1700000000.133456790", "out")])
    {
        assert_eq!((line[0], line[1], line[3]), (tap, stamp, "6000"));
        assert!(direction(way).contains(&line[2]), "{line:?}");
    }
    assert_eq!(lines.len(), 2);
    let text = run("capinfos", &["-M", "-I"]);
    let said = |what: &str| {
        text.lines().any(|line| line.split_whitespace().collect::<Vec<_>>().join(" ").contains(what))
    };
    assert!(said("Name = server") && said("Time precision = nanoseconds (9)"), "{text}");
    assert!(said("Number of stat entries = 1") && said("Number of packets = 1"), "{text}");
}
