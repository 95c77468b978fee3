//! A server's answers, and the ends of its connections, for any input of clients.

use streamgauge_wire::http::{HttpItem, Reader};

use super::super::answer::{Body, answer};
use super::*;

#[test]
fn a_server_answers_by_the_book() {
    let clip = clip(vec![1_000], ms(1_000));
    let library = library(&clip);
    let file = MadeFile::of_clip(&clip).unwrap();
    let (length, tag) = (file.length(), file.tag().to_string());
    let weak = format!("W/{tag}");
    let (last, open) = (format!("bytes {}-{}/{length}", length - 5, length - 1), format!("bytes={length}-"));
    let whole = (200, 0, length, "");
    for (request, (status, first, end, range)) in [
        (get(&[]), whole),
        (asking("HEAD", PATH, &[]), (200, 0, 0, "")),
        (asking("GET", "http://server/clip.mp4?x=1", &[]), whole),
        (get(&[("Range", "bytes=0-9")]), (206, 0, 10, &*format!("bytes 0-9/{length}"))),
        (get(&[("Range", "bytes=-5")]), (206, length - 5, length, &*last)),
        (get(&[("Range", &open)]), (416, 0, 0, &*format!("bytes */{length}"))),
        (get(&[("Range", "bytes=9-0")]), whole),
        (get(&[("Range", "bytes=0-1,5-9")]), whole),
        (asking("HEAD", PATH, &[("Range", "bytes=0-9")]), (200, 0, 0, "")),
        (get(&[("Range", "bytes=0-9"), ("If-Range", &tag)]), (206, 0, 10, &*format!("bytes 0-9/{length}"))),
        (get(&[("Range", "bytes=0-9"), ("If-Range", &weak)]), whole),
        (get(&[("Range", "bytes=0-9"), ("If-Range", "Sat, 01 Jan 2000 00:00:00 GMT")]), whole),
        (get(&[("Range", "bytes=0-9"), ("If-Range", "\"other\""), ("If-Range", &tag)]), whole),
        (get(&[("If-None-Match", &weak)]), (304, 0, 0, "")),
        (get(&[("If-None-Match", "\"other\"")]), whole),
        (get(&[("If-Match", "\"other\"")]), (412, 0, 0, "")),
        (asking("GET", "/other", &[]), (404, 0, 0, "")),
        (asking("POST", PATH, &[]), (405, 0, 0, "")),
    ] {
        let given = answer(&request, library.as_ref(), 60, Instant::ZERO);
        let bytes = match given.body {
            Body::Of(_, first, end) => (first, end),
            Body::None | Body::Text(_) => (0, 0),
        };
        let given_range = given.head.headers.get("Content-Range").unwrap_or_default();
        assert_eq!((given.head.status, bytes, given_range), (status, (first, end), range), "{request:?}");
        if matches!(status, 200 | 206 | 304) {
            assert_eq!(given.head.headers.get("ETag"), Some(tag.as_str()));
            assert_eq!(given.head.headers.get("Cache-Control"), Some("public, max-age=60"));
        }
    }
    assert_eq!(
        answer(&asking("PUT", PATH, &[]), library.as_ref(), 60, Instant::ZERO).head.headers.get("Allow"),
        Some("GET, HEAD")
    );
    for (method, has_body) in [("GET", true), ("HEAD", false)] {
        let mut nameless = asking(method, PATH, &[]);
        nameless.headers.remove("Host");
        let given = answer(&nameless, library.as_ref(), 60, Instant::ZERO);
        assert_eq!((given.head.status, matches!(given.body, Body::Text(_))), (400, has_body));
    }
}

/// Received bytes, and when and why the connection closed.
type Came = Arc<Mutex<(Vec<u8>, Option<(Instant, CloseReason)>)>>;

/// Writes these pieces, one each 10 ms, then finishes; keeps the input.
struct Raw {
    pieces: Vec<Vec<u8>>,
    channel: Option<ChannelId>,
    next: Option<Instant>,
    came: Came,
}

impl App for Raw {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Start => self.channel = Some(io.open(&source().carrier)),
            Input::Opened(_) => self.next = Some(now),
            Input::Readable(channel) => {
                while let Some(chunk) = io.read(channel, 1 << 20) {
                    let mut came = self.came.lock().unwrap();
                    let length = came.0.len() + chunk.len();
                    came.0.extend(chunk.head());
                    came.0.resize(length, 0);
                }
            }
            Input::Closed(_, why) => self.came.lock().unwrap().1 = Some((now, why)),
            _ => {}
        }
        let Some(channel) = self.channel.filter(|_| self.next.is_some_and(|at| at <= now)) else { return };
        if self.pieces.is_empty() {
            self.next = None;
            io.close(channel);
        } else {
            self.next = Some(now + ms(10));
            io.write(channel, Chunk::bytes(self.pieces.remove(0)));
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}

/// Statuses and lengths of bodies that a client gets for its bytes in these pieces.
fn answers(requests: &[Request], pieces: Vec<Vec<u8>>) -> (Vec<(u16, usize)>, Option<CloseReason>) {
    answers_of(Listening::new(&clip(vec![1_000], ms(1_000))), requests, pieces)
}

