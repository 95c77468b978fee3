//! Each format gives the packets that were put into it; damage gives the part before it.

mod bytes;

use std::io::Cursor;

use bytes::{block, down, ethernet, file, interface, ipv4, packet, pcap, section, udp, up};
use proptest::prelude::*;
use streamgauge_capture::{Capture, CaptureEnding, CaptureReader, Flows, analyse, decompressed, survey};

fn frames() -> Vec<(i64, Vec<u8>)> {
    (0..5)
        .map(|n| (1_700_000_000_000_000_000 + n * 1_000_000, down(n as u16 + 1, n as u32 * 100, 100).ip()))
        .collect()
}

/// Times and source ports of a file's packets, and its end.
fn read(bytes: Vec<u8>) -> (Vec<(i64, u16)>, CaptureEnding) {
    let plain = decompressed(Cursor::new(bytes)).unwrap();
    let mut capture = Capture::new(CaptureReader::new(plain, "test").unwrap(), None).unwrap();
    let mut found = Vec::new();
    while capture.next_packet(|packet| found.push((packet.at_ns, packet.source.port))) {}
    (found, capture.ending().unwrap().clone())
}

fn expected(unit: i64) -> Vec<(i64, u16)> {
    frames().iter().map(|(at, _)| (at / unit * unit, 80)).collect()
}

#[test]
fn pcap_of_both_orders_and_units() {
    for big in [false, true] {
        for nanoseconds in [false, true] {
            let (found, ending) = read(pcap(101, big, nanoseconds, &frames()));
            assert_eq!(found, expected(if nanoseconds { 1 } else { 1000 }), "{big} {nanoseconds}");
            assert_eq!(ending, CaptureEnding::Whole);
        }
    }
}

fn pcapng(big: bool) -> Vec<u8> {
    let mut file = [section(big), interface(big, 9, 0)].concat();
    file.extend(block(0x0bad, big, &[1, 2, 3, 4]));
    for (at, bytes) in &frames()[..2] {
        file.extend(packet(big, 0, *at as u64, bytes, bytes.len() as u32));
    }
    // A second section in the other order, its stamps in us and 1000 s behind.
    file.extend([section(!big), interface(!big, 6, 1000)].concat());
    for (at, bytes) in &frames()[2..] {
        let stamp = (at / 1000 - 1_000_000_000) as u64;
        file.extend(packet(!big, 0, stamp, bytes, bytes.len() as u32));
    }
    file
}

#[test]
fn pcapng_of_both_orders_with_sections_and_unknown_blocks() {
    for big in [false, true] {
        assert_eq!(read(pcapng(big)), (expected(1), CaptureEnding::Whole), "{big}");
    }
}

#[test]
fn simple_packets_have_no_time() {
    let ip = frames()[0].1.clone();
    let body = [&(ip.len() as u32).to_le_bytes()[..], &ip].concat();
    let bytes = [section(false), interface(false, 9, 0), block(3, false, &body)].concat();
    let found = analyse(&file("simple.pcapng", &bytes), None, None).unwrap();
    assert_eq!((found.capture.packets, found.capture.without_time, found.capture.first_s), (1, 1, None));
}

#[test]
fn gzip_and_zstd_are_looked_through() {
    use std::io::Write;
    let plain = pcapng(false);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&plain).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(&plain[..], 3).unwrap();
    assert_eq!(read(gzip.clone()).0, expected(1));
    assert_eq!(read(zstd).0, expected(1));
    let cut = &gzip[..gzip.len() - 20];
    let path = file("cut.gz", cut);
    match analyse(&path, None, None) {
        Ok(found) => assert!(found.capture.damage.is_some()),
        Err(error) => assert!(error.to_string().contains("cannot be read"), "{error}"),
    }
}

#[test]
fn layers_down_to_ip() {
    let ip = frames()[0].1.clone();
    let vlan = [&[0x00, 0x05, 0x08, 0x00][..], &ip].concat();
    let qinq = [&[0x00, 0x05, 0x81, 0x00][..], &vlan].concat();
    let mpls = [&[0, 0, 0x10, 0x40, 0, 0, 0x21, 0x40][..], &ip].concat();
    let pppoe = [&[0x11, 0, 0, 1, 0, 0, 0x00, 0x21][..], &ip].concat();
    let gre = ipv4(47, [1, 1, 1, 1], [2, 2, 2, 2], 1, &[&[0x20, 0, 0x08, 0, 0, 0, 0, 7][..], &ip].concat());
    let inner = ethernet(0x0800, &ip);
    let vxlan = udp((5000, 4789), 1, &[&[8, 0, 0, 0, 0, 0, 1, 0][..], &inner].concat());
    let mpls_bottom = {
        let mut bytes = mpls.clone();
        bytes[6] |= 1;
        bytes
    };
    let cooked = [&[0; 14][..], &[0x08, 0x00], &ip].concat();
    let cooked_2 = [&[0x08, 0x00][..], &[0; 18], &ip].concat();
    let cases = [
        (1, ethernet(0x0800, &ip)),
        (1, ethernet(0x8100, &vlan)),
        (1, ethernet(0x88a8, &qinq)),
        (1, ethernet(0x8847, &mpls_bottom)),
        (1, ethernet(0x8864, &pppoe)),
        (1, ethernet(0x0800, &gre)),
        (1, ethernet(0x0800, &vxlan)),
        (113, cooked),
        (276, cooked_2),
        (0, [&[2, 0, 0, 0][..], &ip].concat()),
        (9, [&[0xff, 0x03, 0x00, 0x21][..], &ip].concat()),
        (228, ip.clone()),
    ];
    for (link, frame) in cases {
        let (found, _) = read(pcap(link, false, true, &[(7, frame)]));
        assert_eq!(found, [(7, 80)], "link type {link}");
    }
}

