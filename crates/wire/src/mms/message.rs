//! The messages of a packet.

use super::connect::{self, Connect, ConnectFunnel, ConnectedEx, FunnelReport, PacketPairMode};
use super::fault::{Fault, Problem};
use super::fields::{Fields, Out};
use super::file::{FileReport, OpenFile, ReadBlock, Redirect, SecurityToken};
use super::log::ClientLog;
use super::play::{self, EndOfStream, Position, StartPlaying, StreamChange, StreamSwitch};

/// Bytes before a packet's messages ([MS-MMSP] section 2.2.3).
pub const TCP_HEADER_BYTES: usize = 32;

/// The unit of messages' lengths, in bytes.
const CHUNK: usize = 8;
/// `rep`, two versions and padding.
const REP: u32 = 1;
/// `sessionId`, by which a player distinguishes messages from media.
pub(super) const SESSION: u32 = 0xb00b_face;
/// `seal`: "MMS ".
const SEAL: u32 = 0x2053_4d4d;
/// Bytes that `messageLength` counts beside the messages: the header's behind the seal.
const COUNTED: usize = 16;

/// `MID` of each message: [MS-MMSP] sections 2.2.4.1 to 2.2.4.28.
pub mod mids {
    /// From the player: [`MmsMessage::Connect`](super::MmsMessage::Connect).
    pub const CONNECT: u32 = 0x0003_0001;
    /// The transport for the media.
    pub const CONNECT_FUNNEL: u32 = 0x0003_0002;
    /// A file is opened.
    pub const OPEN_FILE: u32 = 0x0003_0005;
    /// Play.
    pub const START_PLAYING: u32 = 0x0003_0007;
    /// No more.
    pub const STOP_PLAYING: u32 = 0x0003_0009;
    /// The session ends.
    pub const CLOSE_FILE: u32 = 0x0003_000d;
    /// The file's header.
    pub const READ_BLOCK: u32 = 0x0003_0015;
    /// A packet pair, and the player's identification.
    pub const FUNNEL_INFO: u32 = 0x0003_0018;
    /// Proof of the client's identity.
    pub const SECURITY_RESPONSE: u32 = 0x0003_001a;
    /// The player is there.
    pub const PONG: u32 = 0x0003_001b;
    /// No header after all.
    pub const CANCEL_READ_BLOCK: u32 = 0x0003_0025;
    /// Play fast or backwards.
    pub const START_STRIDING: u32 = 0x0003_0028;
    /// How it was.
    pub const LOGGING: u32 = 0x0003_0032;
    /// Which streams.
    pub const STREAM_SWITCH: u32 = 0x0003_0033;
    /// From the server: to [`CONNECT`].
    pub const REPORT_CONNECTED_EX: u32 = 0x0004_0001;
    /// To [`CONNECT_FUNNEL`].
    pub const REPORT_CONNECTED_FUNNEL: u32 = 0x0004_0002;
    /// To [`CONNECT_FUNNEL`], if it cannot be.
    pub const REPORT_DISCONNECTED_FUNNEL: u32 = 0x0004_0003;
    /// To [`START_PLAYING`].
    pub const REPORT_STARTED_PLAYING: u32 = 0x0004_0005;
    /// To [`OPEN_FILE`].
    pub const REPORT_OPEN_FILE: u32 = 0x0004_0006;
    /// To [`START_STRIDING`].
    pub const REPORT_START_STRIDING: u32 = 0x0004_000a;
    /// To [`READ_BLOCK`].
    pub const REPORT_READ_BLOCK: u32 = 0x0004_0011;
    /// To [`FUNNEL_INFO`].
    pub const REPORT_FUNNEL_INFO: u32 = 0x0004_0015;
    /// To [`OPEN_FILE`], if access to it is restricted.
    pub const SECURITY_CHALLENGE: u32 = 0x0004_001a;
    /// Is the player there?
    pub const PING: u32 = 0x0004_001b;
    /// Nothing more follows.
    pub const REPORT_END_OF_STREAM: u32 = 0x0004_001e;
    /// The playlist's next entry.
    pub const REPORT_STREAM_CHANGE: u32 = 0x0004_0020;
    /// To [`STREAM_SWITCH`].
    pub const REPORT_STREAM_SWITCH: u32 = 0x0004_0021;
    /// To [`OPEN_FILE`], if it is elsewhere.
    pub const REPORT_REDIRECT: u32 = 0x0004_0022;
}

