//! A session: some streams of an object on their way to one player, a burst at a time.

use std::collections::VecDeque;
use std::sync::Arc;

use rtp_types::RtpPacketBuilder;
use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_wire::mms::DataPacket;
use streamgauge_wire::rtp_asf::{self, AsfUnit, LengthOf};
use streamgauge_wire::rtsp::interleave;
use streamgauge_wire::wmsp::{PacketContent, WmspPacket};

use super::super::object::Object;
use super::super::{PAYLOAD_TYPE, PREROLL_MS};
use super::settings::ServerSettings;
use super::stream::{Packed, Stream};
use crate::app::{ChannelId, Io};
use crate::outbox::Outbox;
use crate::rtsp::Backlog;

/// RTP (RFC 3550 section 5.1).
const RTP_HEADER_BYTES: usize = 12;

/// Most bytes kept for retransmission, however fast a player receives.
const MOST_KEPT_BYTES: usize = 4 << 20;

/// The carrier of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// RTP over UDP, from this channel, which all streams of a session share.
    Udp(ChannelId),
    /// RTP on the RTSP connection, on this channel of it and the next.
    Interleaved(u8),
    /// MMS's packets over UDP, from this channel.
    Datagrams(ChannelId),
    /// MMS's packets on MMS's connection.
    Connection,
    /// The same in the body of a response of HTTP.
    Body,
}

impl Way {
    /// Returns whether it is a connection, which may refuse more data.
    fn is_stream(self) -> bool {
        !matches!(self, Way::Udp(_) | Way::Datagrams(_))
    }
}

/// Counts of packets sent to a client, over all its sessions.
#[derive(Clone, Copy, Default, Debug)]
pub struct Sent {
    /// Packets of media, without those sent again.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those of them on a connection.
    pub interleaved: u64,
    /// Packets that were sent again.
    pub again: u64,
}

/// A session's way out.
pub struct Line<'a> {
    pub io: &'a mut dyn Io,
    pub backlog: &'a mut Backlog,
    pub events: &'a mut Outbox,
    pub sent: &'a mut Sent,
}

/// A stream that was set up.
pub struct Track {
    /// Its number.
    pub number: usize,
    pub way: Way,
    pub stream: Stream,
}

/// A packet that was sent over UDP.
struct Kept {
    sequence: u32,
    sent_at: Instant,
    datagram: Chunk,
}

/// Streams of one object on their way to one player.
///
/// Events: `level_sent` (bit/s of pictures and sound), `packet_resent` (the number).
pub struct WmSession {
    pub id: String,
    /// The object's path as the player asked for it.
    pub path: String,
    pub object: Arc<Object>,
    pub tracks: Vec<Track>,
    /// The channel of retransmissions, and of packets that measure the link.
    pub again: Option<ChannelId>,
    settings: Arc<ServerSettings>,
    ssrc: u32,
    /// `playIncarnation` of MMS's packets.
    pub incarnation: u8,
    /// Number of the next packet; RTP has its low 16 bits, MMS its low 8.
    sequence: u32,
    kept: VecDeque<Kept>,
    kept_bytes: usize,
    /// The rate that the player requests until it holds enough, in bit/s.
    accelerated_bps: Option<u64>,
    /// The place up to which it does so, if the player gave it beforehand.
    accelerated_to: Duration,
    /// Whether it plays, or has reached the end.
    playing: bool,
    to: Duration,
    /// How far media has been sent.
    position: Duration,
    /// Time when the next burst is due.
    due: Option<Instant>,
    ended: bool,
    level_bps: Option<u64>,
}

impl WmSession {
    pub fn new(
        id: String,
        ssrc: u32,
        path: String,
        object: Arc<Object>,
        settings: Arc<ServerSettings>,
    ) -> Self {
        WmSession {
            id,
            path,
            to: object.duration,
            object,
            tracks: Vec::new(),
            again: None,
            settings,
            ssrc,
            incarnation: 0,
            sequence: 0,
            kept: VecDeque::new(),
            kept_bytes: 0,
            accelerated_bps: None,
            accelerated_to: Duration::from_nanos(u64::MAX),
            playing: false,
            position: Duration::ZERO,
            due: None,
            ended: false,
            level_bps: None,
        }
    }

    pub fn is_playing(&self) -> bool {
        self.playing
    }

    /// Returns how far media has been sent.
    pub fn position(&self) -> Duration {
        self.position
    }

