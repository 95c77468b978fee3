//! The cost of reading a RealMedia file, of cutting its frames into packets and of reassembling them.
//! Throughput is in bytes of the file, and of the frames.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use streamgauge_base::Chunk;
use streamgauge_wire::rm::{Assembler, RealMedia, VideoFrame, fragment};

/// Packets of the file.
const PACKETS: u32 = 10_000;
/// Bytes of a packet: those of a frame of 225 kbit/s at 30 frames per second.
const PACKET: u16 = 940;
/// A key frame.
const FRAME: u32 = 6800;
/// Bytes that a server puts into a datagram.
const DATAGRAM: usize = 640;

fn chunk(name: &[u8; 4], content: &[u8]) -> Vec<u8> {
    [&name[..], &(content.len() as u32 + 10).to_be_bytes(), &[0, 0], content].concat()
}

fn file() -> Vec<u8> {
    let mut media = [PACKETS.to_be_bytes(), [0; 4]].concat();
    for number in 0..PACKETS {
        media.extend([[0; 2], PACKET.to_be_bytes(), [0; 2]].concat());
        media.extend((33 * number).to_be_bytes());
        media.resize(media.len() + usize::from(PACKET) - 10, 0);
    }
    let stream = [0; 2 + 28 + 2 + 4];
    [chunk(b".RMF", &[0; 8]), chunk(b"PROP", &[0; 40]), chunk(b"MDPR", &stream), chunk(b"DATA", &media)]
        .concat()
}

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("rm");
    let file = file();
    assert_eq!(RealMedia::read(&file).expect("a file").packets.len(), PACKETS as usize);
    group.throughput(Throughput::Bytes(file.len() as u64));
    group.bench_function("read", |b| b.iter(|| RealMedia::read(black_box(&file))));

    group.throughput(Throughput::Bytes(FRAME.into()));
    for (what, media) in [("bytes", Chunk::bytes(vec![0; FRAME as usize])), ("filler", Chunk::filler(FRAME))]
    {
        let frame = VideoFrame { picture: 0, timestamp_ms: None, media };
        group.bench_function(format!("fragment/{what}"), |b| {
            b.iter(|| fragment(black_box(&frame), DATAGRAM));
        });
        let packets = fragment(&frame, DATAGRAM).expect("it fits");
        group.bench_function(format!("assemble/{what}"), |b| {
            b.iter(|| {
                let mut assembler = Assembler::default();
                packets.iter().filter_map(|packet| assembler.push(packet.clone()).ok()?.pop()).count()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
