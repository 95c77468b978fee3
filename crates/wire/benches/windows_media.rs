//! The cost of writing and reading Windows Media's packets: an ASF data packet of 1,444 B over MMS, HTTP and
//! RTP, with all its bytes and with filler as in virtual time; and a message, a NACK of 100 numbers, and the
//! Pragma headers of a request. Throughput is in packets, messages and requests.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use streamgauge_base::{Chunk, Duration};
use streamgauge_wire::Body;
use streamgauge_wire::http::HttpHeaders;
use streamgauge_wire::mms::{self, DataPacket, MmsMessage, Position, StartPlaying, StreamSwitch, TcpHeader};
use streamgauge_wire::rtcp::{self, nack::windows_media_nacks};
use streamgauge_wire::rtp_asf::{self, AsfUnit, LengthOf};
use streamgauge_wire::wmsp::{PacketContent, Pragmas, Reader, WmspPacket};

/// An ASF data packet.
const PACKET: usize = 1_444;

fn media(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("windows_media");
    group.throughput(Throughput::Elements(1));
    let real = [0; PACKET];
    for (what, payload) in [("", Body::from(&real[..])), (", filler", Body::filler(PACKET as u32))] {
        let data = DataPacket { location: 7, incarnation: 4, flags: 9, payload };
        let datagram = data.write();
        group.bench_function(format!("write/mms{what}"), |b| b.iter(|| black_box(&data).write()));
        group.bench_function(format!("read/mms{what}"), |b| {
            b.iter(|| DataPacket::parse(black_box(&datagram)).map(|data| data.location))
        });
        let framed = || WmspPacket::from(PacketContent::data(black_box(&data))).write();
        let body = framed();
        group.bench_function(format!("write/wmsp{what}"), |b| b.iter(framed));
        group.bench_function(format!("read/wmsp{what}"), |b| {
            b.iter(|| {
                let mut reader = Reader::default();
                reader.push(black_box(&body).clone());
                reader.count()
            })
        });
        let unit = AsfUnit::packet(true, payload);
        let written = || rtp_asf::write(&[black_box(unit)], LengthOf::HeaderAndPacket);
        let rtp = written();
        group.bench_function(format!("write/rtp{what}"), |b| b.iter(written));
        group.bench_function(format!("read/rtp{what}"), |b| {
            b.iter(|| rtp_asf::parse(black_box(&rtp)).count())
        });
    }
    group.finish();
}

fn control(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("windows_media");
    group.throughput(Throughput::Elements(1));
    let start = MmsMessage::StartPlaying(StartPlaying {
        file_id: 1,
        from: Position::Time(Duration::ZERO),
        stop: None,
        incarnation: 4,
        acceleration: Some((1_000_000, 8_000)),
        link_bps: Some(725_000),
    });
    let write = || mms::write(TcpHeader::default(), std::slice::from_ref(black_box(&start)));
    let message = write();
    group.bench_function("write/message", |b| b.iter(write));
    group.bench_function("read/message", |b| {
        b.iter(|| mms::parse(black_box(&message)).map(|read| read.1.len()))
    });
    let lost: Vec<u16> = (0..100).map(|number| number * 3).collect();
    let nacks = || -> Vec<Chunk> {
        let compounds = windows_media_nacks(1, 2, 3, black_box(&lost));
        compounds.iter().map(|compound| Chunk::bytes(rtcp::write(compound))).collect()
    };
    let datagrams = nacks();
    group.bench_function("write/nack", |b| b.iter(nacks));
    group.bench_function("read/nack", |b| {
        b.iter(|| datagrams.iter().map(|datagram| rtcp::parse(datagram.head()).count()).sum::<usize>())
    });
    let pragmas = Pragmas {
        no_cache: true,
        play: Some(true),
        client_id: Some(77),
        accel_bps: Some(1_000_000),
        accel_duration_ms: Some(8_000),
        stream_switches: vec![StreamSwitch::on(1), StreamSwitch::on(2)],
        ..Pragmas::default()
    };
    let headers = || {
        let mut headers = HttpHeaders::default();
        black_box(&pragmas).add_to(&mut headers);
        headers
    };
    let written = headers();
    group.bench_function("write/pragmas", |b| b.iter(headers));
    group.bench_function("read/pragmas", |b| b.iter(|| Pragmas::read(black_box(&written)).is_ok()));
    group.finish();
}

criterion_group!(benches, media, control);
criterion_main!(benches);
