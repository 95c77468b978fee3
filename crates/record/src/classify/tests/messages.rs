//! Messages of HTTP and RTSP on their connections.

use super::*;

/// A connection that sends its bytes in order.
struct Stream {
    classifier: Classifier,
    next: u32,
}

impl Stream {
    fn of(protocol: StreamProtocol) -> Self {
        Stream { classifier: told(&[protocol], &[]), next: u32::MAX - 20 }
    }

    fn send(&mut self, payload: &[u8]) -> PacketKind {
        let kind = self.send_again(self.next, payload);
        self.next = self.next.wrapping_add(payload.len() as u32);
        kind
    }

    fn send_again(&mut self, seq: u32, payload: &[u8]) -> PacketKind {
        self.classifier.classify(SUBJECT, Direction::Down, 1, &tcp(seq, ACK, payload)).kind
    }

    /// Sends as in sim, where a body is not there: `bytes` bytes, and the first are `head`.
    fn send_filler(&mut self, head: &[u8], bytes: u32) -> PacketKind {
        let headers = Headers { payload_bytes: bytes, ..tcp(self.next, ACK, head) };
        self.next = self.next.wrapping_add(bytes);
        self.classifier.classify(SUBJECT, Direction::Down, 1, &headers).kind
    }
}

use PacketKind::{Media, Signalling};

const ANSWER: &[u8] = b"HTTP/1.1 206 Partial Content\r\nContent-Length: 3000\r\n\r\n";

#[test]
fn a_head_that_stands_alone_is_signalling_and_one_with_a_body_is_payload() {
    let mut stream = Stream::of(StreamProtocol::Http);
    assert_eq!(stream.send(ANSWER), Signalling);
    assert_eq!(stream.send(&[7; 1_448]), Media);
    assert_eq!(stream.send(&[7; 1_448]), Media);
    assert_eq!(stream.send(&[7; 104]), Media);
    assert_eq!(stream.send(&[ANSWER, &[7; 1_000]].concat()), Media);
    assert_eq!(stream.send(&[7; 1_448]), Media);
    assert_eq!(stream.send_filler(ANSWER, 1_448), Media);
    assert_eq!(stream.send(b"HTTP/1.1 304 Not Modified\nETag: 1\n\nHTTP/1.0 200 OK\r\n\r\n"), Signalling);
}

#[test]
fn every_request_is_signalling_even_one_after_another() {
    let mut stream = Stream::of(StreamProtocol::Http);
    for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "TRACE", "PATCH"] {
        let request = format!("{method} /a HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(stream.send(request.as_bytes()), Signalling, "{method}");
        assert_eq!(stream.send(request.repeat(3).as_bytes()), Signalling, "{method}, pipelined");
    }
    assert_eq!(stream.send(b"POST /a HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi"), Media);
    for other in [
        "GET /a RTSP/1.0\r\n\r\n",
        "GETA /a HTTP/1.1\r\n\r\n",
        "get / HTTP/1.1\r\n\r\n",
        "HTTP/1.1 OK\r\n\r\n",
    ] {
        assert_eq!(stream.send(other.as_bytes()), Media, "{other:?}");
    }
}

#[test]
fn a_head_goes_on_in_the_next_segment() {
    for cut in 20..ANSWER.len() {
        let mut stream = Stream::of(StreamProtocol::Http);
        assert_eq!(stream.send(&ANSWER[..cut]), Signalling);
        assert_eq!(stream.send(&ANSWER[cut..]), Signalling);
        assert_eq!(stream.send(b"Date: is in the body\r\n\r\n"), Media);
    }
    let mut stream = Stream::of(StreamProtocol::Http);
    assert_eq!(stream.send(&ANSWER[..30]), Signalling);
    assert_eq!(stream.send(&[&ANSWER[30..], &[7; 10]].concat()), Media);
}

