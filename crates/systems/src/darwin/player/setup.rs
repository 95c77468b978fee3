//! From the connection to the first packet: DESCRIBE, SETUP of each track, PLAY; and what the server answers.

use streamgauge_base::{Duration, Instant};
use streamgauge_wire::rtsp::{
    DynamicRate, Lower, Prebuffer, Range, Response, Retransmit, RtpInfo, Speed, TransportOptions, Transports,
    names,
};
use streamgauge_wire::rtsp::{Transport, Url};

use super::track::Track;
use super::{DarwinPlayer, Phase};
use crate::app::{ChannelId, Io};
use crate::carrier::Carrier;
use crate::media::sdp::{self, TrackDescription};
use crate::playout::{End, Gathers, HostLate, Manner, Playout, Start};
use crate::rtsp::{MediaTransport, Step};

/// Tracks that are set up; what a description lists beyond them is left out.
const MOST_TRACKS: usize = 8;

/// What encodings of others are called that nobody has by plain RTP, and who plays those.
const OTHERS: [(&str, &str); 2] = [
    ("x-pn-real", "; --player realplayer8 plays what a RealVideo server has"),
    ("x-asf-pf", "; --player wmp9 plays what a Windows Media server has"),
];

impl DarwinPlayer {
    /// The connection is there.
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
                // Without a range the server goes on where it held (RFC 2326 section 10.5).
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

    /// The server answered something.
    pub(super) fn response(&mut self, now: Instant, response: Response<Vec<u8>>, io: &mut dyn Io) {
        let Ok(client) = &mut self.client else { return };
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
            (Step::Play, Ok(response)) => self.plays(now, &response),
            // One that refuses goes on sending, and what it sends is held here; it is not asked again.
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
        let text = String::from_utf8_lossy(response.body());
        let presentation = sdp::read(&text).map_err(|problem| problem.to_string())?;
        if let Ok(client) = &mut self.client {
            client.described(response, presentation.control.as_deref());
        }
        self.duration = presentation.duration;
        self.alone = presentation.tracks.len() == 1;
        let who_plays = |encoding: &str| {
            let other = OTHERS.iter().find(|(part, _)| encoding.contains(part));
            other.map(|(_, who)| *who)
        };
        let playable = |track: &TrackDescription| {
            let is_media = track.media == "video" || track.media == "audio";
            track.clock_rate > 0 && is_media && who_plays(&track.encoding).is_none()
        };
        let names: Vec<String> = presentation
            .tracks
            .iter()
            .map(|track| format!("{} {}", track.media, track.encoding).trim().into())
            .collect();
        let ack_delay = self.settings.ack_delay;
        let tracks = presentation.tracks.into_iter().filter(playable).take(MOST_TRACKS);
        self.tracks = tracks.map(|track| Track::new(track, ack_delay, now)).collect();
        if self.tracks.is_empty() {
            let who = names.iter().find_map(|name| who_plays(name)).unwrap_or_default();
            return Err(format!("nothing in it can be played: {}{who}", names.join(", ")));
        }
        let is_video = |track: &Track| track.description.media == "video";
        self.main = self.tracks.iter().position(is_video).unwrap_or(0);
        Ok(())
    }

    fn set_up(&mut self, index: usize, response: &Response<Vec<u8>>, io: &mut dyn Io) -> Result<(), String> {
        let track = &mut self.tracks[index];
        let transports = response.typed_header::<Transports>();
        let transport = transports.map_err(|_| "the server's Transport cannot be read")?;
        let transport = transport.and_then(|transports| transports.0.into_iter().next());
        let asked = match self.settings.transport {
            MediaTransport::Udp => Lower::Udp,
            MediaTransport::Tcp => Lower::Tcp,
        };
        let transport = transport.ok_or("the server chose no transport that was asked for")?;
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
                let (rtp, rtcp) = transport.server_port.ok_or("the server named no ports of its own")?;
                if let Some((media, control)) = track.channels {
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

    /// The server sends from now on.
    fn plays(&mut self, now: Instant, response: &Response<Vec<u8>>) {
        let asked = self.play_asked.unwrap_or(now);
        self.phase = Phase::Playing { server_holds: false };
        let range = response.typed_header::<Range>().ok().flatten();
        let from = range.and_then(|range| range.from);
        let begins = self.playout.is_none();
        if begins {
            let start = from.unwrap_or(self.settings.begin);
            let end = range.and_then(|range| range.to).or(self.duration);
            self.playout = Some(self.new_playout(asked, start, end));
            self.next_report = Some(self.reports.next(now));
        }
        self.anchor(response, from, begins);
        for (track, packet) in std::mem::take(&mut self.early) {
            self.media(now, track, &packet);
        }
        if let Some(playout) = self.playout.as_mut().filter(|_| begins && self.paused) {
            playout.pause(now);
        }
    }

    /// Of the media from `start` to `end`, as the server says of all of it together.
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
        if self.keep {
            playout.keep_units();
        }
        playout
    }

    /// What timestamps mean, and where play `begins` which packet is the first, as RTP-Info says for each track.
    fn anchor(&mut self, response: &Response<Vec<u8>>, from: Option<Duration>, begins: bool) {
        let (Ok(client), Some(playout)) = (&self.client, &mut self.playout) else { return };
        let info = response.typed_header::<RtpInfo>().ok().flatten().unwrap_or_default();
        let alone = self.tracks.len() == 1;
        for (index, track) in self.tracks.iter_mut().enumerate() {
            let url = client.track_url(track.description.control.as_deref());
            let control = track.description.control.as_deref().unwrap_or("");
            let named = |url_said: &str| {
                url_said == url.as_str() || (!control.is_empty() && url_said.ends_with(control))
            };
            let said = info.0.iter().find(|stream| named(&stream.url));
            let only = if alone { info.0.first() } else { None };
            let Some(stream) = said.or(only) else { continue };
            track.source.begins_at(stream.seq.filter(|_| begins));
            if let Some(timestamp) = stream.rtptime {
                playout.anchor(index, track.timeline(timestamp, from.unwrap_or(self.settings.begin)));
            }
        }
    }
}
