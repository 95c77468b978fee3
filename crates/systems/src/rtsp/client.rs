//! The player's side of RTSP (RFC 2326): one request at a time, and what became of each.

use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_wire::rtsp::{
    CSeq, Empty, HeaderName, Method, Public, Request, RequestBuilder, Response, StatusCode, Url, Version,
    names, write_request, write_response,
};

/// A session without a stated timeout has this one (RFC 2326 section 12.37).
const USUAL_TIMEOUT_S: u64 = 60;

/// A session gets a sign of life at least each half of this, whatever it is said to bear.
const MOST_TIMEOUT_S: u64 = 86_400;

/// What a request is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// To learn what the server can do.
    Options,
    /// To learn what there is.
    Describe,
    /// To set this track up.
    Setup(usize),
    /// To begin, or to go on.
    Play,
    /// To hold.
    Pause,
    /// To keep the session.
    KeepAlive,
    /// To end it.
    Teardown,
}

impl Step {
    fn method(self, has_get_parameter: bool) -> Method {
        match self {
            Step::KeepAlive if has_get_parameter => Method::GetParameter,
            Step::Options | Step::KeepAlive => Method::Options,
            Step::Describe => Method::Describe,
            Step::Setup(_) => Method::Setup,
            Step::Play => Method::Play,
            Step::Pause => Method::Pause,
            Step::Teardown => Method::Teardown,
        }
    }
}

/// The response to a request, or how it was refused.
pub type Answer = Result<Response<Vec<u8>>, String>;

/// The conversation with one server.
pub struct Client {
    /// What is played.
    url: Url,
    /// What relative URLs of the description are relative to.
    base: Url,
    /// What requests for the whole presentation name.
    aggregate: Url,
    cseq: u32,
    /// The request that waits for its response, since when, and its number.
    asked: Option<(Step, Instant, u32)>,
    session: Option<String>,
    timeout: Duration,
    has_get_parameter: bool,
    spoke: Instant,
}

impl Client {
    /// For `url`, or what is wrong with it.
    pub fn new(url: &str) -> Result<Self, String> {
        let url = Url::parse(url).map_err(|error| format!("{url} is no URL: {error}"))?;
        if url.scheme() != "rtsp" {
            return Err(format!("{url} is not an rtsp:// URL"));
        }
        Ok(Client {
            base: url.clone(),
            aggregate: url.clone(),
            url,
            cseq: 0,
            asked: None,
            session: None,
            timeout: Duration::from_secs(USUAL_TIMEOUT_S),
            has_get_parameter: false,
            spoke: Instant::ZERO,
        })
    }

    /// The request that waits for its response, and since when.
    pub fn asked(&self) -> Option<(Step, Instant)> {
        self.asked.map(|(step, since, _)| (step, since))
    }

    /// There is a session.
    pub fn has_session(&self) -> bool {
        self.session.is_some()
    }

    /// When the session needs a sign of life: after half its timeout without a request.
    pub fn keep_alive_at(&self) -> Option<Instant> {
        let idle = self.session.is_some() && self.asked.is_none();
        idle.then(|| self.spoke + self.timeout.div(2))
    }

    /// The URL of a track by the `control` of its description (RFC 2326 appendix C.1.1).
    pub fn track_url(&self, control: Option<&str>) -> Url {
        control.map_or_else(|| self.aggregate.clone(), |control| resolve(&self.base, control))
    }

    /// A description came: its Content-Base or Content-Location, and the whole's control URL.
    pub fn described(&mut self, response: &Response<Vec<u8>>, control: Option<&str>) {
        let header = |name: HeaderName| response.header(&name).and_then(|url| Url::parse(url.as_str()).ok());
        self.base = header(names::CONTENT_BASE)
            .or_else(|| header(names::CONTENT_LOCATION))
            .unwrap_or_else(|| self.url.clone());
        self.aggregate = control.map_or_else(|| self.base.clone(), |control| resolve(&self.base, control));
    }

    /// A request at `now`; `track` is the URL of one that is for a track.
    pub fn request(
        &mut self,
        now: Instant,
        step: Step,
        track: Option<&Url>,
        dress: impl FnOnce(&mut Request<Empty>),
    ) -> Chunk {
        let url = track.unwrap_or(match step {
            Step::Options | Step::Describe => &self.url,
            _ => &self.aggregate,
        });
        let chunk = self.written(step.method(self.has_get_parameter), url.clone(), dress);
        (self.asked, self.spoke) = (Some((step, now, self.cseq)), now);
        chunk
    }

    /// Parameters that are set at `now`, beside whatever is asked: nobody waits for the response.
    pub fn tell(&mut self, now: Instant, dress: impl FnOnce(&mut Request<Empty>)) -> Chunk {
        self.spoke = now;
        self.written(Method::SetParameter, self.aggregate.clone(), dress)
    }

    /// The same by a body of type `kind`.
    pub fn tell_in_body(&mut self, now: Instant, kind: &'static str, body: String) -> Chunk {
        self.spoke = now;
        let begun = self.begun(Method::SetParameter, self.aggregate.clone());
        Chunk::bytes(write_request(&begun.header(names::CONTENT_TYPE, kind).build(body.into_bytes())))
    }

    fn written(&mut self, method: Method, url: Url, dress: impl FnOnce(&mut Request<Empty>)) -> Chunk {
        let mut request = self.begun(method, url).empty();
        dress(&mut request);
        Chunk::bytes(write_request(&request))
    }

