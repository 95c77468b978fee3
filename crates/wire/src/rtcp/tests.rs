use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn all(datagram: &[u8]) -> Vec<Result<Packet, Problem>> {
    parse(datagram).collect()
}

/// RFC 3550 sections 6.4.1, 6.5 and 6.6: a report of one block, a CNAME "ab" and a goodbye.
const COMPOUND: [u8; 76] = [
    0x81, 200, 0, 12, 0, 0, 0, 7, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 9, 0, 0, 0, 10, 0, 0, 0,
    11, // sender
    0, 0, 0, 12, 51, 0xff, 0xff, 0xfc, 0, 1, 0, 13, 0, 0, 3, 0x84, 3, 4, 5, 6, 0, 0, 0x40, 0, // block
    0x81, 202, 0, 3, 0, 0, 0, 7, 1, 2, b'a', b'b', 0, 0, 0, 0, // SDES
    0x81, 203, 0, 1, 0, 0, 0, 7, // BYE
];

fn compound() -> Vec<Packet> {
    let block = RtcpBlock {
        source: 12,
        fraction_lost: 51,
        cumulative_lost: -4,
        extended_highest: 65_549,
        jitter: 900,
        lsr: 0x0304_0506,
        dlsr: 0x4000,
    };
    let (ntp, rtp_timestamp) = (0x0102_0304_0506_0708, 9);
    vec![
        Packet::SenderReport { ssrc: 7, ntp, rtp_timestamp, packets: 10, octets: 11, blocks: vec![block] },
        Packet::Cname { ssrc: 7, cname: "ab".into() },
        Packet::Bye { sources: vec![7] },
    ]
}

#[test]
fn a_compound_is_written_and_read() {
    assert_eq!(write(&compound()), COMPOUND);
    assert_eq!(all(&COMPOUND), compound().into_iter().map(Ok).collect::<Vec<_>>());
}

#[test]
fn what_is_before_a_problem_is_read() {
    let [sender, cname, bye] = &compound()[..] else { unreachable!() };
    let cut = all(&COMPOUND[..74]);
    let truncated = Problem { fault: Fault::Truncated, packet_type: 203 };
    assert_eq!(cut, [Ok(sender.clone()), Ok(cname.clone()), Err(truncated)]);

    let mut version = COMPOUND;
    version[52] = 0x41;
    let problem = Problem { fault: Fault::Version, packet_type: 202 };
    assert_eq!(all(&version), [Ok(sender.clone()), Err(problem)]);

    // Another's APP is no problem.
    let app = [0x80, 204, 0, 2, 0, 0, 0, 1, b'n', b'o', b'n', b'e'];
    let other = Packet::Other { packet_type: 204, app: Some(*b"none") };
    let bytes = [&app[..], &COMPOUND[68..]].concat();
    assert_eq!(all(&bytes), [Ok(other), Ok(bye.clone())]);

    assert_eq!(all(&[]), []);
    assert_eq!(all(&[0x80]), [Err(Problem { fault: Fault::Truncated, packet_type: 0 })]);
    // It declares a block, which does not fit.
    let contents = Problem { fault: Fault::Contents, packet_type: 201 };
    assert_eq!(all(&[0x81, 201, 0, 1, 0, 0, 0, 1]), [Err(contents)]);
}

#[test]
fn padding_is_no_data_and_within_its_packet() {
    let padded = |padding| {
        let head = [0xa0, 204, 0, 6, 0, 0, 0, 1, b'q', b't', b'a', b'k', 0, 0, 0, 2, 0, 0, 0, 9, 1, 2, 3, 4];
        [&head[..], &[0, 0, 0, padding]].concat()
    };
    let ack = AckPacket { receiver_ssrc: 1, stream_ssrc: 2, base: 9, mask: vec![0x0102_0304] };
    assert_eq!(all(&padded(4)), [Ok(Packet::Ack(ack))]);
    let problem = |fault| [Err(Problem { fault, packet_type: 204 })];
    assert_eq!(all(&padded(16)), problem(Fault::Truncated), "nothing but padding");
    assert_eq!(all(&padded(20)), problem(Fault::Contents));
    assert_eq!(all(&padded(252)), problem(Fault::Contents));
}

#[test]
fn times_are_ntps() {
    let now = Instant::from_nanos(1_500_000_000);
    assert_eq!((ntp(now), ntp_middle(now)), (0x0000_0001_8000_0000, 0x0001_8000));
    assert_eq!(short(Duration::from_millis(250)), 0x4000);
    assert_eq!(short(Duration::MAX), u32::MAX);
}

