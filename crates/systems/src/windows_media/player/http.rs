//! HTTP in and out ([MS-WMSP] section 3.1): the header is read, then media, each the body of a response.

use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_wire::http::{self, HttpItem, Request, Response};
use streamgauge_wire::mms::{DataPacket, StreamSwitch, ThinningLevel, sequence_near};
use streamgauge_wire::rtsp::Url;
use streamgauge_wire::wmsp::{self, PacketContent, Pragmas};

use super::choice::Taken;
use super::core::{Core, Phase};
use super::header::Header;
use super::protocol_session::ProtocolSession;
use crate::app::{ChannelId, Input, Io};
use crate::rtsp::Backlog;

/// Bytes read from the connection at once.
const READ_BYTES: usize = 64 * 1024;

/// The player's name ([MS-WMSP] section 2.2.1.11); the number is no player's in particular.
const USER_AGENT: &str = "NSPlayer/9.0.0.2980";
const GUID: &str = "{3300AD50-2C39-46C0-AE0A-53544757AA01}";

/// HTTP on one connection.
pub struct Http {
    channel: ChannelId,
    /// Host and path, or the fault in the URL.
    target: Result<(String, String), String>,
    responses: http::Reader,
    body: wmsp::Reader,
    connection: Backlog,
    client_id: Option<u32>,
    header: Header,
    /// The next packet of media has this number.
    expected: u32,
    /// Whether it stops reading for now, so that the connection holds the server.
    holds: bool,
}

impl Http {
    /// Makes the protocol for `url`, on a connection that is not open yet.
    pub fn new(url: &str, channel: ChannelId) -> Self {
        let of = |url: Url| (url.host_str().unwrap_or_default().to_owned(), url.path().to_owned());
        Http {
            channel,
            target: Url::parse(url).map(of).map_err(|error| format!("{url} is no URL: {error}")),
            responses: http::Reader::of_responses(),
            body: wmsp::Reader::default(),
            connection: Backlog::new(channel),
            client_id: None,
            header: Header::default(),
            expected: 0,
            holds: false,
        }
    }

    /// Returns a request of these Pragma headers.
    fn request(&self, pragmas: Pragmas) -> Result<Request, String> {
        let (host, path) = self.target.clone()?;
        let mut request = Request::new("GET", &path, &host).map_err(|error| error.to_string())?;
        request.headers.add("User-Agent", USER_AGENT);
        let (client_id, client_guid) = (self.client_id, Some(GUID.into()));
        Pragmas { client_id, client_guid, no_cache: true, ..pragmas }.add_to(&mut request.headers);
        Ok(request)
    }

    fn ask(&mut self, pragmas: Pragmas, core: &mut Core, io: &mut dyn Io) {
        match self.request(pragmas) {
            Ok(request) => {
                self.responses.expect(&request);
                self.connection.push(Chunk::bytes(request.write()), io);
            }
            Err(problem) => core.fail(problem),
        }
    }

    fn read(&mut self, now: Instant, core: &mut Core, io: &mut dyn Io) {
        while !self.holds && core.failed.is_none() {
            let Some(chunk) = io.read(self.channel, READ_BYTES) else { return };
            core.heard = now;
            self.responses.push(chunk);
            while let Some(item) = self.responses.next() {
                match item {
                    Ok(HttpItem::Response(response)) => self.response(now, &response, core),
                    Ok(HttpItem::Body(bytes)) => self.bytes(now, bytes, core),
                    Ok(HttpItem::End) => self.message_ends(now, core, io),
                    Ok(HttpItem::Request(_)) => {}
                    Err(fault) => {
                        core.is_unplayable |= core.phase == Phase::SettingUp;
                        core.fail(format!("the server's answer cannot be read: {fault}"));
                    }
                }
                if core.failed.is_some() {
                    return;
                }
            }
        }
    }

    fn response(&mut self, now: Instant, response: &Response, core: &mut Core) {
        if response.is_interim() {
            return;
        }
        core.refused = (response.status != 200).then_some(response.status);
        if response.status != 200 {
            return core.fail(format!("the server refused GET: {} {}", response.status, response.reason));
        }
        match Pragmas::read(&response.headers) {
            Ok(said) => self.client_id = said.client_id.or(self.client_id),
            Err(fault) => return core.fail(format!("the server's answer cannot be read: {fault}")),
        }
        self.body = wmsp::Reader::default();
        if core.play_asked.is_some() {
            core.phase = Phase::Playing { server_holds: false };
            core.plays(now, Duration::ZERO, None, true);
        }
    }

