use streamgauge_base::{Duration, Instant};

use super::*;
use crate::ndn::types::MOST_FRAGMENTS;

fn lp(chunk: &Chunk) -> LpPacket {
    LpPacket::read(chunk.clone()).expect("a fragment of ours")
}

fn data(bytes: u32) -> LpPacket {
    LpPacket::of(Data::of(name("/clip/seg=7"), Chunk::filler(bytes)).write())
}

#[test]
fn what_fits_is_not_cut() {
    let mut fragmenter = Fragmenter::of(1400, 0);
    assert_eq!(fragmenter.cut(&data(100)), Ok(vec![data(100).write()]));
    assert!(fragmenter.cut(&data(1400)).expect("it is cut").len() == 2);
    let whole = Reassembler::default().push(Instant::ZERO, data(100));
    assert_eq!(whole, Some(data(100)));
}

#[test]
fn header_fields_go_first_and_marks_stay() {
    let token = Some([1, 2, 3].into());
    let nacked = LpPacket { pit_token: token.clone(), ..data(4096) };
    let fragments = Fragmenter::of(1400, u64::MAX).cut(&nacked).expect("it is cut");
    assert_eq!(fragments.len(), 4);
    let mut reassembler = Reassembler::default();
    let mut whole = None;
    for (index, fragment) in fragments.iter().enumerate() {
        assert!(whole.is_none());
        let mut fragment = lp(fragment);
        assert_eq!(fragment.sequence, Some(u64::MAX.wrapping_add(index as u64)));
        assert_eq!(fragment.pit_token, if index == 0 { token.clone() } else { None });
        fragment.congestion_mark = (index == 2).then_some(1);
        whole = reassembler.push(Instant::ZERO, fragment);
    }
    assert_eq!(whole, Some(LpPacket { congestion_mark: Some(1), ..nacked }));
    assert_eq!((reassembler.waiting(), reassembler.bytes(), reassembler.dropped()), (0, 0, 0));
}

#[test]
fn what_cannot_be_cut_is_refused() {
    let fault =
        |most, packet: &LpPacket| Fragmenter::of(most, 0).cut(packet).map_err(|problem| problem.fault);
    assert_eq!(fault(26, &data(100)), Err(Fault::NoRoom { bytes: 26 }));
    assert!(matches!(fault(27, &data(4096)), Err(Fault::TooLong { .. })));
    assert!(matches!(fault(1400, &data(9000)), Err(Fault::TooLong { bytes: 9001.., limit: 8800 })));
    assert!(matches!(fault(9000, &data(9000)), Err(Fault::TooLong { .. })));
    assert!(fault(9000, &data(8740)).is_ok_and(|whole| whole.len() == 1));
    let tokened = LpPacket { pit_token: Some([0; 32].into()), ..data(100) };
    assert_eq!(fault(60, &tokened), Err(Fault::NoRoom { bytes: 60 }));
    assert!(fault(61, &tokened).is_ok());
    let idle = LpPacket { pit_token: Some([0; 32].into()), ..LpPacket::default() };
    assert_eq!(fault(30, &idle), Err(Fault::NoRoom { bytes: 30 }));
}

#[test]
fn contradictions_are_dropped() {
    let pieces = Fragmenter::of(1400, 10).cut(&data(4096)).expect("it is cut");
    let pieces: Vec<LpPacket> = pieces.iter().map(lp).collect();
    let mut reassembler = Reassembler::default();
    let mut push = |packet: LpPacket| {
        let whole = reassembler.push(Instant::ZERO, packet);
        (whole, reassembler.dropped())
    };
    assert_eq!(push(pieces[0].clone()), (None, 0));
    assert_eq!(push(pieces[0].clone()), (None, 1), "it came already");
    assert_eq!(push(LpPacket { frag_count: Some(5), ..pieces[1].clone() }), (None, 2), "another count");
    assert_eq!(
        push(LpPacket { frag_index: Some(2), ..pieces[1].clone() }),
        (None, 3),
        "it would begin elsewhere"
    );
    assert_eq!(push(LpPacket { sequence: None, ..pieces[1].clone() }), (None, 4), "no number");
    assert_eq!(push(LpPacket { frag_index: Some(4), ..pieces[1].clone() }), (None, 5), "behind the last");
    let too_many =
        LpPacket { frag_count: Some(MOST_FRAGMENTS + 1), sequence: Some(999), ..pieces[1].clone() };
    assert_eq!(push(too_many), (None, 6));
    assert_eq!(push(LpPacket { fragment: None, ..pieces[1].clone() }), (None, 7), "nothing in it");
    let huge = LpPacket { fragment: Some(Chunk::filler(8000)), ..pieces[1].clone() };
    assert_eq!(push(huge), (None, 8), "more than a packet");
    // Real bytes cannot follow filler in a chunk: the whole packet is dropped.
    let real = LpPacket { fragment: Some(Chunk::bytes(*b"real")), ..pieces[3].clone() };
    assert_eq!(push(pieces[1].clone()), (None, 8));
    assert_eq!(push(pieces[2].clone()), (None, 8));
    assert_eq!(push(real), (None, 12));
    assert_eq!((reassembler.waiting(), reassembler.bytes()), (0, 0));
}

