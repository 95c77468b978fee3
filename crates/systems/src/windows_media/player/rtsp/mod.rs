//! RTSP and ASF in RTP in; reports of missing packets and requests out.

mod setup;

use rtp_types::RtpPacket;
use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_wire::rtcp::{self, nack};
use streamgauge_wire::rtp_asf::{self, UnitContent};
use streamgauge_wire::rtsp::windows::Notice;
use streamgauge_wire::rtsp::{Reader, RtspItem, StatusCode};

use super::super::{PAYLOAD_TYPE, RTSP};
use super::choice::Taken;
use super::core::{Core, Phase};
use super::probe::Probe;
use super::protocol_session::ProtocolSession;
use crate::app::{ChannelId, Input, Io};
use crate::rtsp::{Backlog, Client, Step};

/// Packets kept that overtook the response to PLAY.
const MOST_EARLY: usize = 1_024;

/// Bytes read from the connection at once.
const READ_BYTES: usize = 64 * 1024;

/// RTSP on one connection.
pub struct Rtsp {
    channel: ChannelId,
    /// Whether media is sent over UDP; else on the connection.
    over_udp: bool,
    /// Or the fault in the URL.
    client: Result<Client, String>,
    reader: Reader,
    connection: Backlog,
    /// Round trip of the last request and its response.
    round_trip: Duration,
    /// While the link is measured.
    probe: Probe,
    /// Time when streams are set up.
    setup_due: Option<Instant>,
    /// Over UDP, the pair of ports of media, and that of retransmissions.
    media: Option<ChannelId>,
    again: Option<ChannelId>,
    /// The connection's channels that carry media.
    interleaved: Vec<u8>,
    /// SSRC of the media, and that of the retransmissions.
    media_ssrc: Option<u32>,
    again_ssrc: u32,
    early: Vec<Chunk>,
}

impl Rtsp {
    /// Makes the protocol for `url`, on a connection that is not open yet.
    pub fn new(url: &str, channel: ChannelId, over_udp: bool) -> Self {
        Rtsp {
            channel,
            over_udp,
            client: Client::new(url),
            reader: Reader::default(),
            connection: Backlog::new(channel),
            round_trip: Duration::ZERO,
            probe: Probe::default(),
            setup_due: None,
            media: None,
            again: None,
            interleaved: Vec::new(),
            media_ssrc: None,
            again_ssrc: 0,
            early: Vec::new(),
        }
    }

    /// Handles RTP: media, or retransmitted media.
    fn arrived(&mut self, now: Instant, datagram: &Chunk, is_again: bool, core: &mut Core) {
        core.heard = now;
        let Ok(rtp) = RtpPacket::parse(datagram.head()) else { return };
        if rtp.payload_type() != PAYLOAD_TYPE {
            return;
        }
        if is_again && core.play_asked.is_none() {
            return self.probed(now, datagram.len(), &rtp, core);
        }
        if core.playout.is_none() {
            if self.early.len() < MOST_EARLY && !is_again {
                self.early.push(datagram.clone());
            }
            return;
        }
        if !is_again {
            self.media_ssrc.get_or_insert(rtp.ssrc());
        }
        if self.media_ssrc != Some(rtp.ssrc()) || !core.arrived(now, rtp.sequence_number(), datagram.len()) {
            return;
        }
        for unit in rtp_asf::parse(rtp.payload()).map_while(Result::ok) {
            // No known server sends an ASF packet in parts.
            if let UnitContent::Packet(packet) = unit.content {
                core.packet(now, packet.head());
            }
        }
    }

    fn read(&mut self, now: Instant, core: &mut Core, io: &mut dyn Io) {
        while let Some(chunk) = io.read(self.channel, READ_BYTES) {
            if !core.is_playing() {
                core.heard = now;
            }
            self.reader.push(chunk);
            while let Some(item) = self.reader.next() {
                match item {
                    Ok(RtspItem::Interleaved { channel, packet }) => {
                        if self.interleaved.contains(&channel) {
                            self.arrived(now, &packet, false, core);
                        }
                    }
                    Ok(RtspItem::Request(request)) => {
                        let notice = request.typed_header::<Notice>().ok().flatten();
                        let ends = notice.is_some_and(|notice| notice.code == Notice::END_OF_STREAM);
                        core.ended |= ends;
                        // Drops a peer that keeps sending requests without reading replies.
                        if !self.connection.is_full() {
                            let answer = match ends {
                                true => Client::answer_with(&request, StatusCode::Ok),
                                false => Client::answer(&request),
                            };
                            self.connection.push(answer, io);
                        }
                    }
                    Ok(RtspItem::Response(response)) => {
                        let status = response.status();
                        core.refused = (!status.is_success()).then(|| status.into());
                        self.response(now, response, core, io);
                    }
                    Err(problem) if problem.is_fatal() || core.phase == Phase::SettingUp => {
                        core.is_unplayable |= core.phase == Phase::SettingUp;
                        core.fail(format!("the server's answer cannot be read: {problem}"));
                    }
                    // The next message can be read.
                    Err(_) => {}
                }
                if core.failed.is_some() {
                    return;
                }
            }
        }
    }

