//! The end that receives and shows.

use streamgauge_base::{Duration, Event, Instant};
use streamgauge_transport::rtp::Reception;

use super::lane::{Kind, Lane};
use super::packet::MediaPacket;
use super::playout::Playout;
use super::rtcp::{self, LastReport};
use super::seen::Seen;
use super::session::{CLOCK_RATE, Reports, Session, ticks_to_s};
use crate::app::{App, CloseReason, Input, Io};
use crate::outbox::Outbox;

/// Counts what arrives, reports it to the server, reassembles frames and shows each when it is due.
///
/// Events: with each receiver report that it sends `jitter` (s), `fraction_lost` (1) and `cumulative_lost`
/// (packets); `frame_shown` (value: the frame's number); over UDP `frame_late` (s) and `frame_incomplete`
/// (packets missing, as far as known); over TCP `stall` (value: the frame waited for) and `resume` (s
/// stalled); at last `media_end` (frames shown).
pub struct RtpPlayer {
    session: Session,
    lane: Lane,
    reports: Reports,
    next_report: Option<Instant>,
    reception: Reception,
    seen: Seen,
    paused: Option<Instant>,
    paused_in_all: Duration,
    playout: Playout,
    last_report: Option<LastReport>,
    events: Outbox,
}

impl RtpPlayer {
    pub(super) fn new(session: Session, lane: Lane) -> Self {
        RtpPlayer {
            reports: session.player_reports(),
            next_report: None,
            reception: Reception::new(CLOCK_RATE),
            seen: Seen::default(),
            paused: None,
            paused_in_all: Duration::ZERO,
            playout: Playout::new(&session, lane.is_stream()),
            last_report: None,
            events: Outbox::default(),
            session,
            lane,
        }
    }

    fn media(&mut self, now: Instant, packet: MediaPacket) {
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
            self.playout.arrived(now, number, sequence, packet, &mut self.events);
        }
    }

    fn control(&mut self, now: Instant, bytes: &[u8]) {
        let arrival = rtcp::parse(bytes, self.session.player_ssrc);
        if let Some(report) = arrival.sender_report {
            self.last_report = Some(LastReport { lsr: report.lsr, arrived: now });
            if arrival.bye && !self.lane.is_stream() {
                // The clip may end before its time. The goodbye names the media time it was said at.
                let said_at = self.session.frame(report.rtp_timestamp, self.playout.newest());
                self.playout.cut(now, said_at.map_or(0, |frame| frame + 1), &mut self.events);
            }
        }
    }

    fn report(&mut self, now: Instant, io: &mut dyn Io) {
        let block = (self.reception.received() > 0).then(|| self.reception.report());
        let (ours, source) = (self.session.player_ssrc, self.session.server_ssrc);
        self.lane.send(io, Kind::Rtcp, &rtcp::receiver_report(now, ours, source, block, self.last_report), 0);
        if let Some(block) = block {
            self.events.say(now, "jitter", ticks_to_s(block.jitter), "s", "");
            self.events.say(now, "fraction_lost", f64::from(block.fraction_lost) / 256.0, "1", "");
            self.events.say(now, "cumulative_lost", f64::from(block.cumulative_lost), "1", "");
        }
    }
}

impl App for RtpPlayer {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        let mut arrived = Vec::new();
        // The lane is lent out while it reads, so the packets are looked at after.
        self.lane.handle(input, io, |kind, head| match kind {
            Kind::Rtp => arrived.extend(MediaPacket::parse(head).map(Ok)),
            Kind::Rtcp => arrived.push(Err(head.to_vec())),
        });
        for packet in arrived {
            match packet {
                Ok(media) => self.media(now, media),
                Err(control) => self.control(now, &control),
            }
        }
        match input {
            Input::Start => {
                self.playout.start(now);
                self.next_report = Some(self.reports.next(now));
            }
            Input::Pause => {
                self.paused = self.paused.or(Some(now));
                self.playout.pause(now);
            }
            Input::Resume => {
                if let Some(since) = self.paused.take() {
                    self.paused_in_all += now.saturating_since(since);
                }
                self.playout.resume(now);
            }
            Input::Stop => {
                self.playout.end(now, "stopped", &mut self.events);
                self.lane.close(io);
            }
            Input::Closed(_, why) => {
                let arrived = if self.playout.is_empty() { 0 } else { self.playout.newest() + 1 };
                match why {
                    CloseReason::Finished => self.playout.cut(now, arrived, &mut self.events),
                    CloseReason::Failed => self.playout.end(now, "the connection failed", &mut self.events),
                }
                self.lane.close(io);
            }
            _ => {}
        }
        self.playout.advance(now, &mut self.events);
        if self.playout.has_ended() {
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
        let playout = self.playout.next_event();
        self.next_report.into_iter().chain(playout).min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.next()
    }
}
