//! Loss, retransmissions, order, gaps of the capture, jitter: compared with the known changes to the packets.

mod bytes;

use bytes::{Segment, down, file, pcap, rtp, udp, up};
use streamgauge_capture::{CaptureSide, FlowRow, analyse};

const MS: i64 = 1_000_000;

fn flow(name: &str, frames: Vec<(i64, Vec<u8>)>) -> FlowRow {
    let found = analyse(&file(name, &pcap(101, false, true, &frames)), None, None).unwrap();
    found.flows.into_iter().next().unwrap()
}

fn tcp(name: &str, segments: Vec<(i64, Segment)>) -> FlowRow {
    flow(name, segments.into_iter().map(|(at, segment)| (at * MS, segment.ip())).collect())
}

#[test]
fn a_loss_before_the_capture_is_told_from_reordering() {
    // The third segment is lost before the capture and arrives again, with a later identification.
    let lost = tcp(
        "before.pcap",
        vec![
            (0, down(1, 0, 100)),
            (1, down(2, 100, 100)),
            (3, down(4, 300, 100)),
            (4, up(1, 200)),
            (54, down(9, 200, 100)),
            (55, up(2, 400)),
        ],
    );
    assert_eq!((lost.lost, lost.retransmitted, lost.reordered), (Some(1), Some(1), Some(0)));
    assert_eq!((lost.lost_before_capture, lost.missed), (Some(1), Some(0)));
    // The same with the identification that it had: it was overtaken.
    let late = tcp(
        "late.pcap",
        vec![(0, down(1, 0, 100)), (3, down(3, 200, 100)), (54, down(2, 100, 100)), (55, up(2, 300))],
    );
    assert_eq!((late.lost, late.retransmitted, late.reordered), (Some(0), Some(0), Some(1)));
}

#[test]
fn a_loss_behind_the_capture_is_a_segment_seen_twice() {
    let found = tcp(
        "behind.pcap",
        vec![
            (0, down(1, 0, 100)),
            (1, down(2, 100, 100)),
            (40, up(1, 100)),
            (80, down(3, 100, 100)),
            (120, up(2, 200)),
        ],
    );
    assert_eq!((found.lost, found.retransmitted, found.lost_before_capture), (Some(1), Some(1), Some(0)));
}

#[test]
fn an_acknowledgement_that_is_stamped_before_its_segment_shows_no_gap() {
    let us = 1000;
    let segments = vec![
        (0, down(1, 0, 100)),
        (30 * MS, up(1, 200)),
        (30 * MS + 20 * us, down(2, 100, 100)),
        // A repair, acknowledged 20 us before it.
        (60 * MS, down(4, 300, 100)),
        (90 * MS, up(2, 400)),
        (90 * MS + 20 * us, down(5, 200, 100)),
        (120 * MS, down(6, 400, 100)),
        (121 * MS, up(3, 500)),
    ];
    let found = flow("swapped.pcap", segments.into_iter().map(|(at, one)| (at, one.ip())).collect());
    assert_eq!((found.missed, found.retransmitted, found.lost), (Some(0), Some(0), Some(0)));
}

#[test]
fn a_needless_retransmission_is_no_loss() {
    let mut report = up(2, 200);
    // SACK below the acknowledgement: a duplicate (RFC 2883).
    report.options = [&[1, 1, 5, 10][..], &100u32.to_be_bytes(), &200u32.to_be_bytes()].concat();
    let found = tcp(
        "needless.pcap",
        vec![
            (0, down(1, 0, 100)),
            (1, down(2, 100, 100)),
            (40, up(1, 200)),
            (41, down(3, 100, 100)),
            (80, report),
        ],
    );
    assert_eq!((found.lost, found.retransmitted, found.spurious), (Some(0), Some(1), Some(1)));
}

#[test]
fn acknowledged_and_never_seen_is_a_gap_of_the_capture() {
    let found = tcp(
        "gap.pcap",
        vec![
            (0, down(1, 0, 100)),
            (2, down(3, 200, 100)),
            (40, up(1, 300)),
            (41, down(4, 300, 100)),
            (80, up(2, 400)),
        ],
    );
    assert_eq!((found.lost, found.missed), (Some(0), Some(1)));
    assert!((found.coverage.unwrap() - 0.75).abs() < 1e-9);
    // Received out of order, and not seen by the capture: a SACK block shows it before the acknowledgement does.
    let mut sack = up(1, 100);
    sack.options = [&[1, 1, 5, 10][..], &200u32.to_be_bytes(), &300u32.to_be_bytes()].concat();
    let found = tcp(
        "sacked.pcap",
        vec![
            (0, down(1, 0, 100)),
            (3, down(4, 300, 100)),
            (40, sack),
            (80, down(5, 100, 100)),
            (120, up(2, 400)),
        ],
    );
    assert_eq!((found.lost, found.missed), (Some(1), Some(1)));
}

#[test]
fn one_direction_alone_shows_no_cause() {
    let found = tcp("alone.pcap", vec![(0, down(1, 0, 100)), (1, down(3, 200, 100))]);
    assert_eq!((found.lost, found.missing, found.missed), (Some(0), Some(1), None));
}

#[test]
fn sequence_numbers_wrap() {
    let start = u32::MAX - 150;
    let mut segments = vec![];
    for n in 0..4u32 {
        segments.push((i64::from(n), down(n as u16 + 1, start.wrapping_add(n * 100), 100)));
    }
    segments.push((50, down(9, start.wrapping_add(100), 100)));
    segments.push((90, up(1, start.wrapping_add(400))));
    let found = tcp("wrap.pcap", segments);
    assert_eq!((found.retransmitted, found.missed), (Some(1), Some(0)));
}

