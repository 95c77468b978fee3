//! How exactly packets leave: stamps of the kernel at both ends against the ideal bottleneck.
#![cfg(target_os = "linux")]

mod bed;

use std::collections::BTreeMap;
use std::io::IoSliceMut;
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use bed::judge::{self, Judge};
use bed::{Bed, Way, run_inside};
use nix::sched::{CloneFlags, setns};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, SockFlag, SockType, recvmsg, setsockopt, socket,
    sockopt,
};
use serde_json::json;

/// Runs `f` in a thread inside namespace `name`: the sockets that it makes stay there.
fn in_netns<T: Send>(name: &str, f: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let work = scope.spawn(|| {
            setns(std::fs::File::open(format!("/run/netns/{name}")).unwrap(), CloneFlags::CLONE_NEWNET)
                .unwrap();
            f()
        });
        work.join().unwrap()
    })
}

/// A packet socket with stamps on every interface of namespace `name`.
fn tap(name: &str) -> OwnedFd {
    in_netns(name, || {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let fd = socket(AddressFamily::Packet, SockType::Raw, flags, nix::sys::socket::SockProtocol::EthAll)
            .unwrap();
        setsockopt(&fd, sockopt::ReceiveTimestampns, &true).unwrap();
        setsockopt(&fd, sockopt::RcvBuf, &(3 << 20)).unwrap();
        fd
    })
}

/// Stamps (CLOCK_REALTIME, ns) of our packets by sequence number.
fn read(tap: &OwnedFd, stamps: &mut BTreeMap<u32, i64>) {
    let mut bytes = [0u8; 2048];
    let mut control = nix::cmsg_space!(nix::sys::time::TimeSpec);
    loop {
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let message = recvmsg::<LinkAddr>(tap.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty());
        let Ok(message) = message else { return };
        let stamp = message.cmsgs().unwrap().find_map(|c| match c {
            ControlMessageOwned::ScmTimestampns(at) => Some(at.tv_sec() * 1_000_000_000 + at.tv_nsec()),
            _ => None,
        });
        let length = message.bytes;
        if length >= 50 && &bytes[42..46] == b"TIME" {
            stamps.insert(u32::from_be_bytes(bytes[46..50].try_into().unwrap()), stamp.unwrap());
        }
    }
}

#[test]
fn what_was_starved_is_told_from_what_is_wrong() {
    judge::check();
}

#[test]
fn departures_are_on_time_root() {
    run_inside(Way::Root, "departures");
}

#[test]
fn departures_are_on_time_user() {
    run_inside(Way::User, "departures");
}

