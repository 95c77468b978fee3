//! The heads that a cache writes: to players, and to servers.

use streamgauge_base::Instant;
use streamgauge_wire::http::{
    ByteRange, ContentRange, EntityTag, HttpHeaders, Ranges, Request, Response, TagCondition,
};

use super::object::Object;

/// Headers of one connection alone (RFC 9110 section 7.6.1), and headers that the cache sets itself.
const OWN: [&str; 12] = [
    "Connection",
    "Keep-Alive",
    "Proxy-Connection",
    "Proxy-Authenticate",
    "Proxy-Authorization",
    "TE",
    "Trailer",
    "Transfer-Encoding",
    "Upgrade",
    "Content-Length",
    "Content-Range",
    "Age",
];

fn passed_on(headers: &HttpHeaders) -> HttpHeaders {
    let mut passed = headers.clone();
    let named: Vec<String> = headers
        .list("Connection")
        .iter()
        .flat_map(|list| list.split(','))
        .map(|name| name.trim().to_owned())
        .collect();
    for name in OWN.into_iter().map(str::to_owned).chain(named) {
        passed.remove(&name);
    }
    passed
}

/// Returns the one range that a request asks for; several are ignored, as a server may (RFC 9110 section
/// 14.2).
pub fn range(request: &Request) -> Option<ByteRange> {
    let ranges: Ranges = request.headers.get("Range")?.parse().ok()?;
    match ranges.0[..] {
        [one] if request.method == "GET" => Some(one),
        _ => None,
    }
}

/// The bytes of an answer, [first, end), the end if that is known, and its head.
pub struct Begun {
    pub first: u64,
    pub end: Option<u64>,
    pub head: Response,
    /// The connection ends with it.
    pub closes: bool,
}

/// Returns the answer to `request` out of `object`, which must have its head.
pub fn begin(now: Instant, request: &Request, object: &Object, via: &str) -> Option<Begun> {
    let (status, headers) = object.head.as_ref()?;
    let mut head = Response { headers: passed_on(headers), ..Response::new(*status) };
    head.headers.add("Age", object.age_s(now));
    head.headers.add("Via", format!("1.1 {via}"));
    let tag = object.tag();
    let known = request.headers.list("If-None-Match").and_then(|list| list.parse::<TagCondition>().ok());
    let is_known = known.zip(tag.as_ref()).is_some_and(|(known, tag)| known.has_like(tag));
    let mut closes = !request.keeps_alive();
    let of = |mut head: Response, first: u64, end: Option<u64>, length: Option<u64>| {
        if let Some(length) = length {
            head.headers.add("Content-Length", length);
        }
        if closes {
            head.headers.add("Connection", "close");
        }
        Some(Begun { first, end, head, closes })
    };
    if *status == 200 && is_known {
        return of(Response { headers: head.headers, ..Response::new(304) }, 0, Some(0), None);
    }
    let Some(total) = object.total else {
        // Its end is the connection's.
        closes = true;
        head.headers.add("Connection", "close");
        return Some(Begun { first: 0, end: None, head, closes });
    };
    let if_range = request.headers.get("If-Range").map(|text| text.parse::<EntityTag>().ok());
    let holds = if_range.is_none_or(|given| given.zip(tag).is_some_and(|(given, tag)| given.is_same(&tag)));
    match range(request).filter(|_| *status == 200 && holds) {
        None => {
            let end = if request.method == "HEAD" { 0 } else { total };
            of(head, 0, Some(end), Some(total))
        }
        Some(range) => match range.within(total) {
            Some((first, last)) => {
                head.headers.add("Content-Range", ContentRange::Part { first, last, of: Some(total) });
                let head = Response { headers: head.headers, ..Response::new(206) };
                of(head, first, Some(last + 1), Some(last + 1 - first))
            }
            None => {
                let head = Response::new(416).with("Content-Range", ContentRange::Outside { of: total });
                of(head, 0, Some(0), Some(0))
            }
        },
    }
}

/// Returns an answer without a body, of the cache's own.
pub fn refusal(status: u16, via: &str) -> Response {
    Response::new(status).with("Content-Length", 0).with("Via", format!("1.1 {via}"))
}

/// Returns the request to the server for `request`: for these bytes of it, or for a validation of the stored
/// response.
pub fn upstream(request: &Request, wanted: &Wanted, tag: Option<&EntityTag>, via: &str) -> Request {
    let mut headers = passed_on(&request.headers);
    for name in ["Range", "If-Range", "If-None-Match", "If-Match", "If-Modified-Since", "If-Unmodified-Since"]
    {
        headers.remove(name);
    }
    headers.add("Via", format!("1.1 {via}"));
    match wanted {
        Wanted::Whole => {}
        Wanted::Validation => {
            if let Some(tag) = tag {
                headers.add("If-None-Match", tag);
            }
        }
        Wanted::Part(range) => {
            headers.add("Range", Ranges(vec![*range]));
            if let Some(tag) = tag.filter(|tag| !tag.weak) {
                headers.add("If-Range", tag);
            }
        }
    }
    Request { headers, ..request.clone() }
}

/// The purpose of a request to a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    Whole,
    Part(ByteRange),
    /// Validates the stored response.
    Validation,
}