#[test]
fn the_handshake_shows_the_side() {
    let handshake = |first: i64, second: i64| {
        let mut syn = up(1, 0);
        syn.flags = 2;
        syn.seq = 0;
        let mut answer = down(1, 999, 0);
        answer.flags = 18;
        vec![
            (0, syn),
            (first, answer),
            (first + second, up(2, 1000)),
            (first + second + 1, down(2, 1000, 100)),
        ]
    };
    // The server sends the data: an answer at once is the server's side.
    assert_eq!(tcp("server.pcap", handshake(1, 50)).side, Some(CaptureSide::Sender));
    assert_eq!(tcp("client.pcap", handshake(50, 1)).side, Some(CaptureSide::Receiver));
    assert_eq!(tcp("middle.pcap", handshake(25, 25)).side, Some(CaptureSide::Between));
    let found = tcp("rtt.pcap", handshake(30, 20));
    assert!((found.rtt_min_s.unwrap() - 0.05).abs() < 1e-9);
}

/// A stream of RTP every 20 ms, changed by `change`.
fn stream(kind: u8, units: u32, change: impl Fn(u16) -> Vec<(i64, u16)>) -> Vec<(i64, Vec<u8>)> {
    let mut frames: Vec<_> = (0..500u16)
        .flat_map(&change)
        .map(|(at, seq)| {
            let number = seq.wrapping_add(65_400);
            (
                at,
                udp(
                    (5004, 5004),
                    seq.wrapping_mul(3),
                    &rtp(0x1234_5678, kind, number, u32::from(seq) * units),
                ),
            )
        })
        .collect();
    frames.sort_by_key(|(at, _)| *at);
    frames
}

#[test]
fn rtp_lost_late_and_twice() {
    let found = flow(
        "rtp.pcap",
        stream(0, 160, |seq| {
            let at = i64::from(seq) * 20 * MS;
            match seq {
                100..103 | 200 => vec![],
                250 => vec![(at + 30 * MS, seq)],
                300 => vec![(at, seq), (at + MS, seq)],
                _ => vec![(at, seq)],
            }
        }),
    );
    assert_eq!(found.protocol, "rtp");
    assert_eq!((found.lost, found.reordered, found.duplicated), (Some(4), Some(1), Some(1)));
    assert_eq!(found.sources[0].loss_runs, (2, 3));
}

#[test]
fn jitter_is_that_of_rfc_3550_at_a_clock_that_was_inferred() {
    // Every second packet is 4 ms late: |D| is 4 ms each time, so the estimate approaches 4 ms.
    let late = |seq: u16| vec![(i64::from(seq) * 20 * MS + i64::from(seq % 2) * 4 * MS, seq)];
    let told = flow("told.pcap", stream(0, 160, late));
    let inferred = flow("inferred.pcap", stream(96, 1800, late));
    assert_eq!((told.sources[0].clock_hz, inferred.sources[0].clock_hz), (Some(8000), Some(90_000)));
    for found in [told, inferred] {
        assert!((found.sources[0].jitter_max_s.unwrap() - 0.004).abs() < 1e-5, "{:?}", found.sources);
    }
    // Time stamps that are no clock: the jitter is not known.
    let none = flow("none.pcap", stream(97, 7, late));
    assert_eq!((none.sources[0].clock_hz, none.jitter_s), (None, None));
}

#[test]
fn rist_sends_again_under_a_source_of_its_own() {
    let frames = |repairs: bool| {
        let mut frames =
            stream(
                33,
                1800,
                |seq| {
                    if seq % 50 == 7 { vec![] } else { vec![(i64::from(seq) * 20 * MS, seq)] }
                },
            );
        for seq in (7..500u16).step_by(50).filter(|_| repairs).skip(1) {
            let at = i64::from(seq) * 20 * MS + 65 * MS;
            let number = seq.wrapping_add(65_400);
            frames.push((
                at,
                udp((5004, 5004), 9000 + seq, &rtp(0x1234_5679, 33, number, u32::from(seq) * 1800)),
            ));
        }
        frames.sort_by_key(|(at, _)| *at);
        frames
    };
    let found = flow("rist.pcap", frames(true));
    assert_eq!(found.protocol, "rist");
    assert_eq!((found.lost, found.retransmitted, found.lost_before_capture), (Some(1), Some(9), Some(10)));
    assert_eq!(flow("no-rist.pcap", frames(false)).lost, Some(10));
}

#[test]
fn requests_of_http_have_their_times() {
    let mut request = up(1, 1000);
    request.payload = b"GET /seg-1.m4s HTTP/1.1\r\nHost: a\r\n\r\n".to_vec();
    let mut answer = down(1, 1000, 0);
    answer.payload = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nContent-Type: video/mp4\r\n\r\n".to_vec();
    let head = answer.payload.len() as u32;
    let found = tcp(
        "http.pcap",
        vec![(0, request), (30, answer), (40, down(2, 1000 + head, 500)), (90, down(3, 1500 + head, 500))],
    );
    assert_eq!(found.protocol, "http");
    let one = &found.requests[0];
    assert_eq!((one.target.as_str(), one.status, one.body_bytes), ("/seg-1.m4s", Some(200), Some(1000)));
    assert_eq!((one.answered_after_s, one.done_after_s), (Some(0.03), Some(0.09)));
}