/// Returns a server's output for a client's bytes in these pieces.
fn came(server: Listening, pieces: Vec<Vec<u8>>) -> (Vec<u8>, Option<(Instant, CloseReason)>) {
    let came = Arc::new(Mutex::new((Vec::new(), None)));
    let raw = Raw { pieces, channel: None, next: None, came: came.clone() };
    let mut pair = Pair::new(Box::new(server), Box::new(raw), pipe(10_000_000));
    pair.run(at(2));
    std::mem::take(&mut *came.lock().unwrap())
}

fn answers_of(
    server: Listening,
    requests: &[Request],
    pieces: Vec<Vec<u8>>,
) -> (Vec<(u16, usize)>, Option<CloseReason>) {
    let came = came(server, pieces);
    let mut reader = Reader::of_responses();
    for request in requests {
        reader.expect(request);
    }
    reader.push(Chunk::bytes(&came.0[..]));
    let mut got: Vec<(u16, usize)> = Vec::new();
    for item in reader {
        match item.unwrap() {
            HttpItem::Response(response) => got.push((response.status, 0)),
            HttpItem::Body(chunk) => got.last_mut().unwrap().1 += chunk.len(),
            HttpItem::Request(_) | HttpItem::End => {}
        }
    }
    (got, came.1.map(|(_, why)| why))
}

