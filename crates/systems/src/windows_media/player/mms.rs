//! MMS in and out ([MS-MMSP] section 3.1): a file is opened, its header read, streams of it selected and played.

use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_wire::mms::{
    self, Connect, ConnectFunnel, DataPacket, MmsItem, MmsMessage, OpenFile, PacketPairMode, Position,
    ReadBlock, Reader, ResendRequest, StartPlaying, StreamSwitch, TcpHeader, ThinningLevel, sequence_near,
};
use streamgauge_wire::rtsp::Url;

use super::super::MMS_DATAGRAMS;
use super::choice::Taken;
use super::core::{Core, Phase};
use super::header::Header;
use super::probe::Probe;
use super::protocol_session::ProtocolSession;
use crate::app::{ChannelId, Input, Io};
use crate::rtsp::{Backlog, decoded};

/// Bytes read from the connection at once.
const READ_BYTES: usize = 64 * 1024;

/// The player's name ([MS-MMSP] section 2.2.4.17); the number is no player's in particular.
const SUBSCRIBER: &str = "NSPlayer/9.0.0.2980; {3300AD50-2C39-46C0-AE0A-53544757AA01}";

/// `playIncarnation`s of [`OpenFile`] and of the first header; those of played media are one more each time.
const OPENING: u32 = 1;
const READING: u32 = 2;

/// The largest `playIncarnation`.
const MOST_INCARNATION: u32 = 254;

/// MMS on one connection.
pub struct Mms {
    channel: ChannelId,
    /// Whether media is sent over UDP; else on the connection.
    over_udp: bool,
    /// Or the fault in the URL.
    name: Result<String, String>,
    reader: Reader,
    connection: Backlog,
    sequence: u16,
    client_id: u32,
    file_id: u32,
    /// Incarnation of the last request.
    incarnation: u32,
    header: Header,
    /// While the link is measured; the header follows that.
    probe: Probe,
    /// Time when the header is asked for again, over UDP.
    header_due: Option<Instant>,
    /// The next packet of media has this number.
    expected: u32,
    /// Whether the server was asked to hold, and has not confirmed it.
    is_stopping: bool,
}

impl Mms {
    /// Makes the protocol for `url`, on a connection that is not open yet.
    pub fn new(url: &str, channel: ChannelId, over_udp: bool) -> Self {
        let name = |url: Url| decoded(url.path()).trim_start_matches('/').to_owned();
        Mms {
            channel,
            over_udp,
            name: Url::parse(url).map(name).map_err(|error| format!("{url} is no URL: {error}")),
            reader: Reader::of_responses(),
            connection: Backlog::new(channel),
            sequence: 0,
            client_id: 0,
            file_id: 0,
            incarnation: OPENING,
            header: Header::default(),
            probe: Probe::default(),
            header_due: None,
            expected: 0,
            is_stopping: false,
        }
    }

    fn say(&mut self, message: MmsMessage, io: &mut dyn Io) {
        // Drops a peer that keeps sending requests without reading replies.
        if self.connection.is_full() {
            return;
        }
        let header = TcpHeader { sequence: self.sequence, time_sent_ms: 0 };
        self.sequence = self.sequence.wrapping_add(1);
        self.connection.push(Chunk::bytes(mms::write(header, &[message])), io);
    }

    fn read(&mut self, now: Instant, core: &mut Core, io: &mut dyn Io) {
        while let Some(chunk) = io.read(self.channel, READ_BYTES) {
            if !core.is_playing() {
                core.heard = now;
            }
            self.reader.push(chunk);
            while let Some(item) = self.reader.next() {
                match item {
                    Ok(MmsItem::Message(message)) => self.message(now, message, core, io),
                    Ok(MmsItem::Data(packet)) => self.data(now, &packet, core, io),
                    Err(problem) => {
                        core.is_unplayable |= core.phase == Phase::SettingUp;
                        core.fail(format!("the server's answer cannot be read: {problem}"));
                    }
                }
                if core.failed.is_some() {
                    return;
                }
            }
        }
    }

