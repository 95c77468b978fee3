//! From the connection to the first packet: OPTIONS, DESCRIBE, SETUP of each stream, PLAY; and the server's answers.

use streamgauge_base::{Duration, Instant};
use streamgauge_wire::rtsp::{
    self, DeliveryBandwidth, Lower, Range, RealChallenge1, RealTransport, RealTransports, Response,
    Subscribe, Unsubscribe, Url, names,
};

use super::super::sdp;
use super::adaptation::Adaptation;
use super::offers::offers;
use super::track::Track;
use super::{LastRequest, Phase, RealPlayer};
use crate::app::Io;
use crate::carrier::Carrier;
use crate::playout::{End, Gathers, HostLate, Manner, Playout, Start, Timeline};
use crate::rtsp::{MediaTransport, Step};

/// RDT's timestamps are milliseconds.
const CLOCK_RATE: u32 = 1_000;

/// A change of the rate below this share of it is not sent.
const WORTH_TELLING: f64 = 0.01;

/// The probable fault of a server that sent no challenge.
const NOT_REAL: &str = "it did not identify itself as a RealVideo server; for another server try --player quicktime or \
                        --player vlc";

impl RealPlayer {
    /// Begins the session, as the connection is open.
    pub(super) fn begin(&mut self, now: Instant, io: &mut dyn Io) {
        self.phase = Phase::SettingUp;
        match &self.client {
            Ok(_) => self.ask(now, Step::Options, io),
            Err(problem) => {
                let problem = problem.clone();
                self.give_up(now, problem, io);
            }
        }
    }

    /// Sends the request of `step`.
    pub(super) fn ask(&mut self, now: Instant, step: Step, io: &mut dyn Io) {
        let Ok(client) = &mut self.client else { return };
        let mut track_url: Option<Url> = None;
        let mut transport = None;
        if let Step::Setup(index) = step {
            let track = &mut self.tracks[index];
            track_url = Some(client.track_url(Some(&track.description.control)));
            transport = Some(match self.settings.transport {
                MediaTransport::Tcp => RealTransport::tcp(Some(index as u8)),
                MediaTransport::Udp => {
                    let channel = *track.channel.get_or_insert_with(|| io.open(&Carrier::RtpPair));
                    match io.port(channel) {
                        Some(port) => RealTransport::udp(port),
                        None => return self.give_up(now, "no pair of UDP ports is left on this host", io),
                    }
                }
            });
        }
        let resumes = matches!(self.phase, Phase::Playing { .. });
        let preference = self.settings.preference_bps.to_string();
        let chunk = client.request(now, step, track_url.as_ref(), |request| match step {
            Step::Options => request.insert_header(rtsp::name("ClientChallenge"), "0".repeat(32)),
            Step::Describe => {
                request.insert_header(names::ACCEPT, "application/sdp");
                request.insert_header(names::BANDWIDTH, preference);
                request.insert_header(rtsp::name("SupportsMaximumASMBandwidth"), "1");
            }
            Step::Setup(_) => request.insert_typed_header(&RealTransports(transport.into_iter().collect())),
            Step::Play if !resumes => {
                request.insert_typed_header(&Range { from: Some(Duration::ZERO), to: None });
            }
            Step::Play | Step::Pause | Step::KeepAlive | Step::Teardown => {}
        });
        if step == Step::Play {
            self.play_asked.get_or_insert(now);
        }
        self.connection.push(chunk, io);
    }