#[test]
fn requests_that_cannot_be_read_end_the_connection() {
    for (bytes, status) in [
        (b"<html>\r\n\r\n".as_slice(), 400),
        (b"GET / HTTP/3.0\r\n\r\n", 505),
        (b"GET /clip.mp4 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (&[b"GET / HTTP/1.1\r\nA: ".as_slice(), &[b'a'; 20_000], b"\r\n\r\n"].concat(), 431),
    ] {
        let after = b"GET /clip.mp4 HTTP/1.1\r\nHost: a\r\n\r\n".to_vec();
        let (got, end) = answers(&[], vec![bytes.to_vec(), after]);
        assert_eq!(got.len(), 1, "{got:?}");
        assert_eq!((got[0].0, end), (status, Some(CloseReason::Finished)));
    }
}

#[test]
fn a_client_that_finishes_after_its_request_still_gets_the_answer() {
    let whole = file(&clip(vec![1_000], ms(1_000))).len();
    let (got, end) = answers(&[], vec![get(&[]).write()]);
    assert_eq!((got, end), (vec![(200, whole)], Some(CloseReason::Finished)));
}

#[test]
fn requests_that_wait_hold_no_resource() {
    /// Has one resource open at a time, and reports which requests arrived when another was.
    struct Counting(Arc<dyn Resource>);
    impl Library for Counting {
        fn find(&self, _: &str, _: Instant) -> Result<Option<Arc<dyn Resource>>, Busy> {
            if Arc::strong_count(&self.0) > 1 { Err(Busy) } else { Ok(Some(self.0.clone())) }
        }
    }
    let clip = clip(vec![1_000], ms(1_000));
    let file = Arc::new(MadeFile::of_clip(&clip).unwrap());
    let length = file.length() as usize;
    let library: Arc<dyn Library> = Arc::new(Counting(file.clone()));
    let mut server = Listening::new(&clip);
    drop(file);
    server.server = HttpServer::new(library, HttpServerSettings::default());
    // More than wait at a time.
    let requests = vec![get(&[]); 40];
    let written = requests.iter().flat_map(Request::write).collect();
    let (got, end) = answers_of(server, &requests, vec![written]);
    assert_eq!((got, end), (vec![(200, length); 40], Some(CloseReason::Finished)));
}

#[test]
fn what_cannot_be_opened_now_is_no_404() {
    struct Full;
    impl Library for Full {
        fn find(&self, _: &str, _: Instant) -> Result<Option<Arc<dyn Resource>>, Busy> {
            Err(Busy)
        }
    }
    assert_eq!(answer(&get(&[]), &Full, 60, Instant::ZERO).head.status, 503);
}

#[test]
fn who_waits_to_be_asked_for_a_body_is_answered_at_once() {
    let mut post = asking("POST", PATH, &[("Content-Length", "5"), ("Expect", "100-continue")]);
    let (got, end) = answers(&[], vec![post.write(), b"hello".to_vec(), get(&[]).write()]);
    assert_eq!((got.len(), got[0].0, end), (1, 405, Some(CloseReason::Finished)));
    // Without a body there is nothing to wait for.
    post.headers.set("Content-Length", "0");
    let (got, _) = answers(&[], vec![post.write(), get(&[]).write()]);
    assert_eq!(got.iter().map(|(status, _)| *status).collect::<Vec<_>>(), [405, 200]);
}

#[test]
fn an_old_client_is_told_that_its_connection_stays() {
    let written = b"GET /clip.mp4 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n".to_vec();
    let came = came(Listening::new(&clip(vec![1_000], ms(1_000))), vec![written.clone(), written]).0;
    let said = b"Connection: keep-alive\r\n";
    assert_eq!(came.windows(said.len()).filter(|bytes| bytes == said).count(), 2);
}

#[test]
fn an_idle_connection_is_closed() {
    let came = Arc::new(Mutex::new((Vec::new(), None)));
    // It would close after 100 s.
    let pieces = std::iter::once(get(&[]).write()).chain(std::iter::repeat_n(Vec::new(), 10_000)).collect();
    let raw = Raw { pieces, channel: None, next: None, came: came.clone() };
    let clip = clip(vec![1_000], ms(1_000));
    let mut pair = Pair::new(Box::new(Listening::new(&clip)), Box::new(raw), pipe(10_000_000));
    pair.run(at(80));
    let (closed, why) = came.lock().unwrap().1.unwrap();
    assert_eq!(why, CloseReason::Finished);
    assert!(at(75) <= closed && closed < at(77), "{closed:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn whatever_way_requests_are_cut_the_answers_are_the_same(
        cuts in prop::collection::vec(1usize..40, 0..12),
    ) {
        let requests = [
            get(&[("Range", "bytes=0-99")]),
            asking("HEAD", PATH, &[]),
            asking("GET", "/none", &[]),
            get(&[("Range", "bytes=100-"), ("Connection", "close")]),
        ];
        let written: Vec<u8> = requests.iter().flat_map(Request::write).collect();
        let whole = answers(&requests, vec![written.clone()]);
        let mut rest = &written[..];
        let mut pieces = Vec::new();
        for cut in cuts {
            let (piece, more) = rest.split_at(cut.min(rest.len()));
            pieces.push(piece.to_vec());
            rest = more;
        }
        pieces.push(rest.to_vec());
        prop_assert_eq!(whole.0.iter().map(|(status, _)| *status).collect::<Vec<_>>(), [206, 200, 404, 206]);
        prop_assert_eq!(answers(&requests, pieces), whole);
    }
}

/// A library that pages may play from.
struct ForPages(Arc<OneFile>);

impl Library for ForPages {
    fn find(&self, path: &str, now: Instant) -> Result<Option<Arc<dyn Resource>>, Busy> {
        self.0.find(path, now)
    }

    fn is_for_pages(&self) -> bool {
        true
    }
}

#[test]
fn pages_from_anywhere_may_play_from_a_library_that_is_for_them() {
    let own = library(&clip(vec![1_000], ms(1_000)));
    let pages = ForPages(own.clone());
    let header = |request: &Request, name: &str| {
        let given = answer(request, &pages, 60, Instant::ZERO);
        given.head.headers.get(name).map(str::to_owned)
    };
    for request in
        [get(&[]), get(&[("Range", "bytes=0-9")]), asking("GET", "/none", &[]), asking("HEAD", PATH, &[])]
    {
        assert_eq!(header(&request, "Access-Control-Allow-Origin").as_deref(), Some("*"));
        assert_eq!(header(&request, "Timing-Allow-Origin").as_deref(), Some("*"));
        assert!(header(&request, "Access-Control-Expose-Headers").unwrap().contains("Content-Range"));
        // Other libraries do not declare it.
        let given = answer(&request, own.as_ref(), 60, Instant::ZERO);
        assert_eq!(given.head.headers.get("Access-Control-Allow-Origin"), None);
    }
    let asked = asking("OPTIONS", PATH, &[("Access-Control-Request-Headers", "cmcd-request")]);
    let given = answer(&asked, &pages, 60, Instant::ZERO);
    assert_eq!((given.head.status, matches!(given.body, Body::None)), (204, true));
    assert!(header(&asked, "Access-Control-Allow-Headers").unwrap().contains("CMCD-Status"));
    assert_eq!(answer(&asked, own.as_ref(), 60, Instant::ZERO).head.status, 405);
}

#[test]
fn what_players_tell_of_themselves_is_an_event_of_the_request() {
    let mut server = HttpServer::new(library(&clip(vec![1_000], ms(1_000))), HttpServerSettings::default());
    let mut say = |target: &str, headers: &[(&str, &str)]| {
        server.say(Instant::ZERO, &asking("GET", target, headers), &Response::new(200));
        let events: Vec<Event> = std::iter::from_fn(|| server.poll_event()).collect();
        assert_eq!(events[0].name, "http_response");
        let told = events.get(1).filter(|event| event.name == "cmcd");
        told.map(|event| (event.value, event.reason.to_string()))
    };
    assert_eq!(say(PATH, &[]), None);
    let headers = [("CMCD-Status", "bs"), ("CMCD-Request", "mtp=25400,bl=21300")];
    assert_eq!(say(PATH, &headers), Some((Some(21.3), "bl=21300,bs,mtp=25400".into())));
    assert_eq!(say("/clip.mp4?CMCD=ot%3Dv", &[]), Some((None, "ot=v".into())));
    let (value, reason) = say("/clip.mp4?CMCD=bl%3Dx", &[]).unwrap();
    assert_eq!((value, reason.starts_with("it cannot be read: \"bl\"")), (None, true), "{reason}");
}
