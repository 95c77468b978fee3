use proptest::collection::vec;
use proptest::prelude::*;
use streamgauge_base::Chunk;

use super::*;

/// Returns the items of a connection's bytes in these pieces, with its end. Neighbouring bytes of a body are
/// joined.
fn read(mut reader: Reader, pieces: impl IntoIterator<Item = Chunk>) -> Vec<Result<HttpItem, Fault>> {
    let mut items: Vec<Result<HttpItem, Fault>> = Vec::new();
    let mut take = |item| match (items.last_mut(), item) {
        (Some(Ok(HttpItem::Body(before))), Ok(HttpItem::Body(more))) => {
            let bytes = [plain(before), plain(&more)].concat();
            *before = Chunk::bytes(bytes);
        }
        // The bytes of a body count, with any part of them as filler.
        (_, Ok(HttpItem::Body(first))) => items.push(Ok(HttpItem::Body(Chunk::bytes(plain(&first))))),
        (_, item) => items.push(item),
    };
    for piece in pieces {
        reader.push(piece);
        for item in reader.by_ref() {
            take(item);
        }
    }
    if let Some(item) = reader.finish() {
        take(item);
    }
    items
}

fn plain(chunk: &Chunk) -> Vec<u8> {
    let mut bytes = chunk.head().to_vec();
    bytes.resize(chunk.len(), 0);
    bytes
}

fn requests(bytes: &[u8]) -> Vec<Result<HttpItem, Fault>> {
    read(Reader::of_requests(), [Chunk::bytes(bytes)])
}

fn responses(bytes: &[u8]) -> Vec<Result<HttpItem, Fault>> {
    read(Reader::of_responses(), [Chunk::bytes(bytes)])
}

fn body(items: &[Result<HttpItem, Fault>]) -> Vec<u8> {
    items
        .iter()
        .filter_map(|item| match item {
            Ok(HttpItem::Body(chunk)) => Some(plain(chunk)),
            _ => None,
        })
        .flatten()
        .collect()
}

#[test]
fn requests_follow_each_other_on_a_connection() {
    let items =
        requests(b"\r\nGET /clip.mp4?a=1 HTTP/1.1\r\nHost: h\r\nRange: bytes=0-9\r\n\r\nHEAD / HTTP/1.0\n\n");
    let [Ok(HttpItem::Request(get)), Ok(HttpItem::End), Ok(HttpItem::Request(head)), Ok(HttpItem::End)] =
        &items[..]
    else {
        panic!("{items:?}")
    };
    assert_eq!((get.method.as_str(), get.path(), get.version), ("GET", "/clip.mp4", Version::V1_1));
    assert_eq!(get.headers.get("range").unwrap().parse(), Ok(Ranges(vec![ByteRange::From(0, Some(9))])));
    assert!(get.keeps_alive() && !head.keeps_alive());
}

#[test]
fn a_path_is_that_of_any_form_of_target() {
    for (target, path) in [
        ("/a/b?x=http://c/d", "/a/b"),
        ("http://h:80/a", "/a"),
        ("http://h", "/"),
        ("*", "*"),
        ("/a#b", "/a"),
    ] {
        assert_eq!(Request::new("GET", target, "h").unwrap().path(), path);
    }
}

#[test]
fn what_would_break_a_message_is_not_written() {
    assert!(Request::new("GET", "/a b", "h").unwrap_err().to_string().contains("\"/a b\""));
    assert!(Request::new("GET", "/a\r\nX: y", "h").is_err() && Request::new("GET", "", "h").is_err());
    assert!(Request::new("GET", "/", "h\n").is_err() && Request::new("G T", "/", "h").is_err());
}

#[test]
fn a_body_is_as_long_as_its_head_says() {
    let length = responses(
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
    );
    assert_eq!((body(&length), length.len()), (b"abc".to_vec(), 5));
    let chunked = responses(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: 1\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
    );
    assert_eq!(body(&chunked), b"abc0123456789");
    assert!(
        matches!(&chunked[chunked.len() - 2..], [Ok(HttpItem::Response(last)), Ok(HttpItem::End)] if last.status == 204)
    );
    let until_close = responses(b"HTTP/1.0 200 OK\r\n\r\nabc");
    assert_eq!((body(&until_close), until_close.last()), (b"abc".to_vec(), Some(&Ok(HttpItem::End))));
}

#[test]
fn an_answer_to_head_has_no_body_whatever_it_says() {
    let mut reader = Reader::of_responses();
    reader.expect(&Request::new("HEAD", "/", "h").unwrap());
    let bytes = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nHTTP/1.1 304 Not Modified\r\n\r\n";
    let items = read(reader, [Chunk::bytes(*bytes)]);
    let statuses = items.iter().filter_map(|item| match item {
        Ok(HttpItem::Response(response)) => Some(response.status),
        _ => None,
    });
    assert_eq!(statuses.collect::<Vec<_>>(), [100, 200, 304]);
    assert_eq!(items.len(), 6);
}