#[test]
fn too_much_is_cut_off() {
    let blocks = vec![RtcpBlock { cumulative_lost: i32::MIN, ..RtcpBlock::default() }; 40];
    let cname = "\u{e9}".repeat(200);
    let packets = [Packet::ReceiverReport { ssrc: 1, blocks }, Packet::Cname { ssrc: 1, cname }];
    let read = all(&write(&packets));
    let [Ok(Packet::ReceiverReport { blocks, .. }), Ok(Packet::Cname { cname, .. })] = &read[..] else {
        panic!("{read:?}")
    };
    assert_eq!((blocks.len(), blocks[0].cumulative_lost, cname.len()), (31, -0x80_0000, 254));
}

fn block() -> impl Strategy<Value = RtcpBlock> {
    any::<(u32, u8, i32, u32, u32, u32, u32)>().prop_map(
        |(source, fraction_lost, lost, highest, jitter, lsr, dlsr)| {
            let (cumulative_lost, extended_highest) = (lost >> 8, highest);
            RtcpBlock { source, fraction_lost, cumulative_lost, extended_highest, jitter, lsr, dlsr }
        },
    )
}

fn packet() -> impl Strategy<Value = Packet> {
    let sender = (any::<(u32, u64, u32, u32, u32)>(), vec(block(), 0..4)).prop_map(|(numbers, blocks)| {
        let (ssrc, ntp, rtp_timestamp, packets, octets) = numbers;
        Packet::SenderReport { ssrc, ntp, rtp_timestamp, packets, octets, blocks }
    });
    let receiver =
        (any::<u32>(), vec(block(), 0..4)).prop_map(|(ssrc, blocks)| Packet::ReceiverReport { ssrc, blocks });
    let cname = (any::<u32>(), ".{0,20}").prop_map(|(ssrc, cname)| Packet::Cname { ssrc, cname });
    let bye = vec(any::<u32>(), 0..31).prop_map(|sources| Packet::Bye { sources });
    let ack = (any::<(u32, u32, u16)>(), vec(any::<u32>(), 0..9)).prop_map(
        |((receiver_ssrc, stream_ssrc, base), mask)| {
            Packet::Ack(AckPacket { receiver_ssrc, stream_ssrc, base, mask })
        },
    );
    let report =
        any::<((u32, u32), [Option<u32>; 3], [Option<u16>; 9])>().prop_map(|(ssrcs, wide, narrow)| {
            let [receive_bps, packets_received, overbuffer_window] = wide;
            let [late_ms, loss_percent_256, buffer_delay_ms, packets_dropped, packets_lost, ..] = narrow;
            let [.., buffer_fill, frame_rate, expected_frame_rate, audio_dry] = narrow;
            Packet::ClientReport(ClientReport {
                client_ssrc: ssrcs.0,
                server_ssrc: ssrcs.1,
                receive_bps,
                late_ms,
                loss_percent_256,
                buffer_delay_ms,
                quality: None,
                packets_received,
                packets_dropped,
                packets_lost,
                buffer_fill,
                frame_rate,
                expected_frame_rate,
                audio_dry,
                overbuffer_window,
            })
        });
    let hint = any::<(u32, u32, u32)>().prop_map(|(server_ssrc, client_ssrc, ack_timeout_ms)| {
        Packet::Hint(Hint { server_ssrc, client_ssrc, ack_timeout_ms })
    });
    prop_oneof![sender, receiver, cname, bye, ack, report, hint]
}

proptest! {
    #[test]
    fn packets_are_read_as_written(packets in vec(packet(), 0..6)) {
        prop_assert_eq!(all(&write(&packets)), packets.into_iter().map(Ok).collect::<Vec<_>>());
    }

    /// Any bytes are accepted, and a problem is the last item.
    #[test]
    fn takes_anything(
        mut datagram in vec(any::<u8>(), 0..200), packets in vec(packet(), 0..3), at: prop::sample::Index,
        flip: u8,
    ) {
        let mut damaged = write(&packets);
        if !damaged.is_empty() {
            let at = at.index(damaged.len());
            damaged[at] ^= flip;
        }
        if let Some(first) = datagram.first_mut() {
            *first = *first & 0x3f | 0x80;
        }
        for bytes in [datagram, damaged] {
            let read = all(&bytes);
            prop_assert!(read.iter().rev().skip(1).all(Result::is_ok));
            prop_assert!(read.len() <= bytes.len() / 4 + 1);
            for packet in read.into_iter().flatten() {
                if let Packet::Ack(ack) = packet {
                    prop_assert!(ack.sequences().count() <= 1 + 8 * bytes.len());
                }
            }
        }
    }
}
