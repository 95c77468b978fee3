//! A session: an object's streams on their way to one player, at the rate that it asks for.

use std::sync::Arc;

use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_wire::rdt::{AckPacket, DataPacket, Packet, SequenceNumber, StreamEnd};
use streamgauge_wire::rtsp::interleave;

use super::super::object::{Object, VIDEO};
use super::settings::ServerSettings;
use super::stream::{Stream, Way};
use crate::app::Io;
use crate::outbox::Outbox;
use crate::rtsp::Backlog;

/// A server without a requested rate, with an object without one, sends at this.
const LEAST_BPS: u64 = 1_000;

/// Media is never sent faster than this multiple of the object's highest rate, at any request. Players ask for 4 times
/// it at most (RealNetworks' published client).
const MOST_ACCELERATION: u64 = 16;

/// Counts of packets sent to a client, over all its sessions.
#[derive(Clone, Copy, Default, Debug)]
pub struct Sent {
    /// Packets of media, without those sent again.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those of them on the RTSP connection.
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

impl Line<'_> {
    /// Sends RDT.
    pub fn put(&mut self, way: Way, datagram: Chunk) {
        match way {
            Way::Udp(channel) => self.io.send(channel, datagram),
            Way::Interleaved(channel) => self.backlog.push(interleave(channel, &datagram), self.io),
        }
    }
}

/// Streams of one object on their way to one player.
///
/// Events: `level_sent` (bit/s of pictures and sound; its reason names the encoding of the pictures and its start in
/// the media), `packet_resent` (the number).
pub struct RdtSession {
    pub id: String,
    /// The object's path as the player asked for it.
    pub path: String,
    pub object: Arc<Object>,
    pub streams: Vec<Stream>,
    settings: Arc<ServerSettings>,
    /// The rate that the player asked for, in bit/s.
    pub delivery_bps: Option<u64>,
    /// Whether it plays, or has reached the end.
    playing: bool,
    /// Where media ends.
    to: Duration,
    /// How far media has been sent.
    position: Duration,
    /// Time when the next packet is due.
    due: Option<Instant>,
    /// Since the last pair.
    single: u32,
    latency_due: Instant,
    ended: bool,
    level_bps: Option<u64>,
}

impl RdtSession {
    pub fn new(id: String, path: String, object: Arc<Object>, settings: Arc<ServerSettings>) -> Self {
        RdtSession {
            id,
            path,
            to: object.duration,
            object,
            streams: Vec::new(),
            settings,
            delivery_bps: None,
            playing: false,
            position: Duration::ZERO,
            due: None,
            single: 0,
            latency_due: Instant::ZERO,
            ended: false,
            level_bps: None,
        }
    }

