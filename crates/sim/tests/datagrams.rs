//! Datagrams carry marks and times: ECN bits of each one's own, arrival times, and departures that are exact.

mod common;

use std::sync::{Arc, Mutex};

use common::{Rows, flow, ms, path, plan};
use streamgauge_base::{Chunk, Duration, Ecn, Event, Instant};
use streamgauge_path::spec::Limit;
use streamgauge_sim::run_machines;
use streamgauge_systems::{App, Carrier, Channel, ChannelId, Envelope, Input, Io, Machines};

/// Sends four datagrams when it starts, each with marks and a time of its own.
struct Sending;

const GAPS_US: [u64; 4] = [0, 1, 1_000, 70_001];
const MARKS: [Option<Ecn>; 4] = [None, Some(Ecn::Ect1), Some(Ecn::Ect0), Some(Ecn::Ce)];

impl App for Sending {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        if input == Input::Start {
            for (number, (gap, ecn)) in GAPS_US.into_iter().zip(MARKS).enumerate() {
                let departs = Some(now + ms(100) + Duration::from_micros(gap));
                io.send_as(ChannelId(0), Chunk::bytes([number as u8]), Envelope { ecn, departs });
            }
            io.send(ChannelId(0), Chunk::bytes([9]));
        }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}

type Came = Arc<Mutex<Vec<(u8, Ecn, Instant, Instant)>>>;

/// Notes each datagram: its number, its marks, when it reached the host and when the machine got it.
struct Noting(Came);

impl App for Noting {
    fn handle(&mut self, now: Instant, input: Input<'_>, _: &mut dyn Io) {
        if let Input::Datagram { bytes, ecn, at, .. } = input {
            self.0.lock().unwrap().push((bytes.head()[0], ecn, at, now));
        }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}

fn came(host_jitter: Duration) -> Vec<(u8, Ecn, Instant, Instant)> {
    let one = common::ping("media", 1000, 8);
    let made = plan(path(1_000_000_000, Limit::Packets(100), 10), vec![flow("media", one.app)], 1, 1);
    let made = streamgauge_plan::TrialPlan { host_jitter, ..made };
    let notes = Came::default();
    let machines = |_: &_| {
        Ok(Machines {
            channels: vec![Channel {
                id: ChannelId(0),
                carrier: Carrier::Udp { port: 5000, ecn: Ecn::Ect0 },
            }],
            server: Box::new(Sending),
            player: Box::new(Noting(notes.clone())),
        })
    };
    run_machines(&made, machines, Rows::default()).unwrap();
    notes.lock().unwrap().clone()
}

#[test]
fn marks_arrive_as_they_were_sent() {
    let found: Vec<_> = came(Duration::ZERO).into_iter().map(|(number, ecn, ..)| (number, ecn)).collect();
    let marks = [(9, Ecn::Ect0), (0, Ecn::Ect0), (1, Ecn::Ect1), (2, Ecn::Ect0), (3, Ecn::Ce)];
    assert_eq!(found, marks);
}

#[test]
fn departures_and_arrivals_are_exact_however_late_the_machine_looks() {
    for jitter in [Duration::ZERO, ms(3)] {
        let found = came(jitter);
        let sent = &found[1..];
        // 29 B of IP and 14 of Ethernet last 344 ns at 1 Gbit/s: none waits for another.
        for (pair, gaps) in sent.windows(2).zip(GAPS_US.windows(2)) {
            assert_eq!(pair[1].2 - pair[0].2, Duration::from_micros(gaps[1] - gaps[0]), "{jitter:?}");
        }
        let late: Vec<_> = found.iter().map(|(.., at, told)| *told - *at).collect();
        assert!(late.iter().all(|late| *late <= jitter) || jitter > Duration::ZERO, "{late:?}");
        assert_eq!(late.iter().any(|late| *late > Duration::ZERO), jitter > Duration::ZERO, "{late:?}");
    }
}
