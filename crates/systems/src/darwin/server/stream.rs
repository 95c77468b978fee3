//! A track on its way to a player: RTP packets out of access units, sender reports, the goodbye.

use std::collections::VecDeque;

use rtp_types::RtpPacketBuilder;
use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_wire::reliable_udp::Hint;
use streamgauge_wire::rtcp::{self, Packet};

use super::flow_control::FlowControl;
use super::lateness::{Checks, Lateness};
use super::line::Line;
use super::resender::{Piece, Resender};
use super::settings::ServerSettings;
use super::thinning::Thinning;
use crate::app::ChannelId;
use crate::media::{Payload, Track, UnitKind, sdp};

const RTP_HEADER_BYTES: usize = 12;

/// How a track's packets travel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// UDP with acknowledgements.
    Reliable,
    /// UDP.
    Plain,
    /// The RTSP connection, on its channels for RTP and RTCP.
    Interleaved(u8, u8),
}

impl Way {
    /// Returns its channels on the RTSP connection.
    pub fn interleaved(self) -> Option<(u8, u8)> {
        if let Way::Interleaved(rtp, rtcp) = self { Some((rtp, rtcp)) } else { None }
    }
}

/// The random beginnings of a stream (RFC 3550 section 5.1).
#[derive(Clone, Copy, Debug)]
pub struct Beginnings {
    pub ssrc: u32,
    pub sequence: u16,
    pub timestamp: u32,
}

/// One track of a session. It keeps the packets of one access unit at most.
pub struct RtpStream {
    /// The track's index in the asset.
    pub track: usize,
    pub way: Way,
    /// The channel of RTP over UDP; RTCP's is the next.
    rtp: Option<ChannelId>,
    /// As the player wrote it in SETUP.
    pub url: String,
    pub beginnings: Beginnings,
    payload_type: u8,
    next_sequence: u16,
    unit: usize,
    /// The rest of the packets of `unit`, and the index of the first of them.
    pending: VecDeque<Payload>,
    piece: u32,
    pub resender: Resender,
    pub lateness: Lateness,
    /// Its own, where tracks share none.
    pub checks: Checks,
    pub flow_control: FlowControl,
    pub thinning: Thinning,
    packets: u32,
    octets: u32,
    reported: Option<Instant>,
}

/// The next packet of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Next {
    /// Its unit's transmit time, from the asset's start.
    pub at: Duration,
    /// RTP header included.
    pub bytes: u32,
}

impl RtpStream {
    pub fn new(
        (index, track): (usize, &Track),
        way: Way,
        rtp: Option<ChannelId>,
        url: String,
        beginnings: Beginnings,
        settings: &ServerSettings,
    ) -> Self {
        RtpStream {
            track: index,
            way,
            rtp,
            url,
            beginnings,
            payload_type: sdp::payload_type(index),
            next_sequence: beginnings.sequence,
            unit: 0,
            pending: VecDeque::new(),
            piece: 0,
            resender: Resender::new(settings),
            lateness: Lateness::new(settings, track.is_video()),
            checks: Checks::default(),
            flow_control: FlowControl::new(settings),
            thinning: Thinning::default(),
            packets: 0,
            octets: 0,
            reported: None,
        }
    }

    /// Continues with the first unit at or after `time`.
    pub fn seek(&mut self, track: &Track, time: Duration) {
        self.unit = track.units.partition_point(|unit| unit.at < time);
        self.pending.clear();
    }

    /// Returns the transmit time of its next unit, from the asset's start; `None` at the end.
    pub fn position(&self, track: &Track) -> Option<Duration> {
        track.units.get(self.unit).map(|unit| unit.at)
    }

    /// Returns the sequence number of its next new packet.
    pub fn next_sequence(&self) -> u16 {
        self.next_sequence
    }

    /// Returns the RTP timestamp of media at `time`.
    pub fn timestamp(&self, track: &Track, time: Duration) -> u32 {
        self.beginnings.timestamp.wrapping_add(track.ticks(time) as u32)
    }

    /// Returns the next packet of those units that the level sends; `None` at the end.
    pub fn next(&mut self, track: &Track, max_payload: u32) -> Option<Next> {
        loop {
            let unit = track.units.get(self.unit)?;
            if let Some(payload) = self.pending.front() {
                return Some(Next { at: unit.at, bytes: (RTP_HEADER_BYTES + payload.chunk.len()) as u32 });
            }
            let later = &track.units[self.unit + 1..];
            let group = || {
                let group = later.iter().take_while(|unit| unit.kind != UnitKind::Key);
                group.filter(|unit| unit.kind == UnitKind::Predicted).count() as u32
            };
            if self.thinning.sends(unit.kind, group) {
                self.pending.extend(track.packets(self.unit, max_payload));
                self.piece = 0;
            }
            if self.pending.is_empty() {
                self.unit += 1;
            }
        }
    }

