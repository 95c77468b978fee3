//! From the connection to the first packet: DESCRIBE, packets that measure the link, SETUP of each stream, PLAY; and
//! the server's answers.

use rtp_types::RtpPacket;
use streamgauge_base::{Duration, Instant};
use streamgauge_wire::rtp_asf::RtpPacketPair;
use streamgauge_wire::rtsp::windows::bodies::{PacketPairRequest, SelectStream, SelectStreams, StreamUrl};
use streamgauge_wire::rtsp::windows::{
    AccelerateStreaming, Bandwidth, SupportedFeatures, WindowsMediaFeature, media_types,
};
use streamgauge_wire::rtsp::{Range, Response, Speed, Transport, Transports, Url, names};

use super::super::super::sdp::{self, control};
use super::super::choice::Taken;
use super::super::core::{Core, Phase};
use super::Rtsp;
use crate::app::{ChannelId, Io};
use crate::carrier::Carrier;
use crate::rtsp::Step;

/// Packets that measure the link.
const PAIR_PACKETS: usize = 3;

/// The number of retransmissions, as a track that is set up.
const AGAIN: usize = 0;

impl Rtsp {
    /// Sends the request of `step`; tracks are set up by their streams' numbers.
    pub(super) fn ask(&mut self, now: Instant, step: Step, core: &mut Core, io: &mut dyn Io) {
        let Ok(client) = &mut self.client else { return };
        let mut track_url: Option<Url> = None;
        let mut transport = None;
        if let Step::Setup(number) = step {
            track_url = Some(client.track_url(Some(&control(number as u8))));
            transport = Some(match self.over_udp {
                false => {
                    let place = core.chosen.iter().position(|chosen| usize::from(*chosen) == number);
                    let first = 2 * place.unwrap_or(0) as u8;
                    Transport::tcp((first, first + 1))
                }
                true => {
                    let ports = if number == AGAIN { &mut self.again } else { &mut self.media };
                    let channel = *ports.get_or_insert_with(|| io.open(&Carrier::RtpPair));
                    match io.port(channel) {
                        Some(port) => Transport::udp((port, port.saturating_add(1))),
                        None => return core.fail("no pair of UDP ports is left on this host"),
                    }
                }
            });
        }
        let resumes = core.is_playing();
        let is_gathered = core.is_gathered;
        let link_bps = core.link_bps();
        let duration_ms = (core.settings.buffered.as_nanos() / 1_000_000) as u32;
        let refill_bps = core.refill.wanted_bps(core.rate_bps());
        let bandwidth_bps = refill_bps.unwrap_or_else(|| core.accelerated_bps());
        let asked = AccelerateStreaming { duration_ms, bandwidth_bps };
        let chunk = client.request(now, step, track_url.as_ref(), |request| match step {
            Step::Describe => {
                request.insert_header(names::ACCEPT, "application/sdp");
                let can = [WindowsMediaFeature::EndOfStreamNotice, WindowsMediaFeature::StreamSwitch];
                request.insert_typed_header(&SupportedFeatures(can.to_vec()));
            }
            Step::Setup(_) => request.insert_typed_header(&Transports(transport.into_iter().collect())),
            Step::Play if !resumes => {
                request.insert_typed_header(&Range { from: Some(Duration::ZERO), to: None });
                request.insert_typed_header(&Bandwidth(link_bps.min(f64::from(u32::MAX)) as u32));
                if asked.bandwidth_bps > 0 {
                    request.insert_typed_header(&asked);
                }
            }
            Step::Play if refill_bps.is_some() => request.insert_typed_header(&asked),
            // It holds enough: at its own rate from now on.
            Step::Play if is_gathered => request.insert_typed_header(&Speed(1.0)),
            Step::Options | Step::Play | Step::Pause | Step::KeepAlive | Step::Teardown => {}
        });
        if step == Step::Play {
            if !resumes {
                core.say_accelerated(now, asked.bandwidth_bps);
            } else if let Some(rate) = refill_bps {
                core.events.say(now, "delivery_asked", f64::from(rate), "bit/s", "to fill the buffer anew");
            } else if core.is_gathered {
                let rate = core.rate_bps();
                core.events.say(now, "delivery_asked", rate, "bit/s", "the buffer is full");
            }
            core.asks_for_media(now);
        }
        self.connection.push(chunk, io);
    }

