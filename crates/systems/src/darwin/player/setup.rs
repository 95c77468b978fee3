//! From the connection to the first packet: DESCRIBE, SETUP of each track, PLAY; and the server's answers.

use streamgauge_base::{Duration, Instant};
use streamgauge_wire::rtsp::{
    DynamicRate, Lower, Prebuffer, Range, Response, Retransmit, RtpInfo, Speed, TransportOptions, Transports,
    names,
};
use streamgauge_wire::rtsp::{Transport, Url};

use super::claim::Claim;
use super::track::Track;
use super::{DarwinPlayer, Phase};
use crate::app::{ChannelId, Io};
use crate::carrier::Carrier;
use crate::media::sdp;
use crate::playout::{End, Gathers, HostLate, Manner, Playout, Start};
use crate::rtsp::{MediaTransport, Step};

/// Tracks that are set up; further ones of a description are left out.
const MOST_TRACKS: usize = 8;

impl DarwinPlayer {
    /// Begins the session, as the connection is open.
    pub(super) fn begin(&mut self, now: Instant, io: &mut dyn Io) {
        self.phase = Phase::SettingUp;
        let first = if self.settings.options_first { Step::Options } else { Step::Describe };
        match &self.client {
            Ok(_) => self.ask(now, first, io),
            Err(problem) => {
                let problem = problem.clone();
                self.give_up(now, problem, io);
            }
        }
    }

    /// Sends the request of `step`.
    pub(super) fn ask(&mut self, now: Instant, step: Step, io: &mut dyn Io) {
        let Ok(client) = &mut self.client else { return };
        let settings = &self.settings;
        let mut track_url: Option<Url> = None;
        let mut transport = None;
        if let Step::Setup(index) = step {
            let track = &mut self.tracks[index];
            track_url = Some(client.track_url(track.description.control.as_deref()));
            transport = Some(match settings.transport {
                MediaTransport::Tcp => {
                    let channel = 2 * index as u8;
                    Transport::tcp((channel, channel + 1))
                }
                MediaTransport::Udp => {
                    let (rtp, _) = *track.channels.get_or_insert_with(|| {
                        let rtp = io.open(&Carrier::RtpPair);
                        (rtp, ChannelId(rtp.0 + 1))
                    });
                    match io.port(rtp) {
                        Some(port) => Transport::udp((port, port + 1)),
                        None => return self.give_up(now, "no pair of UDP ports is left on this host", io),
                    }
                }
            });
        }
        let resumes = matches!(self.phase, Phase::Playing { .. });
        let chunk = client.request(now, step, track_url.as_ref(), |request| match step {
            Step::Describe => request.insert_header(names::ACCEPT, "application/sdp"),
            Step::Setup(_) => {
                request.insert_typed_header(&Transports(transport.into_iter().collect()));
                if settings.reliable_udp && settings.transport == MediaTransport::Udp {
                    request.insert_typed_header(&Retransmit::ask(None));
                }
                if let Some(wanted) = settings.dynamic_rate {
                    request.insert_typed_header(&DynamicRate { wanted, rtt_ms: None });
                }
                if let Some(time) = settings.late_tolerance_setup {
                    request.insert_typed_header(&TransportOptions { late_tolerance: Some(time) });
                }
            }
            Step::Play => {
                // Without a range the server continues where it held (RFC 2326 section 10.5).
                if !resumes {
                    request.insert_typed_header(&Range { from: Some(settings.begin), to: None });
                    if let Some(time) = settings.prebuffer_maxtime {
                        request.insert_typed_header(&Prebuffer { most: Some(time), used: None });
                    }
                }
                if let Some(time) = settings.late_tolerance_play {
                    request.insert_typed_header(&TransportOptions { late_tolerance: Some(time) });
                }
                if let Some(speed) = settings.speed {
                    request.insert_typed_header(&Speed(speed));
                }
            }
            Step::Options | Step::Pause | Step::KeepAlive | Step::Teardown => {}
        });
        if step == Step::Play {
            self.play_asked.get_or_insert(now);
        }
        self.connection.push(chunk, io);
    }