    /// A request's number, whose it is, and the session that it is of.
    fn begun(&mut self, method: Method, url: Url) -> RequestBuilder {
        self.cseq += 1;
        let begun = Request::builder(method, Version::V1_0)
            .request_uri(url)
            .typed_header(&CSeq::from(self.cseq))
            .header(names::USER_AGENT, concat!("StreamGauge/", env!("CARGO_PKG_VERSION")));
        match &self.session {
            Some(session) => begun.header(names::SESSION, session.as_str()),
            None => begun,
        }
    }

    /// What `response` answers; `None` if that is nothing that was asked. A refusal is told with what to do.
    pub fn response(&mut self, response: Response<Vec<u8>>) -> Option<(Step, Answer)> {
        // Servers that leave CSeq out answer in order, and there is one request at a time.
        let cseq = response.typed_header::<CSeq>().ok().flatten();
        let (step, ..) = self.asked.filter(|(.., asked)| cseq.is_none_or(|cseq| *cseq == *asked))?;
        if response.status().is_informational() {
            return None;
        }
        self.asked = None;
        if let Ok(Some(public)) = response.typed_header::<Public>() {
            self.has_get_parameter = public.contains(&Method::GetParameter);
        }
        if let Some(said) = response.header(&names::SESSION).filter(|_| matches!(step, Step::Setup(_))) {
            let (id, timeout_s) = session(said.as_str());
            self.timeout = Duration::from_secs(timeout_s.min(MOST_TIMEOUT_S));
            self.session = Some(id.into());
        }
        let status = response.status();
        if status.is_success() {
            return Some((step, Ok(response)));
        }
        let said = format!("{} {}", u16::from(status), response.reason_phrase());
        let method = step.method(self.has_get_parameter);
        let method: &str = (&method).into();
        let remedy = match status {
            StatusCode::Unauthorized => "; it wants a user name and password, which are not supported".into(),
            StatusCode::UnsupportedTransport => "; try the other of udp and tcp".into(),
            _ if status.is_redirection() => {
                let location = response.header(&names::LOCATION).map_or("elsewhere", |url| url.as_str());
                format!("; it is at {location}: play that")
            }
            _ => String::new(),
        };
        Some((step, Err(format!("the server refused {method}: {said}{remedy}"))))
    }

    /// The answer to a request of the server's: yes to OPTIONS, by which Darwin measures the round trip.
    pub fn answer(request: &Request<Vec<u8>>) -> Chunk {
        match request.method() {
            Method::Options => Self::answer_with(request, StatusCode::Ok),
            _ => Self::answer_with(request, StatusCode::NotImplemented),
        }
    }

    /// An answer of that status.
    pub fn answer_with(request: &Request<Vec<u8>>, status: StatusCode) -> Chunk {
        let mut response = Response::builder(Version::V1_0, status).empty();
        if let Some(cseq) = request.header(&names::CSEQ) {
            response.insert_header(names::CSEQ, cseq.as_str());
        }
        if *request.method() == Method::Options {
            response.insert_header(names::PUBLIC, "OPTIONS");
        }
        Chunk::bytes(write_response(&response))
    }
}

/// A session's id and its timeout in seconds (RFC 2326 section 12.37). Some write blanks around the `;`, and a timeout
/// that cannot be read is none.
fn session(said: &str) -> (&str, u64) {
    let mut parts = said.split(';').map(str::trim);
    let id = parts.next().unwrap_or_default();
    let timeout = parts.find_map(|part| part.strip_prefix("timeout=")?.trim().parse().ok());
    (id, timeout.filter(|&timeout_s| timeout_s > 0).unwrap_or(USUAL_TIMEOUT_S))
}

/// `control` as an absolute URL. A relative one stands behind its base, whose last part is a folder even where the
/// server left its `/` away.
fn resolve(base: &Url, control: &str) -> Url {
    if control == "*" || control.is_empty() {
        return base.clone();
    }
    if let Ok(url) = Url::parse(control) {
        return url;
    }
    let mut folder = base.clone();
    if !folder.path().ends_with('/') {
        folder.set_path(&format!("{}/", base.path()));
    }
    // With `./` in front a name with a colon is no scheme.
    let relative = if control.starts_with('/') { control.into() } else { format!("./{control}") };
    folder.join(&relative).unwrap_or(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_urls_are_followed_wherever_they_lead() {
        for (base, control, expected) in [
            ("rtsp://h/a.mov/", "trackID=1", "rtsp://h/a.mov/trackID=1"),
            ("rtsp://h/a.mov", "trackID=1", "rtsp://h/a.mov/trackID=1"),
            ("rtsp://h:8554/a.mov/", "*", "rtsp://h:8554/a.mov/"),
            ("rtsp://h/a.mov/", "/b/streamid=2", "rtsp://h/b/streamid=2"),
            ("rtsp://h/a.mov/", "rtsp://other/x", "rtsp://other/x"),
            ("rtsp://h/a/", "sub/track1", "rtsp://h/a/sub/track1"),
        ] {
            let base = Url::parse(base).unwrap();
            assert_eq!(resolve(&base, control).as_str(), expected);
        }
    }

    #[test]
    fn a_session_is_known_however_its_timeout_is_written() {
        for (said, expected) in [
            ("12345678", ("12345678", 60)),
            ("12345678;timeout=30", ("12345678", 30)),
            ("a-b.c ; x=1; timeout=30", ("a-b.c", 30)),
            ("a;timeout=0", ("a", 60)),
            ("a;timeout=1e3", ("a", 60)),
            ("a;timeout=18446744073709551616", ("a", 60)),
        ] {
            assert_eq!(session(said), expected, "{said}");
        }
    }

    #[test]
    fn only_rtsp_is_played() {
        assert!(Client::new("http://h/x").err().unwrap().contains("not an rtsp:// URL"));
        assert!(Client::new("h/x").err().unwrap().contains("is no URL"));
    }
}