    fn bytes(&mut self, now: Instant, bytes: Chunk, core: &mut Core) {
        self.body.push(bytes);
        for packet in self.body.by_ref() {
            match packet.map(|packet| packet.content) {
                Ok(PacketContent::Header(packet)) if core.streams.is_empty() => {
                    let Ok(packet) = DataPacket::parse(&packet) else { continue };
                    match self.header.take(&packet) {
                        Ok(None) => {}
                        Ok(Some(presentation)) => core.described(presentation),
                        Err(problem) => {
                            core.is_unplayable = true;
                            return core.fail(problem);
                        }
                    }
                }
                Ok(PacketContent::Data(bytes)) => {
                    let Ok(packet) = DataPacket::parse(&bytes) else { continue };
                    let sequence = sequence_near(packet.flags, self.expected);
                    self.expected = sequence.wrapping_add(1);
                    if core.arrived(now, sequence as u16, bytes.len()) {
                        core.packet(now, packet.payload.head());
                    }
                }
                Ok(PacketContent::End(_)) => core.ended = true,
                Ok(_) => {}
                Err(problem) => {
                    core.is_unplayable |= core.phase == Phase::SettingUp;
                    return core.fail(format!("the server's answer cannot be read: {problem}"));
                }
            }
        }
    }

    /// Notes that the response is whole: behind the header media is asked for.
    fn message_ends(&mut self, now: Instant, core: &mut Core, io: &mut dyn Io) {
        if core.play_asked.is_some() {
            return;
        }
        if core.streams.is_empty() {
            core.is_unplayable = true;
            return core.fail("the server is no Windows Media server: its answer has no header of ASF");
        }
        // Over a connection nothing is measured.
        core.choose(now, None);
        let all = core.streams.iter().map(|stream| {
            let is_chosen = core.chosen.contains(&stream.number);
            let level = if is_chosen { ThinningLevel::All } else { ThinningLevel::Nothing };
            StreamSwitch { level, ..StreamSwitch::on(stream.number.into()) }
        });
        let asked_bps = core.accelerated_bps();
        let accelerated = Some(asked_bps).filter(|asked| *asked > 0);
        let ms = (core.settings.buffered.as_nanos() / 1_000_000) as u32;
        let pragmas = Pragmas {
            play: Some(true),
            rate: Some(1.0),
            stream_time_ms: Some(0),
            link_bps: Some(core.link_bps().min(f64::from(u32::MAX)) as u32),
            accel_bps: accelerated,
            accel_duration_ms: accelerated.map(|_| ms),
            stream_switches: all.collect(),
            ..Pragmas::default()
        };
        core.say_accelerated(now, asked_bps);
        core.asks_for_media(now);
        self.ask(pragmas, core, io);
    }
}

impl ProtocolSession for Http {
    fn channel(&self) -> ChannelId {
        self.channel
    }

    fn begin(&mut self, _: Instant, core: &mut Core, io: &mut dyn Io) {
        self.connection.open();
        let pragmas = Pragmas { rate: Some(1.0), stream_time_ms: Some(0), ..Pragmas::default() };
        self.ask(pragmas, core, io);
    }

    fn handle(&mut self, now: Instant, input: &Input<'_>, core: &mut Core, io: &mut dyn Io) {
        match *input {
            Input::Readable(channel) if channel == self.channel => self.read(now, core, io),
            Input::Writable(channel) if channel == self.channel => self.connection.flush(io),
            _ => {}
        }
    }

    fn set_up_what_is_due(&mut self, _: Instant, _: &mut Core, _: &mut dyn Io) {}

    fn waits(&self) -> bool {
        false
    }

    /// The server has got the amount to send faster beforehand.
    fn slow_down(&mut self, _: Instant, _: &mut Core, _: &mut dyn Io) {}

    /// On a connection nothing is lost, so that the selection is never reduced.
    fn switch(&mut self, _: Instant, _: Taken, _: Taken, _: &mut Core, _: &mut dyn Io) {}

    fn say_missing(&mut self, _: Instant, _: &mut Core, _: &mut dyn Io) {}

    fn steer(&mut self, now: Instant, core: &mut Core, io: &mut dyn Io) {
        let resumes = self.holds && !core.holds_server();
        self.holds = core.holds_server() && core.is_playing();
        if resumes {
            self.read(now, core, io);
        }
    }

    fn forget(&mut self) {
        self.connection.forget();
    }

    fn leave(&mut self, _: Instant, _: &mut Core, _: &mut dyn Io) -> bool {
        false
    }

    fn close(&mut self, io: &mut dyn Io) {
        // Media on its way is not needed.
        self.connection.abort(io);
    }

    fn wake(&self, _: &Core) -> Option<Instant> {
        None
    }
}