/// The header of a packet of messages, `TcpMessageHeader`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpHeader {
    /// The packet's number on the connection, from 0 on.
    pub sequence: u16,
    /// When it was sent, in ms since the sender's first; unused by receivers.
    pub time_sent_ms: u64,
}

/// One message; those named `Report...`, [`Ping`](MmsMessage::Ping) and [`SecurityChallenge`](MmsMessage::SecurityChallenge) are
/// the server's. `result` is an HRESULT ([MS-ERREF]), 0 if all is well.
#[derive(Clone, PartialEq, Debug)]
pub enum MmsMessage {
    /// A player's first.
    Connect(Connect),
    /// Asks for the player's identification, and for a packet pair or none.
    FunnelInfo(PacketPairMode),
    /// The transport for the media.
    ConnectFunnel(ConnectFunnel),
    /// A file.
    OpenFile(OpenFile),
    /// Its header.
    ReadBlock(ReadBlock),
    /// Cancels the request for the header: the incarnation of that request ([MS-MMSP] section 2.2.4.15).
    CancelReadBlock(u32),
    /// The selected streams, and the ones they replace.
    StreamSwitch(Vec<StreamSwitch>),
    /// Play.
    StartPlaying(StartPlaying),
    /// Play fast or backwards ([MS-MMSP] section 2.2.4.26).
    StartStriding {
        /// [`FileReport::file_id`].
        file_id: u32,
        /// From where.
        from: Position,
        /// 1 to 254; the media's packets have it.
        incarnation: u32,
        /// From -5 to 5, not 0.
        rate: f64,
    },
    /// Play no more ([MS-MMSP] section 2.2.4.27).
    StopPlaying {
        /// [`FileReport::file_id`].
        file_id: u32,
        /// That of the played file.
        incarnation: u32,
    },
    /// How it was.
    Logging(Box<ClientLog>),
    /// The session ends: [`FileReport::file_id`] ([MS-MMSP] section 2.2.4.16).
    CloseFile(u32),
    /// To [`Ping`](MmsMessage::Ping) ([MS-MMSP] section 2.2.4.22).
    Pong,
    /// To [`SecurityChallenge`](MmsMessage::SecurityChallenge).
    SecurityResponse(SecurityToken),
    /// To [`Connect`](MmsMessage::Connect).
    ReportConnectedEx(ConnectedEx),
    /// To [`FunnelInfo`](MmsMessage::FunnelInfo).
    ReportFunnelInfo(FunnelReport),
    /// To [`ConnectFunnel`](MmsMessage::ConnectFunnel).
    ReportConnectedFunnel,
    /// The same, where it cannot be: the result ([MS-MMSP] section 2.2.4.4).
    ReportDisconnectedFunnel(u32),
    /// To [`OpenFile`](MmsMessage::OpenFile).
    ReportOpenFile(FileReport),
    /// The same, where it is elsewhere.
    ReportRedirect(Redirect),
    /// The same, where access to it is restricted.
    SecurityChallenge(SecurityToken),
    /// To [`ReadBlock`](MmsMessage::ReadBlock); the header follows ([MS-MMSP] section 2.2.4.8).
    ReportReadBlock {
        /// Whether it does.
        result: u32,
        /// That of the request.
        incarnation: u32,
    },
    /// To [`StreamSwitch`](MmsMessage::StreamSwitch): the result ([MS-MMSP] section 2.2.4.13).
    ReportStreamSwitch(u32),
    /// To [`StartPlaying`](MmsMessage::StartPlaying); media follows ([MS-MMSP] section 2.2.4.10).
    ReportStartedPlaying {
        /// Whether it does.
        result: u32,
        /// That of the request.
        incarnation: u32,
        /// [`FileReport::file_id`].
        file_id: u32,
    },
    /// To [`StartStriding`](MmsMessage::StartStriding); media follows ([MS-MMSP] section 2.2.4.11).
    ReportStartStriding {
        /// Whether it does.
        result: u32,
        /// That of the request.
        incarnation: u32,
    },
    /// Nothing more follows.
    ReportEndOfStream(EndOfStream),
    /// The playlist's next entry.
    ReportStreamChange(StreamChange),
    /// Is the player there? ([MS-MMSP] section 2.2.4.1)
    Ping,
    /// A message of another type. It is written as received.
    Other {
        /// Its type, none of [`mids`].
        mid: u32,
        /// The bytes behind it; a multiple of 8, or zeros follow it.
        body: Vec<u8>,
    },
}

