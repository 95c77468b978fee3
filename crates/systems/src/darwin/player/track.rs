//! A track that was set up: its channels, what came on them, what goes back.

use rtp_types::RtpPacket;
use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_wire::reliable_udp::ClientReport;
use streamgauge_wire::rtcp::{self, Block, Packet};

use super::acks::Acks;
use super::reception::{Arrival, Reception};
use super::units::{Place, Timeline};
use crate::app::ChannelId;
use crate::media::begins_unit;
use crate::media::sdp::TrackDescription;

/// A server may recommend no longer acknowledgement delay; Darwin's ends at 0.1 s.
const MOST_ACK_DELAY_MS: u32 = 1_000;

/// Pictures that are said to be nearer to each other than this are not counted by it: each number takes a place in the
/// buffer, whether it comes or not.
const LEAST_INTERVAL: Duration = Duration::from_millis(2);

/// One track of the session.
pub struct Track {
    pub description: TrackDescription,
    /// The channels of RTP and RTCP over UDP.
    pub channels: (ChannelId, ChannelId),
    /// Those on the connection.
    pub interleaved: Option<(u8, u8)>,
    /// Its packets are acknowledged.
    pub reliable: bool,
    pub reception: Reception,
    pub acks: Acks,
    pub ack_delay: Duration,
    /// Who sends; known by Transport's ssrc or the first packet.
    source: Option<u32>,
    /// A packet of it came.
    pub heard: bool,
    /// The number of the first packet, until it comes, if the server has said it.
    pub first_sequence: Option<u16>,
    last_sender_report: Option<(u32, Instant)>,
    /// At the last report of ours.
    reported: Interval,
}

#[derive(Clone, Copy, Default)]
struct Interval {
    at: Instant,
    bytes: u64,
}

/// A media packet as the playout takes it.
pub struct Media {
    pub place: Place,
    /// Where the payload begins, and bytes of padding at its end.
    pub payload_at: usize,
    pub padding: usize,
    /// It ends a unit, and the packet behind it came before it.
    pub before_another: bool,
    /// It is the first that was sent.
    pub opens: bool,
}

/// What RTCP of the server's says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Word {
    /// The source ends.
    pub bye: bool,
}

impl Track {
    pub fn new(
        description: TrackDescription,
        channels: (ChannelId, ChannelId),
        ack_delay: Duration,
        now: Instant,
    ) -> Self {
        Track {
            reception: Reception::new(description.clock_rate),
            description,
            channels,
            interleaved: None,
            reliable: false,
            acks: Acks::default(),
            ack_delay,
            source: None,
            heard: false,
            first_sequence: None,
            last_sender_report: None,
            reported: Interval { at: now, bytes: 0 },
        }
    }

    pub fn set_source(&mut self, ssrc: Option<u32>) {
        self.source = ssrc;
    }

    /// Takes an RTP packet at `now`: counts it and has it acknowledged. `None` unless it is media that has not come
    /// before.
    pub fn media(&mut self, now: Instant, packet: &Chunk) -> Option<Media> {
        let rtp = RtpPacket::parse(packet.head()).ok()?;
        if rtp.payload_type() != self.description.payload_type {
            return None;
        }
        if !self.heard {
            // Some servers announce another.
            (self.heard, self.source) = (true, Some(rtp.ssrc()));
        }
        if self.source != Some(rtp.ssrc()) {
            return None;
        }
        let (sequence, marker) = (rtp.sequence_number(), rtp.marker_bit());
        if self.reliable {
            self.acks.arrived(now, sequence, self.ack_delay);
        }
        // Of codecs that we do not know, a block of sound is a packet, and the marker says something else.
        let is_block = self.description.codec.is_none() && self.description.media != "video";
        let last = marker || is_block;
        let arrival = self.reception.packet(now, sequence, rtp.timestamp(), packet.len(), last);
        let Arrival::First(sequence) = arrival else { return None };
        let first = match (self.reception.follows_an_end(sequence), &self.description.codec) {
            (Some(follows), _) => follows,
            (None, Some(codec)) => begins_unit(codec, rtp.payload()),
            (None, None) => true,
        };
        let opens = self.first_sequence.take_if(|announced| *announced == sequence as u16).is_some();
        let padding = usize::from(rtp.padding().unwrap_or(0));
        Some(Media {
            place: Place { sequence, timestamp: rtp.timestamp(), first, last },
            payload_at: packet.head().len() - padding - rtp.payload().len(),
            padding,
            opens: opens && first,
            before_another: last && self.reception.follows_an_end(sequence.wrapping_add(2)).is_some(),
        })
    }