#[test]
fn what_is_sent_again_is_what_it_was() {
    let mut stream = Stream::of(StreamProtocol::Http);
    let first = stream.next;
    assert_eq!(stream.send(&ANSWER[..30]), Signalling);
    let second = stream.next;
    assert_eq!(stream.send(&ANSWER[30..]), Signalling);
    let body = stream.next;
    assert_eq!(stream.send(&[7; 3_000]), Media);
    assert_eq!(stream.send_again(second, &ANSWER[30..]), Signalling);
    assert_eq!(stream.send_again(body, &[7; 1_448]), Media);
    assert_eq!(stream.send_again(first, ANSWER), Signalling, "both at once");
    assert_eq!(stream.send_again(first, &[ANSWER, &[7; 100]].concat()), Media);
    // A segment from before the known message is classified by itself, and does not make that forgotten.
    assert_eq!(stream.send(&ANSWER[..30]), Signalling);
    assert_eq!(stream.send_again(first, ANSWER), Signalling);
    assert_eq!(stream.send(&ANSWER[30..]), Signalling);
}

#[test]
fn a_message_is_seen_after_however_much_payload() {
    let mut stream = Stream::of(StreamProtocol::Http);
    assert_eq!(stream.send(ANSWER), Signalling);
    for _ in 0..9 {
        // Half of the sequence space, and a little more.
        for _ in 0..129 {
            assert_eq!(stream.send_filler(b"", 1 << 24), Media);
        }
        let said = stream.classifier.take_messages().count();
        assert_eq!(stream.send(ANSWER), Signalling);
        assert_eq!(stream.classifier.take_messages().count(), 1, "and {said} before");
    }
}

#[test]
fn a_head_without_end_is_none() {
    let mut stream = Stream::of(StreamProtocol::Http);
    assert_eq!(stream.send(b"HTTP/1.1 200 OK\r\nX: "), Signalling);
    let kinds: Vec<_> = (0..60).map(|_| stream.send(&[b'x'; 1_448])).collect();
    assert_eq!((kinds[0], kinds[44], kinds[46], kinds[59]), (Signalling, Signalling, Media, Media));
}

#[test]
fn an_rtsp_message_has_its_body() {
    let mut stream = Stream::of(StreamProtocol::Rtsp);
    let head = b"RTSP/1.0 200 OK\r\nCSeq: 2\r\ncontent-LENGTH:  2000 \r\n\r\n";
    assert_eq!(stream.send(&[&head[..], &[b'v'; 1_000]].concat()), Signalling);
    assert_eq!(stream.send(&[b'v'; 900]), Signalling);
    assert_eq!(stream.send(&[&[b'v'; 100][..], head].concat()), Signalling, "and the next begins");
    assert_eq!(stream.send_filler(b"", 1_448), Signalling, "a body that is filler in sim");
    assert_eq!(stream.send_filler(b"", 1_448), Media, "more than the body");
    // No code allocates or counts by the length that a message declares.
    for length in ["4294967295", "99999999999", "-1", "none"] {
        let mut stream = Stream::of(StreamProtocol::Rtsp);
        let head = format!("RTSP/1.0 200 OK\r\nContent-Length: {length}\r\n\r\n");
        assert_eq!(stream.send(head.as_bytes()), Signalling);
    }
}

#[test]
fn connections_have_messages_of_their_own() {
    let mut c = told(&[StreamProtocol::Http], &[]);
    let mut kind =
        |ports, direction, payload: &[u8]| c.classify(SUBJECT, direction, ports, &tcp(1, ACK, payload)).kind;
    assert_eq!(kind(1, Direction::Down, &ANSWER[..30]), Signalling);
    assert_eq!(kind(2, Direction::Down, &ANSWER[30..]), Media);
    assert_eq!(kind(1, Direction::Up, &ANSWER[30..]), Media);
}

