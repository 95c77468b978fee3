//! The end that receives and shows.

use streamgauge_base::{Chunk, Duration, Event, Instant};
use streamgauge_wire::rtcp;

use super::description::{CLOCK_RATE, SessionDescription, ticks_to_s};
use super::packet::PAYLOAD_TYPE;
use super::spec::RtpSpec;
use super::transport::{Kind, RtpTransport};
use crate::app::{App, CloseReason, Input, Io};
use crate::media::Codec;
use crate::outbox::Outbox;
use crate::playout::{End, Gathers, HostLate, Manner, Playout, Start};
use crate::reception::{Announced, Late, Reports, Source, receiver_report};

/// A player that has seen no packet at all gives up this long after the clip should have ended.
const GIVE_UP_AFTER: Duration = Duration::from_secs(10);

/// Why it ends if the server does first.
const NOTHING_CAME: &str = "the server ended before any packet arrived";

/// Counts arrivals, reports them to the server, reassembles frames and shows each when it is due.
///
/// Events: with each receiver report that it sends `jitter` (s), `fraction_lost` (1) and `cumulative_lost`
/// (packets); `frame_shown` (value: the frame's number); over UDP `frame_late` (s) and `frame_incomplete`
/// (packets missing, as far as known), and with libavcodec `dropped_frames` (value: frames that it has
/// discarded); over TCP `stall` (value: the frame waited for) and `resume` (s stalled); at last `media_end`
/// (frames shown).
pub struct RtpPlayer {
    transport: RtpTransport,
    reports: Reports,
    next_report: Option<Instant>,
    receiver: Receiver,
    events: Outbox,
}

/// The fates of arrivals.
struct Receiver {
    session: SessionDescription,
    source: Source,
    playout: Playout,
    /// Whether nothing is lost on the way, and it ends with the stream.
    is_stream: bool,
    started: Option<Instant>,
    paused: Option<Instant>,
    paused_in_all: Duration,
}

impl Receiver {
    fn media(&mut self, now: Instant, packet: &Chunk, events: &mut Outbox) {
        let Some(rtp) = self.source.accept(packet) else { return };
        // The sender's clock stops in a pause, so that of arrivals does too: no jitter results from it.
        let arrival = now - self.paused_in_all;
        let Some(media) = self.source.take(arrival, &rtp, packet) else { return };
        self.playout.arrived(now, 0, media.place, None, events);
    }

    fn control(&mut self, now: Instant, bytes: &[u8]) {
        let mut bye = false;
        for packet in rtcp::parse(bytes).map_while(Result::ok) {
            bye |= self.source.control(now, &packet);
        }
        // On a stream the end is the stream's own.
        let report = self.source.sender_report().filter(|_| bye && !self.is_stream);
        if let Some(report) = report {
            // The clip may end before its time: the goodbye arrives with the media time at which it was sent.
            let frames =
                self.playout.time_of(0, report.rtp_timestamp).map_or(0, |at| self.session.frames_by(at));
            self.playout.cut(self.session.offset(frames));
            if !self.playout.has_begun() {
                self.playout.nothing_more(NOTHING_CAME);
            }
        }
    }

