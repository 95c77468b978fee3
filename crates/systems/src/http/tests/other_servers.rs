//! A player before servers that refuse, fail, change their file, or speak HTTP in other ways than ours.

use streamgauge_wire::http::Response;

use super::*;

/// How a canned answer ends.
#[derive(Clone, Copy, PartialEq)]
enum Ending {
    Close,
    Abort,
    Stay,
}

/// Answers each connection's first request with given bytes, the last of them again and again.
struct Canned {
    answers: Vec<(Vec<u8>, Ending)>,
    next: usize,
}

impl App for Canned {
    fn handle(&mut self, _: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Start => drop(io.open(&listener())),
            Input::Readable(channel) if io.read(channel, 4_096).is_some() => {
                let (bytes, ending) = &self.answers[self.next.min(self.answers.len() - 1)];
                self.next += 1;
                assert_eq!(io.write(channel, Chunk::bytes(&bytes[..])), bytes.len());
                match ending {
                    Ending::Close => io.close(channel),
                    Ending::Abort => io.abort(channel),
                    Ending::Stay => {}
                }
            }
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}

/// Returns the cause of its end, and the number of failures that it reported.
fn against(answers: Vec<(Vec<u8>, Ending)>, settings: &HttpPlayerSettings) -> (String, usize, Option<f64>) {
    let mut pair = Pair::new(Box::new(Canned { answers, next: 0 }), player(settings), pipe(1_000_000));
    pair.run(at(600));
    let ends = named(&pair.events, crate::MEDIA_END);
    assert_eq!(ends.len(), 1, "{:?}", pair.events);
    (ends[0].reason.to_string(), named(&pair.events, "http_failure").len(), ends[0].value)
}

fn response(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = Response::new(status);
    for (name, value) in headers {
        head.headers.add(name, value);
    }
    [head.write(), body.to_vec()].concat()
}

#[test]
fn a_bad_answer_is_one_clear_end() {
    let html = b"<html><body>log in</body></html>";
    let length = html.len().to_string();
    let media = file(&clip(vec![100], ms(1_000)));
    let mut damaged = media.clone();
    damaged[40..44].copy_from_slice(b"mooo");
    let all = |bytes: &[u8]| response(200, &[("Content-Length", &bytes.len().to_string())], bytes);
    for (answer, said) in [
        (
            response(404, &[("Content-Length", "0")], b""),
            "the server answered 404 Not Found to GET /clip.mp4",
        ),
        (
            response(416, &[("Content-Range", "bytes */10"), ("Content-Length", "0")], b""),
            "416 Range Not Satisfiable",
        ),
        (
            response(301, &[("Content-Length", "0")], b""),
            "301 Moved Permanently to GET /clip.mp4: it names no Location",
        ),
        (
            response(206, &[("Content-Length", "5")], b"abcde"),
            "206 Partial Content to GET /clip.mp4 with no Content-Range",
        ),
        (
            response(206, &[("Content-Range", "bytes 5-9/10")], b"abcde"),
            "with bytes 5-9/10, asked for from byte 0 on",
        ),
        (
            response(206, &[("Content-Range", "bytes 0-9/10"), ("Content-Length", "5")], b"abcde"),
            "a body that is not as long as its Content-Range",
        ),
        (
            response(200, &[("Content-Type", "text/html"), ("Content-Length", &length)], html),
            "the file cannot be played (the server calls it text/html): not an MP4",
        ),
        (html.to_vec(), "the server's answer cannot be read: no HTTP"),
        (response(200, &[("Content-Length", "0")], b""), "the file ends before its moov box"),
        (all(&media[..200]), "the file ends before its moov box"),
        (all(&media[..media.len() - 1]), "It is truncated"),
        (all(&[&media[..32], b"\0\0\0\x08mdat"].concat()), "its moov box is behind its media"),
        (all(&damaged), "cannot be played"),
    ] {
        let (why, failures, shown) = against(vec![(answer, Ending::Close)], &usual());
        assert!(why.contains(said), "{why}: {said}");
        assert_eq!((failures, shown), (0, Some(0.0)), "{why}");
    }
}

#[test]
fn a_redirection_is_followed_and_counts_as_no_failure() {
    let media = file(&clip(vec![100], ms(1_000)));
    let moved = [("Location", "/b"), ("Content-Length", "5"), ("Connection", "close")];
    let whole = response(200, &[("Content-Length", &media.len().to_string())], &media);
    let answers = vec![(response(302, &moved, b"moved"), Ending::Close), (whole, Ending::Stay)];
    let (why, failures, shown) = against(answers, &usual());
    assert_eq!((failures, shown), (0, Some(25.0)), "{why}");
}

#[test]
fn a_failing_connection_is_tried_again_so_often_and_no_more() {
    let cut = response(200, &[("Content-Length", "100000"), ("ETag", "\"a\"")], b"");
    let busy = response(503, &[("Content-Length", "0")], b"");
    let settings = HttpPlayerSettings { give_up_after: ms(1_500), backoff: ms(100), ..usual() };
    for (answer, ending, said) in [
        (cut.clone(), Ending::Close, "the connection ended before the body did: 100000 B are missing"),
        (cut.clone(), Ending::Abort, "the connection was reset"),
        (cut, Ending::Stay, "nothing was heard for 1.5 s"),
        (Vec::new(), Ending::Close, "the server closed the connection without an answer"),
        (b"HTTP/1.1 20".to_vec(), Ending::Close, "the connection ended within a head"),
        (busy, Ending::Stay, "the server answered 503 Service Unavailable"),
    ] {
        let (why, failures, _) = against(vec![(answer, ending)], &settings);
        assert!(why.starts_with(said) && why.ends_with("5 connections failed one after another"), "{why}");
        assert_eq!(failures, 5);
    }
}

#[test]
fn interim_answers_come_before_the_answer() {
    let media = file(&clip(vec![100], ms(1_000)));
    let hints = response(103, &[("Link", "</a.css>; rel=preload")], b"");
    let whole = response(200, &[("Content-Length", &media.len().to_string())], &media);
    let answer = [response(100, &[], b""), hints, whole].concat();
    let (why, failures, shown) = against(vec![(answer, Ending::Stay)], &usual());
    assert_eq!((why.as_str(), failures, shown), ("all frames were shown or given up", 0, Some(25.0)));
}

#[test]
fn an_answer_that_ends_early_is_a_failure() {
    let media = file(&clip(vec![100], ms(1_000)));
    let chunked = |bytes: &[u8]| {
        let chunk = [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n0\r\n\r\n"].concat();
        if bytes.is_empty() { b"0\r\n\r\n".to_vec() } else { chunk }
    };
    let encoded = ("Transfer-Encoding", "chunked");
    let part = response(206, &[("Content-Range", "bytes 0-99/100"), encoded], &chunked(b""));
    let settings = HttpPlayerSettings { backoff: ms(100), ..usual() };
    let (why, failures, _) = against(
        vec![(part, Ending::Stay)],
        &HttpPlayerSettings { request: Some(100_000), ..settings.clone() },
    );
    assert!(why.starts_with("the answer ended before its bytes did; 5 connections"), "{why}");
    assert_eq!(failures, 5);
    // An answer of undeclared length, cut, and then one shorter than the first.
    let cut = [format!("{:x}\r\n", media.len()).as_bytes(), &media[..media.len() - 150]].concat();
    let cut = response(200, &[encoded], &cut);
    let shorter = response(200, &[encoded], &chunked(&media[..100]));
    let (why, failures, _) = against(vec![(cut, Ending::Close), (shorter, Ending::Stay)], &settings);
    assert!(why.starts_with("the answer ended before its bytes did"), "{why}");
    assert_eq!(failures, 5);
}

/// Each wait is twice the one before.
#[test]
fn nobody_who_listens_is_asked_again_more_and_more_seldom() {
    struct Nobody;
    impl App for Nobody {
        fn handle(&mut self, _: Instant, _: Input<'_>, _: &mut dyn Io) {}
        fn poll_timeout(&self) -> Option<Instant> {
            None
        }
        fn poll_event(&mut self) -> Option<Event> {
            None
        }
    }
    let mut pair = Pair::new(Box::new(Nobody), player(&usual()), pipe(1_000_000));
    pair.run(at(60));
    let seconds: Vec<u64> =
        named(&pair.events, "http_failure").iter().map(|event| event.at.as_nanos() / 1_000_000_000).collect();
    assert_eq!(seconds, [0, 1, 3, 7, 15]);
    let end = named(&pair.events, crate::MEDIA_END)[0];
    assert!(end.reason.starts_with("no listener on port 80"), "{end:?}");
}

#[test]
fn a_file_that_changes_is_not_put_together() {
    let media = file(&clip(vec![100], ms(1_000)));
    let length = media.len().to_string();
    let first = response(200, &[("Content-Length", &length), ("ETag", "\"a\"")], &media[..1_000]);
    let other = response(200, &[("Content-Length", &length), ("ETag", "\"b\"")], &media);
    let (why, failures, shown) =
        against(vec![(first.clone(), Ending::Close), (other, Ending::Stay)], &usual());
    assert_eq!(failures, 1);
    assert!(
        why.starts_with("the file changed while it was fetched: its tag was \"a\" and is \"b\""),
        "{why}"
    );
    assert!(shown < Some(25.0), "{shown:?}");
    let weak = response(200, &[("Content-Length", &length), ("ETag", "W/\"a\"")], &media);
    let (why, ..) = against(vec![(first.clone(), Ending::Close), (weak, Ending::Stay)], &usual());
    assert!(why.starts_with("the file changed while it was fetched"), "{why}");
    // A server without ranges sends all of it again.
    let again = response(200, &[("Content-Length", &length)], &media);
    let (why, _, shown) = against(vec![(first, Ending::Close), (again, Ending::Stay)], &usual());
    assert_eq!((why.as_str(), shown), ("all frames were shown or given up", Some(25.0)));
}

#[test]
fn a_file_of_no_said_length_is_played_to_its_end() {
    let media = file(&clip(vec![100], ms(1_000)));
    let chunk = [format!("{:x}\r\n", media.len()).as_bytes(), &media, b"\r\n0\r\n\r\n"].concat();
    let chunked = response(200, &[("Transfer-Encoding", "chunked")], &chunk);
    let old = [b"HTTP/1.0 200 OK\r\n\r\n".as_slice(), &media].concat();
    for answer in [(chunked, Ending::Stay), (old.clone(), Ending::Close)] {
        let (why, failures, shown) = against(vec![answer], &usual());
        assert_eq!((why.as_str(), failures, shown), ("all frames were shown or given up", 0, Some(25.0)));
    }
    let short = old[..old.len() - 150].to_vec();
    let (why, _, shown) = against(vec![(short, Ending::Close)], &usual());
    assert_eq!((why.as_str(), shown), ("the file ends before its last frame", Some(23.0)));
}
