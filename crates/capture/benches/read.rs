//! Packets a second on one core: a capture of one TCP connection and one RTP stream, from bytes to figures.

use std::hint::black_box;
use std::io::Cursor;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use streamgauge_capture::{Capture, CaptureReader, Flows};

const PACKETS: u32 = 100_000;

/// pcap of raw IP with ns, packets of 96 captured bytes.
fn capture() -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_3c4d, 0x0004_0002, 0, 0, 96, 101u32] {
        file.extend(word.to_le_bytes());
    }
    for n in 0..PACKETS {
        let (protocol, is_ack) = (if n % 4 == 3 { 17 } else { 6 }, n % 4 == 2);
        let mut ip = vec![0x45, 0];
        ip.extend(if is_ack { 52u16 } else { 1500 }.to_be_bytes());
        ip.extend((n as u16).to_be_bytes());
        ip.extend([0x40, 0, 64, protocol, 0, 0]);
        ip.extend(if is_ack { [10, 0, 0, 2, 10, 0, 0, 1] } else { [10, 0, 0, 1, 10, 0, 0, 2] });
        if protocol == 17 {
            ip.extend([0x13, 0x8c, 0x13, 0x8c, 0x05, 0xc8, 0, 0, 0x80, 96]);
            ip.extend((n as u16 / 4).to_be_bytes());
            ip.extend((n * 90).to_be_bytes());
            ip.extend(7u32.to_be_bytes());
        } else {
            ip.extend(if is_ack { [0x0f, 0xa0, 0, 80] } else { [0, 80, 0x0f, 0xa0] });
            let sent = (n / 4 * 2 + n % 4) * 1448;
            ip.extend(if is_ack { 1 } else { sent }.to_be_bytes());
            ip.extend(if is_ack { sent } else { 1 }.to_be_bytes());
            ip.extend([0x80, 0x10, 0xff, 0xff, 0, 0, 0, 0, 1, 1, 8, 10]);
            ip.extend((n / 10).to_be_bytes());
            ip.extend((n / 11).to_be_bytes());
        }
        let length = if is_ack { 52u32 } else { 1500 };
        ip.resize(length.min(96) as usize, b'x');
        for word in [n / 10_000, n % 10_000 * 100_000, ip.len() as u32, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(ip);
    }
    file
}

fn read(criterion: &mut Criterion) {
    let file = capture();
    let mut group = criterion.benchmark_group("capture");
    group.throughput(Throughput::Elements(u64::from(PACKETS)));
    group.sample_size(10);
    group.bench_function("to_flows", |bench| {
        bench.iter(|| {
            let reader = CaptureReader::new(Cursor::new(file.clone()), "bench").unwrap();
            let mut capture = Capture::new(reader, None).unwrap();
            let mut flows = Flows::default();
            capture.read(&mut flows, |_, _| {});
            assert_eq!(flows.flows.len(), 2);
            black_box(flows)
        });
    });
    group.finish();
}

criterion_group!(benches, read);
criterion_main!(benches);