    pub fn is_playing(&self) -> bool {
        self.playing
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
        for stream in &mut self.streams {
            stream.want_lowest();
            if from.is_some() || !self.playing && self.position == Duration::ZERO {
                stream.seek(start);
            }
        }
        (self.to, self.position, self.ended, self.playing) = (end, start, false, true);
        (self.due, self.latency_due) = (Some(now), now);
        Some((start, end))
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

    fn rate_bps(&self) -> u64 {
        let wanted = || self.streams.iter().map(Stream::wanted_bps).sum();
        let most = MOST_ACCELERATION.saturating_mul(self.object.most_bps()).max(LEAST_BPS);
        self.delivery_bps.unwrap_or_else(wanted).clamp(LEAST_BPS, most)
    }

    /// Sends all packets that are due.
    pub fn work(&mut self, now: Instant, line: &mut Line<'_>) {
        while let Some(due) = self.due.filter(|due| *due <= now) {
            let is_stream = self.streams.iter().any(|stream| matches!(stream.way, Way::Interleaved(_)));
            if is_stream && !line.backlog.is_clear() {
                self.due = None;
                return;
            }
            let due = if now.saturating_since(due) > self.settings.late_restart { now } else { due };
            let pair = self.single + 1 >= self.settings.pair_interval;
            let Some(bytes) = self.send_next(now, false, line) else {
                self.end(line);
                return;
            };
            let second = if pair { self.send_next(now, true, line).unwrap_or(0) } else { 0 };
            self.single = if pair { 0 } else { self.single + 1 };
            let gap = (bytes + second) as u128 * 8_000_000_000 / u128::from(self.rate_bps());
            self.due = Some(due + Duration::from_nanos(u64::try_from(gap).unwrap_or(u64::MAX)));
        }
    }

    /// Sends the next packet; returns its bytes of media, which a rate counts. `None` if there is none.
    fn send_next(&mut self, now: Instant, is_back_to_back: bool, line: &mut Line<'_>) -> Option<usize> {
        let (position, mut followed) = (self.position, false);
        for stream in &mut self.streams {
            followed |= stream.follow(position);
        }
        if followed || self.level_bps.is_none() {
            self.say_level(now, line);
        }
        let to = self.to;
        let next = self.streams.iter_mut().filter_map(|stream| Some((stream.next_at()?, stream)));
        let (_, stream) = next.filter(|(at, _)| *at < to).min_by_key(|(at, stream)| (*at, stream.number))?;
        let packet = stream.next(self.settings.packet_bytes, self.settings.packet_media)?;
        self.position = self.position.max(packet.at);
        let data = Packet::Data(DataPacket {
            stream: stream.number as u16,
            sequence: packet.sequence,
            is_reliable: false,
            total_reliable: Some(0),
            is_back_to_back,
            is_slow: false,
            rule: packet.rule,
            timestamp_ms: millis(packet.at),
            payload: (&packet.payload).into(),
        });
        let way = stream.way;
        if matches!(way, Way::Udp(_)) {
            // Without the time at which it was sent first.
            stream.keep(now, packet.sequence, data.write(), self.settings.resend_keep);
        } else {
            line.sent.interleaved += 1;
        }
        let datagram = if now >= self.latency_due {
            self.latency_due = now + self.settings.latency_interval;
            let server_time_ms = (now.as_nanos() / 1_000_000) as u32;
            streamgauge_wire::rdt::write(&[Packet::LatencyReport { server_time_ms }, data])
        } else {
            data.write()
        };
        line.sent.packets += 1;
        line.sent.bytes += datagram.len() as u64;
        line.put(way, datagram);
        Some(packet.payload.len())
    }

    fn say_level(&mut self, now: Instant, line: &mut Line<'_>) {
        let level = self.streams.iter().map(Stream::sent_bps).sum();
        if self.level_bps != Some(level) {
            self.level_bps = Some(level);
            let pictures = self.streams.iter().find(|stream| stream.number == VIDEO);
            let reason = pictures.map_or_else(String::new, Stream::says_sent);
            line.events.say(now, "level_sent", level as f64, "bit/s", reason);
        }
    }

    /// Announces that each stream has ended.
    fn end(&mut self, line: &mut Line<'_>) {
        (self.ended, self.due) = (true, None);
        for stream in &self.streams {
            let end = Packet::StreamEnd(StreamEnd {
                stream: stream.number as u16,
                packet_sent: line.sent.packets > 0,
                sequence: stream.last_sequence().get(),
                timestamp_ms: millis(self.to),
                total_reliable: Some(0),
                reason: None,
            });
            let repeats = match stream.way {
                Way::Udp(_) => self.settings.end_repeats,
                Way::Interleaved(_) => 1,
            };
            for _ in 0..repeats {
                line.put(stream.way, end.write());
            }
        }
    }

    /// Handles the player's report of missing packets: those still kept are sent at once.
    pub fn acknowledged(&mut self, now: Instant, ack: &AckPacket, line: &mut Line<'_>) {
        for (stream, sequence) in ack.lost_sequences() {
            self.resend(now, stream, sequence, line);
        }
    }

    fn resend(&mut self, now: Instant, number: u16, sequence: SequenceNumber, line: &mut Line<'_>) {
        let (keep, once) = (self.settings.resend_keep, self.settings.resend_once);
        let Some(stream) = self.streams.iter_mut().find(|stream| stream.number == usize::from(number)) else {
            return;
        };
        if let Some(datagram) = stream.again(now, sequence, keep, once) {
            let way = stream.way;
            line.sent.again += 1;
            line.events.say(now, "packet_resent", f64::from(sequence.get()), "1", "");
            line.put(way, datagram);
        }
    }
}

fn millis(time: Duration) -> u32 {
    (time.as_nanos() / 1_000_000) as u32
}
