//! Two captures of a bottleneck with a known fate of every packet: a drop-tail queue between a sender that repairs each
//! loss and a receiver that acknowledges, with clocks apart, packets cut, and frames that the captures drop.

mod bytes;

use std::collections::{BTreeSet, HashMap};

use bytes::{Segment, down, file, pcap, udp, up};
use proptest::prelude::*;
use streamgauge_capture::{CaptureSource, KnownBeforehand, PacketFate, PairAnalysis, PathRow, analyse_pair};

const MS: i64 = 1_000_000;
const RATE: i64 = 4_000_000;
const LIMIT: i64 = 30_000;
const DELAY: i64 = 25 * MS;
const PAYLOAD: u32 = 1448;
const OFFSET: i64 = 37_000 * MS;
const START: i64 = 1_700_000_000_000 * MS;

/// The numbers of a linear congruential generator (Numerical Recipes' constants), from 0 to 1.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Packets at both places, and by the time of each of the sender's whether it was lost.
struct Run {
    a: Vec<(i64, Segment)>,
    b: Vec<(i64, Segment)>,
    lost: HashMap<i64, bool>,
}

fn sack(from: u32, to: u32) -> Vec<u8> {
    [&[1, 1, 5, 10][..], &from.to_be_bytes(), &to.to_be_bytes()].concat()
}

/// Sends `count` segments, for a second of four faster than the bottleneck takes them, and each lost one again 150 ms
/// later.
fn run(count: u32, jitter: &mut Noise) -> Run {
    let mut run = Run { a: Vec::new(), b: Vec::new(), lost: HashMap::new() };
    let mut next = 0;
    let mut plan: Vec<(i64, u32)> = Vec::new();
    for n in 0..count {
        plan.push((next, n));
        next += if next / 1_000_000_000 % 4 == 0 { 2_600_000 } else { 3_600_000 };
    }
    let mut inside: Vec<(i64, i64)> = Vec::new();
    let (mut free, mut at, mut id) = (0, 0, 0u16);
    let mut arrived = BTreeSet::new();
    let mut ack = 0u32;
    while at < plan.len() {
        let (now, n) = plan[at];
        at += 1;
        id = id.wrapping_add(1).max(1);
        let segment = down(id, n * PAYLOAD, PAYLOAD as usize);
        let size = segment.ip().len() as i64 + 14;
        let sent = now + START;
        run.a.push((sent, segment.clone()));
        inside.retain(|(gone, _)| *gone > now);
        let held: i64 = inside.iter().map(|(_, bytes)| bytes).sum();
        let is_lost = held + size > LIMIT;
        run.lost.insert(sent, is_lost);
        if is_lost {
            let again = now + 150 * MS;
            let place = plan[at..].partition_point(|(then, _)| *then <= again) + at;
            plan.insert(place, (again, n));
            continue;
        }
        free = now.max(free) + size * 8_000_000_000 / RATE;
        inside.push((free, size));
        let out = free + DELAY + START + (jitter.next() * 5000.0) as i64;
        run.b.push((out, segment));
        arrived.insert(n);
        while arrived.contains(&ack) {
            arrived.remove(&ack);
            ack += 1;
        }
        let mut answer = up(id, ack * PAYLOAD);
        if let Some(&first) = arrived.iter().next_back() {
            let low = (0..=first).rev().take_while(|n| arrived.contains(n)).last().unwrap_or(first);
            answer.options = sack(low * PAYLOAD, (first + 1) * PAYLOAD);
        }
        run.b.push((out + 20_000, answer.clone()));
        run.a.push((out + 20_000 + DELAY + (jitter.next() * 5000.0) as i64, answer));
    }
    run.a.sort_by_key(|(at, _)| *at);
    run
}

/// Nothing shows more of a queue's limit than two levels a packet apart.
fn limit_is_between(path: &PathRow) {
    let (accepted, refused) = path.main.queue_bounds_bytes.unwrap();
    let refused = refused.unwrap();
    assert!(accepted as i64 <= LIMIT && LIMIT <= refused as i64, "{accepted} to {refused}");
    assert!(refused - accepted <= 1502, "{accepted} to {refused}");
    assert_eq!(path.queue_bytes, Some((accepted + refused) as f64 / 2.0));
}

struct Found {
    pair: PairAnalysis,
    /// By the time of the sender's packet.
    fates: HashMap<i64, PacketFate>,
}

