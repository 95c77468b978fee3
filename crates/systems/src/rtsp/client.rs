//! The player's side of RTSP (RFC 2326): one request at a time, and the result of each.

use std::collections::VecDeque;

use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_wire::rtsp::{
    CSeq, Empty, HeaderName, Method, Public, Request, RequestBuilder, Response, StatusCode, Url, Version,
    names, write_request, write_response,
};

/// A session without a stated timeout has this one (RFC 2326 section 12.37).
const USUAL_TIMEOUT_S: u64 = 60;

/// A session gets a sign of life at least each half of this, even if it is declared to bear more.
const MOST_TIMEOUT_S: u64 = 86_400;

/// The port of a URL that names none (RFC 2326 section 3.2).
const RTSP_PORT: u16 = 554;

/// Redirections that are followed.
const MOST_MOVES: u32 = 5;

/// Requests without a response that are remembered.
const MOST_UNAWAITED: usize = 32;

/// Characters of a refusal's reason that are shown.
const MOST_REASON: usize = 300;

/// The purpose of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// To learn the server's methods.
    Options,
    /// To learn the media's description.
    Describe,
    /// To set this track up.
    Setup(usize),
    /// To begin, or to continue.
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
    /// URL of the played media.
    url: Url,
    /// Base of the description's relative URLs.
    base: Url,
    /// URL in requests for the whole presentation.
    aggregate: Url,
    cseq: u32,
    /// Requests without an awaited response, the last of them.
    unawaited: VecDeque<u32>,
    /// Times that the server has sent it elsewhere.
    moves: u32,
    /// The request that waits for its response, since when, and its number.
    asked: Option<(Step, Instant, u32)>,
    session: Option<String>,
    timeout: Duration,
    has_get_parameter: bool,
    spoke: Instant,
}