    /// Takes RTCP at `now`.
    pub fn control(&mut self, now: Instant, datagram: &[u8], follow_hints: bool) -> Word {
        let mut word = Word::default();
        for packet in rtcp::parse(datagram).map_while(Result::ok) {
            match packet {
                Packet::SenderReport { ssrc, ntp, .. } if self.source.is_none_or(|source| source == ssrc) => {
                    self.last_sender_report = Some(((ntp >> 16) as u32, now));
                }
                Packet::Hint(hint) if follow_hints => {
                    let ms = hint.ack_timeout_ms.min(MOST_ACK_DELAY_MS);
                    self.ack_delay = Duration::from_millis(ms.into());
                }
                Packet::Bye { sources } => {
                    word.bye |= self.source.is_none_or(|source| sources.contains(&source));
                }
                _ => {}
            }
        }
        word
    }

    /// The acknowledgements that are due by `now`.
    pub fn take_acks(&mut self, now: Instant, ssrc: u32) -> Option<Vec<u8>> {
        self.acks.take(now, ssrc, self.source?)
    }

    /// The receiver report at `now` with `ssrc`'s name; `client` fills in what only the playout knows, and adds Apple's
    /// report. Returns the report's block too.
    pub fn report(
        &mut self,
        now: Instant,
        ssrc: u32,
        client: Option<ClientReport>,
        bye: bool,
    ) -> (Vec<u8>, Option<Block>) {
        let counts = self.reception.counts();
        let block = self.source.filter(|_| self.heard).map(|source| {
            let report = self.reception.statistics().report();
            let (lsr, arrived) = self.last_sender_report.unwrap_or((0, now));
            Block {
                source,
                fraction_lost: report.fraction_lost,
                cumulative_lost: report.cumulative_lost,
                extended_highest: report.extended_highest,
                jitter: report.jitter,
                lsr,
                dlsr: rtcp::short(now.saturating_since(arrived)),
            }
        });
        let mut packets = vec![
            Packet::ReceiverReport { ssrc, blocks: block.into_iter().collect() },
            Packet::Cname { ssrc, cname: "player".into() },
        ];
        if let Some((client, source)) = client.zip(self.source) {
            let time = u128::from(now.saturating_since(self.reported.at).as_nanos().max(1));
            let bits = u128::from(counts.bytes - self.reported.bytes) * 8;
            packets.push(Packet::ClientReport(ClientReport {
                client_ssrc: ssrc,
                server_ssrc: source,
                receive_bps: Some(u32::try_from(bits * 1_000_000_000 / time).unwrap_or(u32::MAX)),
                // 1/256 of all in 1/256 of a percent of all.
                loss_percent_256: block.map(|block| u16::from(block.fraction_lost) * 100),
                packets_received: Some(u32::try_from(counts.packets).unwrap_or(u32::MAX)),
                packets_lost: Some(u16::try_from(self.reception.lost()).unwrap_or(u16::MAX)),
                ..client
            }));
        }
        if bye {
            packets.push(Packet::Bye { sources: vec![ssrc] });
        }
        self.reported = Interval { at: now, bytes: counts.bytes };
        (rtcp::write(&packets), block)
    }

    /// The time between two pictures, if the description says one that can be.
    pub fn interval(&self) -> Option<Duration> {
        let frames = self.description.frames_per_1000_s.filter(|&frames| frames > 0)?;
        let interval = Duration::from_nanos(1_000_000_000_000 / frames);
        (self.description.media == "video" && interval >= LEAST_INTERVAL).then_some(interval)
    }

    /// `timestamp` is the media's time `at`.
    pub fn timeline(&self, timestamp: u32, at: Duration) -> Timeline {
        Timeline::new(self.description.clock_rate, timestamp, at)
    }
}