#[test]
#[ignore = "runs inside a sandbox"]
fn departures() {
    const FRAME: usize = 1042;
    const RATE: i64 = 10_000_000;
    const DELAY: i64 = 20_000_000;
    let seconds: u64 = std::env::var("STREAMGAUGE_TIMING_S").map_or(3, |s| s.parse().unwrap());
    let bed = Bed::new(1);
    let down = json!([
        {"name": "bottleneck", "kind": {"bottleneck": {"rate": {"constant": RATE}, "queue": {"droptail": {"bytes": 60_000}}}}},
        {"name": "delay", "kind": {"delay": {"delay": DELAY}}},
    ]);
    let plan =
        bed.plan(seconds as f64 + 0.5, down, json!([{"name": "wire", "kind": {"delay": {"delay": 0}}}]), 1);
    let mut link = bed.link(&plan, json!({}));
    let (server, client) = (tap("server"), tap("client"));
    let sender = in_netns("server", || UdpSocket::bind("10.1.0.1:5000").unwrap());
    let _receiver = in_netns("client", || UdpSocket::bind("10.2.0.1:5000").unwrap());
    let mut judge = Judge::begin();
    link.start_now();

    let (mut left, mut arrived) = (BTreeMap::new(), BTreeMap::new());
    let start = Instant::now();
    let mut payload = [0u8; FRAME - 42];
    payload[..4].copy_from_slice(b"TIME");
    for seq in 0..seconds as u32 * 1000 {
        let due = Duration::from_millis(seq.into());
        while start.elapsed() < due {
            std::thread::sleep(due.saturating_sub(start.elapsed()));
        }
        payload[4..8].copy_from_slice(&seq.to_be_bytes());
        sender.send_to(&payload, "10.2.0.1:5000").unwrap();
        if seq % 50 == 0 {
            read(&server, &mut left);
            read(&client, &mut arrived);
        }
    }
    let stats = link.stopped();
    read(&server, &mut left);
    read(&client, &mut arrived);

    // The ideal: each packet is sent when it arrives or when the one before it is through, then is delayed. A
    // packet that was refused, in a burst of a sender that was kept from sending, uses no time.
    let service = FRAME as i64 * 8 * 1_000_000_000 / RATE;
    let mut free = 0;
    let mut errors: Vec<i64> = Vec::new();
    for (seq, &at) in &left {
        if let Some(&arrival) = arrived.get(seq) {
            free = free.max(at) + service;
            errors.push(arrival - (free + DELAY));
        }
    }
    assert!(!errors.is_empty(), "of {} none arrived", left.len());
    errors.sort_unstable();
    let at = |share: f64| errors[((errors.len() - 1) as f64 * share) as usize] as f64 / 1e3;
    println!(
        "departure error at the receiver's kernel stamp, us, of {} packets at 10 Mbit/s, 20 ms: min {} p50 {} p99 {} p99.9 {} max {}",
        errors.len(),
        at(0.0),
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    );
    println!(
        "lateness by the link itself: {}; CPU {} s, stolen {} s",
        stats["lateness_ns"], stats["cpu_s"], stats["stolen_s"]
    );
    // Never early: a packet cannot overtake its own ideal by more than the noise of two stamps. On any
    // machine, however busy, one of thousands finds it free.
    assert!(at(0.0) > -50.0 && at(0.0) < 900.0, "{}", at(0.0));
    judge.expect(errors.len() > 990 * seconds as usize, format_args!("{} arrived", errors.len()));
    judge.expect(at(0.5) < 500.0, format_args!("half were {} us late", at(0.5)));
    judge.end();
}

#[test]
fn carries_many_packets() {
    run_inside(Way::Root, "many_packets");
}

#[test]
#[ignore = "runs inside a sandbox"]
fn many_packets() {
    let rate: u64 = std::env::var("STREAMGAUGE_TIMING_PPS").map_or(5_000, |s| s.parse().unwrap());
    let payload: u64 = std::env::var("STREAMGAUGE_TIMING_PAYLOAD").map_or(158, |s| s.parse().unwrap());
    let bed = Bed::new(1);
    let down = json!([
        {"name": "bottleneck", "kind": {"bottleneck": {"rate": {"constant": 1_000_000_000}, "queue": {"droptail": {"bytes": 2_000_000}}}}},
        {"name": "delay", "kind": {"delay": {"delay": 20_000_000}}},
    ]);
    let burst = rate.div_ceil(5_000);
    let app = json!({"cbr": {"packets_per_s": rate as f64, "payload_bytes": payload, "burst": burst}});
    let plan = bed.plan(4.0, down, json!([{"name": "wire", "kind": {"delay": {"delay": 0}}}]), 1);
    let plan = bed::with_apps(plan, &[app]);
    let mut link = bed.link(&plan, json!({}));
    let mut nodes = [bed.node(&plan, 0, "server"), bed.node(&plan, 0, "player")];
    let mut judge = Judge::begin();
    let t0 = link.start_now();
    for node in &mut nodes {
        node.start_at(t0 + 10_000_000);
    }
    let stats = link.stopped();
    let left = stats["left"][0]["packets"].as_u64().unwrap();
    println!(
        "{left} packets in 4 s; {:.2} us of CPU a packet; ring drops {}; lateness {}",
        stats["cpu_s"].as_f64().unwrap() * 1e6 / left as f64,
        stats["ring_drops"],
        stats["lateness_ns"]
    );
    assert_eq!(stats["conservation"], json!([]));
    assert_eq!((&stats["send_errors"], &stats["slab_drops"]), (&json!(0), &json!(0)));
    judge.expect(stats["ring_drops"] == 0, format_args!("the rings lost {}", stats["ring_drops"]));
    for node in nodes {
        let (_, counts) = node.events();
        println!("{counts}");
    }
    judge.end();
}