    /// Handles a message of the server.
    fn message(&mut self, now: Instant, message: MmsMessage, core: &mut Core, io: &mut dyn Io) {
        let is_set_up = core.phase != Phase::SettingUp;
        match message {
            MmsMessage::ReportConnectedEx(report) if report.result == 0 => {
                let measures = self.over_udp && core.settings.packet_pair;
                let mode = if measures { PacketPairMode::OVER_UDP } else { PacketPairMode::DISABLED };
                self.say(MmsMessage::FunnelInfo(mode), io);
            }
            MmsMessage::ReportFunnelInfo(report) if report.result == 0 => {
                self.client_id = report.client_id;
                // Servers use the connection's address and ignore this one.
                let (over_udp, address) = (self.over_udp, "0.0.0.0".into());
                let port = if over_udp { io.port(MMS_DATAGRAMS).unwrap_or(mms::PORT) } else { 0 };
                self.say(MmsMessage::ConnectFunnel(ConnectFunnel { over_udp, address, port }), io);
            }
            MmsMessage::ReportConnectedFunnel => match &self.name {
                Ok(name) => {
                    let (incarnation, name, token) = (self.incarnation, name.clone(), Vec::new());
                    self.say(MmsMessage::OpenFile(OpenFile { incarnation, name, token }), io);
                }
                Err(problem) => core.fail(problem.clone()),
            },
            MmsMessage::ReportOpenFile(report) if report.result == 0 => {
                self.file_id = report.file_id;
                self.incarnation = READING;
                self.read_header(now, core, io);
            }
            MmsMessage::ReportStreamSwitch(0)
                if !is_set_up && !core.chosen.is_empty() && core.play_asked.is_none() =>
            {
                self.play(now, core, io);
            }
            MmsMessage::ReportStreamSwitch(0) => {}
            MmsMessage::ReportStartedPlaying { result: 0, .. } if core.play_asked.is_some() => {
                core.phase = Phase::Playing { server_holds: false };
                self.begin_playout(now, core);
            }
            // An unrequested report.
            MmsMessage::ReportStartedPlaying { result: 0, .. } => {}
            MmsMessage::ReportEndOfStream(_) if std::mem::take(&mut self.is_stopping) => {
                core.phase = Phase::Playing { server_holds: true };
            }
            MmsMessage::ReportEndOfStream(_) => core.ended = true,
            MmsMessage::Ping => self.say(MmsMessage::Pong, io),
            MmsMessage::ReportReadBlock { result: 0, .. } | MmsMessage::ReportStreamChange(_) => {}
            MmsMessage::ReportRedirect(redirect) => {
                core.fail(format!("the file is at {}: play that", redirect.location));
            }
            MmsMessage::SecurityChallenge(_) => {
                core.fail("the server wants a user name and password, which are not supported");
            }
            MmsMessage::ReportConnectedEx(_)
            | MmsMessage::ReportFunnelInfo(_)
            | MmsMessage::ReportDisconnectedFunnel(_)
            | MmsMessage::ReportOpenFile(_)
            | MmsMessage::ReportReadBlock { .. }
            | MmsMessage::ReportStartedPlaying { .. }
            | MmsMessage::ReportStreamSwitch(_)
                if !core.is_playing() =>
            {
                let (what, result) = refusal(&message);
                core.fail(format!("the server refused {what}: HRESULT 0x{result:08x}"));
            }
            _ => {}
        }
    }

    /// Asks for the header; over UDP the packets that measure the link precede it.
    fn read_header(&mut self, now: Instant, core: &mut Core, io: &mut dyn Io) {
        let block = ReadBlock { file_id: self.file_id, incarnation: self.incarnation };
        self.say(MmsMessage::ReadBlock(block), io);
        if self.over_udp {
            self.probe.begin_anew();
            self.probe.until.get_or_insert(now + core.settings.pair_wait);
            self.header_due = Some(now + core.settings.nack_repeat);
        }
    }