impl Client {
    /// Makes a client for `url`, or returns the fault in it.
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
            unawaited: VecDeque::new(),
            moves: 0,
            asked: None,
            session: None,
            timeout: Duration::from_secs(USUAL_TIMEOUT_S),
            has_get_parameter: false,
            spoke: Instant::ZERO,
        })
    }

    /// Returns the request that waits for its response, and since when.
    pub fn asked(&self) -> Option<(Step, Instant)> {
        self.asked.map(|(step, since, _)| (step, since))
    }

    /// Returns whether there is a session.
    pub fn has_session(&self) -> bool {
        self.session.is_some()
    }

    /// Returns when the session needs a sign of life: after half its timeout without a request.
    pub fn keep_alive_at(&self) -> Option<Instant> {
        let idle = self.session.is_some() && self.asked.is_none();
        idle.then(|| self.spoke + self.timeout.div(2))
    }

    /// Returns the URL of a track by the `control` of its description (RFC 2326 appendix C.1.1).
    pub fn track_url(&self, control: Option<&str>) -> Url {
        control.map_or_else(|| self.aggregate.clone(), |control| resolve(&self.base, control))
    }

    /// Handles a description: its Content-Base or Content-Location, and the whole's control URL.
    pub fn described(&mut self, response: &Response<Vec<u8>>, control: Option<&str>) {
        let header = |name: HeaderName| base_of(response.header(&name)?.as_str(), &self.url);
        self.base = header(names::CONTENT_BASE)
            .or_else(|| header(names::CONTENT_LOCATION))
            .unwrap_or_else(|| self.url.clone());
        self.aggregate = control.map_or_else(|| self.base.clone(), |control| resolve(&self.base, control));
    }

    /// Returns a request at `now`; `track` is the URL of one that is for a track.
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
        let before = self.asked.map(|(.., number)| number);
        let chunk = self.written(step.method(self.has_get_parameter), url.clone(), dress);
        before.into_iter().for_each(|number| self.await_no_more(number));
        (self.asked, self.spoke) = (Some((step, now, self.cseq)), now);
        chunk
    }

    /// Returns a request that sets parameters at `now`, beside any other request: its response is not awaited.
    pub fn tell(&mut self, now: Instant, dress: impl FnOnce(&mut Request<Empty>)) -> Chunk {
        self.spoke = now;
        let chunk = self.written(Method::SetParameter, self.aggregate.clone(), dress);
        self.await_no_more(self.cseq);
        chunk
    }

    fn await_no_more(&mut self, number: u32) {
        if self.unawaited.len() == MOST_UNAWAITED {
            self.unawaited.pop_front();
        }
        self.unawaited.push_back(number);
    }

    /// Sets parameters as [`Client::tell`], by a body of type `kind`.
    pub fn tell_in_body(&mut self, now: Instant, kind: &'static str, body: String) -> Chunk {
        self.spoke = now;
        let begun = self.begun(Method::SetParameter, self.aggregate.clone());
        self.await_no_more(self.cseq);
        Chunk::bytes(write_request(&begun.header(names::CONTENT_TYPE, kind).build(body.into_bytes())))
    }

    fn written(&mut self, method: Method, url: Url, dress: impl FnOnce(&mut Request<Empty>)) -> Chunk {
        let mut request = self.begun(method, url).empty();
        dress(&mut request);
        Chunk::bytes(write_request(&request))
    }

    /// Begins a request: its number, the client's name, and its session.
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

    /// Returns the step that `response` answers; `None` if that is no request of ours. A refusal is returned with its
    /// remedy.
    pub fn response(&mut self, response: Response<Vec<u8>>) -> Option<(Step, Answer)> {
        // Servers that leave CSeq out, or write another, answer in order, and there is one request at a time.
        let cseq = response.typed_header::<CSeq>().ok().flatten();
        let (step, _, asked) = self.asked?;
        let is_stale = |number: &u32| cseq.as_ref().is_some_and(|cseq| **cseq == *number && *number != asked);
        if let Some(place) = self.unawaited.iter().position(is_stale) {
            self.unawaited.remove(place);
            return None;
        }
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
            StatusCode::Unauthorized => {
                let scheme = response.header(&names::WWW_AUTHENTICATE).and_then(|wanted| {
                    wanted.as_str().split_whitespace().next().map(|scheme| format!(" ({scheme})"))
                });
                let scheme = scheme.unwrap_or_default();
                format!("; it wants a user name and password{scheme}, which are not supported")
            }
            StatusCode::UnsupportedTransport => "; try the other of udp and tcp".into(),
            _ if status.is_redirection() => {
                let location = response.header(&names::LOCATION).map_or("elsewhere", |url| url.as_str());
                format!("; it is at {location}: play that")
            }
            _ => String::new(),
        };
        let why = reason(&response).map_or_else(String::new, |why| format!(" ({why})"));
        Some((step, Err(format!("the server refused {method}: {said}{why}{remedy}"))))
    }

    /// Follows a redirection of DESCRIBE to another URL of the same server (RFC 2326 section 11.3). True if it does.
    pub fn follows(&mut self, response: &Response<Vec<u8>>) -> bool {
        let is_described = matches!(self.asked, Some((Step::Describe, ..)));
        if !is_described || !response.status().is_redirection() || self.moves == MOST_MOVES {
            return false;
        }
        let to = response.header(&names::LOCATION).and_then(|to| base_of(to.as_str(), &self.url));
        let place = |url: &Url| (url.host_str().map(str::to_owned), url.port().unwrap_or(RTSP_PORT));
        let Some(to) = to.filter(|to| place(to) == place(&self.url)) else { return false };
        self.moves += 1;
        self.asked = None;
        (self.base, self.aggregate, self.url) = (to.clone(), to.clone(), to);
        true
    }

    /// Returns the answer to a request of the server's: yes to OPTIONS, by which Darwin measures the round trip.
    pub fn answer(request: &Request<Vec<u8>>) -> Chunk {
        match request.method() {
            Method::Options => Self::answer_with(request, StatusCode::Ok),
            _ => Self::answer_with(request, StatusCode::NotImplemented),
        }
    }

    /// Returns an answer of that status.
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

/// Returns a session's id and its timeout in seconds (RFC 2326 section 12.37). Some write blanks around the `;` and the
/// `=`, and a timeout that cannot be read is none.
fn session(said: &str) -> (&str, u64) {
    let mut parts = said.split(';').map(str::trim);
    let id = parts.next().unwrap_or_default();
    let timeout = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("timeout").then(|| value.trim().parse().ok())?
    });
    (id, timeout.filter(|&timeout_s| timeout_s > 0).unwrap_or(USUAL_TIMEOUT_S))
}

/// Returns the text in which a server gives the reason of a refusal.
fn reason(response: &Response<Vec<u8>>) -> Option<String> {
    let kind = response.header(&names::CONTENT_TYPE)?.as_str();
    let text = kind.to_ascii_lowercase().starts_with("text/plain").then(|| response.body())?;
    let text = String::from_utf8_lossy(text);
    let line = text.lines().next().unwrap_or_default().trim();
    let shown: String = line.chars().filter(|c| !c.is_control()).take(MOST_REASON).collect();
    (!shown.is_empty()).then_some(shown)
}