/// Returns a packet of messages, whole and alone, with its header.
pub fn parse(packet: &[u8]) -> Result<(TcpHeader, Vec<MmsMessage>), Problem> {
    let mut fields = Fields::of(packet, 0);
    let (rep, session) = (fields.u32()?, fields.u32()?);
    let at = fields.at();
    let length = fields.u32()?;
    if rep & 0xff_ffff != REP || session != SESSION || fields.u32()? != SEAL {
        return Err(Fault::NotMms.at(0));
    }
    let messages = messages_of(length).ok_or_else(|| Fault::Length(length).at(at))?;
    // `chunkCount` repeats the length.
    fields.u32()?;
    let sequence = fields.u16()?;
    fields.u16()?;
    let header = TcpHeader { sequence, time_sent_ms: fields.u64()? };
    let mut rest = fields.part(messages)?;
    if fields.left() > 0 {
        return Err(Fault::Length(length).at(at));
    }
    let mut messages = Vec::new();
    while rest.left() > 0 {
        messages.push(MmsMessage::read(&mut rest)?);
    }
    Ok((header, messages))
}

/// Returns the bytes of the messages of a packet with this `messageLength`; `None` if it is impossible.
pub(super) fn messages_of(length: u32) -> Option<usize> {
    (length as usize).checked_sub(COUNTED).filter(|bytes| bytes % CHUNK == 0)
}

/// Writes the packet of `messages`; the specification requires exactly one.
///
/// `chunkCount` is `messageLength` in multiples of 8, as FFmpeg and other players write it. By the letter of
/// [MS-MMSP] (section 2.2.3) it would count the 16 bytes up to the seal too; no receiver reads it.
pub fn write(header: TcpHeader, messages: &[MmsMessage]) -> Vec<u8> {
    let mut out = Out::default();
    let written: Vec<_> = messages.iter().map(MmsMessage::write).collect();
    let length = COUNTED + written.iter().map(Vec::len).sum::<usize>();
    out.u32(REP).u32(SESSION).u32(length as u32).u32(SEAL).u32((length / CHUNK) as u32);
    out.u16(header.sequence).u16(0).u64(header.time_sent_ms);
    written.iter().for_each(|message| {
        out.bytes(message);
    });
    out.0
}

impl MmsMessage {
    /// Its type: one of [`mids`].
    pub fn mid(&self) -> u32 {
        match self {
            MmsMessage::Connect(_) => mids::CONNECT,
            MmsMessage::FunnelInfo(_) => mids::FUNNEL_INFO,
            MmsMessage::ConnectFunnel(_) => mids::CONNECT_FUNNEL,
            MmsMessage::OpenFile(_) => mids::OPEN_FILE,
            MmsMessage::ReadBlock(_) => mids::READ_BLOCK,
            MmsMessage::CancelReadBlock(_) => mids::CANCEL_READ_BLOCK,
            MmsMessage::StreamSwitch(_) => mids::STREAM_SWITCH,
            MmsMessage::StartPlaying(_) => mids::START_PLAYING,
            MmsMessage::StartStriding { .. } => mids::START_STRIDING,
            MmsMessage::StopPlaying { .. } => mids::STOP_PLAYING,
            MmsMessage::Logging(_) => mids::LOGGING,
            MmsMessage::CloseFile(_) => mids::CLOSE_FILE,
            MmsMessage::Pong => mids::PONG,
            MmsMessage::SecurityResponse(_) => mids::SECURITY_RESPONSE,
            MmsMessage::ReportConnectedEx(_) => mids::REPORT_CONNECTED_EX,
            MmsMessage::ReportFunnelInfo(_) => mids::REPORT_FUNNEL_INFO,
            MmsMessage::ReportConnectedFunnel => mids::REPORT_CONNECTED_FUNNEL,
            MmsMessage::ReportDisconnectedFunnel(_) => mids::REPORT_DISCONNECTED_FUNNEL,
            MmsMessage::ReportOpenFile(_) => mids::REPORT_OPEN_FILE,
            MmsMessage::ReportRedirect(_) => mids::REPORT_REDIRECT,
            MmsMessage::SecurityChallenge(_) => mids::SECURITY_CHALLENGE,
            MmsMessage::ReportReadBlock { .. } => mids::REPORT_READ_BLOCK,
            MmsMessage::ReportStreamSwitch(_) => mids::REPORT_STREAM_SWITCH,
            MmsMessage::ReportStartedPlaying { .. } => mids::REPORT_STARTED_PLAYING,
            MmsMessage::ReportStartStriding { .. } => mids::REPORT_START_STRIDING,
            MmsMessage::ReportEndOfStream(_) => mids::REPORT_END_OF_STREAM,
            MmsMessage::ReportStreamChange(_) => mids::REPORT_STREAM_CHANGE,
            MmsMessage::Ping => mids::PING,
            MmsMessage::Other { mid, .. } => *mid,
        }
    }