    /// Handles a packet of media, of the header, or of those that measure the link.
    fn data(&mut self, now: Instant, bytes: &Chunk, core: &mut Core, io: &mut dyn Io) {
        core.heard = now;
        let Ok(packet) = DataPacket::parse(bytes) else { return };
        if packet.place_in_pair().is_some() && packet.incarnation == DataPacket::PACKET_PAIR_INCARNATION {
            if core.chosen.is_empty() && self.probe.len() < DataPacket::PACKET_PAIR.len() {
                self.probe.takes(now, bytes.len());
            }
        } else if core.play_asked.is_none() {
            if core.chosen.is_empty() {
                self.take_header(now, &packet, core, io);
            }
        } else if u32::from(packet.incarnation) > READING {
            self.begin_playout(now, core);
            let sequence = sequence_near(packet.flags, self.expected);
            if sequence.wrapping_sub(self.expected).cast_signed() >= 0 {
                self.expected = sequence.wrapping_add(1);
            }
            if core.arrived(now, sequence as u16, bytes.len()) {
                core.packet(now, packet.payload.head());
            }
        }
    }

    fn take_header(&mut self, now: Instant, packet: &DataPacket<'_>, core: &mut Core, io: &mut dyn Io) {
        match self.header.take(packet) {
            Ok(None) => {}
            Ok(Some(presentation)) => {
                (self.probe.until, self.header_due) = (None, None);
                core.described(presentation);
                core.is_sent_again = self.over_udp;
                core.choose(now, self.probe.estimate_bps());
                let all = core.streams.iter().map(|stream| {
                    let is_chosen = core.chosen.contains(&stream.number);
                    let level = if is_chosen { ThinningLevel::All } else { ThinningLevel::Nothing };
                    StreamSwitch { level, ..StreamSwitch::on(stream.number.into()) }
                });
                let switches = all.collect();
                self.say(MmsMessage::StreamSwitch(switches), io);
            }
            Err(problem) => {
                core.is_unplayable = true;
                core.fail(problem);
            }
        }
    }

    /// Asks for media, from the start or from where the server holds.
    fn play(&mut self, now: Instant, core: &mut Core, io: &mut dyn Io) {
        self.incarnation = (self.incarnation + 1).clamp(READING + 1, MOST_INCARNATION);
        let is_first = core.play_asked.is_none();
        let asked_bps = if is_first { core.accelerated_bps() } else { 0 };
        let ms = (core.settings.buffered.as_nanos() / 1_000_000) as u32;
        let start = StartPlaying {
            file_id: self.file_id,
            from: if is_first { Position::Time(Duration::ZERO) } else { Position::Unset },
            stop: None,
            incarnation: self.incarnation,
            acceleration: (asked_bps > 0).then_some((asked_bps, ms)),
            link_bps: Some(core.link_bps().min(f64::from(u32::MAX)) as u32),
        };
        self.say(MmsMessage::StartPlaying(start), io);
        if is_first {
            core.say_accelerated(now, asked_bps);
            core.asks_for_media(now);
        }
    }

    /// Media may overtake the answer that announces it.
    fn begin_playout(&mut self, now: Instant, core: &mut Core) {
        if core.playout.is_none() {
            core.phase = Phase::Playing { server_holds: false };
            core.plays(now, Duration::ZERO, None, !self.over_udp);
        }
    }
}

/// Returns the refused request, and the status.
fn refusal(message: &MmsMessage) -> (&'static str, u32) {
    match message {
        MmsMessage::ReportConnectedEx(report) => ("the connection", report.result),
        MmsMessage::ReportFunnelInfo(report) => ("the player", report.result),
        MmsMessage::ReportDisconnectedFunnel(result) => ("the media's transport", *result),
        MmsMessage::ReportOpenFile(report) => ("to open the file", report.result),
        MmsMessage::ReportReadBlock { result, .. } => ("to send the header", *result),
        MmsMessage::ReportStreamSwitch(result) => ("to select streams", *result),
        MmsMessage::ReportStartedPlaying { result, .. } => ("to play", *result),
        _ => ("something", 0),
    }
}

impl ProtocolSession for Mms {
    fn channel(&self) -> ChannelId {
        self.channel
    }

    fn begin(&mut self, _: Instant, core: &mut Core, io: &mut dyn Io) {
        self.connection.open();
        let measures = self.over_udp && core.settings.packet_pair;
        let packet_pair = if measures { PacketPairMode::WANTED } else { PacketPairMode::DISABLED };
        let connect = Connect { packet_pair, subscriber: SUBSCRIBER.into(), host: None, via: None };
        self.say(MmsMessage::Connect(connect), io);
    }

