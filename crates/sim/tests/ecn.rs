//! A queue that marks, and TCP that reacts to the marks (RFC 3168).

mod common;

use common::*;
use streamgauge_base::packet_flags::ECN_IN;
use streamgauge_base::{BitRate, Outcome, PacketKind};
use streamgauge_path::spec::{
    BottleneckSpec, CodelSpec, Layer, PathSpec, QueueSpec, RateSpec, ShaperSpec, StageKind, StageSpec,
};
use streamgauge_plan::TrialPlan;
use streamgauge_systems::System;
use streamgauge_systems::bulk::BulkSpec;

/// Makes one flow over 10 Mbit/s with a CoDel that may mark; 20 ms round trip.
fn marked(control: &str, marks: bool, asks: bool) -> TrialPlan {
    let bottleneck = BottleneckSpec {
        rate: RateSpec::Constant(BitRate::from_bps(10_000_000)),
        shaper: ShaperSpec::Serial,
        queue: QueueSpec::Codel(CodelSpec { ecn: marks, ..CodelSpec::default() }),
        layer: Layer::Ethernet,
    };
    let bottleneck =
        StageSpec { name: "bottleneck".into(), kind: StageKind::Bottleneck(bottleneck), changes: vec![] };
    let path = PathSpec { down: vec![bottleneck, delay(10)], up: vec![delay(10)] };
    let mut spec = tcp(control, 4 << 20);
    spec.ecn = asks;
    plan(path, vec![flow("ftp", BulkSpec { tcp: spec, ..BulkSpec::usual() }.app())], 20, 1)
}

#[test]
fn codel_marks_what_it_would_drop_and_the_sender_slows_down_for_it() {
    for control in ["reno", "cubic"] {
        let (summary, record) = Rows::of(&marked(control, true, true));
        let tcp = summary.flows[0].tcp.as_ref().unwrap();
        assert_eq!((tcp.retransmits, tcp.recoveries, tcp.timeouts), (0, 0, 0), "{control}");
        let data = || record.at(0, 0).filter(|(_, info, _)| info.payload_bytes > 0);
        assert!(data().all(|(fate, ..)| fate.outcome != Outcome::Dropped));
        assert!(data().all(|(_, info, _)| info.flags & ECN_IN != 0), "{control}: every new segment is ECT");
        let marks = data().filter(|(fate, ..)| fate.marked).count();
        assert!((10..1_000).contains(&marks), "{control}: {marks} marks");
        let received = summary.flows[0].player_received_bytes as f64 * 8.0 / 20.0;
        assert!(received > 0.9 * 10e6 * 1448.0 / 1514.0, "{control}: {received} bit/s");
        // Without heeding them the queue would grow to its limit of 1,000 packets.
        let longest = record.at(0, 0).map(|(fate, ..)| fate.queue.packets).max().unwrap();
        assert!(longest < 120, "{control}: {longest} packets");
        assert!(record.at(0, 2).all(|(_, info, _)| info.kind != PacketKind::Ack || info.flags & ECN_IN == 0));
    }
}

#[test]
fn who_does_not_ask_is_dropped_and_nobody_is_marked_by_a_queue_that_may_not() {
    for (queue, flow) in [(true, false), (false, true)] {
        let (summary, record) = Rows::of(&marked("reno", queue, flow));
        let tcp = summary.flows[0].tcp.as_ref().unwrap();
        assert!(tcp.retransmits > 5 && tcp.recoveries > 5, "{queue} {flow}: {tcp:?}");
        assert!(record.at(0, 0).all(|(fate, ..)| !fate.marked));
    }
}
