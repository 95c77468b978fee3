//! A track that was set up: its channels, its arrivals, and Apple's feedback to the server.

use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_wire::reliable_udp::ClientReport;
use streamgauge_wire::rtcp::{self, Packet, RtcpBlock};

use super::acks::Acks;
use super::claim::Claim;
use crate::app::ChannelId;
use crate::media::sdp::TrackDescription;
use crate::playout::Timeline;
use crate::reception::{Announced, Late, Media, Source, receiver_report};

/// A server may recommend no longer acknowledgement delay; Darwin's ends at 0.1 s.
const MOST_ACK_DELAY_MS: u32 = 1_000;

/// Pictures announced as nearer to each other than this are not counted by it: each number occupies a place in the
/// buffer, even if it never arrives.
const LEAST_INTERVAL: Duration = Duration::from_millis(2);

/// One track of the session.
pub struct Track {
    pub description: TrackDescription,
    /// The channels of RTP and RTCP over UDP, once it has them.
    pub channels: Option<(ChannelId, ChannelId)>,
    /// Those on the connection.
    pub interleaved: Option<(u8, u8)>,
    /// Whether its packets are acknowledged.
    pub reliable: bool,
    pub source: Source,
    pub acks: Acks,
    pub ack_delay: Duration,
    /// The claims of PLAY's answer about its packets, until one shows whether they hold.
    pub claim: Option<Claim>,
    /// Meaning of timestamps by a claim that holds, until the playout gets it.
    anchor: Option<Timeline>,
    /// The disproved claims about its packets, in words.
    pub passed_over: Option<String>,
    /// At the last report of ours.
    reported: Interval,
}

#[derive(Clone, Copy, Default)]
struct Interval {
    at: Instant,
    bytes: u64,
}

impl Track {
    /// Makes a track; `None` if the description names no payload type.
    pub fn new(description: TrackDescription, ack_delay: Duration, now: Instant) -> Option<Self> {
        let announced = Announced {
            payload_type: description.payload_type?,
            clock_rate: description.clock_rate,
            codec: description.codec.clone(),
            is_video: description.is_video(),
            late: Late::SentAgain,
        };
        Some(Track {
            source: Source::new(announced),
            description,
            channels: None,
            interleaved: None,
            reliable: false,
            acks: Acks::default(),
            ack_delay,
            claim: None,
            anchor: None,
            passed_over: None,
            reported: Interval { at: now, bytes: 0 },
        })
    }

    /// Handles an RTP packet at `now`: counts it and has it acknowledged. `None` unless it is new media.
    pub fn media(&mut self, now: Instant, packet: &Chunk) -> Option<Media> {
        let rtp = self.source.accept(packet)?;
        if self.reliable {
            self.acks.arrived(now, rtp.sequence_number(), self.ack_delay);
        }
        let (sequence, timestamp, clock) =
            (rtp.sequence_number(), rtp.timestamp(), self.description.clock_rate);
        if let Some(claim) = self.claim
            && let Some(judged) = claim.judge(now, sequence, timestamp, clock)
        {
            self.claim = None;
            self.passed_over = claim.passed_over(judged, sequence, timestamp).or(self.passed_over.take());
            self.anchor = judged.rtptime.map(|rtptime| self.timeline(rtptime, claim.at));
            if claim.begins {
                self.source.begins_at(judged.seq);
            }
        }
        self.source.take(now, &rtp, packet)
    }

    /// Returns the meaning of timestamps, once, where the server's claim about them has turned out to hold.
    pub fn take_anchor(&mut self) -> Option<Timeline> {
        self.anchor.take()
    }

    /// Handles RTCP at `now`, and returns whether it ends the source.
    pub fn control(&mut self, now: Instant, datagram: &[u8], follow_hints: bool) -> bool {
        let mut bye = false;
        for packet in rtcp::parse(datagram).map_while(Result::ok) {
            bye |= self.source.control(now, &packet);
            if let Packet::Hint(hint) = packet
                && follow_hints
            {
                let ms = hint.ack_timeout_ms.min(MOST_ACK_DELAY_MS);
                self.ack_delay = Duration::from_millis(ms.into());
            }
        }
        bye
    }

    /// Returns the acknowledgements that are due by `now`.
    pub fn take_acks(&mut self, now: Instant, ssrc: u32) -> Option<Vec<u8>> {
        self.acks.take(now, ssrc, self.source.ssrc()?)
    }

    /// Returns the receiver report at `now`, with the name of `ssrc`, and its block. With `client` it contains Apple's
    /// report with the playout's own values.
    pub fn report(
        &mut self,
        now: Instant,
        ssrc: u32,
        client: Option<ClientReport>,
        bye: bool,
    ) -> (Vec<u8>, Option<RtcpBlock>) {
        let (block, reception) = (self.source.block(now), self.source.reception());
        let counts = reception.counts();
        let mut packets = receiver_report(ssrc, block);
        if let Some((client, source)) = client.zip(self.source.ssrc()) {
            let time = u128::from(now.saturating_since(self.reported.at).as_nanos().max(1));
            let bits = u128::from(counts.bytes - self.reported.bytes) * 8;
            packets.push(Packet::ClientReport(ClientReport {
                client_ssrc: ssrc,
                server_ssrc: source,
                receive_bps: Some(u32::try_from(bits * 1_000_000_000 / time).unwrap_or(u32::MAX)),
                // 1/256 of all in 1/256 of a percent of all.
                loss_percent_256: block.map(|block| u16::from(block.fraction_lost) * 100),
                packets_received: Some(u32::try_from(counts.packets).unwrap_or(u32::MAX)),
                packets_lost: Some(u16::try_from(reception.lost()).unwrap_or(u16::MAX)),
                ..client
            }));
        }
        if bye {
            packets.push(Packet::Bye { sources: vec![ssrc] });
        }
        self.reported = Interval { at: now, bytes: counts.bytes };
        (rtcp::write(&packets), block)
    }

    /// Returns the time between two pictures, if the description has a possible one.
    pub fn interval(&self) -> Option<Duration> {
        let frames = self.description.frames_per_1000_s.filter(|&frames| frames > 0)?;
        let interval = Duration::from_nanos(1_000_000_000_000 / frames);
        (self.description.is_video() && interval >= LEAST_INTERVAL).then_some(interval)
    }

    /// Returns the timeline in which `timestamp` is the media's time `at`.
    pub fn timeline(&self, timestamp: u32, at: Duration) -> Timeline {
        Timeline::new(self.description.clock_rate, timestamp, at)
    }
}