    /// Handles an answer of the server.
    pub(super) fn response(&mut self, now: Instant, response: Response<Vec<u8>>, io: &mut dyn Io) {
        let Ok(client) = &mut self.client else { return };
        if client.follows(&response) {
            return self.ask(now, Step::Describe, io);
        }
        let Some((step, answer)) = client.response(response) else { return };
        match (step, answer) {
            (Step::Options, _) => self.ask(now, Step::Describe, io),
            (Step::Describe, Ok(response)) => match self.described(now, &response) {
                Ok(()) => self.ask(now, Step::Setup(0), io),
                Err(problem) => self.give_up(now, problem, io),
            },
            (Step::Setup(index), Ok(response)) => match self.set_up(index, &response, io) {
                Ok(()) if index + 1 < self.tracks.len() => self.ask(now, Step::Setup(index + 1), io),
                Ok(()) => self.ask(now, Step::Play, io),
                Err(problem) => self.give_up(now, problem, io),
            },
            (Step::Setup(index), Err(problem)) if self.leave_out(index, &problem) => {
                let next = if index < self.tracks.len() { Step::Setup(index) } else { Step::Play };
                self.ask(now, next, io);
            }
            (Step::Play, Ok(response)) => self.plays(now, &response),
            // A server that refuses still sends, and its packets are held here; it is not asked again.
            (Step::Pause, _) => self.phase = Phase::Playing { server_holds: true },
            (Step::KeepAlive, _) => {}
            (Step::Teardown, _) => {
                self.phase = Phase::Gone;
                self.connection.close(io);
            }
            (_, Err(problem)) => self.give_up(now, problem, io),
        }
    }

    fn described(&mut self, now: Instant, response: &Response<Vec<u8>>) -> Result<(), String> {
        if response.body().is_empty() {
            return Err("the server sent no description with its answer to DESCRIBE".into());
        }
        let text = String::from_utf8_lossy(response.body());
        let presentation = sdp::read(&text).map_err(|problem| problem.to_string())?;
        if let Ok(client) = &mut self.client {
            client.described(response, presentation.control.as_deref());
        }
        self.duration = presentation.duration;
        self.alone = presentation.tracks.len() == 1;
        for track in presentation.tracks {
            let obstacle = track.obstacle();
            let name = track.name();
            let room = self.tracks.len() < MOST_TRACKS;
            let track =
                Track::new(track, self.settings.ack_delay, now).filter(|_| obstacle.is_none() && room);
            match track {
                Some(track) => self.tracks.push(track),
                None => {
                    let why =
                        obstacle.map_or_else(|| format!("more than {MOST_TRACKS} tracks"), str::to_owned);
                    self.left_out.push(format!("{name} ({why})"));
                }
            }
        }
        if self.tracks.is_empty() {
            return Err(format!("nothing in it can be played: {}", self.left_out.join(", ")));
        }
        self.choose_main();
        Ok(())
    }

    fn choose_main(&mut self) {
        self.main = self.tracks.iter().position(|track| track.description.is_video()).unwrap_or(0);
    }

    /// Leaves out a track that the server refused. True if others remain to be played.
    fn leave_out(&mut self, index: usize, why: &str) -> bool {
        if self.tracks.len() < 2 {
            return false;
        }
        let track = self.tracks.remove(index);
        self.left_out.push(format!("{} ({why})", track.description.name()));
        self.choose_main();
        true
    }

    fn set_up(&mut self, index: usize, response: &Response<Vec<u8>>, io: &mut dyn Io) -> Result<(), String> {
        let track = &mut self.tracks[index];
        let transport = response.header(&names::TRANSPORT);
        let transports = transport.map(|chosen| Transports::chosen(chosen.as_str())).transpose();
        let transport = transports.map_err(|_| "the server's Transport cannot be read")?;
        let asked = match self.settings.transport {
            MediaTransport::Udp => Lower::Udp,
            MediaTransport::Tcp => Lower::Tcp,
        };
        let transport = match transport {
            Some(transports) => {
                let first = transports.0.into_iter().next();
                first.ok_or("the server chose no transport that was asked for")?
            }
            // A server that names none has accepted the one that was asked for.
            None => Transport { lower: asked, ..Transport::udp((0, 0)) },
        };
        if transport.lower != asked || !transport.unicast {
            return Err("the server chose another transport than was asked for".into());
        }
        track.source.announce(transport.ssrc);
        match asked {
            Lower::Tcp => {
                let channel = 2 * index as u8;
                track.interleaved = Some(transport.interleaved.unwrap_or((channel, channel + 1)));
            }
            Lower::Udp => {
                // Without ports of its own it is answered at the source of its packets.
                if let Some(((media, control), (rtp, rtcp))) = track.channels.zip(transport.server_port) {
                    io.direct(media, rtp);
                    io.direct(control, rtcp);
                }
                let granted = response.typed_header::<Retransmit>().ok().flatten();
                track.reliable =
                    self.settings.reliable_udp && granted.is_some_and(|grant| grant.reliable_udp);
            }
        }
        Ok(())
    }

