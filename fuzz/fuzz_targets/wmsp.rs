//! A body of any bytes, whole and cut up, gives the same packets; what is read is written as it was. Pragma headers, and
//! Windows Media's headers, bodies and attributes of RTSP take any value, and what they read they write and read again.
#![no_main]

use std::fmt::Display;
use std::str::FromStr;

use libfuzzer_sys::fuzz_target;
use streamgauge_base::Chunk;
use streamgauge_wire::http::{HttpHeaders, HttpItem, Reader as HttpReader, Request, Response};
use streamgauge_wire::rtsp::windows::bodies::{EndOfStreamNotice, PacketPairRequest, SelectStreams};
use streamgauge_wire::rtsp::windows::sdp::{PayloadFormat, WindowsMediaAttribute};
use streamgauge_wire::rtsp::windows::{
    AccelerateStreaming, Bandwidth, Notice, PlaylistGenId, SupportedFeatures,
};
use streamgauge_wire::wmsp::{Metadata, Pragmas, Problem, Reader, RequestKind, WmspPacket};

fn read(pieces: impl Iterator<Item = Chunk>) -> Vec<Result<WmspPacket, Problem>> {
    let mut reader = Reader::default();
    let mut packets = Vec::new();
    for piece in pieces {
        reader.push(piece);
        packets.extend(reader.by_ref());
    }
    packets
}

fn body(cut: u8, bytes: &[u8]) {
    let packets = read(std::iter::once(Chunk::bytes(bytes)));
    assert_eq!(read(bytes.chunks(usize::from(cut) + 1).map(Chunk::bytes)), packets);
    assert!(packets.iter().rev().skip(1).all(Result::is_ok), "a problem is the last");
    let written: Vec<u8> =
        packets.iter().flatten().flat_map(|packet| packet.write().head().to_vec()).collect();
    assert!(bytes.starts_with(&written));
    if let Ok(metadata) = Metadata::parse(bytes) {
        assert_eq!(Metadata::parse(&metadata.write()), Ok(metadata));
    }
}

fn pragmas(text: &str) {
    let head = format!("GET / HTTP/1.1\r\nHost: h\r\nPragma: {}\r\n\r\n", text.replace('\n', "\r\nPragma: "));
    let mut reader = HttpReader::of_requests();
    reader.push(Chunk::bytes(head.into_bytes()));
    let Some(Ok(HttpItem::Request(request))) = reader.next() else { return };
    let Ok(pragmas) = Pragmas::read(&request.headers) else { return };
    RequestKind::of(&request, &pragmas);
    let mut headers = HttpHeaders::default();
    pragmas.add_to(&mut headers);
    let again = Pragmas::read(&headers).expect("ours");
    // Decimals are cut where they are written, and from there on they stay.
    let (rate, speed) = (again.rate, again.speed);
    assert_eq!(again, Pragmas { rate, speed, ..pragmas });
    let mut response = Response::new(200);
    again.add_to(&mut response.headers);
    assert!(Pragmas::read(&response.headers) == Ok(again) && Request::new("GET", "/", "h").is_ok());
}

fn again<T: FromStr + Display + PartialEq>(text: &str) {
    if let Ok(value) = text.parse::<T>() {
        assert!(value.to_string().parse().is_ok_and(|again: T| again == value), "{text:?}");
    }
}

fuzz_target!(|bytes: &[u8]| {
    // The first byte says how the rest is cut.
    let Some((&cut, bytes)) = bytes.split_first() else { return };
    body(cut, bytes);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    pragmas(text);
    again::<SelectStreams>(text);
    again::<EndOfStreamNotice>(text);
    again::<PacketPairRequest>(text);
    let (name, value) = text.split_once(':').unwrap_or((text, ""));
    if let Some(Ok(attribute)) = WindowsMediaAttribute::read(name, Some(value)) {
        let value = attribute.value();
        assert_eq!(WindowsMediaAttribute::read(attribute.name(), value.as_deref()), Some(Ok(attribute)));
    }
    if let Some((payload_type, format)) = PayloadFormat::read(value) {
        assert_eq!(PayloadFormat::read(&format.rtpmap(payload_type)), Some((payload_type, format)));
    }
    // A header's value is one line.
    let line = text.lines().next().unwrap_or_default();
    again::<SupportedFeatures>(line);
    again::<AccelerateStreaming>(line);
    again::<Bandwidth>(line);
    again::<PlaylistGenId>(line);
    again::<Notice>(line);
});
