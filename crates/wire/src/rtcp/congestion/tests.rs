use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::super::{Packet, parse, write};
use super::*;

fn only(datagram: &[u8]) -> Result<Packet, Problem> {
    let mut read = parse(datagram);
    let packet = read.next().unwrap();
    assert_eq!(read.next(), None);
    packet
}

/// The draft's section 3.1: base 1, seven packets, reference 2 x 64 ms, report 3; 1, 2 and 4 arrived at 128,
/// 129 and 228 ms, 5 before them at 227 ms; 3, 6 and 7 did not.
const WIDE: [u8; 28] = [
    0x8f,
    205,
    0,
    6,
    0,
    0,
    0,
    7,
    0,
    0,
    0,
    9,
    0,
    1,
    0,
    7,
    0,
    0,
    2,
    3, // two bits each: 1 1 0 2 2 0 0
    0b1101_0100,
    0b1010_0000,
    0,
    4,
    0x01,
    0x8c,
    0xff,
    0xfc,
];

#[test]
fn transport_wide_feedback_is_read_and_written() {
    let arrivals = vec![Some(512), Some(516), None, Some(912), Some(908), None, None];
    let wide = TransportWide { sender_ssrc: 7, media_ssrc: 9, count: 3, base: 1, arrivals };
    assert_eq!(only(&WIDE), Ok(Packet::TransportWide(wide.clone())));
    assert_eq!(write(&[Packet::TransportWide(wide)]), WIDE);
}

#[test]
fn a_run_is_one_chunk() {
    let arrivals = (0..100).map(|number| Some(4 * number)).collect();
    let written = write(&[Packet::TransportWide(TransportWide { arrivals, ..TransportWide::default() })]);
    assert_eq!(written.len(), 20 + 2 + 100 + 2);
    assert_eq!(&written[20..22], [0x20, 100]);
}

/// RFC 8888 section 3.1: source 9 from 65,535 on, three packets with the second missing; at 0x00010203.
const CONGESTION_FEEDBACK: [u8; 28] = [
    0x8b, 205, 0, 6, 0, 0, 0, 7, 0, 0, 0, 9, 0xff, 0xff, 0,
    3, // arrived with ECT(1) 2 / 1024 s before; lost; CE, 0x1fff
    0xa0, 2, 0, 0, 0xff, 0xff, 0, 0, 0, 1, 2, 3,
];

#[test]
fn congestion_feedback_is_read_and_written() {
    let packets =
        vec![Some(PacketReport { ecn: 1, before: 2 }), None, Some(PacketReport { ecn: 3, before: NO_TIME })];
    let streams = vec![StreamReport { ssrc: 9, begin: 65_535, packets }];
    let feedback = CongestionFeedback { sender_ssrc: 7, at: 0x0001_0203, streams };
    assert_eq!(only(&CONGESTION_FEEDBACK), Ok(Packet::CongestionFeedback(feedback.clone())));
    assert_eq!(write(&[Packet::CongestionFeedback(feedback)]), CONGESTION_FEEDBACK);
}

#[test]
fn a_picture_loss_is_read_and_written() {
    let bytes = [0x81, 206, 0, 2, 0, 0, 0, 7, 0, 0, 0, 9];
    let loss = PictureLoss { sender_ssrc: 7, media_ssrc: 9 };
    assert_eq!(only(&bytes), Ok(Packet::PictureLoss(loss)));
    assert_eq!(write(&[Packet::PictureLoss(loss)]), bytes);
}

#[test]
fn what_is_cut_short_is_a_problem() {
    for whole in [&WIDE[..], &CONGESTION_FEEDBACK[..]] {
        for words in 1..whole.len() / 4 - 1 {
            let mut cut = whole[..4 + 4 * words].to_vec();
            cut[3] = words as u8;
            let problem = Problem { fault: Fault::Contents, packet_type: 205 };
            let read = only(&cut);
            // A report on fewer packets ends at a word as well.
            assert!(
                read == Err(problem) || matches!(read, Ok(Packet::CongestionFeedback(_))),
                "{words}: {read:?}"
            );
        }
    }
    let reserved = [&WIDE[..20], &[0b1111_1111, 0, 0, 0, 0, 0, 0, 0]].concat();
    assert!(only(&reserved).is_err(), "a status that there is not");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_arrivals_come_back(
        first in any::<u32>(), steps in vec(option::weighted(0.8, -30_000i32..30_000), 1..400), base in any::<u16>(),
    ) {
        let mut at = first;
        let arrivals = steps.iter().map(|step| step.map(|step| {
            at = at.wrapping_add_signed(if step % 3 == 0 { step } else { step.rem_euclid(256) });
            at
        }));
        let wide = TransportWide { base, arrivals: arrivals.collect(), ..TransportWide::default() };
        let packet = Packet::TransportWide(wide);
        prop_assert_eq!(only(&write(std::slice::from_ref(&packet))), Ok(packet));
    }

    #[test]
    fn any_report_comes_back(
        streams in vec((any::<u32>(), any::<u16>(), vec(option::of((0u8..4, 0u16..0x2000)), 0..50)), 0..4),
    ) {
        let streams = streams.into_iter().map(|(ssrc, begin, packets)| {
            let packets = packets.into_iter().map(|one| one.map(|(ecn, before)| PacketReport { ecn, before }));
            StreamReport { ssrc, begin, packets: packets.collect() }
        });
        let packet = Packet::CongestionFeedback(CongestionFeedback {
            sender_ssrc: 1, at: 2, streams: streams.collect(),
        });
        prop_assert_eq!(only(&write(std::slice::from_ref(&packet))), Ok(packet));
    }
}
