//! A firewall: which protocol, from when to when.

mod common;

use common::any::packet;
use common::*;
use proptest::prelude::*;
use streamgauge_base::{Cause, Direction, Item, Outcome, Ports, Protocol, StageId};
use streamgauge_path::Path;
use streamgauge_path::spec::{BlockSpec, BlockedProtocol, StageKind, StageSpec};

fn block(protocol: BlockedProtocol, switches: &[(u64, bool)]) -> StageSpec {
    let switches = switches.iter().map(|&(at, on)| (ns(at), on)).collect();
    stage("block", StageKind::Block(BlockSpec { protocol, ports: Vec::new(), switches }))
}

fn block_ports(protocol: BlockedProtocol, ports: &[u16]) -> StageSpec {
    let ports = ports.to_vec();
    stage("block", StageKind::Block(BlockSpec { protocol, ports, switches: Vec::new() }))
}

/// Sends four protocols in turn, one packet a microsecond; returns the fate of each.
fn run(spec: StageSpec, packets: u64) -> Log {
    let mut path = Path::new(&[spec], StageId(0), 1, Direction::Down).unwrap();
    let mut log = Log::default();
    for id in 0..packets {
        path.enqueue(at(id * 1_000), packet(id, 500), &mut log);
        drain(&mut path, at(id * 1_000), &mut log);
    }
    log
}

#[test]
fn one_protocol_is_dropped_and_the_others_pass_at_once() {
    for (blocked, protocol) in [
        (BlockedProtocol::Tcp, Protocol::Tcp),
        (BlockedProtocol::Udp, Protocol::Udp),
        (BlockedProtocol::Icmp, Protocol::Icmp),
    ] {
        let log = run(block(blocked, &[]), 40);
        assert_eq!(log.fates.len(), 40);
        for fate in &log.fates {
            assert_eq!(fate.at, fate.t_in);
            let dropped = fate.item.protocol == protocol;
            assert_eq!(fate.outcome == Outcome::Dropped, dropped);
            assert_eq!(fate.cause, if dropped { Cause::Blocked } else { Cause::None });
        }
    }
}

#[test]
fn it_blocks_from_its_exact_time_on() {
    // Packets 1, 5, 9, 13, 17 are UDP; 5 arrives as the rule starts, 13 as it ends.
    let log = run(block(BlockedProtocol::Udp, &[(0, false), (5_000, true), (13_000, false)]), 20);
    let dropped: Vec<u64> =
        log.fates.iter().filter(|fate| fate.outcome == Outcome::Dropped).map(|fate| fate.item.id.0).collect();
    assert_eq!(dropped, [5, 9]);
    let changes: Vec<_> =
        log.changes.iter().map(|change| (change.1.as_nanos(), change.2, change.3)).collect();
    assert_eq!(changes, [(0, "udp_blocked", 0.0), (5_000, "udp_blocked", 1.0), (13_000, "udp_blocked", 0.0)]);
}

#[test]
fn ports_that_make_no_sense_are_refused() {
    let refused = |protocol, ports: &[u16]| {
        let made = Path::new(&[block_ports(protocol, ports)], StageId(0), 1, Direction::Down);
        made.err().map(|error| error.to_string())
    };
    assert_eq!(refused(BlockedProtocol::Tcp, &[554, 1755]), None);
    for (protocol, ports, why) in [
        (BlockedProtocol::Icmp, &[7][..], "ICMP has no ports"),
        (BlockedProtocol::Udp, &[0], "0 stands twice or is no port"),
        (BlockedProtocol::Tcp, &[80, 554, 80], "80 stands twice or is no port"),
        (BlockedProtocol::Tcp, &(1..=17).collect::<Vec<u16>>(), "17 ports; give at most 16"),
    ] {
        let said = refused(protocol, ports).unwrap();
        assert!(said.contains("path.down.block: ports: ") && said.contains(why), "{said}");
    }
}

proptest! {
    /// A packet is dropped if it is of the protocol and either of its ports is named, and else passes.
    #[test]
    fn ports_are_blocked_either_way(
        blocked in prop::collection::btree_set(1u16..20, 1..6),
        packets in prop::collection::vec((0u16..20, 0u16..20, any::<bool>()), 1..60),
    ) {
        let ports: Vec<u16> = blocked.iter().copied().collect();
        let spec = block_ports(BlockedProtocol::Tcp, &ports);
        let mut path = Path::new(&[spec], StageId(0), 1, Direction::Down).unwrap();
        let mut log = Log::default();
        for (id, (source, destination, is_tcp)) in (0..).zip(&packets) {
            let ports = Ports { source: *source, destination: *destination };
            let protocol = if *is_tcp { Protocol::Tcp } else { Protocol::Udp };
            path.enqueue(at(id * 1_000), Item { ports, protocol, ..packet(id, 500) }, &mut log);
            drain(&mut path, at(id * 1_000), &mut log);
        }
        prop_assert_eq!(log.fates.len(), packets.len());
        for fate in &log.fates {
            let (source, destination, is_tcp) = packets[fate.item.id.0 as usize];
            let stops = is_tcp && (blocked.contains(&source) || blocked.contains(&destination));
            prop_assert_eq!(fate.outcome == Outcome::Dropped, stops);
        }
    }
}