/// Writes both captures, B's clock ahead and faster, cut to 76 bytes of IP, without those that `drops` names.
fn analysed(name: &str, run: &Run, skew: f64, drops: [&BTreeSet<usize>; 2]) -> Found {
    let write = |side: usize, packets: &[(i64, Segment)]| {
        let kept = packets.iter().enumerate().filter(|(index, _)| !drops[side].contains(index));
        let frames: Vec<_> = kept
            .map(|(_, (at, segment))| {
                let drift = ((at - START) as f64 * skew) as i64;
                (if side == 1 { at + OFFSET + drift } else { *at }, segment.ip())
            })
            .collect();
        let mut bytes = pcap(101, false, true, &[]);
        for (at, ip) in frames {
            let whole = pcap(101, false, true, &[(at, ip[..ip.len().min(76)].to_vec())]);
            let mut record = whole[24..].to_vec();
            record[12..16].copy_from_slice(&(ip.len() as u32).to_le_bytes());
            bytes.extend(record);
        }
        file(&format!("{name}-{side}.pcap"), &bytes)
    };
    let (a, b) = (write(0, &run.a), write(1, &run.b));
    let mut fates = HashMap::new();
    let sources = [&a, &b].map(|path| CaptureSource { path, only: None });
    let pair = analyse_pair(&sources[0], &sources[1], &KnownBeforehand::default(), |packet| {
        if packet.forward && packet.fate != PacketFate::NotCapturedBefore {
            fates.insert(packet.in_ns, packet.fate);
        }
    })
    .unwrap();
    Found { pair, fates }
}

#[test]
fn every_fate_the_clock_the_rate_and_the_queue() {
    let run = run(22_000, &mut Noise(1));
    let none = BTreeSet::new();
    let Found { pair, fates } = analysed("whole", &run, 40e-6, [&none, &none]);
    let lost = run.lost.values().filter(|lost| **lost).count() as u64;
    assert!(lost > 100, "the queue overflows: {lost}");
    assert_eq!((pair.path.main.lost, pair.path.open, pair.path.lost_by_capture), (lost, 0, 0));
    for (id, fate) in &fates {
        let expected = if run.lost[id] { PacketFate::Lost } else { PacketFate::Delivered };
        assert_eq!(*fate, expected, "{id}");
    }
    let path = &pair.path;
    assert!((path.offset_s.unwrap() - 37.0).abs() < 50e-6, "{:?}", path.offset_s);
    assert!((path.skew_ppm.unwrap() - 40.0).abs() < 0.2, "{:?}", path.skew_ppm);
    assert!((path.rate_bps.unwrap() / RATE as f64 - 1.0).abs() < 0.02, "{:?}", path.rate_bps);
    limit_is_between(path);
    assert!(
        (path.main.base_delay_s.unwrap() - 0.025 - 1502.0 * 8.0 / RATE as f64).abs() < 100e-6,
        "{:?}",
        path.main.base_delay_s
    );
    assert_eq!(path.main.lost_at_full_queue, lost);
    let flow = &pair.flows[0];
    assert_eq!((flow.lost, flow.retransmitted), (Some(lost), Some(lost)));
    let queue_s = LIMIT as f64 * 8.0 / RATE as f64;
    assert!(flow.delay_p95_s.unwrap() > 0.025 + queue_s * 0.8 && flow.delay_p95_s.unwrap() < 0.03 + queue_s);
}

#[test]
fn a_capture_that_drops_frames_is_told_from_a_path_that_does() {
    let mut noise = Noise(7);
    let run = run(20_000, &mut noise);
    let mut drops =
        |packets: usize| -> BTreeSet<usize> { (0..packets).filter(|_| noise.next() < 0.001).collect() };
    let (of_a, of_b) = (drops(run.a.len()), drops(run.b.len()));
    assert!(of_a.len() > 10 && of_b.len() > 10);
    let Found { pair, fates } = analysed("gaps", &run, 40e-6, [&of_a, &of_b]);
    let data = |packets: &[(i64, Segment)], at: usize| {
        let (at_ns, one) = &packets[at];
        (!one.payload.is_empty()).then_some((*at_ns, one.seq, one.id))
    };
    let missed: BTreeSet<(u32, u16)> =
        of_b.iter().filter_map(|&at| data(&run.b, at)).map(|(_, seq, id)| (seq, id)).collect();
    let sent: HashMap<i64, (u32, u16)> =
        (0..run.a.len()).filter_map(|at| data(&run.a, at)).map(|(at, seq, id)| (at, (seq, id))).collect();
    let expected = |at: &i64| match (run.lost[at], missed.contains(&sent[at])) {
        (true, _) => PacketFate::Lost,
        (false, true) => PacketFate::NotCaptured,
        (false, false) => PacketFate::Delivered,
    };
    // The receiver's acknowledgements may not show the fate of the last packets.
    let wrong: Vec<_> = fates.iter().filter(|(id, fate)| **fate != expected(id)).collect();
    assert!(wrong.len() as f64 <= fates.len() as f64 * 1e-4, "{wrong:?}");
    assert!((pair.path.rate_bps.unwrap() / RATE as f64 - 1.0).abs() < 0.02, "{:?}", pair.path.rate_bps);
    limit_is_between(&pair.path);
}