    /// Handles an answer of the server.
    pub(super) fn response(&mut self, now: Instant, response: Response<Vec<u8>>, io: &mut dyn Io) {
        let Ok(client) = &mut self.client else { return };
        let Some((step, answer)) = client.response(response) else { return };
        match (step, answer) {
            (Step::Options, answer) => {
                let challenge =
                    answer.ok().and_then(|answer| answer.typed_header::<RealChallenge1>().ok()?);
                self.is_challenged = challenge.is_some();
                self.ask(now, Step::Describe, io);
            }
            (Step::Describe, Err(problem)) if !self.is_challenged => {
                self.give_up(now, format!("{problem}; {NOT_REAL}"), io);
            }
            (Step::Describe, Ok(response)) => match self.described(&response) {
                Ok(()) => self.ask(now, Step::Setup(0), io),
                Err(problem) => {
                    self.is_unplayable = true;
                    self.give_up(now, problem, io);
                }
            },
            (Step::Setup(index), Ok(response)) => match self.set_up(index, &response, io) {
                Ok(()) if index + 1 < self.tracks.len() => self.ask(now, Step::Setup(index + 1), io),
                Ok(()) => {
                    self.tell(now, io);
                    self.ask(now, Step::Play, io);
                }
                Err(problem) => self.give_up(now, problem, io),
            },
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

    fn described(&mut self, response: &Response<Vec<u8>>) -> Result<(), String> {
        let presentation = sdp::read(&String::from_utf8_lossy(response.body()))?;
        if let Ok(client) = &mut self.client {
            client.described(response, None);
        }
        self.duration = presentation.duration;
        self.offers = offers(&presentation, &self.settings)?;
        let needs = self.offers.iter().map(|offer| offer.needs_bps).collect();
        let whole = self.offers.iter().position(|offer| offer.is_whole).unwrap_or(0);
        self.adaptation = Some(Adaptation::new(self.settings.clone(), needs, whole));
        let tracks = presentation.streams.into_iter();
        self.tracks = tracks.map(|stream| Track::new(stream, self.settings.clone())).collect();
        self.main = self.tracks.iter().position(|track| track.description.is_video).unwrap_or(0);
        Ok(())
    }

    fn set_up(&mut self, index: usize, response: &Response<Vec<u8>>, io: &mut dyn Io) -> Result<(), String> {
        let track = &mut self.tracks[index];
        let transports = response.typed_header::<RealTransports>();
        let transports = transports.map_err(|_| "the server's Transport cannot be read")?;
        let transport = transports.and_then(|transports| transports.0.into_iter().next());
        let transport = transport.ok_or("the server chose no transport that was asked for")?;
        match (self.settings.transport, transport.lower) {
            (MediaTransport::Tcp, Lower::Tcp) => {
                track.interleaved = Some(transport.interleaved.unwrap_or(index as u8));
            }
            (MediaTransport::Udp, Lower::Udp) => {
                let port = transport.server_port.ok_or("the server named no port of its own")?;
                if let Some(channel) = track.channel {
                    io.direct(channel, port);
                }
            }
            _ => return Err("the server chose another transport than was asked for".into()),
        }
        Ok(())
    }

    /// Sends the server the wanted level, where that differs from the last request.
    pub(super) fn tell(&mut self, now: Instant, io: &mut dyn Io) {
        let (Ok(client), Some(adaptation)) = (&mut self.client, &self.adaptation) else { return };
        let wanted = adaptation.wanted();
        let told = self.told.as_ref();
        let level_changed = told.is_none_or(|told| told.level != wanted.level);
        let off = told.map_or(f64::INFINITY, |told| (told.delivery_bps - wanted.delivery_bps).abs());
        if !self.connection.is_open() || !level_changed && off <= WORTH_TELLING * wanted.delivery_bps {
            return;
        }
        let rules = |level: usize| -> Vec<_> {
            let streams = self.tracks.iter().zip(&self.offers[level].rules);
            streams.flat_map(|(track, rules)| track.rules(rules)).collect()
        };
        let (after, before) = (rules(wanted.level), told.map_or_else(Vec::new, |told| rules(told.level)));
        let taken = Subscribe(after.iter().filter(|rule| !before.contains(rule)).copied().collect());
        let left = Unsubscribe(before.iter().filter(|rule| !after.contains(rule)).copied().collect());
        let rate = DeliveryBandwidth { bandwidth_bps: wanted.delivery_bps as u32, back_off: Some(0) };
        let chunk = client.tell(now, |request| {
            if !taken.0.is_empty() {
                request.insert_typed_header(&taken);
            }
            if !left.0.is_empty() {
                request.insert_typed_header(&left);
            }
            request.insert_typed_header(&rate);
        });
        if level_changed {
            let needs_bps = self.offers[wanted.level].needs_bps;
            self.events.say(now, "level_changed", needs_bps, "bit/s", wanted.reason.clone());
        }
        self.events.say(now, "delivery_asked", wanted.delivery_bps, "bit/s", wanted.reason.clone());
        self.told = Some(LastRequest { level: wanted.level, delivery_bps: wanted.delivery_bps });
        self.connection.push(chunk, io);
    }

    /// Starts the playout: the server sends from now on.
    fn plays(&mut self, now: Instant, response: &Response<Vec<u8>>) {
        self.phase = Phase::Playing { server_holds: false };
        if self.playout.is_some() {
            return;
        }
        let asked = self.play_asked.unwrap_or(now);
        let range = response.typed_header::<Range>().ok().flatten();
        let from = range.and_then(|range| range.from).unwrap_or(Duration::ZERO);
        let end = range.and_then(|range| range.to).or(self.duration).filter(|end| *end > from);
        let in_order = self.settings.transport == MediaTransport::Tcp;
        let manner = Manner {
            start: Start::Gathered,
            prebuffer: self.settings.preroll,
            rebuffer: self.settings.preroll,
            gathers: Gathers::Begun,
            host_late: HostLate::Counts,
            stalls: true,
            in_order,
        };
        let end = end.map(|at| End { at, of_pictures: self.tracks.len() == 1 });
        let mut playout = Playout::new(manner, &vec![None; self.tracks.len()], self.main, asked, from, end);
        if !self.tracks[self.main].description.is_video {
            playout.play_sound_alone();
        }
        for track in 0..self.tracks.len() {
            playout.anchor(track, Timeline::new(CLOCK_RATE, 0, Duration::ZERO));
        }
        if self.paused {
            playout.pause(now);
        }
        if self.keeping.is_wanted {
            playout.keep_units();
        }
        self.playout = Some(playout);
        for (track, datagram) in std::mem::take(&mut self.early) {
            self.media(now, track, &datagram);
        }
    }
}