    fn read(fields: &mut Fields<'_>) -> Result<Self, Problem> {
        let at = fields.at();
        let chunks = fields.u32()?;
        let Some(bytes) = (CHUNK * chunks as usize).checked_sub(4).filter(|bytes| *bytes > 0) else {
            return Err(Fault::Length(chunks).at(at));
        };
        let mut fields = fields.part(bytes)?;
        let mid = fields.u32()?;
        Self::read_body(mid, &mut fields)
    }

    fn read_body(mid: u32, fields: &mut Fields<'_>) -> Result<Self, Problem> {
        let two = |fields: &mut Fields<'_>| Ok((fields.u32()?, fields.u32()?));
        Ok(match mid {
            mids::CONNECT => MmsMessage::Connect(Connect::read(fields)?),
            mids::FUNNEL_INFO => MmsMessage::FunnelInfo(PacketPairMode(fields.u32()?)),
            mids::CONNECT_FUNNEL => MmsMessage::ConnectFunnel(ConnectFunnel::read(fields)?),
            mids::OPEN_FILE => MmsMessage::OpenFile(OpenFile::read(fields)?),
            mids::READ_BLOCK => MmsMessage::ReadBlock(ReadBlock::read(fields)?),
            mids::CANCEL_READ_BLOCK => MmsMessage::CancelReadBlock(fields.u32()?),
            mids::STREAM_SWITCH => MmsMessage::StreamSwitch(StreamSwitch::read_all(fields)?),
            mids::START_PLAYING => MmsMessage::StartPlaying(StartPlaying::read(fields)?),
            mids::START_STRIDING => {
                let (file_id, from, incarnation, rate) = play::read_striding(fields)?;
                MmsMessage::StartStriding { file_id, from, incarnation, rate }
            }
            mids::STOP_PLAYING => {
                let (file_id, incarnation) = two(fields)?;
                MmsMessage::StopPlaying { file_id, incarnation }
            }
            mids::LOGGING => MmsMessage::Logging(Box::new(ClientLog::read(fields)?)),
            mids::CLOSE_FILE => MmsMessage::CloseFile(two(fields)?.1),
            mids::PONG => MmsMessage::Pong,
            mids::SECURITY_RESPONSE => MmsMessage::SecurityResponse(SecurityToken::read(fields)?),
            mids::REPORT_CONNECTED_EX => MmsMessage::ReportConnectedEx(ConnectedEx::read(fields)?),
            mids::REPORT_FUNNEL_INFO => MmsMessage::ReportFunnelInfo(FunnelReport::read(fields)?),
            mids::REPORT_CONNECTED_FUNNEL => MmsMessage::ReportConnectedFunnel,
            mids::REPORT_DISCONNECTED_FUNNEL => MmsMessage::ReportDisconnectedFunnel(fields.u32()?),
            mids::REPORT_OPEN_FILE => MmsMessage::ReportOpenFile(FileReport::read(fields)?),
            mids::REPORT_REDIRECT => MmsMessage::ReportRedirect(Redirect::read(fields)?),
            mids::SECURITY_CHALLENGE => MmsMessage::SecurityChallenge(SecurityToken::read(fields)?),
            mids::REPORT_READ_BLOCK => {
                let (result, incarnation) = two(fields)?;
                MmsMessage::ReportReadBlock { result, incarnation }
            }
            mids::REPORT_STREAM_SWITCH => MmsMessage::ReportStreamSwitch(fields.u32()?),
            mids::REPORT_STARTED_PLAYING => {
                let (result, incarnation) = two(fields)?;
                MmsMessage::ReportStartedPlaying { result, incarnation, file_id: fields.u32()? }
            }
            mids::REPORT_START_STRIDING => {
                let (result, incarnation) = two(fields)?;
                MmsMessage::ReportStartStriding { result, incarnation }
            }
            mids::REPORT_END_OF_STREAM => {
                let (result, incarnation) = two(fields)?;
                MmsMessage::ReportEndOfStream(EndOfStream { result, incarnation })
            }
            mids::REPORT_STREAM_CHANGE => MmsMessage::ReportStreamChange(StreamChange::read(fields)?),
            mids::PING => MmsMessage::Ping,
            _ => MmsMessage::Other { mid, body: fields.rest().into() },
        })
    }