    /// Handles an answer of the server.
    pub(super) fn response(
        &mut self,
        now: Instant,
        response: Response<Vec<u8>>,
        core: &mut Core,
        io: &mut dyn Io,
    ) {
        let Ok(client) = &mut self.client else { return };
        let asked = client.asked().map_or(now, |(_, since)| since);
        let Some((step, answer)) = client.response(response) else { return };
        self.round_trip = now.saturating_since(asked);
        match (step, answer) {
            (Step::Describe, Ok(response)) => match self.described(&response, core) {
                Ok(measures) if measures => self.ask(now, Step::Setup(AGAIN), core, io),
                Ok(_) => self.choose(now, core),
                Err(problem) => {
                    core.is_unplayable = true;
                    core.fail(problem);
                }
            },
            (Step::Setup(number), Ok(response)) => match self.set_up(number, &response, io) {
                Ok(()) if number == AGAIN && core.settings.packet_pair => self.measure(now, core, io),
                Ok(()) if number == AGAIN => self.choose(now, core),
                Ok(()) => {
                    let place = core.chosen.iter().position(|chosen| usize::from(*chosen) == number);
                    match place.and_then(|place| core.chosen.get(place + 1)) {
                        Some(next) => self.ask(now, Step::Setup(usize::from(*next)), core, io),
                        None => self.ask(now, Step::Play, core, io),
                    }
                }
                Err(problem) => core.fail(problem),
            },
            (Step::Play, Ok(response)) => self.plays(now, &response, core),
            // A server that refuses still sends, and its packets are held here; it is not asked again.
            (Step::Pause, _) => core.phase = Phase::Playing { server_holds: true },
            (Step::Options | Step::KeepAlive, _) => {}
            (Step::Teardown, _) => {
                core.phase = Phase::Gone;
                self.connection.close(io);
            }
            (_, Err(problem)) => core.fail(problem),
        }
    }

    /// Asks for the packets that measure the link.
    fn measure(&mut self, now: Instant, core: &Core, io: &mut dyn Io) {
        if let Ok(client) = &mut self.client {
            let body = PacketPairRequest { variable_size: false }.to_string();
            let chunk = client.tell_in_body(now, media_types::UDP_PACKET_PAIR, body);
            self.connection.push(chunk, io);
        }
        let until = now + core.settings.pair_wait;
        // A player with another protocol to try keeps exactly to the wait.
        self.probe.until = Some(if core.rolls { until + self.round_trip.div(2) } else { until });
        self.setup_due = self.probe.until;
    }

    /// Reads the description. Returns whether retransmissions are set up.
    fn described(&mut self, response: &Response<Vec<u8>>, core: &mut Core) -> Result<bool, String> {
        let presentation = sdp::read(&String::from_utf8_lossy(response.body()))?;
        if let Ok(client) = &mut self.client {
            client.described(response, None);
        }
        let supported = response.typed_header::<SupportedFeatures>().ok().flatten().unwrap_or_default();
        core.described(presentation);
        let measures = core.settings.packet_pair && supported.has(WindowsMediaFeature::PacketPair);
        let over_udp = self.over_udp && core.is_sent_again;
        Ok(over_udp && (measures || core.settings.retransmission))
    }

