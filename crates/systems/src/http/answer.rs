//! A server's answer to a request (RFC 9110): the resource, its bytes, or the refusal.

use std::sync::Arc;

use streamgauge_base::Instant;
use streamgauge_wire::http::{
    CacheControl, ContentRange, EntityTag, Ranges, Request, Response, TagCondition, Version,
};

use super::resource::{Busy, Library, Resource};

/// An answer: its head, and its body.
pub struct Answer {
    /// The head.
    pub head: Response,
    /// The bytes that follow.
    pub body: Body,
}

/// Bytes behind a head.
pub enum Body {
    /// None.
    None,
    /// A sentence for people.
    Text(String),
    /// Bytes of a resource, from the first to before the last.
    Of(Arc<dyn Resource>, u64, u64),
}

/// Returns a short answer with the fault.
pub fn refusal(status: u16, why: &str) -> Answer {
    let text = format!("{why}\n");
    let head = Response::new(status).with("Content-Type", "text/plain").with("Content-Length", text.len());
    Answer { head, body: Body::Text(text) }
}

/// Returns the answer to `request`. Only GET and HEAD are understood. For several ranges in one request the
/// whole is sent, as section 14.2 allows; dates are not compared, for a machine has no calendar (section
/// 6.6.1), and an If-Range of a date gets the whole too.
pub fn answer(request: &Request, library: &dyn Library, max_age_s: u64, now: Instant) -> Answer {
    let mut answer = match request.method.as_str() {
        "OPTIONS" if library.is_for_pages() => preflight(),
        _ => with_body(request, library, max_age_s, now),
    };
    if request.method == "HEAD" {
        answer.body = Body::None;
    }
    if library.is_for_pages() {
        for_pages(&mut answer.head);
    }
    answer
}

/// Allows pages of any origin to read the body behind this head (Fetch section 3.2).
pub(crate) fn for_pages(head: &mut Response) {
    head.headers.add("Access-Control-Allow-Origin", "*");
    head.headers.add("Access-Control-Expose-Headers", "Content-Length, Content-Range, ETag");
    // The arrival times of each part of the answer are disclosed too (Resource Timing section 4.5).
    head.headers.add("Timing-Allow-Origin", "*");
}

/// Returns the answer that a browser needs before it sends a cross-origin request that is not simple (Fetch
/// section 3.2.2).
pub(crate) fn preflight() -> Answer {
    let head = Response::new(204)
        .with("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS")
        .with("Access-Control-Allow-Headers", ALLOWED)
        .with("Access-Control-Max-Age", 86_400);
    Answer { head, body: Body::None }
}

/// Headers that a player in a page sends.
const ALLOWED: &str = "Range, If-None-Match, CMCD-Object, CMCD-Request, CMCD-Session, CMCD-Status";

/// Answers as if HEAD were GET.
fn with_body(request: &Request, library: &dyn Library, max_age_s: u64, now: Instant) -> Answer {
    if request.version == Version::V1_1 && request.headers.get("Host").is_none() {
        return refusal(400, "a request of HTTP/1.1 has one Host header (RFC 9112 section 3.2)");
    }
    if !matches!(request.method.as_str(), "GET" | "HEAD") {
        let mut answer = refusal(405, "only GET and HEAD are understood here");
        answer.head.headers.add("Allow", "GET, HEAD");
        return answer;
    }
    match library.find(request.path(), now) {
        Ok(Some(resource)) => of_resource(request, resource, max_age_s),
        Ok(None) => refusal(404, "nothing has this path here"),
        Err(Busy) => refusal(503, "this cannot be opened now; try again later"),
    }
}

fn of_resource(request: &Request, resource: Arc<dyn Resource>, max_age_s: u64) -> Answer {
    let headers = &request.headers;
    let (length, tag) = (resource.length(), resource.tag());
    let condition = |name| headers.list(name).and_then(|value| value.parse::<TagCondition>().ok());
    if condition("If-Match").is_some_and(|wanted| !wanted.has_same(&tag)) {
        return refusal(412, "the resource is of another version than If-Match asks for");
    }
    let max_age_s = resource.max_age_s(max_age_s);
    let control = CacheControl { public: true, max_age_s: Some(max_age_s), ..CacheControl::default() };
    let described = |status| {
        Response::new(status)
            .with("ETag", &tag)
            .with("Cache-Control", control)
            .with("Accept-Ranges", "bytes")
            .with("Content-Type", resource.content_type())
    };
    if condition("If-None-Match").is_some_and(|known| known.has_like(&tag)) {
        return Answer { head: described(304), body: Body::None };
    }
    let (first, end, head) = match asked(request, &tag).map(|range| range.within(length)) {
        None => (0, length, described(200)),
        Some(Some((first, last))) => {
            let part = ContentRange::Part { first, last, of: Some(length) };
            (first, last + 1, described(206).with("Content-Range", part))
        }
        Some(None) => {
            let mut answer = refusal(416, "none of the bytes asked for are in the resource");
            answer.head.headers.add("Content-Range", ContentRange::Outside { of: length });
            return answer;
        }
    };
    let head = head.with("Content-Length", end - first);
    let body = if first == end { Body::None } else { Body::Of(resource, first, end) };
    Answer { head, body }
}

/// Returns the one requested range of the resource with this tag. Range is defined for GET alone (section
/// 14.2).
fn asked(request: &Request, tag: &EntityTag) -> Option<streamgauge_wire::http::ByteRange> {
    // Several are a list, which is no tag: the whole is always correct.
    let same = match request.headers.list("If-Range") {
        Some(validator) => validator.parse::<EntityTag>().is_ok_and(|known| known.is_same(tag)),
        None => true,
    };
    let ranges: Ranges =
        request.headers.get("Range").filter(|_| same && request.method == "GET")?.parse().ok()?;
    match ranges.0[..] {
        [range] => Some(range),
        _ => None,
    }
}