    fn says_missing(&self, core: &Core) -> bool {
        core.settings.retransmission && core.is_sent_again && core.is_playing()
    }
}

impl ProtocolSession for Rtsp {
    fn channel(&self) -> ChannelId {
        self.channel
    }

    fn begin(&mut self, now: Instant, core: &mut Core, io: &mut dyn Io) {
        self.connection.open();
        match &self.client {
            Ok(_) => self.ask(now, Step::Describe, core, io),
            Err(problem) => core.fail(problem.clone()),
        }
    }

    fn handle(&mut self, now: Instant, input: &Input<'_>, core: &mut Core, io: &mut dyn Io) {
        match *input {
            Input::Datagram { on: channel, bytes: datagram, .. } if Some(channel) == self.media => {
                self.arrived(now, datagram, false, core);
            }
            Input::Datagram { on: channel, bytes: datagram, .. } if Some(channel) == self.again => {
                self.arrived(now, datagram, true, core);
            }
            Input::Readable(channel) if channel == self.channel => self.read(now, core, io),
            Input::Writable(channel) if channel == self.channel => self.connection.flush(io),
            _ => {}
        }
    }

    fn set_up_what_is_due(&mut self, now: Instant, core: &mut Core, io: &mut dyn Io) {
        self.set_up_due(now, core, io);
    }

    fn waits(&self) -> bool {
        self.setup_due.is_some()
    }

    fn slow_down(&mut self, now: Instant, core: &mut Core, io: &mut dyn Io) {
        self.ask(now, Step::Play, core, io);
    }

    fn refill(&mut self, now: Instant, core: &mut Core, io: &mut dyn Io) {
        self.ask(now, Step::Play, core, io);
    }

    fn switch(&mut self, now: Instant, before: Taken, after: Taken, _: &mut Core, io: &mut dyn Io) {
        self.tell_switch(now, before, after, io);
    }

    fn say_missing(&mut self, now: Instant, core: &mut Core, io: &mut dyn Io) {
        let (Some(again), Some(media)) = (self.again, self.media_ssrc) else { return };
        if !self.says_missing(core) {
            return;
        }
        let missing = core.losses.take(now);
        for compound in nack::windows_media_nacks(self.again_ssrc, self.again_ssrc, media, &missing) {
            io.send(ChannelId(again.0 + 1), Chunk::bytes(rtcp::write(&compound)));
        }
    }

    fn steer(&mut self, now: Instant, core: &mut Core, io: &mut dyn Io) {
        let Ok(client) = &mut self.client else { return };
        if !self.connection.is_open() || client.asked().is_some() {
            return;
        }
        match core.phase {
            Phase::Playing { server_holds: false } if core.holds_server() => {
                self.ask(now, Step::Pause, core, io)
            }
            Phase::Playing { server_holds: true } if !core.holds_server() => {
                self.ask(now, Step::Play, core, io)
            }
            Phase::Playing { .. } | Phase::SettingUp
                if client.keep_alive_at().is_some_and(|at| at <= now) =>
            {
                self.ask(now, Step::KeepAlive, core, io);
            }
            _ => {}
        }
    }

    fn forget(&mut self) {
        self.connection.forget();
    }

    fn leave(&mut self, now: Instant, core: &mut Core, io: &mut dyn Io) -> bool {
        self.early.clear();
        let is_told = self.client.as_ref().is_ok_and(Client::has_session) && self.connection.is_open();
        if is_told {
            self.ask(now, Step::Teardown, core, io);
        }
        is_told
    }

    fn close(&mut self, io: &mut dyn Io) {
        let is_open = self.connection.is_open();
        self.connection.close(io);
        if self.channel == RTSP {
            return;
        }
        // The channels that the player has opened by itself.
        if !is_open {
            io.abort(self.channel);
        }
        for rtp in [self.media, self.again].into_iter().flatten() {
            io.close(rtp);
            io.close(ChannelId(rtp.0 + 1));
        }
    }

    fn wake(&self, core: &Core) -> Option<Instant> {
        let says = core.settings.retransmission && core.is_sent_again && self.again.is_some();
        let missing = core.losses.due().filter(|_| says && core.is_playing() && self.media_ssrc.is_some());
        let client = self.client.as_ref().ok().filter(|_| self.connection.is_open());
        [missing, client.and_then(Client::keep_alive_at), self.setup_due].into_iter().flatten().min()
    }
}
