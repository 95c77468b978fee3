//! The end that receives and shows.

use streamgauge_base::{Duration, Event, Instant};
use streamgauge_transport::rtp::Reception;

use super::lane::{Kind, Lane};
use super::packet::MediaPacket;
use super::playout::Playout;
use super::rtcp::{self, LastReport};
use super::session::{CLOCK_RATE, Session, ticks_to_s};
use crate::app::{App, CloseReason, Input, Io};
use crate::outbox::Outbox;
use crate::reports::Reports;
use crate::seen::Seen;

/// A duplicate is known as one up to 1024 packets behind the newest.
const SEEN_WORDS: usize = 16;

/// Counts what arrives, reports it to the server, reassembles frames and shows each when it is due.
///
/// Events: with each receiver report that it sends `jitter` (s), `fraction_lost` (1) and `cumulative_lost`
/// (packets); `frame_shown` (value: the frame's number); over UDP `frame_late` (s) and `frame_incomplete`
/// (packets missing, as far as known); over TCP `stall` (value: the frame waited for) and `resume` (s
/// stalled); at last `media_end` (frames shown).
pub struct RtpPlayer {
    lane: Lane,
    reports: Reports,
    next_report: Option<Instant>,
    receiver: Receiver,
    events: Outbox,
}

/// What becomes of arrivals.
struct Receiver {
    session: Session,
    reception: Reception,
    seen: Seen<SEEN_WORDS>,
    playout: Playout,
    last_report: Option<LastReport>,
    paused: Option<Instant>,
    paused_in_all: Duration,
}

impl Receiver {
    fn media(&mut self, now: Instant, packet: MediaPacket, events: &mut Outbox) {
        if packet.ssrc != self.session.server_ssrc {
            return;
        }
        // The sender's clock stands still in a pause, so that of arrivals does too: no jitter comes of it.
        let arrival = now - self.paused_in_all;
        let Some(sequence) = self.reception.packet(arrival, packet.sequence, packet.timestamp) else {
            return;
        };
        if !self.seen.first(sequence) {
            return;
        }
        if let Some(number) = self.session.frame(packet.timestamp, self.playout.newest()) {
            self.playout.arrived(now, number, sequence, packet, events);
        }
    }

    fn control(&mut self, now: Instant, bytes: &[u8], events: &mut Outbox) {
        let arrival = rtcp::parse(bytes, self.session.player_ssrc);
        let Some(report) = arrival.sender_report else { return };
        self.last_report = Some(LastReport { lsr: report.lsr, arrived: now });
        // On a stream the end is known by the stream's own.
        if arrival.bye && !self.playout.waits() {
            // The clip may end before its time: the goodbye names the media time at which it was said.
            let frames = self.session.frames_by(report.rtp_timestamp, self.playout.newest());
            self.playout.cut(now, frames, events);
        }
    }

    fn pause(&mut self, now: Instant) {
        self.paused = self.paused.or(Some(now));
        self.playout.pause(now);
    }

    fn resume(&mut self, now: Instant) {
        if let Some(since) = self.paused.take() {
            self.paused_in_all += now.saturating_since(since);
        }
        self.playout.resume(now);
    }
}

impl RtpPlayer {
    pub(super) fn new(session: Session, lane: Lane) -> Self {
        RtpPlayer {
            reports: session.player_reports(),
            next_report: None,
            receiver: Receiver {
                reception: Reception::new(CLOCK_RATE),
                seen: Seen::default(),
                playout: Playout::new(&session, lane.is_stream()),
                last_report: None,
                paused: None,
                paused_in_all: Duration::ZERO,
                session,
            },
            events: Outbox::default(),
            lane,
        }
    }

    fn report(&mut self, now: Instant, io: &mut dyn Io) {
        let Receiver { reception, session, last_report, .. } = &mut self.receiver;
        let block = (reception.received() > 0).then(|| reception.report());
        let (ours, source) = (session.player_ssrc, session.server_ssrc);
        self.lane.send(io, Kind::Rtcp, &rtcp::receiver_report(now, ours, source, block, *last_report), 0);
        if let Some(block) = block {
            self.events.say(now, "jitter", ticks_to_s(block.jitter), "s", "");
            self.events.say(now, "fraction_lost", f64::from(block.fraction_lost) / 256.0, "1", "");
            self.events.say(now, "cumulative_lost", f64::from(block.cumulative_lost), "1", "");
        }
    }
}

impl App for RtpPlayer {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        let RtpPlayer { lane, receiver, events, .. } = self;
        lane.handle(input, io, |kind, head| match kind {
            Kind::Rtp => {
                if let Some(packet) = MediaPacket::parse(head) {
                    receiver.media(now, packet, events);
                }
            }
            Kind::Rtcp => receiver.control(now, head, events),
        });
        let playout = &mut receiver.playout;
        match input {
            Input::Start => {
                playout.start(now);
                self.next_report = Some(self.reports.next(now));
            }
            Input::Pause => receiver.pause(now),
            Input::Resume => receiver.resume(now),
            Input::Stop => {
                playout.end(now, "stopped", events);
                lane.abort(io);
            }
            Input::Closed(_, why) => {
                match why {
                    CloseReason::Finished => playout.cut_after_newest(now, events),
                    CloseReason::Failed => playout.end(now, "the connection failed", events),
                }
                lane.close(io);
            }
            _ => {}
        }
        receiver.playout.advance(now, events);
        if receiver.playout.has_ended() {
            self.next_report = None;
        } else if self.next_report.is_some_and(|at| at <= now) {
            // On a stream that is stuck the next report replaces this one.
            if self.lane.is_clear() {
                self.report(now, io);
            }
            self.next_report = Some(self.reports.next(now));
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next_report.into_iter().chain(self.receiver.playout.next_event()).min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.next()
    }
}