    /// Removes the packet that `next` named from the line, and returns it with its sequence number.
    pub fn take(&mut self) -> Option<(u16, Piece, Payload)> {
        let payload = self.pending.pop_front()?;
        let piece = Piece { unit: self.unit as u32, index: self.piece };
        self.piece += 1;
        if self.pending.is_empty() {
            self.unit += 1;
        }
        let sequence = self.next_sequence;
        self.next_sequence = sequence.wrapping_add(1);
        Some((sequence, piece, payload))
    }

    /// Sends a packet, new or again.
    pub fn send(&mut self, track: &Track, sequence: u16, piece: Piece, payload: &Payload, line: &mut Line) {
        let shown = track.units.get(piece.unit as usize).map_or(Duration::ZERO, |unit| unit.shown);
        let real = payload.chunk.head();
        let mut head = vec![0; RTP_HEADER_BYTES + real.len()];
        RtpPacketBuilder::<&[u8], &[u8]>::new()
            .payload_type(self.payload_type)
            .marker_bit(payload.marker)
            .sequence_number(sequence)
            .timestamp(self.timestamp(track, shown))
            .ssrc(self.beginnings.ssrc)
            .payload(real)
            .write_into(&mut head)
            .expect("a header and its payload fit the sum of their lengths");
        self.packets = self.packets.wrapping_add(1);
        self.octets = self.octets.wrapping_add(payload.chunk.len() as u32);
        let packet = Chunk::with_filler(head, (payload.chunk.len() - real.len()) as u32);
        line.sent.packets += 1;
        line.sent.bytes += packet.len() as u64;
        line.sent.interleaved += u64::from(self.way.interleaved().is_some());
        match self.way {
            Way::Interleaved(rtp, _) => line.interleaved(rtp, &packet),
            Way::Plain | Way::Reliable => self.datagram(packet, false, line),
        }
    }

    /// Sends `piece` again as `sequence`.
    pub fn send_again(
        &mut self,
        track: &Track,
        sequence: u16,
        piece: Piece,
        max_payload: u32,
        line: &mut Line,
    ) {
        if let Some(payload) = track.packets(piece.unit as usize, max_payload).nth(piece.index as usize) {
            self.send(track, sequence, piece, &payload, line);
        }
    }

    /// Returns whether its last sender report is older than `interval`, or there was none.
    pub fn owes_report(&self, now: Instant, interval: Duration) -> bool {
        self.reported.is_none_or(|reported| now.saturating_since(reported) > interval)
    }

    /// Sends a sender report of media that is at `timestamp` now, the hint of how long acknowledgements may
    /// be gathered, and, with `bye`, the goodbye.
    pub fn report(&mut self, now: Instant, timestamp: u32, ack_timeout_ms: u32, bye: bool, line: &mut Line) {
        self.reported = Some(now);
        let ssrc = self.beginnings.ssrc;
        let mut packets = vec![
            Packet::SenderReport {
                ssrc,
                ntp: rtcp::ntp(now),
                rtp_timestamp: timestamp,
                packets: self.packets,
                octets: self.octets,
                blocks: Vec::new(),
            },
            Packet::Cname { ssrc, cname: "server".into() },
        ];
        if self.way == Way::Reliable {
            packets.push(Packet::Hint(Hint { server_ssrc: ssrc, client_ssrc: 0, ack_timeout_ms }));
        }
        if bye {
            packets.push(Packet::Bye { sources: vec![ssrc] });
        }
        let packet = Chunk::bytes(rtcp::write(&packets));
        match self.way {
            Way::Interleaved(_, rtcp) => line.interleaved(rtcp, &packet),
            Way::Plain | Way::Reliable => self.datagram(packet, true, line),
        }
    }

    /// Returns whether it has sent something, and therefore has a report to make.
    pub fn has_sent(&self) -> bool {
        self.packets > 0
    }

    /// Sets the level at which frames are left out now, where thinning reaches the file: its own, or the `shared` one
    /// of all tracks.
    pub fn follow_level(&mut self, thinning_reaches_file: bool, shared: Option<u8>) {
        let level = match self.way {
            Way::Plain => self.flow_control.level(),
            _ if thinning_reaches_file => shared.unwrap_or(self.checks.level()),
            _ => 0,
        };
        self.thinning.set(level);
    }

    /// Sends a datagram of RTP, or of RTCP on the channel after it.
    fn datagram(&self, packet: Chunk, is_rtcp: bool, line: &mut Line<'_>) {
        line.sent.rtcp_datagrams += u64::from(is_rtcp);
        if let Some(ChannelId(rtp)) = self.rtp {
            line.io.send(ChannelId(rtp + u32::from(is_rtcp)), packet);
        }
    }
}