#[test]
fn a_known_base_delay_fixes_the_offset() {
    let run = run(3000, &mut Noise(3));
    let none = BTreeSet::new();
    let found = analysed("unknown", &run, 0.0, [&none, &none]).pair.path;
    assert!((found.offset_error_s.unwrap() - 0.028).abs() < 0.003, "{:?}", found.offset_error_s);
    let write = |side: usize, packets: &[(i64, Segment)]| {
        let frames: Vec<_> = packets.iter().map(|(at, one)| (at + OFFSET * side as i64, one.ip())).collect();
        file(&format!("known-{side}.pcap"), &pcap(101, false, true, &frames))
    };
    let (a, b) = (write(0, &run.a), write(1, &run.b));
    let sources = [&a, &b].map(|path| CaptureSource { path, only: None });
    let least = 1502 * 8_000_000_000 / RATE + DELAY;
    let known = KnownBeforehand { base_ns: Some(least + 10 * MS), ..KnownBeforehand::default() };
    let path = analyse_pair(&sources[0], &sources[1], &known, |_| {}).unwrap().path;
    assert!((path.offset_s.unwrap() - 36.99).abs() < 50e-6, "{:?}", path.offset_s);
    assert_eq!(path.offset_error_s, Some(0.0));
}

#[test]
fn without_acknowledgements_it_stays_open_what_was_lost() {
    let packets: Vec<(i64, Vec<u8>)> = (0..500u16)
        .map(|n| (START + i64::from(n) * 10 * MS, udp((5004, 5004), n + 1, &[n as u8; 200])))
        .collect();
    let a = file("open-a.pcap", &pcap(101, false, true, &packets));
    let arrived: Vec<_> = packets
        .iter()
        .enumerate()
        .filter(|(n, _)| n % 50 != 25)
        .map(|(_, one)| (one.0 + 20 * MS, one.1.clone()))
        .collect();
    let b = file("open-b.pcap", &pcap(101, false, true, &arrived));
    let sources = [&a, &b].map(|path| CaptureSource { path, only: None });
    // Packets of one direction show no side: it is asked for.
    let error =
        analyse_pair(&sources[0], &sources[1], &KnownBeforehand::default(), |_| {}).unwrap_err().to_string();
    assert!(error.contains("one direction alone (10.0.0.1 to 10.0.0.2)"), "{error}");
    assert!(error.contains("--at sender or --at receiver"), "{error}");
    let known = KnownBeforehand { a_is_receiver: Some(false), ..KnownBeforehand::default() };
    let found = analyse_pair(&sources[0], &sources[1], &known, |_| {}).unwrap();
    assert_eq!((found.path.open, found.path.lost, found.path.offset_s), (10, 0, None));
    assert_eq!(
        (found.flows[0].lost, found.flows[0].missing, found.flows[0].delay_p50_s),
        (None, Some(10), None)
    );
}

#[test]
fn captures_of_other_traffic_are_refused() {
    let one = pcap(101, false, true, &[(1, udp((1, 2), 1, b"one"))]);
    let other = pcap(101, false, true, &[(1, udp((3, 4), 1, b"other"))]);
    let (a, b) = (file("one.pcap", &one), file("other.pcap", &other));
    let sources = [&a, &b].map(|path| CaptureSource { path, only: None });
    let error =
        analyse_pair(&sources[0], &sources[1], &KnownBeforehand::default(), |_| {}).unwrap_err().to_string();
    assert!(error.contains("0 packets in common"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    /// Each of the sender's packets has one fate, for any drops of either capture.
    #[test]
    fn packets_are_conserved(seed in any::<u64>(), share in 0.0..0.2f64) {
        let mut noise = Noise(seed);
        let run = run(600, &mut noise);
        let mut drops = |packets: usize| -> BTreeSet<usize> { (0..packets).filter(|_| noise.next() < share).collect() };
        let (of_a, of_b) = (drops(run.a.len()), drops(run.b.len()));
        let Found { pair, .. } = analysed(&format!("kept-{seed}"), &run, 0.0, [&of_a, &of_b]);
        let flow = &pair.flows[0];
        let data = |packets: &[(i64, Segment)], drops: &BTreeSet<usize>| {
            packets.iter().enumerate().filter(|(at, (_, one))| !drops.contains(at) && !one.payload.is_empty()).count() as u64
        };
        prop_assert_eq!(flow.packets, data(&run.a, &of_a));
        let main = &pair.path.main;
        prop_assert!(main.delivered <= data(&run.b, &of_b));
        prop_assert!(main.delivered + main.lost + main.open + flow.missed.unwrap() <= flow.packets + data(&run.b, &of_b));
    }
}