    /// Returns the SSRC of its packets.
    pub fn ssrc(&self) -> u32 {
        self.ssrc
    }

    /// Returns whether it has sent all of its media, and this is the first call since.
    pub fn takes_end(&mut self) -> bool {
        let has_ended = self.playing && !self.ended && self.position >= self.to;
        self.ended |= has_ended;
        has_ended
    }

    /// Returns whether the end has been announced.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Begins at `from`, or continues; to `to`. Returns the played range; `None` if there is nothing.
    pub fn begin(
        &mut self,
        now: Instant,
        from: Option<Duration>,
        to: Option<Duration>,
    ) -> Option<(Duration, Duration)> {
        let duration = self.object.duration;
        let start = from.unwrap_or(self.position);
        let end = to.map_or(duration, |to| to.min(duration));
        if start > duration || from.is_some() && start >= end && duration > Duration::ZERO {
            return None;
        }
        if from.is_some() {
            self.tracks.iter_mut().for_each(|track| track.stream.seek(start));
        }
        (self.to, self.position, self.ended, self.playing) = (end, start, false, true);
        self.due = Some(now);
        Some((start, end))
    }

    /// Sends at this rate from now on, where that is more than the media's own; without one, at that. Returns the
    /// granted rate.
    pub fn accelerate(&mut self, wanted_bps: Option<u64>) -> Option<u64> {
        let rate = self.rate_bps();
        let most = (rate as f64 * self.settings.most_acceleration) as u64;
        let granted = wanted_bps.map(|wanted| wanted.min(most).min(self.settings.most_accelerated_bps));
        self.accelerated_bps = granted.filter(|granted| *granted > rate);
        self.accelerated_to = Duration::from_nanos(u64::MAX);
        self.accelerated_bps
    }

    /// Does the same for `media` from where it is.
    pub fn accelerate_for(&mut self, wanted_bps: u64, media: Duration) -> Option<u64> {
        let granted = self.accelerate(Some(wanted_bps));
        self.accelerated_to = self.position + media;
        granted
    }

    /// Stops sending; `begin` continues from here.
    pub fn pause(&mut self) {
        (self.playing, self.due) = (false, None);
    }

    /// Returns when it is next due.
    pub fn wake(&self) -> Option<Instant> {
        self.due
    }

    /// Continues, as the connection has room.
    pub fn unblock(&mut self, now: Instant) {
        if self.playing && !self.ended && self.due.is_none() {
            self.due = Some(now);
        }
    }

    /// Returns the rate of all sent media, in bit/s.
    fn rate_bps(&self) -> u64 {
        self.tracks.iter().map(|track| track.stream.sent_bps()).sum()
    }

    /// Sends the bursts that are due.
    pub fn work(&mut self, now: Instant, line: &mut Line<'_>) {
        while let Some(due) = self.due.filter(|due| *due <= now) {
            let is_stream = self.tracks.iter().any(|track| track.way.is_stream());
            if self.position >= self.to || is_stream && !line.backlog.is_clear() {
                self.due = None;
                return;
            }
            if self.position >= self.accelerated_to {
                self.accelerated_bps = None;
            }
            self.say_level(now, line);
            let faster = self.faster_bps();
            let steady = self
                .settings
                .steady_burst
                .filter(|_| faster.is_none() && self.position >= self.settings.steady_from);
            let until = (self.position + steady.unwrap_or(self.settings.burst)).min(self.to);
            let lasts = until.saturating_sub(self.position);
            self.burst(now, until, line);
            self.position = until;
            let rate = self.rate_bps();
            let apart = faster.map_or(lasts, |faster| {
                let nanos = u128::from(lasts.as_nanos()) * u128::from(rate) / u128::from(faster);
                Duration::from_nanos(nanos as u64)
            });
            // A connection that accepted no more for a while does not make it catch up all at once.
            let from = if now.saturating_since(due) > apart { now } else { due };
            self.due = Some(from + apart);
        }
    }

    /// Returns the rate of sending, in bit/s, where that is faster than the media's own. The granted rate may have been
    /// for more media than is sent now.
    fn faster_bps(&self) -> Option<u64> {
        let rate = self.rate_bps();
        let most = (rate as f64 * self.settings.most_acceleration) as u64;
        self.accelerated_bps.map(|faster| faster.min(most)).filter(|faster| *faster > rate)
    }