    fn handle(&mut self, now: Instant, input: &Input<'_>, core: &mut Core, io: &mut dyn Io) {
        match *input {
            Input::Datagram { on: MMS_DATAGRAMS, bytes: datagram, .. }
                if self.over_udp && self.connection.is_open() =>
            {
                self.data(now, datagram, core, io);
            }
            Input::Readable(channel) if channel == self.channel => self.read(now, core, io),
            Input::Writable(channel) if channel == self.channel => self.connection.flush(io),
            _ => {}
        }
    }

    fn set_up_what_is_due(&mut self, now: Instant, core: &mut Core, io: &mut dyn Io) {
        if core.phase != Phase::SettingUp {
            return;
        }
        if core.rolls && self.probe.until.is_some_and(|until| until <= now) {
            let seconds = core.settings.pair_wait.as_secs_f64();
            let what = if self.probe.is_empty() { "no packet-pair data and no header" } else { "no header" };
            return core.fail(format!("{what} came within {seconds} s"));
        }
        if self.header_due.is_some_and(|due| due <= now) {
            self.read_header(now, core, io);
        }
    }

    fn waits(&self) -> bool {
        self.probe.until.is_some()
    }

    /// The server has got the amount to send faster beforehand.
    fn slow_down(&mut self, _: Instant, _: &mut Core, _: &mut dyn Io) {}

    fn switch(&mut self, _: Instant, before: Taken, after: Taken, _: &mut Core, io: &mut dyn Io) {
        let switch = StreamSwitch {
            from: Some(before.number.into()),
            to: Some(after.number.into()),
            level: after.level,
        };
        self.say(MmsMessage::StreamSwitch(vec![switch]), io);
    }

    fn say_missing(&mut self, now: Instant, core: &mut Core, io: &mut dyn Io) {
        if !self.over_udp || !core.settings.retransmission || !core.is_playing() {
            return;
        }
        let missing = core.losses.take(now);
        if missing.is_empty() {
            return;
        }
        let near = |low: u16| {
            let behind = low.wrapping_sub(self.expected as u16).cast_signed();
            self.expected.wrapping_add_signed(behind.into())
        };
        let (client_id, source) = (self.client_id, self.file_id as u16);
        let request = ResendRequest { client_id, source, sequences: missing.into_iter().map(near).collect() };
        io.send(MMS_DATAGRAMS, Chunk::bytes(request.write()));
    }

    fn steer(&mut self, now: Instant, core: &mut Core, io: &mut dyn Io) {
        match core.phase {
            Phase::Playing { server_holds: false } if core.holds_server() && !self.is_stopping => {
                self.is_stopping = true;
                let (file_id, incarnation) = (self.file_id, self.incarnation);
                self.say(MmsMessage::StopPlaying { file_id, incarnation }, io);
            }
            Phase::Playing { server_holds: true } if !core.holds_server() => {
                core.phase = Phase::Playing { server_holds: false };
                self.play(now, core, io);
            }
            _ => {}
        }
    }

    fn forget(&mut self) {
        self.connection.forget();
    }

    fn leave(&mut self, _: Instant, _: &mut Core, io: &mut dyn Io) -> bool {
        if self.connection.is_open() && self.file_id != 0 {
            self.say(MmsMessage::CloseFile(self.file_id), io);
        }
        false
    }

    fn close(&mut self, io: &mut dyn Io) {
        if self.connection.is_open() {
            self.connection.close(io);
        } else {
            io.abort(self.channel);
        }
    }

    fn wake(&self, core: &Core) -> Option<Instant> {
        let says = self.over_udp && core.settings.retransmission && core.is_playing();
        let missing = core.losses.due().filter(|_| says);
        let setting_up = core.phase == Phase::SettingUp;
        let header = self.header_due.filter(|_| setting_up);
        let pair = self.probe.until.filter(|_| setting_up && core.rolls);
        [missing, header, pair].into_iter().flatten().min()
    }
}