#[test]
fn nothing_waits_for_ever() {
    let limits = ReassemblyLimits { packets: 3, bytes: 4000, age: Duration::from_millis(10) };
    let mut reassembler = Reassembler::of(limits);
    let mut fragmenter = Fragmenter::of(1400, 0);
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    for ms in 0..3 {
        let pieces = fragmenter.cut(&data(4096)).expect("it is cut");
        reassembler.push(at(ms), lp(&pieces[0]));
        assert!(reassembler.bytes() <= limits.bytes);
    }
    assert_eq!((reassembler.waiting(), reassembler.dropped()), (2, 1), "the oldest made room");
    reassembler.expire(at(11));
    assert_eq!(reassembler.waiting(), 2, "not yet");
    reassembler.expire(at(12));
    assert_eq!((reassembler.waiting(), reassembler.dropped()), (1, 2));
    let small = Fragmenter::of(40, 1000).cut(&data(10)).expect("it is cut");
    assert!(small.len() > 4);
    for sequence in 0..9u64 {
        reassembler.push(at(12), LpPacket { sequence: Some(1000 * sequence), ..lp(&small[0]) });
        assert!(reassembler.waiting() <= limits.packets);
    }
}

proptest! {
    #[test]
    fn packets_come_out_as_they_went_in(
        packets in vec(any_lp(), 1..4), most in 100usize..3000, first: u64, order in any::<u64>(),
    ) {
        let mut fragmenter = Fragmenter::of(most, first);
        let mut pieces = Vec::new();
        for packet in &packets {
            let fragments = fragmenter.cut(packet).expect("it has room");
            for fragment in &fragments {
                prop_assert!(fragment.len() <= most);
            }
            pieces.extend(fragments);
        }
        // In any order, each perhaps twice.
        let key = |index: usize| (index as u64 + 1).wrapping_mul(order | 1).rotate_left(29);
        let mut shuffled: Vec<_> = pieces.iter().enumerate().collect();
        shuffled.sort_by_key(|(index, _)| key(*index));
        let mut reassembler = Reassembler::default();
        let mut whole = Vec::new();
        for (index, piece) in shuffled {
            let copies = if lp(piece).is_fragmented() && key(index) % 3 == 0 { 2 } else { 1 };
            for _ in 0..copies {
                whole.extend(reassembler.push(Instant::ZERO, lp(piece)));
            }
        }
        let sorted = |packets: Vec<LpPacket>| {
            let mut written: Vec<_> = packets.iter().map(|packet| format!("{packet:?}")).collect();
            written.sort();
            written
        };
        prop_assert_eq!(sorted(whole), sorted(packets));
    }

    #[test]
    fn memory_is_bounded(
        fragments in vec((0u64..40, 0u64..6, 1u64..7, 0u32..3000, 0u64..5), 0..200),
    ) {
        let limits = ReassemblyLimits { packets: 4, bytes: 9000, age: Duration::from_millis(20) };
        let mut reassembler = Reassembler::of(limits);
        let mut now = Instant::ZERO;
        for (sequence, index, count, bytes, ms) in fragments {
            now += Duration::from_millis(ms);
            let whole = reassembler.push(now, LpPacket {
                sequence: Some(sequence),
                frag_index: Some(index),
                frag_count: Some(count),
                ..LpPacket::of(Chunk::filler(bytes))
            });
            prop_assert!(whole.is_none_or(|whole| whole.fragment.is_some_and(|chunk| chunk.len() <= 8800)));
            prop_assert!(reassembler.waiting() <= limits.packets && reassembler.bytes() <= limits.bytes);
        }
        reassembler.expire(now + Duration::from_secs(1));
        prop_assert_eq!((reassembler.waiting(), reassembler.bytes()), (0, 0));
    }
}