    /// Sends all media up to `until`, packets of all streams in the order of their times.
    fn burst(&mut self, now: Instant, until: Duration, line: &mut Line<'_>) {
        let packet_bytes = self.settings.packet_bytes;
        let mut packets = Vec::new();
        for (place, track) in self.tracks.iter_mut().enumerate() {
            let taken = track.stream.take(until, packet_bytes, PREROLL_MS);
            packets.extend(taken.into_iter().map(|packed| (place, packed)));
        }
        packets.sort_by_key(|(_, packed)| packed.at_ms);
        for (place, packed) in packets {
            self.send(now, self.tracks[place].way, &packed, line);
        }
    }

    fn send(&mut self, now: Instant, way: Way, packed: &Packed, line: &mut Line<'_>) {
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        let packet = match way {
            Way::Udp(_) | Way::Interleaved(_) => {
                let unit = AsfUnit::packet(packed.is_key, packed.bytes.as_slice().into());
                let payload = rtp_asf::write(&[unit], LengthOf::HeaderAndPacket);
                rtp(self.ssrc, sequence as u16, packed.at_ms, payload.head())
            }
            Way::Datagrams(_) | Way::Connection | Way::Body => {
                let (incarnation, flags) = (self.incarnation, sequence as u8);
                let payload = packed.bytes.as_slice().into();
                DataPacket { location: sequence, incarnation, flags, payload }.write()
            }
        };
        line.sent.packets += 1;
        line.sent.bytes += packet.len() as u64;
        line.sent.interleaved += u64::from(way.is_stream());
        match way {
            Way::Udp(channel) | Way::Datagrams(channel) => {
                if self.again.is_some() {
                    self.keep(now, sequence, packet.clone());
                }
                line.io.send(channel, packet);
            }
            Way::Interleaved(channel) => line.backlog.push(interleave(channel, &packet), line.io),
            Way::Connection => line.backlog.push(packet, line.io),
            Way::Body => {
                line.backlog.push(WmspPacket::from(PacketContent::Data(packet)).write(), line.io);
            }
        }
    }

    /// Keeps a datagram, for when it is lost; the oldest are dropped when all of them reach [`MOST_KEPT_BYTES`].
    fn keep(&mut self, now: Instant, sequence: u32, datagram: Chunk) {
        self.kept_bytes += datagram.len();
        let for_long = self.settings.resend_keep;
        while self
            .kept
            .front()
            .is_some_and(|kept| self.kept_bytes > MOST_KEPT_BYTES || kept.sent_at + for_long < now)
        {
            self.kept_bytes -= self.kept.pop_front().map_or(0, |kept| kept.datagram.len());
        }
        self.kept.push_back(Kept { sequence, sent_at: now, datagram });
    }

    /// Handles missing packets, by the low 16 bits of their numbers: those that are kept still are sent again, as they
    /// were.
    pub fn resend(&mut self, now: Instant, missing: impl Iterator<Item = u32>, line: &mut Line<'_>) {
        let Some(channel) = self.again else { return };
        for sequence in missing.take(self.settings.most_resent as usize) {
            // They are kept in order and without a gap.
            let Some(first) = self.kept.front() else { return };
            let place = usize::from((sequence as u16).wrapping_sub(first.sequence as u16));
            let Some(kept) = self.kept.get(place) else { continue };
            if kept.sent_at + self.settings.resend_keep >= now {
                line.sent.again += 1;
                line.events.say(now, "packet_resent", f64::from(sequence), "1", "");
                line.io.send(channel, kept.datagram.clone());
            }
        }
    }

    fn say_level(&mut self, now: Instant, line: &mut Line<'_>) {
        let level = self.rate_bps();
        if self.level_bps != Some(level) {
            self.level_bps = Some(level);
            line.events.say(now, "level_sent", level as f64, "bit/s", "");
        }
    }
}

/// Makes a packet of RTP that holds whole packets of ASF, or ends one: the marker is set ([MS-RTSP] section 2.2.1.1).
pub fn rtp(ssrc: u32, sequence: u16, timestamp: u32, payload: &[u8]) -> Chunk {
    let mut packet = vec![0; RTP_HEADER_BYTES + payload.len()];
    RtpPacketBuilder::<&[u8], &[u8]>::new()
        .payload_type(PAYLOAD_TYPE)
        .marker_bit(true)
        .sequence_number(sequence)
        .timestamp(timestamp)
        .ssrc(ssrc)
        .payload(payload)
        .write_into(&mut packet)
        .expect("a header and its payload fit the sum of their lengths");
    Chunk::bytes(packet)
}