#[test]
fn filler_stays_filler() {
    let mut reader = Reader::of_responses();
    reader.push(Chunk::with_filler(*b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nab", 999_998));
    let items: Vec<_> = reader.by_ref().collect();
    assert_eq!(items[1], Ok(HttpItem::Body(Chunk::with_filler(*b"ab", 999_998))));
    assert!(reader.is_between_messages());
}

#[test]
fn what_is_wrong_is_said() {
    let long = format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(17 << 10));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: x\r\n".repeat(MOST_HEADERS + 1));
    for (bytes, fault) in [
        (b"<html>".as_slice(), Fault::NotHttp),
        (b"GET / HTTP/2.0\r\n\r\n", Fault::Version),
        (b"GET /a b HTTP/1.1\r\n\r\n", Fault::Version),
        ("GET /\u{e9} HTTP/1.1\r\n\r\n".as_bytes(), Fault::Malformed("a target beyond ASCII")),
        (b"GET / HTTP/1.1\r\nA b: c\r\n\r\n", Fault::Malformed("invalid header name")),
        (b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", Fault::ContentLength),
        (b"POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\n", Fault::ContentLength),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", Fault::ContentLength),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", Fault::TwoLengths),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", Fault::TransferCoding),
        (b"GET / HT", Fault::HeadCut),
        (long.as_bytes(), Fault::HeadTooLong { limit: 16 << 10 }),
        (many.as_bytes(), Fault::HeadTooLong { limit: 16 << 10 }),
    ] {
        assert_eq!(requests(bytes).last(), Some(&Err(fault)), "{}", String::from_utf8_lossy(bytes));
    }
    for (bytes, fault) in [
        (b"<!DOCTYPE html>".as_slice(), Fault::NotHttp),
        (b"HTTP/1.1 2xx OK\r\n\r\n", Fault::Malformed("invalid response status")),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", Fault::BodyCut { missing: Some(2) }),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc", Fault::BodyCut { missing: None }),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", Fault::Chunk),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n11111111111111111\r\n", Fault::Chunk),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", Fault::Chunk),
    ] {
        assert_eq!(responses(bytes).last(), Some(&Err(fault)), "{}", String::from_utf8_lossy(bytes));
    }
    assert_eq!(
        Fault::BodyCut { missing: Some(2) }.to_string(),
        "the connection ended before the body did: 2 B are missing"
    );
}

#[test]
fn ranges_are_those_of_a_length() {
    let ranges = |text: &str| text.parse::<Ranges>().map(|ranges| ranges.0);
    assert_eq!(
        ranges("bytes=0-0, 5-,-3").unwrap().iter().map(|one| one.within(10)).collect::<Vec<_>>(),
        [Some((0, 0)), Some((5, 9)), Some((7, 9))]
    );
    assert_eq!(ranges("Bytes=9-100").unwrap()[0].within(10), Some((9, 9)));
    for (text, length) in [("bytes=10-", 10), ("bytes=-0", 10), ("bytes=0-", 0), ("bytes=-5", 0)] {
        assert_eq!(ranges(text).unwrap()[0].within(length), None, "{text}");
    }
    assert_eq!(ranges("bytes=-100").unwrap()[0].within(10), Some((0, 9)));
    for text in
        ["bytes=", "bytes=5-4", "bytes=a-", "items=0-1", "bytes", "bytes=--1", "bytes=99999999999999999999-"]
    {
        assert!(ranges(text).is_err(), "{text}");
    }
    for text in ["bytes 0-9/10", "bytes 0-9/*", "bytes */10"] {
        assert_eq!(text.parse::<ContentRange>().unwrap().to_string(), text);
    }
    for text in
        ["bytes 0-10/10", "bytes 5-4/10", "bytes */*", "0-9/10", "bytes", "bytes 0-18446744073709551615/*"]
    {
        assert!(text.parse::<ContentRange>().is_err(), "{text}");
    }
}

#[test]
fn tags_are_the_same_or_like_each_other() {
    let tag = |text: &str| text.parse::<EntityTag>().unwrap();
    assert!(tag("\"a\"").is_same(&tag("\"a\"")) && !tag("W/\"a\"").is_same(&tag("\"a\"")));
    assert!(tag("W/\"a\"").is_like(&tag("\"a\"")));
    let condition: TagCondition = "\"a,b\", W/\"c\"".parse().unwrap();
    assert!(condition.has_same(&tag("\"a,b\"")) && condition.has_like(&tag("\"c\"")));
    assert!(!condition.has_same(&tag("\"c\"")) && !condition.has_like(&tag("\"a\"")));
    assert!("*".parse::<TagCondition>().unwrap().has_same(&tag("\"a\"")));
    for text in ["", "a", "\"a", "\"a\" \"b\"", "\"a b\""] {
        assert!(text.parse::<TagCondition>().is_err(), "{text}");
    }
}

