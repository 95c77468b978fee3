//! Flows without a given protocol.

use super::*;

fn nothing_told() -> Classifier {
    told(&[], &[])
}

fn shown(c: &mut Classifier, headers: &Headers<'_>) -> (PacketKind, Option<u32>) {
    let info = c.classify(SUBJECT, Direction::Down, 1, headers);
    (info.kind, info.seq)
}

/// Packets other than RTP have the two bits of its version a quarter of the time.
#[test]
fn two_bits_do_not_make_rtp() {
    let mut c = nothing_told();
    for n in 0..200u16 {
        let mut noise = rtp(n.wrapping_mul(31), u32::from(n) << 7);
        noise[1] = (n % 128) as u8;
        assert_eq!(shown(&mut c, &udp(&noise)), (PacketKind::Media, None), "a source for each");
    }
    for n in 0..200u16 {
        // A control packet of SRT: bit, type and reserved, then a counter, time and the socket's id.
        let srt = [&[0x80, 2, 0, 0, 0, 0, 0, n as u8][..], &[0, 0, 0, 7, 0, 0, 0, 9]].concat();
        assert_eq!(shown(&mut c, &udp(&srt)), (PacketKind::Media, None));
    }
}

#[test]
fn a_source_of_rtp_is_believed_from_its_second_number_in_sequence_on() {
    let mut c = nothing_told();
    let mut send = |seq, ssrc| shown(&mut c, &udp(&rtp(seq, ssrc))).1;
    assert_eq!(send(65_535, 1), None);
    assert_eq!(send(9, 2), None, "another source between");
    assert_eq!(send(0, 1), Some(0));
    assert_eq!(send(7, 1), Some(7), "whatever is lost later");
    assert_eq!(send(11, 2), None, "out of sequence");
    assert_eq!(send(12, 2), Some(12));
    assert!(again(&mut c, 1, &udp(&rtp(65_535, 1))), "the number that came before it was believed");
}

#[test]
fn rtcp_is_certain_by_its_first_packet_or_by_its_length() {
    let kind = |payload: &[u8]| shown(&mut nothing_told(), &udp(payload)).0;
    assert_eq!(kind(&RTCP), PacketKind::Rtcp);
    let encrypted = [&RTCP[..], &[0xa5; 14]].concat();
    assert_eq!(kind(&encrypted), PacketKind::Rtcp, "SRTCP begins with a report");
    let ack = [&[0x80, 204, 0, 4, 0, 0, 0, 9], &b"qtak"[..], &[0, 0, 0, 1, 0, 0, 0, 7]].concat();
    assert_eq!(kind(&ack), PacketKind::Ack);
    assert_eq!(kind(&[&ack[..], &[0; 4]].concat()), PacketKind::Media, "not all of it is RTCP");
}

#[test]
fn an_http_request_is_signalling_and_its_answer_media() {
    let mut c = nothing_told();
    let mut kind =
        |direction, seq, payload: &[u8]| c.classify(SUBJECT, direction, 1, &tcp(seq, ACK, payload)).kind;
    assert_eq!(kind(Direction::Up, 1, b"GET /a.mp4 HTTP/1.1\r\n\r\n"), PacketKind::Signalling);
    assert_eq!(kind(Direction::Down, 1, b"HTTP/1.1 200 OK\r\n\r\nftyp"), PacketKind::Media);
    assert_eq!(kind(Direction::Down, 24, &[0; 1_448]), PacketKind::Media);
    assert_eq!(
        kind(Direction::Up, 24, b"DESCRIBE rtsp://10.1.0.1/a RTSP/1.0\r\n\r\n"),
        PacketKind::Signalling
    );
}

#[test]
fn quic_is_known_by_its_version() {
    let mut head = vec![0xc3, 0, 0, 0, 1, 8];
    head.extend([7; 8]);
    head.extend([0, 0, 0x44, 0x9e]);
    head.resize(1_200, 0xa5);
    assert_eq!(shown(&mut nothing_told(), &udp(&head)).0, PacketKind::Signalling);
    head[4] = 9;
    assert_eq!(shown(&mut nothing_told(), &udp(&head)).0, PacketKind::Media, "a version nobody speaks");
}

/// A flow with a given TCP protocol is not guessed at there; for its UDP none was given.
#[test]
fn what_is_told_is_not_guessed() {
    let request = b"GET /a.mp4 HTTP/1.1\r\n\r\n";
    let mut opaque = told(&[StreamProtocol::Opaque], &[]);
    assert_eq!(shown(&mut opaque, &tcp(1, ACK, request)).0, PacketKind::Media);
    assert_eq!(shown(&mut opaque, &udp(&RTCP)).0, PacketKind::Rtcp);
    let mut opaque = told(&[], &[DatagramProtocol::Opaque]);
    assert_eq!(shown(&mut opaque, &udp(&RTCP)).0, PacketKind::Media);
    assert_eq!(shown(&mut opaque, &udp(&rtp(1, 1))), (PacketKind::Media, None));
    assert_eq!(shown(&mut opaque, &udp(&rtp(2, 1))), (PacketKind::Media, None));
    let mut rtsp = told(&[StreamProtocol::Rtsp], &[]);
    assert_eq!(shown(&mut rtsp, &tcp(1, ACK, request)).0, PacketKind::Media);
    let mut both = told(&[StreamProtocol::Rtsp, StreamProtocol::Http], &[]);
    assert_eq!(shown(&mut both, &tcp(1, ACK, request)).0, PacketKind::Signalling);
}
