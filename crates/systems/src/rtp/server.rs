//! The end that sends.

use streamgauge_base::{Duration, Event, Instant};
use streamgauge_transport::rtp::round_trip;
use streamgauge_wire::rtcp::{RtcpBlock, ntp_middle};

use super::description::{SessionDescription, ticks, ticks_to_s};
use super::packet::MediaPacket;
use super::rtcp::{self, SenderInfo};
use super::transport::{Kind, RtpTransport};
use crate::app::{App, Input, Io};
use crate::media::{Numbers, h264};
use crate::outbox::Outbox;
use crate::reception::Reports;

/// Least time between two reports of a sender that it is behind.
const BEHIND_INTERVAL: Duration = Duration::from_secs(1);

/// Paces frames out by the clip's clock, a frame's packets back to back, independent of the network. On a stream a
/// frame waits until the one before has been accepted, so the server falls behind its clock and then sends overdue
/// frames as fast as the stream accepts them.
///
/// Events: for each receiver report `rtcp_fraction_lost` (1), `rtcp_cumulative_lost` (packets), `rtcp_jitter`
/// (s) and `rtcp_rtt` (s); on a stream `sender_behind` (s), at most once a second.
pub struct RtpServer {
    session: SessionDescription,
    /// Bytes of the frames in one round of the clip.
    frame_bytes: Numbers,
    transport: RtpTransport,
    reports: Reports,
    /// Time when frame 0 is due by the server's clock; `None` before the flow has started.
    base: Option<Instant>,
    next_frame: u64,
    next_report: Instant,
    paused: Option<Instant>,
    ended: bool,
    packets: u32,
    octets: u32,
    behind_said: Option<Instant>,
    events: Outbox,
}

impl RtpServer {
    pub(super) fn new(session: SessionDescription, frame_bytes: Numbers, transport: RtpTransport) -> Self {
        RtpServer {
            reports: session.server_reports(),
            session,
            frame_bytes,
            transport,
            base: None,
            next_frame: 0,
            next_report: Instant::ZERO,
            paused: None,
            ended: false,
            packets: 0,
            octets: 0,
            behind_said: None,
            events: Outbox::default(),
        }
    }

    fn begin(&mut self, now: Instant) {
        self.base = Some(now);
        self.next_report = self.reports.next(now);
    }

    /// Returns when the next frame, or after the last the goodbye, is due.
    fn next_due(&self) -> Option<Instant> {
        Some(self.base? + self.session.offset(self.next_frame))
    }

    fn work(&mut self, now: Instant, io: &mut dyn Io) {
        while !self.ended && self.paused.is_none() && self.transport.is_clear() {
            let Some(due) = self.next_due() else { return };
            if due <= now && self.next_frame < self.session.frames {
                self.note_lateness(now, due);
                self.send_frame(io);
            } else if due <= now {
                self.end(now, io);
            } else if self.next_report <= now {
                self.send_report(now, io, false);
                self.next_report = self.reports.next(now);
            } else {
                return;
            }
        }
    }

    fn note_lateness(&mut self, now: Instant, due: Instant) {
        let behind = now.saturating_since(due);
        let said_lately = self.behind_said.is_some_and(|said| now < said + BEHIND_INTERVAL);
        if self.transport.is_stream() && behind > self.session.frame_interval && !said_lately {
            self.behind_said = Some(now);
            let reason = "the stream took the frame before only now";
            self.events.say(now, "sender_behind", behind.as_secs_f64(), "s", reason);
        }
    }

    fn send_frame(&mut self, io: &mut dyn Io) {
        let frame_bytes = self.frame_bytes[(self.next_frame % self.frame_bytes.len() as u64) as usize];
        let timestamp = self.session.timestamp(self.next_frame);
        let (ssrc, max_payload) = (self.session.server_ssrc, self.session.max_payload);
        let mut pieces = h264::filler(h264::IDR_SLICE, frame_bytes, max_payload).peekable();
        while let Some((payload, filler)) = pieces.next() {
            let last = pieces.peek().is_none();
            let sequence = self.session.first_sequence.wrapping_add(self.packets as u16);
            let head = MediaPacket { sequence, timestamp, ssrc, last }.head(&payload);
            self.transport.send(io, Kind::Rtp, &head, filler);
            self.packets = self.packets.wrapping_add(1);
            self.octets = self.octets.wrapping_add(payload.len() as u32 + filler);
        }
        self.next_frame += 1;
    }

    fn send_report(&mut self, now: Instant, io: &mut dyn Io, bye: bool) {
        let played = self.base.map_or(Duration::ZERO, |base| now.saturating_since(base));
        let info = SenderInfo {
            ssrc: self.session.server_ssrc,
            rtp_timestamp: self.session.first_timestamp.wrapping_add(ticks(played) as u32),
            packets: self.packets,
            octets: self.octets,
        };
        self.transport.send(io, Kind::Rtcp, &rtcp::sender_report(now, &info, bye), 0);
    }

    fn end(&mut self, now: Instant, io: &mut dyn Io) {
        self.send_report(now, io, true);
        self.ended = true;
        if self.transport.is_clear() {
            self.transport.close(io);
        }
    }

    fn take_feedback(&mut self, now: Instant, feedback: RtcpBlock) {
        let fraction = f64::from(feedback.fraction_lost) / 256.0;
        self.events.say(now, "rtcp_fraction_lost", fraction, "1", "");
        self.events.say(now, "rtcp_cumulative_lost", f64::from(feedback.cumulative_lost), "1", "");
        self.events.say(now, "rtcp_jitter", ticks_to_s(feedback.jitter), "s", "");
        if let Some(rtt) = round_trip(ntp_middle(now), feedback.lsr, feedback.dlsr) {
            self.events.say(now, "rtcp_rtt", rtt.as_secs_f64(), "s", "");
        }
    }
}

impl App for RtpServer {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        let mut feedback = None;
        let ssrc = self.session.server_ssrc;
        self.transport.handle(input, io, |kind, packet| {
            if kind == Kind::Rtcp {
                feedback = rtcp::block_on(packet.head(), ssrc).or(feedback);
            }
        });
        if let Some(feedback) = feedback {
            self.take_feedback(now, feedback);
        }
        match input {
            Input::Start if !self.transport.is_stream() => self.begin(now),
            Input::Opened(_) => self.begin(now),
            Input::Pause => self.paused = self.paused.or(Some(now)),
            Input::Resume => {
                if let (Some(since), Some(base)) = (self.paused.take(), &mut self.base) {
                    // A pause before the clip began used none of its time.
                    *base += now.saturating_since(since.max(*base));
                }
            }
            Input::Stop => {
                if !self.ended && !self.transport.is_stream() {
                    self.send_report(now, io, true);
                }
                self.ended = true;
                self.transport.abort(io);
            }
            Input::Closed(..) => self.ended = true,
            _ => {}
        }
        self.work(now, io);
        if self.ended && self.transport.is_clear() {
            self.transport.close(io);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.ended || self.paused.is_some() || !self.transport.is_clear() {
            return None;
        }
        Some(self.next_due()?.min(self.next_report))
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.next()
    }
}