    /// The first packet is not waited for longer.
    fn gives_up_at(&self) -> Option<Instant> {
        let started = self.started.filter(|_| !self.playout.has_begun() && self.paused.is_none())?;
        let until = started + self.session.offset(self.session.frames) + self.session.playout_delay;
        Some(until + GIVE_UP_AFTER + self.paused_in_all)
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

/// Both ends have the clip and its pace: a frame is due a fixed time after it arrived in time. On a stream one that is
/// not there is waited for.
fn playout(session: &SessionDescription, is_stream: bool) -> Playout {
    let manner = Manner {
        start: Start::Delayed,
        prebuffer: session.playout_delay,
        rebuffer: session.playout_delay,
        gathers: Gathers::Whole,
        host_late: HostLate::Forgiven,
        stalls: is_stream,
        in_order: is_stream,
    };
    let end = End { at: session.offset(session.frames), of_pictures: true };
    let intervals = [Some(session.frame_interval)];
    let mut playout = Playout::new(manner, &intervals, 0, Instant::ZERO, Duration::ZERO, Some(end));
    playout.anchor(0, session.timeline());
    playout
}

impl RtpPlayer {
    pub(super) fn new(session: SessionDescription, transport: RtpTransport, spec: &RtpSpec) -> Self {
        let mut source = Source::new(Announced {
            payload_type: PAYLOAD_TYPE,
            clock_rate: CLOCK_RATE,
            codec: Some(Codec::Sizes),
            is_video: true,
            late: Late::Reordered,
        });
        source.announce(Some(session.server_ssrc));
        let is_stream = transport.is_stream();
        let mut playout = playout(&session, is_stream);
        playout.decode_by(spec.decoder, &spec.clip);
        playout.decodes_ahead(0, spec.clip.decoded_ahead());
        RtpPlayer {
            reports: session.player_reports(),
            next_report: None,
            receiver: Receiver {
                source,
                playout,
                is_stream,
                started: None,
                paused: None,
                paused_in_all: Duration::ZERO,
                session,
            },
            events: Outbox::default(),
            transport,
        }
    }

    fn report(&mut self, now: Instant, io: &mut dyn Io) {
        let block = self.receiver.source.block(now);
        let report = receiver_report(self.receiver.session.player_ssrc, block);
        self.transport.send(io, Kind::Rtcp, &rtcp::write(&report), 0);
        if let Some(block) = block {
            self.events.say(now, "jitter", ticks_to_s(block.jitter), "s", "");
            self.events.say(now, "fraction_lost", f64::from(block.fraction_lost) / 256.0, "1", "");
            self.events.say(now, "cumulative_lost", f64::from(block.cumulative_lost), "1", "");
        }
    }
}

impl App for RtpPlayer {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        let RtpPlayer { transport, receiver, events, .. } = self;
        transport.handle(input, io, |kind, packet| match kind {
            Kind::Rtp => receiver.media(now, packet, events),
            Kind::Rtcp => receiver.control(now, packet.head()),
        });
        let playout = &mut receiver.playout;
        match input {
            Input::Start => {
                receiver.started = Some(now);
                self.next_report = Some(self.reports.next(now));
            }
            Input::Pause => receiver.pause(now),
            Input::Resume => receiver.resume(now),
            Input::Stop => {
                playout.end(now, "stopped", events);
                transport.abort(io);
            }
            Input::Closed(_, why) => {
                match why {
                    CloseReason::Finished => {
                        playout.cut(Duration::ZERO);
                        let begun = playout.has_begun();
                        playout.nothing_more(if begun {
                            "the server closed the stream"
                        } else {
                            NOTHING_CAME
                        });
                    }
                    CloseReason::Reset | CloseReason::TimedOut => {
                        playout.end(now, "the connection failed", events)
                    }
                }
                transport.close(io);
            }
            Input::Refused(..) => playout.end(now, "the connection failed", events),
            _ => {}
        }
        if receiver.gives_up_at().is_some_and(|at| at <= now) {
            receiver.playout.end(now, "no packet arrived", events);
        }
        receiver.playout.advance(now, events);
        if receiver.playout.has_ended() {
            self.next_report = None;
        } else if self.next_report.is_some_and(|at| at <= now) {
            // On a stream that is stuck the next report replaces this one.
            if self.transport.is_clear() {
                self.report(now, io);
            }
            self.next_report = Some(self.reports.next(now));
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let receiver = &self.receiver;
        let gives_up = receiver.gives_up_at().filter(|_| !receiver.playout.has_ended());
        self.next_report.into_iter().chain(receiver.playout.next_event()).chain(gives_up).min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.next()
    }
}