#[test]
fn caches_are_told_what_to_keep() {
    let read = |text: &str| text.parse::<CacheControl>().unwrap();
    let control = read("public, MAX-AGE=60, s-maxage=\"120\", stale-while-revalidate=9");
    assert_eq!((control.max_age_s, control.shared_lifetime_s()), (Some(60), Some(120)));
    assert!(control.public && control.may_be_shared());
    assert!(!read("no-store").may_be_shared() && !read("private=\"x\"").may_be_shared());
    assert_eq!(read("max-age=soon").max_age_s, Some(0));
    assert_eq!(read(&control.to_string()), control);
}

fn any_head() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let header = ("[A-Za-z][A-Za-z-]{0,8}", "[!-~]([ -~]{0,20}[!-~])?");
    let own = ["content-length", "transfer-encoding"];
    let headers = vec(header, 0..5).prop_map(move |all| {
        all.into_iter().filter(|(n, _)| !own.contains(&&*n.to_lowercase())).collect::<Vec<_>>()
    });
    (headers, vec(any::<u8>(), 0..40), 0u8..3, 1usize..9).prop_map(|(headers, body, framing, piece)| {
        let mut response = Response::new(200);
        for (name, value) in headers {
            response.headers.add(&name, value);
        }
        let written = match framing {
            0 => {
                response.headers.add("Content-Length", body.len());
                [response.write(), body.clone()].concat()
            }
            _ => {
                response.headers.add("Transfer-Encoding", "chunked");
                let chunk =
                    |piece: &[u8]| [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
                let chunks: Vec<u8> = body.chunks(piece).flat_map(chunk).collect();
                [response.write(), chunks, b"0\r\n\r\n".to_vec()].concat()
            }
        };
        (written, body)
    })
}

fn cut(bytes: &[u8], cuts: &[usize]) -> Vec<Chunk> {
    let mut rest = bytes;
    let mut pieces = Vec::new();
    for &cut in cuts {
        let (piece, more) = rest.split_at(cut.min(rest.len()));
        // Zeros at a piece's end may come as filler.
        let real = piece.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        pieces.push(Chunk::with_filler(&piece[..real], (piece.len() - real) as u32));
        rest = more;
    }
    pieces.push(Chunk::bytes(rest));
    pieces
}

proptest! {
    #[test]
    fn whatever_way_the_bytes_are_cut_the_messages_are_the_same(
        messages in vec(any_head(), 1..4), cuts in vec(0usize..30, 0..30),
    ) {
        let bytes: Vec<u8> = messages.iter().flat_map(|(written, _)| written.clone()).collect();
        let bodies: Vec<u8> = messages.iter().flat_map(|(_, body)| body.clone()).collect();
        let whole = responses(&bytes);
        prop_assert_eq!(body(&whole), bodies);
        prop_assert_eq!(whole.iter().filter(|item| **item == Ok(HttpItem::End)).count(), messages.len());
        prop_assert_eq!(read(Reader::of_responses(), cut(&bytes, &cuts)), whole);
    }

    #[test]
    fn any_bytes_are_read_the_same_however_they_are_cut(
        bytes in vec(prop_oneof![any::<u8>(), Just(b'\n'), Just(b'\r'), Just(b' ')], 0..120),
        start in 0usize..4, cuts in vec(0usize..20, 0..10),
    ) {
        let starts: [&[u8]; 4] = [b"", b"GET / HTTP/1.1\r\n", b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"HTTP/1.1 200 OK\r\n"];
        let bytes = [starts[start], &bytes].concat();
        for reader in [Reader::of_requests(), Reader::of_responses()] {
            let whole = read(reader.clone(), [Chunk::bytes(&bytes[..])]);
            prop_assert_eq!(read(reader, cut(&bytes, &cuts)), whole);
        }
    }

    #[test]
    fn a_head_that_was_read_is_written_and_read_as_the_same(bytes in vec(any::<u8>(), 0..60)) {
        let bytes = [b"GET /a HTTP/1.1\r\nX: ".as_slice(), &bytes, b"\r\n\r\n"].concat();
        if let Some(Ok(HttpItem::Request(request))) = requests(&bytes).first() {
            let again = requests(&request.write());
            prop_assert_eq!(again.first(), Some(&Ok(HttpItem::Request(request.clone()))));
        }
    }
}