    /// Its bytes, a multiple of 8, without the packet's header: see [`write`](fn@write).
    fn write(&self) -> Vec<u8> {
        let mut out = Out::default();
        out.u32(0).u32(self.mid());
        self.write_body(&mut out);
        let mut bytes = out.0;
        bytes.resize(bytes.len().next_multiple_of(CHUNK), 0);
        let chunks = (bytes.len() / CHUNK) as u32;
        bytes[..4].copy_from_slice(&chunks.to_le_bytes());
        bytes
    }

    fn write_body(&self, out: &mut Out) {
        match self {
            MmsMessage::Connect(connect) => connect.write(out),
            MmsMessage::FunnelInfo(PacketPairMode(number))
            | MmsMessage::CancelReadBlock(number)
            | MmsMessage::ReportStreamSwitch(number) => {
                out.u32(*number);
            }
            MmsMessage::ConnectFunnel(funnel) => funnel.write(out),
            MmsMessage::OpenFile(file) => file.write(out),
            MmsMessage::ReadBlock(block) => block.write(out),
            MmsMessage::StreamSwitch(switches) => StreamSwitch::write_all(switches, out),
            MmsMessage::StartPlaying(start) => start.write(out),
            MmsMessage::StartStriding { file_id, from, incarnation, rate } => {
                play::write_striding(*file_id, *from, *incarnation, *rate, out);
            }
            MmsMessage::StopPlaying { file_id, incarnation } => {
                out.u32(*file_id).u32(*incarnation);
            }
            MmsMessage::Logging(log) => log.write(out),
            MmsMessage::CloseFile(file_id) => {
                out.u32(0).u32(*file_id);
            }
            MmsMessage::Pong | MmsMessage::Ping => {
                out.u32(0).u32(0);
            }
            MmsMessage::SecurityResponse(token) | MmsMessage::SecurityChallenge(token) => token.write(out),
            MmsMessage::ReportConnectedEx(report) => report.write(out),
            MmsMessage::ReportFunnelInfo(report) => report.write(out),
            MmsMessage::ReportConnectedFunnel => connect::write_connected_funnel(out),
            MmsMessage::ReportDisconnectedFunnel(result) => {
                out.u32(*result).u32(0);
            }
            MmsMessage::ReportOpenFile(report) => report.write(out),
            MmsMessage::ReportRedirect(redirect) => redirect.write(out),
            MmsMessage::ReportReadBlock { result, incarnation }
            | MmsMessage::ReportStartStriding { result, incarnation } => {
                out.u32(*result).u32(*incarnation).u32(0);
            }
            MmsMessage::ReportStartedPlaying { result, incarnation, file_id } => {
                out.u32(*result).u32(*incarnation).u32(*file_id).u32(0).bytes(&[0; 12]);
            }
            MmsMessage::ReportEndOfStream(EndOfStream { result, incarnation }) => {
                out.u32(*result).u32(*incarnation);
            }
            MmsMessage::ReportStreamChange(change) => change.write(out),
            MmsMessage::Other { body, .. } => {
                out.bytes(body);
            }
        }
    }
}