#[test]
fn what_is_no_capture_is_refused_with_the_reason() {
    for (bytes, reason) in [
        (&b""[..], "empty"),
        (b"hello, this is a text and no capture at all", "neither as pcap nor as pcapng"),
        (&[0xd4, 0xc3, 0xb2], "neither"),
    ] {
        let error = analyse(&file("none", bytes), None, None).unwrap_err().to_string();
        assert!(error.contains(reason) || error.contains("ends within"), "{error}");
    }
    let netlink = pcap(253, false, false, &frames());
    let error = analyse(&file("netlink", &netlink), None, None).unwrap_err().to_string();
    assert!(error.contains("link type is 253"), "{error}");
    let error = analyse(&std::env::temp_dir(), None, None).unwrap_err().to_string();
    assert!(error.contains("folder"), "{error}");
}

#[test]
fn a_cut_file_gives_the_packets_before_the_cut() {
    let whole = pcap(101, false, true, &frames());
    let found = analyse(&file("cut.pcap", &whole[..whole.len() - 7]), None, None).unwrap();
    assert_eq!(found.capture.packets, 4);
    assert!(found.capture.damage.unwrap().contains("cut off"));
}

#[test]
fn a_length_of_four_gigabytes_is_damage() {
    let mut bytes = pcap(101, false, true, &frames());
    let at = bytes.len() - 140 - 8;
    bytes[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    let found = analyse(&file("long.pcap", &bytes), None, None).unwrap();
    assert_eq!(found.capture.packets, 4);
    assert!(found.capture.damage.is_some());
}

#[test]
fn a_short_snapshot_loses_no_header() {
    let bytes: Vec<u8> = [section(false), interface(false, 9, 0)].concat();
    let ip = frames()[0].1.clone();
    let bytes = [bytes, packet(false, 0, 5, &ip[..40], ip.len() as u32)].concat();
    let found = analyse(&file("snap.pcapng", &bytes), None, None).unwrap();
    assert_eq!((found.capture.cut, found.flows[0].bytes), (1, ip.len() as u64));
}

#[test]
fn every_packet_four_times_is_every_packet_once() {
    let mut frames = Vec::new();
    for n in 0..20u16 {
        for copy in 0..4 {
            frames.push((i64::from(n) * 1_000_000 + copy * 1000, down(n + 1, u32::from(n) * 100, 100).ip()));
        }
        frames.push((i64::from(n) * 1_000_000 + 500_000, up(n + 1, u32::from(n) * 100 + 100).ip()));
    }
    let path = file("copies.pcap", &pcap(101, false, true, &frames));
    let found = analyse(&path, None, None).unwrap();
    assert_eq!((found.capture.copies, found.flows[0].packets), (60, 20));
    assert_eq!(found.flows[0].retransmitted, Some(0));
    assert!(survey(&path).unwrap().has_copies);
}

#[test]
fn years_of_silence_and_time_that_goes_back() {
    let mut frames = frames();
    frames[3].0 += 10 * 365 * 86_400 * 1_000_000_000;
    let found = analyse(&file("years.pcap", &pcap(101, false, true, &frames)), None, None).unwrap();
    assert_eq!((found.capture.jumps.len(), found.capture.backwards), (1, 1));
    assert_eq!(found.capture.packets, 5);
}

#[test]
fn flows_beyond_the_bound_are_counted() {
    let bound = streamgauge_capture::MOST_FLOWS as u32;
    let frames: Vec<_> = (0..bound + 10)
        .map(|n| {
            let address = (0x0b00_0000 + n).to_be_bytes();
            (i64::from(n), ipv4(17, address, [10, 0, 0, 2], 1, &[0, 1, 0, 2, 0, 9, 0, 0, 1]))
        })
        .collect();
    let found = analyse(&file("many.pcap", &pcap(101, false, true, &frames)), None, None).unwrap();
    assert_eq!((found.flows.len() as u32, found.capture.beyond), (bound, 10));
    assert_eq!(found.capture.packets, u64::from(bound) + 10);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_bytes_are_accepted(noise in prop::collection::vec(any::<u8>(), 0..400), at in 0usize..600, kind in 0u8..3) {
        let mut bytes = match kind {
            0 => pcap(1, false, true, &frames()),
            1 => pcapng(true),
            _ => Vec::new(),
        };
        let at = at.min(bytes.len());
        let end = (at + noise.len()).min(bytes.len());
        bytes.splice(at..end, noise);
        let Ok(plain) = decompressed(Cursor::new(bytes)) else { return Ok(()) };
        let Ok(reader) = CaptureReader::new(plain, "noise") else { return Ok(()) };
        let mut capture = Capture::new(reader, None).unwrap();
        let mut flows = Flows::default();
        capture.read(&mut flows, |_, _| {});
        prop_assert!(capture.ending().is_some());
    }
}

/// Packets that are made as they are read.
struct Endless<F> {
    next: F,
    rest: Vec<u8>,
}

impl<F: FnMut() -> Option<Vec<u8>>> std::io::Read for Endless<F> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.rest.is_empty() {
            self.rest = (self.next)().unwrap_or_default();
        }
        let count = into.len().min(self.rest.len());
        into[..count].copy_from_slice(&self.rest[..count]);
        self.rest.drain(..count);
        Ok(count)
    }
}