proptest! {
    /// However a conversation is cut into segments, no byte of a body counts as a head, and a repeat sent at once has
    /// the same kind.
    #[test]
    fn bodies_stay_payload(
        bodies in proptest::collection::vec(0usize..4_000, 1..6),
        cuts in proptest::collection::vec(1usize..1_449, 1..20),
    ) {
        let mut sent = Vec::new();
        let mut is_head = Vec::new();
        for body in bodies {
            sent.extend(ANSWER.iter().copied().chain(std::iter::repeat_n(7, body)));
            is_head.extend(std::iter::repeat_n(true, ANSWER.len()).chain(std::iter::repeat_n(false, body)));
        }
        let mut stream = Stream::of(StreamProtocol::Http);
        let (mut at, mut cuts) = (0, cuts.iter().cycle());
        while at < sent.len() {
            let end = sent.len().min(at + cuts.next().unwrap());
            let seq = stream.next;
            let kind = stream.send(&sent[at..end]);
            prop_assert!(kind == Media || is_head[at..end].iter().all(|&head| head));
            prop_assert_eq!(stream.send_again(seq, &sent[at..end]), kind);
            at = end;
        }
    }
}

/// Returns the messages of a subject's connection, as events have them.
fn said(classifier: &mut Classifier) -> Vec<String> {
    let events = classifier.take_messages().map(|message| message.event(Instant::ZERO));
    events.map(|event| format!("{} {}", event.value.unwrap(), event.reason)).collect()
}

#[test]
fn a_message_is_said_once_with_its_connection_way_and_start_line() {
    let mut http = Stream::of(StreamProtocol::Http);
    assert!(http.classifier.reads_messages(SUBJECT) && !http.classifier.has_messages());
    let start = http.next;
    http.send(b"GET /a.mp4?x=1 HTTP/1.1\r\nHost: a\r\n\r\nHEAD /b HTTP/1.1\r\n\r\n");
    assert!(http.classifier.has_messages());
    assert_eq!(said(&mut http.classifier), ["0 down GET /a.mp4?x=1", "0 down HEAD /b"]);
    // With a body behind it, and where a body is not there; a message that does not begin a segment is not looked for.
    http.send(&[ANSWER, &[7; 900]].concat());
    http.send(&[&[7; 700], ANSWER].concat());
    http.send_filler(ANSWER, 1_448);
    assert_eq!(said(&mut http.classifier), ["0 down 206 Partial Content"; 2]);
    // Sent again.
    http.send_again(start, b"GET /a.mp4?x=1 HTTP/1.1\r\nHost: a\r\n\r\nHEAD /b HTTP/1.1\r\n\r\n");
    http.send_again(http.next.wrapping_sub(1_448), &[ANSWER, &[7; 1_000]].concat());
    assert_eq!(said(&mut http.classifier), Vec::<String>::new());
    let other = tcp(5, ACK, b"HTTP/1.0 404 \x07\r\n\r\n");
    http.classifier.classify(SUBJECT, Direction::Up, 2, &other);
    assert_eq!(said(&mut http.classifier), ["1 up 404 \u{fffd}"]);
    http.classifier.classify(FlowId::OTHER, Direction::Up, 2, &other);
    assert!(!http.classifier.has_messages(), "nobody's");

    let mut rtsp = Stream::of(StreamProtocol::Rtsp);
    rtsp.send(b"DESCRIBE rtsp://a/b RTSP/1.0\r\nCSeq: 1\r\n");
    rtsp.send(b"Accept: application/sdp\r\n\r\n");
    rtsp.send(b"RTSP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nv=0\nOPTIONS * RTSP/1.0\r\n\r\n");
    rtsp.send(b"$\x01\x00\x08\x80\xc9\x00\x01\x00\x00\x00\x09");
    let expected = ["0 down DESCRIBE rtsp://a/b", "0 down 200 OK", "0 down OPTIONS *"];
    assert_eq!(said(&mut rtsp.classifier), expected);
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(900));
    http.send(long.as_bytes());
    assert_eq!(said(&mut http.classifier)[0].len(), "0 down ".len() + 256);
}

#[test]
fn what_is_told_to_carry_no_messages_is_not_read_for_them() {
    let mut opaque = Stream::of(StreamProtocol::Opaque);
    assert!(!opaque.classifier.reads_messages(SUBJECT));
    opaque.send(b"GET / HTTP/1.1\r\n\r\n");
    assert!(!opaque.classifier.has_messages());
    let guesses = Classifier::new([(Role::Subject, Protocols::default())]);
    assert!(guesses.reads_messages(SUBJECT));
}