/// Returns the URL that a server writes in a header, which may be relative to `url`. Cameras leave the scheme away, or
/// write it twice; a value that is no URL of RTSP then is none.
fn base_of(text: &str, url: &Url) -> Option<Url> {
    const SCHEME: &str = "rtsp://";
    let mut text = text.trim();
    while text.get(..SCHEME.len()).is_some_and(|begun| begun.eq_ignore_ascii_case(SCHEME))
        && text.get(SCHEME.len()..).is_some_and(|rest| rest.to_ascii_lowercase().starts_with(SCHEME))
    {
        text = &text[SCHEME.len()..];
    }
    let read = match Url::parse(text) {
        Ok(absolute) => absolute,
        Err(_) if text.starts_with('/') => url.join(text).ok()?,
        Err(_) => return None,
    };
    (read.scheme() == "rtsp" && read.has_host()).then_some(read)
}

/// Returns `control` as an absolute URL. A relative one is behind its base; the last part of that is a folder even
/// where the server left its `/` away.
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
            (" 1234 5678 ; Timeout = 30 ; x", ("1234 5678", 30)),
            ("a;timeout=0", ("a", 60)),
            ("a;timeout=1e3", ("a", 60)),
            ("a;timeout=18446744073709551616", ("a", 60)),
        ] {
            assert_eq!(session(said), expected, "{said}");
        }
    }

    #[test]
    fn a_base_is_taken_however_it_is_written_and_none_that_is_no_url_of_rtsp() {
        let url = Url::parse("rtsp://h:8554/cam").unwrap();
        for (text, expected) in [
            ("rtsp://h:8554/cam/", Some("rtsp://h:8554/cam/")),
            (" RTSP://rtsp://h:8554/cam/", Some("rtsp://h:8554/cam/")),
            ("/other/", Some("rtsp://h:8554/other/")),
            ("rtsp://192.168.1.10:554/cam/", Some("rtsp://192.168.1.10:554/cam/")),
            ("127.0.0.1:8554/cam/", None),
            ("localhost:8554/cam/", None),
            ("http://h/cam/", None),
            ("rtsp://", None),
            ("", None),
        ] {
            assert_eq!(base_of(text, &url).as_ref().map(Url::as_str), expected, "{text:?}");
        }
    }

    fn asked(client: &mut Client, step: Step) {
        client.request(Instant::ZERO, step, None, |_| {});
    }

    fn answered(client: &mut Client, cseq: u32) -> Option<Step> {
        let response = Response::builder(Version::V1_0, StatusCode::Ok).typed_header(&CSeq::from(cseq));
        client.response(response.build(Vec::new())).map(|(step, _)| step)
    }

    #[test]
    fn a_wrong_number_answers_what_is_asked_and_a_stale_one_does_not() {
        let mut client = Client::new("rtsp://h/cam").unwrap();
        asked(&mut client, Step::Describe);
        assert_eq!(answered(&mut client, 77), Some(Step::Describe));
        asked(&mut client, Step::Play);
        client.tell(Instant::ZERO, |_| {});
        assert_eq!(answered(&mut client, 3), None, "nobody waits for that");
        asked(&mut client, Step::Teardown);
        assert_eq!(answered(&mut client, 2), None, "to PLAY, which is not awaited any more");
        assert_eq!(answered(&mut client, 4), Some(Step::Teardown));
    }

    #[test]
    fn a_redirection_is_followed_at_the_same_server_alone() {
        let to = |client: &mut Client, location: &str| {
            asked(client, Step::Describe);
            let response =
                Response::builder(Version::V1_0, StatusCode::Found).header(names::LOCATION, location);
            client.follows(&response.build(Vec::new()))
        };
        let mut client = Client::new("rtsp://h/cam").unwrap();
        assert!(to(&mut client, "rtsp://h:554/cam2") && to(&mut client, "/cam3"));
        assert_eq!(client.track_url(None).as_str(), "rtsp://h:554/cam3");
        for elsewhere in ["rtsp://other/cam2", "rtsp://h:8554/cam2", "http://h/cam2", ""] {
            assert!(!to(&mut client, elsewhere), "{elsewhere}");
        }
        assert_eq!((0..9).filter(|_| to(&mut client, "/cam")).count(), 3, "not in circles");
    }

    #[test]
    fn only_rtsp_is_played() {
        assert!(Client::new("http://h/x").err().unwrap().contains("not an rtsp:// URL"));
        assert!(Client::new("h/x").err().unwrap().contains("is no URL"));
    }
}