#[test]
fn of_a_million_flows_so_many_are_followed() {
    const FLOWS: u32 = 1_000_000;
    let mut made = 0;
    let next = move || {
        let mut bytes = if made == 0 { pcap(101, false, true, &[]) } else { Vec::new() };
        for _ in 0..1000.min(FLOWS - made) {
            let address = (0x0b00_0000 + made).to_be_bytes();
            let ip = ipv4(17, address, [10, 0, 0, 2], 1, &[0, 1, 0, 2, 0, 9, 0, 0, 1]);
            let size = ip.len() as u32;
            bytes.extend([made / 1000, made % 1000, size, size].map(u32::to_le_bytes).concat());
            bytes.extend(ip);
            made += 1;
        }
        (!bytes.is_empty()).then_some(bytes)
    };
    let reader = CaptureReader::new(Endless { next, rest: Vec::new() }, "million").unwrap();
    let mut capture = Capture::new(reader, None).unwrap();
    let mut flows = Flows::default();
    capture.read(&mut flows, |_, _| {});
    assert_eq!(flows.flows.len(), streamgauge_capture::MOST_FLOWS);
    assert_eq!(flows.beyond.0, u64::from(FLOWS) - streamgauge_capture::MOST_FLOWS as u64);
}

#[test]
fn times_that_jump_by_years_and_claims_of_any_length() {
    // From 1970 to 2106 and back, packet by packet; the header claims a snapshot length of 4 GB.
    let times = [0u32, u32::MAX, 1, 1_700_000_000, u32::MAX - 1, 0];
    let mut bytes = pcap(101, false, true, &[]);
    bytes[16..20].copy_from_slice(&u32::MAX.to_le_bytes());
    for n in 0..600u32 {
        let segment = if n % 3 == 2 { up(n as u16, n * 100) } else { down(n as u16, n * 100, 100) };
        let ip = segment.ip();
        let original = if n % 7 == 0 { u32::MAX } else { ip.len() as u32 };
        let words = [times[n as usize % times.len()], 999_999_999, ip.len() as u32, original];
        bytes.extend(words.map(u32::to_le_bytes).concat());
        bytes.extend(ip);
    }
    let path = file("years.pcap", &bytes);
    let found = analyse(&path, None, None).unwrap();
    assert_eq!((found.capture.packets, found.capture.damage.is_none()), (600, true));
    assert!(found.flows.iter().all(|flow| flow.course.as_ref().is_none_or(|(_, bins)| bins.len() <= 256)));
    let source = || streamgauge_capture::CaptureSource { path: &path, only: None };
    let known = streamgauge_capture::KnownBeforehand::default();
    let _ = streamgauge_capture::analyse_pair(&source(), &source(), &known, |_| {});
}

#[test]
fn stamps_beyond_all_time_are_the_nearest_that_are_known() {
    let ip = frames()[0].1.clone();
    for (resolution, offset) in [(0, 0), (0, i64::MAX), (9, i64::MIN), (127, 0), (255, i64::MAX)] {
        let mut bytes = [section(false), interface(false, resolution, offset)].concat();
        for stamp in [0, 1, u64::MAX] {
            bytes.extend(packet(false, 0, stamp, &ip, ip.len() as u32));
        }
        let found = analyse(&file("stamps.pcapng", &bytes), None, None).unwrap();
        assert_eq!(found.capture.packets, 3, "{resolution} {offset}");
    }
}

#[test]
fn packets_from_the_buffer_are_those_of_the_parser_of_all_blocks() {
    // Nothing of a block with a wrong second length is taken, as before.
    let mut bytes = pcapng(false);
    let at = bytes.len() - 4;
    bytes[at] ^= 4;
    let (found, ending) = read(bytes);
    assert_eq!(found, expected(1)[..4]);
    assert!(matches!(ending, CaptureEnding::Damaged { .. }));
}
