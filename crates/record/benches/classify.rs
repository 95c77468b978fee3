//! Cost of the classifier for a packet, by the protocol of its flow. `cargo bench -p streamgauge-record --bench
//! classify`.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use streamgauge_base::{Direction, FlowId, Headers, TransportHeader};
use streamgauge_plan::{DatagramProtocol, Protocols, Role, StreamProtocol};
use streamgauge_record::Classifier;

const PACKETS: u32 = 1 << 16;
const FLOW: FlowId = FlowId(0);
const ACK: u8 = 16;
const MSS: u32 = 1448;

/// Packets with a payload that starts with an index into `heads`: in a driver they are in the cache on arrival.
#[derive(Default)]
struct Train {
    heads: Vec<Vec<u8>>,
    packets: Vec<(Direction, TransportHeader, u32, usize)>,
}

impl Train {
    fn tcp(&mut self, direction: Direction, seq: u32, bytes: u32, head: usize) {
        self.packets.push((direction, TransportHeader::Tcp { seq, ack: 1, flags: ACK }, bytes, head));
    }
}

/// Makes full segments down, with a payload that begins with `head`, and an acknowledgement up for every second.
fn stream(head: &[u8]) -> Train {
    let mut train = Train { heads: vec![vec![], head.to_vec()], ..Train::default() };
    for n in 0..PACKETS {
        match n % 3 {
            2 => train.tcp(Direction::Up, 1, 0, 0),
            _ => train.tcp(Direction::Down, n.wrapping_mul(MSS), MSS, 1),
        }
    }
    train
}

/// Makes a request up and an answer of 300 segments down, again and again.
fn http() -> Train {
    let request = b"GET /video/segment-17.m4s HTTP/1.1\r\nHost: 10.1.0.1\r\nRange: bytes=0-4095\r\n\r\n";
    let mut answer = b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: 434400\r\n\r\n".to_vec();
    answer.resize(MSS as usize, 0xa5);
    let length = request.len() as u32;
    let mut train =
        Train { heads: vec![request.to_vec(), answer, vec![0xa5; MSS as usize]], ..Train::default() };
    for n in 0..PACKETS {
        match n % 302 {
            0 => train.tcp(Direction::Up, n / 302 * length, length, 0),
            1 => train.tcp(Direction::Down, n.wrapping_mul(MSS), MSS, 1),
            _ => train.tcp(Direction::Down, n.wrapping_mul(MSS), MSS, 2),
        }
    }
    train
}

/// Frames of RTP interleaved with RTSP, one a segment.
fn interleaved() -> Train {
    let mut frame = vec![b'$', 0, 5, 164, 0x80, 96];
    frame.resize(MSS as usize, 0xa5);
    stream(&frame)
}

/// Makes datagrams with a short header of QUIC (RFC 9000 section 17.3).
fn quic() -> Train {
    let packet = (Direction::Down, TransportHeader::Udp, 1200, 0);
    Train { heads: vec![[vec![0x41], vec![0xa5; 1199]].concat()], packets: vec![packet; PACKETS as usize] }
}

fn rtp() -> Train {
    let head = |n: u32| [&[0x80, 96][..], &(n as u16).to_be_bytes(), &[0, 0, 0, 0, 0, 0, 0, 7]].concat();
    let packet = |n: u32| (Direction::Down, TransportHeader::Udp, 1400, n as usize);
    Train { heads: (0..PACKETS).map(head).collect(), packets: (0..PACKETS).map(packet).collect() }
}

/// Makes data packets with the server's clock before each.
fn rdt() -> Train {
    let head = |n: u32| {
        let seq = ((n % 0xff00) as u16).to_be_bytes();
        [&[0x80, 0xff, 8, 0, 9, 0, 0, 0, 1, 0x40][..], &seq, &[2, 0, 0, 0, 0, 0, 0]].concat()
    };
    let packet = |n: u32| (Direction::Down, TransportHeader::Udp, 660, n as usize);
    Train { heads: (0..PACKETS).map(head).collect(), packets: (0..PACKETS).map(packet).collect() }
}

fn bench(c: &mut Criterion) {
    let mut group = c.benchmark_group("classify");
    group.throughput(Throughput::Elements(u64::from(PACKETS))).sample_size(20);
    let mut measure = |name: &str, train: Train, protocols: Protocols| {
        group.bench_function(name, |b| {
            b.iter(|| {
                let mut classifier = Classifier::new([(Role::Subject, protocols.clone())]);
                let of = |&(direction, transport, payload_bytes, head): &(_, _, _, usize)| {
                    let payload_head = &train.heads[head][..];
                    let headers = Headers { transport, header_bytes: 32, payload_bytes, payload_head };
                    classifier.classify(FLOW, direction, 7, &headers).kind as u64
                };
                train.packets.iter().map(of).sum::<u64>()
            });
        });
    };
    let (tcp, udp) = (Protocols::tcp, Protocols::udp);
    measure("bulk", stream(&[]), tcp(StreamProtocol::Opaque));
    measure("http", http(), tcp(StreamProtocol::Http));
    measure("interleaved", interleaved(), tcp(StreamProtocol::Rtsp));
    measure("quic", quic(), udp(DatagramProtocol::Quic));
    measure("rdt", rdt(), udp(DatagramProtocol::Rdt));
    measure("rtp", rtp(), udp(DatagramProtocol::Rtp));
    // Flows without a given protocol.
    measure("guessed/bulk", stream(&[]), Protocols::default());
    measure("guessed/http", http(), Protocols::default());
    measure("guessed/interleaved", interleaved(), Protocols::default());
    measure("guessed/quic", quic(), Protocols::default());
    measure("guessed/rtp", rtp(), Protocols::default());
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
