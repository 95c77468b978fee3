//! The cost of a data segment: building, receiving and acknowledging it, with its share of the acknowledgements.
//! Throughput is in data segments, over a pair of FIFO links without a rate, 10 ms each way.

use std::collections::VecDeque;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use streamgauge_base::{Chunk, Duration, Instant, RandomStream};
use streamgauge_transport::tcp::{Config, CongestionControl, Connection, ConnectionEvent, Segment};

const SEGMENTS: u64 = 20_000;
const DELAY: Duration = Duration::from_millis(10);

type Link = VecDeque<(Instant, Segment)>;

fn pump(end: &mut Connection, now: Instant, link: &mut Link, loss: u64, random: &mut RandomStream) {
    while let Some(segment) = end.poll_transmit(now) {
        if loss == 0 || segment.payload.is_empty() || !random.chance(loss) {
            link.push_back((now + DELAY, segment));
        }
    }
}

/// Sends `SEGMENTS` full segments; returns how many left, retransmissions included.
fn transfer(config: &Config, loss: f64) -> u64 {
    let mut random = RandomStream::named(1, "bench", "loss");
    let loss = if loss > 0.0 { RandomStream::threshold(loss) } else { 0 };
    let mut now = Instant::ZERO;
    let mut client = Connection::connect(config.clone(), now);
    let mut server = Connection::listen(config.clone());
    let (mut down, mut up) = (Link::new(), Link::new());
    let mut left = SEGMENTS * u64::from(config.mss);
    let mut wanted = left;
    pump(&mut client, now, &mut up, 0, &mut random);
    while wanted > 0 {
        let heads = [down.front(), up.front()].map(|head| head.map_or(Instant::FAR_FUTURE, |&(at, _)| at));
        let timers = [&server, &client].map(|end| end.poll_timeout().unwrap_or(Instant::FAR_FUTURE));
        now = heads[0].min(heads[1]).min(timers[0]).min(timers[1]);
        if heads[0] == now {
            let (_, segment) = down.pop_front().unwrap();
            client.handle(now, &segment);
            while let Some(chunk) = client.read(1 << 20) {
                wanted -= chunk.len() as u64;
            }
        } else if heads[1] == now {
            let (_, segment) = up.pop_front().unwrap();
            server.handle(now, &segment);
        } else {
            server.handle_timeout(now);
            client.handle_timeout(now);
        }
        while client.poll_event().is_some() {}
        while let Some(event) = server.poll_event() {
            if matches!(event, ConnectionEvent::Opened | ConnectionEvent::Writable) && left > 0 {
                left -= server.write(Chunk::filler(left.min(1 << 20) as u32)) as u64;
            }
        }
        pump(&mut client, now, &mut up, 0, &mut random);
        pump(&mut server, now, &mut down, loss, &mut random);
    }
    server.stats().segments
}

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("tcp transfer");
    group.sample_size(20);
    for congestion in [CongestionControl::RENO, CongestionControl::CUBIC] {
        for (name, loss) in [("lossless", 0.0), ("1% loss", 0.01)] {
            let config = Config {
                congestion: congestion.clone(),
                receive_window: 200_000,
                send_buffer: Some(400_000),
                ..Config::default()
            };
            group.throughput(Throughput::Elements(SEGMENTS));
            group.bench_with_input(
                BenchmarkId::new(format!("{congestion:?}"), name),
                &loss,
                |bencher, &loss| {
                    bencher.iter(|| black_box(transfer(&config, loss)));
                },
            );
        }
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