    /// Starts the playout: the server sends from now on.
    fn plays(&mut self, now: Instant, response: &Response<Vec<u8>>) {
        let asked = self.play_asked.unwrap_or(now);
        self.phase = Phase::Playing { server_holds: false };
        let range = response.typed_header::<Range>().ok().flatten();
        let from = range.and_then(|range| range.from);
        let begins = self.playout.is_none();
        if begins {
            let start = from.unwrap_or(self.settings.begin);
            self.from = start;
            let end = range.and_then(|range| range.to).or(self.duration);
            self.playout = Some(self.new_playout(asked, start, end));
            self.next_report = Some(self.reports.next(now));
        }
        self.claims(now, response, from, begins);
        for (track, packet) in std::mem::take(&mut self.early) {
            self.media(now, track, &packet);
        }
        if let Some(playout) = self.playout.as_mut().filter(|_| begins && self.paused) {
            playout.pause(now);
        }
    }

    /// Makes the playout of the media from `start` to `end`, which the server gives for all of it together.
    fn new_playout(&self, asked: Instant, start: Duration, end: Option<Duration>) -> Playout {
        let own = self.tracks[self.main].description.end;
        let of_pictures = own.is_some() || self.alone;
        let at = end.into_iter().chain(own).min().filter(|end| *end > start);
        let end = at.map(|at| End { at, of_pictures });
        let in_order = self.settings.transport == MediaTransport::Tcp;
        let manner = Manner {
            start: Start::Gathered,
            prebuffer: self.settings.prebuffer,
            rebuffer: self.settings.prebuffer,
            gathers: Gathers::Begun,
            host_late: HostLate::Counts,
            stalls: in_order || self.settings.rebuffer,
            in_order,
        };
        let intervals: Vec<_> = self.tracks.iter().map(Track::interval).collect();
        let mut playout = Playout::new(manner, &intervals, self.main, asked, start, end);
        if self.tracks[self.main].description.media != "video" {
            playout.play_sound_alone();
        }
        if self.keep {
            playout.keep_units();
        }
        playout
    }

    /// Reads the claims of PLAY's answer about each track's packets (RTP-Info), which the packets have to confirm.
    fn claims(&mut self, now: Instant, response: &Response<Vec<u8>>, from: Option<Duration>, begins: bool) {
        let Ok(client) = &self.client else { return };
        let Ok(info) = response.typed_header::<RtpInfo>() else {
            self.passed_over.push("RTP-Info (it cannot be read)".into());
            return;
        };
        let info = info.unwrap_or_default().0;
        let end = self.duration;
        let tracks = self.tracks.len();
        for (index, track) in self.tracks.iter_mut().enumerate() {
            let url = client.track_url(track.description.control.as_deref());
            let control = track.description.control.as_deref().unwrap_or("");
            let named = |url_said: &str| {
                url_said == url.as_str() || (!control.is_empty() && url_said.ends_with(control))
            };
            // Where the URLs are other ones, the order is the tracks'.
            let in_order = info.get(index).filter(|_| info.len() == tracks);
            let Some(stream) = info.iter().find(|stream| named(&stream.url)).or(in_order) else { continue };
            let at = from.unwrap_or(self.from);
            let claim = Claim { seq: stream.seq, rtptime: stream.rtptime, at, end, begins, since: now };
            track.claim = Some(claim);
        }
    }
}
