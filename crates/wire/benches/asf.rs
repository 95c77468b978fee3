//! The cost of reading an ASF file, with its media objects reassembled, and of making one file of several
//! rates out of several files. Throughput is in bytes of the files that are read.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use streamgauge_wire::asf::{
    Asf, DataPacket, DataPayload, FileProperties, Guid, Header, MultiplexInput, MultiplexSettings,
    ObjectFields, PacketSize, StreamProperties, multiplex, without_padding, write_head, write_packet,
};

/// Media objects of a file: a minute and a half at 30 frames per second.
const OBJECTS: u32 = 3000;
/// Bytes of one, at 340 kbit/s: more than fits into a packet of ours.
const OBJECT: usize = 1417;
/// Bytes of a packet, as ffmpeg's.
const PACKET: u32 = 3200;

/// A file of one stream, two pieces in each packet.
fn file() -> Vec<u8> {
    let data = [7; OBJECT];
    let payload = |object: u32| {
        let of = ObjectFields { bytes: OBJECT as u32, presentation_ms: 3100 + 33 * object };
        let is_key = object.is_multiple_of(150);
        DataPayload { stream: 1, is_key, object: object & 0xff, offset: 0, of: Some(of), data: &data }
    };
    let packet = |first: u32| {
        let payloads = [first, first + 1].map(payload).to_vec();
        write_packet(&DataPacket { payloads, ..DataPacket::default() }, PacketSize::Fixed(PACKET))
            .expect("it fits")
    };
    let packets: Vec<_> = (0..OBJECTS).step_by(2).map(packet).collect();
    let file = FileProperties {
        packets: packets.len() as u64,
        preroll_ms: 3100,
        min_packet_bytes: PACKET,
        max_packet_bytes: PACKET,
        ..FileProperties::default()
    };
    let streams = vec![StreamProperties { number: 1, kind: Guid::VIDEO, ..StreamProperties::default() }];
    let head = write_head(&Header { file, streams, ..Header::default() }).expect("it fits");
    [head, packets.concat()].concat()
}

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("asf");
    let file = file();
    let inputs = vec![MultiplexInput { file: &file, streams: None }; 10];
    let settings = MultiplexSettings::default();
    let made = multiplex(&inputs, &settings).expect("a file");
    let read = |file| Asf::read(file).expect("a file").objects(file).expect("media objects").objects.len();
    assert_eq!((read(&file), read(&made)), (OBJECTS as usize, 10 * OBJECTS as usize));
    // Whole in the packets of the one, where they stay; of the other in pieces, which are copied.
    for (what, file) in [("whole", &file), ("pieces", &made)] {
        group.throughput(Throughput::Bytes(file.len() as u64));
        group.bench_function(format!("read/{what}"), |b| b.iter(|| read(black_box(file))));
    }
    let asf = Asf::read(&made).expect("a file");
    group.throughput(Throughput::Bytes(made.len() as u64));
    group.bench_function("without_padding", |b| {
        b.iter(|| asf.packets(black_box(&made)).filter_map(|packet| without_padding(packet).ok()).count());
    });

    group.throughput(Throughput::Bytes(10 * file.len() as u64));
    group.sample_size(20);
    group.bench_function("multiplex/ten", |b| {
        b.iter(|| multiplex(black_box(&inputs), &settings).expect("a file").len());
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
