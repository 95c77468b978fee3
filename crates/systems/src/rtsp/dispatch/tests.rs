//! A server that has nothing of its own.

use super::*;
use crate::app::ChannelId;
use crate::carrier::Carrier;
use crate::media::ClipSpec;

/// Assets with numbers of tracks, by their paths.
struct Shelf([(&'static str, Result<Arc<Asset>, OpenError>); 4]);

impl Shelf {
    fn open(&self, path: &str) -> Result<Arc<Asset>, OpenError> {
        let found = self.0.iter().find(|(own, _)| *own == path);
        found.map_or(Err(OpenError::NotFound), |(_, asset)| asset.clone())
    }
}

struct Bare {
    shelf: Shelf,
    session: Option<BareSession>,
}

struct BareSession {
    path: String,
    asset: Arc<Asset>,
    tracks: Vec<(usize, Option<(u8, u8)>)>,
    playing: Option<RangeWanted>,
    heeded: u32,
}

impl RtspServer for Bare {
    type Session = BareSession;

    fn open(&self, path: &str) -> Result<Arc<Asset>, OpenError> {
        self.shelf.open(path)
    }

    fn session(&mut self) -> Option<&mut BareSession> {
        self.session.as_mut()
    }

    fn timeout(&self) -> Duration {
        Duration::from_millis(90_500)
    }

    fn set_up(
        &mut self,
        wanted: TrackWanted<'_, Asset>,
        answer: &mut Answer,
        _: &mut dyn Io,
    ) -> Result<(), Answer> {
        let transport = wanted.transport()?;
        let TrackWanted { path, media: asset, track, .. } = wanted;
        let (tracks, playing, heeded) = (Vec::new(), None, 0);
        let session = self.session.get_or_insert(BareSession { path, asset, tracks, playing, heeded });
        session.tracks.push((track, transport.interleaved));
        answer.insert_typed_header(&Transports(vec![transport]));
        Ok(())
    }

    fn tear_down(&mut self, _: Instant, _: &mut dyn Io) {
        self.session = None;
    }
}

impl RtspSession for BareSession {
    type Media = Asset;

    fn id(&self) -> &str {
        "a1"
    }
    fn path(&self) -> &str {
        &self.path
    }
    fn media(&self) -> &Arc<Asset> {
        &self.asset
    }
    fn is_playing(&self) -> bool {
        self.playing.is_some()
    }
    fn tracks(&self) -> impl Iterator<Item = (usize, Option<(u8, u8)>)> {
        self.tracks.iter().copied()
    }
    fn heed(&mut self, _: &Request<Vec<u8>>) -> bool {
        self.heeded += 1;
        true
    }
    fn play(
        &mut self,
        _: Instant,
        _: &Request<Vec<u8>>,
        wanted: RangeWanted,
        _: &mut Answer,
    ) -> Option<RangePlayed> {
        self.playing = Some(wanted);
        let (from, to) = (wanted.from.unwrap_or(Duration::ZERO), wanted.to.unwrap_or(self.asset.duration));
        let speed = wanted.speed.unwrap_or(1.0);
        (from < to).then(|| RangePlayed { from, to, speed, streams: Vec::new() })
    }
    fn pause(&mut self) {
        self.playing = None;
    }
}

/// An IO that nothing is asked of.
struct Nothing;

impl Io for Nothing {
    fn open(&mut self, carrier: &Carrier) -> ChannelId {
        panic!("{carrier:?} is opened")
    }
    fn send_as(&mut self, _: ChannelId, _: streamgauge_base::Chunk, _: crate::Envelope) {}
    fn write(&mut self, _: ChannelId, chunk: streamgauge_base::Chunk) -> usize {
        chunk.len()
    }
    fn read(&mut self, _: ChannelId, _: usize) -> Option<streamgauge_base::Chunk> {
        None
    }
    fn close(&mut self, _: ChannelId) {}
    fn port(&self, _: ChannelId) -> Option<u16> {
        None
    }
    fn direct(&mut self, _: ChannelId, _: u16) {}
}

fn bare() -> Bare {
    let asset = |tracks: usize| {
        let frame_interval = Duration::from_millis(40);
        let (duration, frame_bytes) = (frame_interval * 250, vec![1000].into());
        let clip = ClipSpec { duration, frame_interval, frame_bytes, ..ClipSpec::default() };
        let mut asset = Asset::of_clip(&clip);
        asset.tracks = vec![asset.tracks[0].clone(); tracks];
        Ok(Arc::new(asset))
    };
    let shelf = [
        ("/one", asset(1)),
        ("/two", asset(2)),
        ("/odd", Err(OpenError::Unsupported("no film".into()))),
        ("/busy", Err(OpenError::Failed("no room".into()))),
    ];
    Bare { shelf: Shelf(shelf), session: None }
}

/// Returns the answer to a method of a path, with these headers; one without a colon is the body.
fn ask(server: &mut Bare, method: Method, path: &str, headers: &[&str]) -> Answer {
    let url = Url::parse(&format!("rtsp://h{path}")).unwrap();
    let mut request = Request::builder(method, Version::V1_0).request_uri(url).header(names::CSEQ, "7");
    let mut body = Vec::new();
    for header in headers {
        match header.split_once(": ") {
            Some((name, value)) => {
                let name = streamgauge_wire::rtsp::HeaderName::try_from(name).unwrap();
                request = request.header(name, value);
            }
            None => body = header.as_bytes().to_vec(),
        }
    }
    let answer = answer(server, Instant::ZERO, &request.build(body), &mut Nothing);
    assert_eq!(answer.header(&names::CSEQ).map(|cseq| cseq.as_str()), Some("7"));
    answer
}

fn said(answer: &Answer, name: &streamgauge_wire::rtsp::HeaderName) -> String {
    answer.header(name).map(|value| value.as_str().to_owned()).unwrap_or_default()
}

const SESSION: &str = "Session: a1";
const TCP: &str = "Transport: RTP/AVP/TCP;unicast";

#[test]
fn a_session_is_described_set_up_played_and_ended() {
    let server = &mut bare();
    let described = ask(server, Method::Describe, "/two?x=1", &["Accept: text/plain, application/SDP"]);
    assert_eq!(said(&described, &names::CONTENT_BASE), "rtsp://h/two/");
    assert_eq!(described.body().windows(8).filter(|bytes| bytes == b"m=video ").count(), 2);
    let first = ask(server, Method::Setup, "/two/trackID=1", &[TCP]);
    assert_eq!(said(&first, &names::SESSION), "a1;timeout=90");
    assert!(said(&first, &names::TRANSPORT).contains("interleaved=0-1"), "{first:?}");
    let second = ask(server, Method::Setup, "/two/trackID=2", &[TCP, SESSION]);
    assert!(said(&second, &names::TRANSPORT).contains("interleaved=2-3"), "{second:?}");
    let played = ask(server, Method::Play, "/two", &[SESSION, "Range: npt=2-4", "Speed: 2"]);
    assert_eq!(said(&played, &names::RANGE), "npt=2.00000-4.00000");
    assert_eq!(
        (said(&played, &names::SPEED), said(&played, &names::SESSION)),
        ("2.00000".into(), "a1".into())
    );
    let session = server.session.as_ref().unwrap();
    let (from, to) = (Some(Duration::from_secs(2)), Some(Duration::from_secs(4)));
    assert_eq!((session.playing, session.heeded), (Some(RangeWanted { from, to, speed: Some(2.0) }), 1));
    assert_eq!(ask(server, Method::SetParameter, "/two", &[SESSION]).status(), StatusCode::Ok);
    assert_eq!(ask(server, Method::Pause, "/two", &[SESSION]).status(), StatusCode::Ok);
    let session = server.session.as_ref().unwrap();
    assert_eq!((session.playing, session.heeded), (None, 2));
    assert_eq!(said(&ask(server, Method::Teardown, "/two", &[SESSION]), &names::SESSION), "a1");
    assert!(server.session.is_none());
}

#[test]
fn what_cannot_be_done_has_its_status() {
    let refused = |server: &mut Bare, method, path: &str, headers: &[&str]| {
        u16::from(ask(server, method, path, headers).status())
    };
    let server = &mut bare();
    for (method, path, headers, status) in [
        (Method::Options, "/none", &[][..], 200),
        (Method::Options, "/one", &["Require: tea"], 551),
        (Method::Describe, "/one", &["Accept: text/html"], 406),
        (Method::Describe, "/none", &[], 404),
        (Method::Describe, "/odd", &[], 415),
        (Method::Describe, "/busy", &[], 500),
        (Method::Setup, "/two", &[TCP], 459),
        (Method::Setup, "/two/trackID=3", &[TCP], 404),
        (Method::Setup, "/one", &[], 461),
        (Method::Setup, "/one", &["Transport: RTP/AVP;multicast"], 461),
        (Method::Setup, "/one", &[TCP, SESSION], 454),
        (Method::Play, "/one", &[SESSION], 454),
        (Method::GetParameter, "/one", &[], 200),
        (Method::GetParameter, "/one", &[SESSION], 454),
        (Method::SetParameter, "/one", &["tea"], 451),
        (Method::Record, "/one", &[], 405),
        (Method::Redirect, "/one", &[], 501),
        (Method::Extension("BREW".into()), "/one", &[], 501),
    ] {
        assert_eq!(refused(server, method.clone(), path, headers), status, "{method:?} {path} {headers:?}");
        assert!(server.session.is_none());
    }
    for track in ["/two/trackID=1", "/two/trackID=2"] {
        let headers: &[&str] = if server.session.is_some() { &[TCP, SESSION] } else { &[TCP] };
        assert_eq!(refused(server, Method::Setup, track, headers), 200);
    }
    for (method, path, headers, status) in [
        (Method::Setup, "/two/trackID=1", &[TCP][..], 455),
        (Method::Setup, "/two/trackID=1", &[TCP, SESSION], 455),
        (Method::Setup, "/one", &[TCP, SESSION], 459),
        (Method::Play, "/two", &[], 454),
        (Method::Play, "/two", &["Session: a2"], 454),
        (Method::Play, "/two/trackID=1", &[SESSION], 460),
        (Method::Pause, "/two/trackID=1", &[SESSION], 460),
        (Method::Play, "/two", &[SESSION, "Range: smpte=0:10:20-"], 457),
        (Method::Play, "/two", &[SESSION, "Range: npt=5-4"], 457),
        (Method::GetParameter, "/two", &[SESSION, "tea"], 451),
        (Method::Play, "/two", &[SESSION], 200),
        (Method::Setup, "/two/trackID=1", &[TCP, SESSION], 455),
        (Method::Teardown, "/two", &["Session: a2"], 454),
        (Method::Teardown, "/two", &[SESSION], 200),
        (Method::Teardown, "/two", &[SESSION], 454),
    ] {
        assert_eq!(refused(server, method.clone(), path, headers), status, "{method:?} {path} {headers:?}");
    }
}

#[test]
fn a_request_without_a_number_is_none() {
    let request = Request::builder(Method::Options, Version::V1_0).build(Vec::new());
    let refused = answer(&mut bare(), Instant::ZERO, &request, &mut Nothing);
    assert_eq!(refused.status(), StatusCode::BadRequest);
}