    fn set_up(&mut self, number: usize, response: &Response<Vec<u8>>, io: &mut dyn Io) -> Result<(), String> {
        let transports = response.typed_header::<Transports>();
        let transports = transports.map_err(|_| "the server's Transport cannot be read")?;
        let transport = transports.and_then(|transports| transports.0.into_iter().next());
        let transport = transport.ok_or("the server chose no transport that was asked for")?;
        match (self.over_udp, transport.interleaved, transport.server_port) {
            (false, Some((channel, _)), _) => self.interleaved.push(channel),
            (true, None, Some((first, second))) => {
                let channel = if number == AGAIN { self.again } else { self.media };
                if number == AGAIN {
                    self.again_ssrc = transport.ssrc.unwrap_or(0);
                }
                if let Some(channel) = channel {
                    io.direct(channel, first);
                    io.direct(ChannelId(channel.0 + 1), second);
                }
            }
            (true, None, None) => return Err("the server named no ports of its own".into()),
            _ => return Err("the server chose another transport than was asked for".into()),
        }
        Ok(())
    }

    /// Handles a packet of those that measure the link.
    pub(super) fn probed(&mut self, now: Instant, bytes: usize, rtp: &RtpPacket<'_>, core: &mut Core) {
        if self.probe.until.is_none() || RtpPacketPair::parse(rtp.payload()).is_err() {
            return;
        }
        if self.probe.takes(now, bytes) == PAIR_PACKETS {
            self.choose(now, core);
        }
    }

    /// Selects the streams that fit, by the measure or without it; streams are set up after the silence.
    fn choose(&mut self, now: Instant, core: &mut Core) {
        self.probe.until = None;
        core.choose(now, self.probe.estimate_bps());
        // Over a connection nothing is measured, and no silence was observed there.
        let due = if self.over_udp {
            // The round trips still ahead are as many as the streams to set up, and PLAY's.
            let requests = core.chosen.len() as u64 + 1;
            core.began + core.settings.silence.saturating_sub(self.round_trip * requests)
        } else {
            now
        };
        self.setup_due = Some(due.max(now));
    }

    /// Gives the measure up, or sets the first stream up, when it is time.
    pub(super) fn set_up_due(&mut self, now: Instant, core: &mut Core, io: &mut dyn Io) {
        if self.setup_due.is_none_or(|due| due > now) || core.phase != Phase::SettingUp {
            return;
        }
        self.setup_due = None;
        if self.probe.until.is_some() {
            if core.rolls && self.probe.is_empty() {
                let seconds = core.settings.pair_wait.as_secs_f64();
                return core
                    .fail(format!("no packet-pair data came within {seconds} s and half a round trip"));
            }
            self.choose(now, core);
            return self.set_up_due(now, core, io);
        }
        if let Some(first) = core.chosen.first() {
            self.ask(now, Step::Setup(usize::from(*first)), core, io);
        }
    }

    /// Sends the server the new selection in place of the old one.
    pub(super) fn tell_switch(&mut self, now: Instant, before: Taken, after: Taken, io: &mut dyn Io) {
        let Ok(client) = &mut self.client else { return };
        let of = |taken: Taken| {
            let url = client.track_url(Some(&control(taken.number))).to_string();
            Some(StreamUrl { number: taken.number.into(), url })
        };
        let switch = SelectStream { old: of(before), new: of(after), level: after.level };
        let body = SelectStreams(vec![switch]).to_string();
        let chunk = client.tell_in_body(now, media_types::STREAM_SWITCH, body);
        self.connection.push(chunk, io);
    }

    /// Starts the playout: the server sends from now on.
    fn plays(&mut self, now: Instant, response: &Response<Vec<u8>>, core: &mut Core) {
        core.phase = Phase::Playing { server_holds: false };
        if core.playout.is_some() {
            return;
        }
        let range = response.typed_header::<Range>().ok().flatten();
        let from = range.and_then(|range| range.from).unwrap_or(Duration::ZERO);
        core.plays(now, from, range.and_then(|range| range.to), !self.over_udp);
        for datagram in std::mem::take(&mut self.early) {
            self.arrived(now, &datagram, false, core);
        }
    }
}
