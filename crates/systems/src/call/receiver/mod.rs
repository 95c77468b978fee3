//! The end that receives and shows.

mod delay;
mod frames;
mod missing;
mod reporting;

use streamgauge_base::{Chunk, Duration, Ecn, Event, Instant};
use streamgauge_wire::rtcp::congestion::PictureLoss;
use streamgauge_wire::rtcp::nack::{NackEntry, NackPacket};
use streamgauge_wire::rtcp::{self, Packet};

use super::packet::{CallPacket, unwrapped};
use super::spec::CallSpec;
use super::{MEDIA, Ssrcs};
use crate::app::{App, Input, Io};
use crate::outbox::{MEDIA_END, Outbox};
use crate::reception::Seen;
use frames::{FrameOutcome, Frames};
use missing::Missing;
use reporting::Reporting;

/// The list of missing packets is looked through so often.
const NACK_EVERY: Duration = Duration::from_millis(20);
/// A key frame is asked for so often.
const KEY_EVERY: Duration = Duration::from_millis(300);
/// Interval of reports of the jitter buffer.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// Reports each packet, asks for those that are lost, gathers frames and shows each when it is due.
///
/// Events: `playout_start` (s), `frame_shown` (its number) with `live_latency` (s), `frame_late` (s),
/// `frame_incomplete` (packets missing), `stall` (the frame waited for) while only a key frame helps and
/// `resume` (s); `buffer` (s, the jitter buffer), `discarded` (packets that arrived too late), `unrepaired`
/// (packets given up), `nack` (packets asked for), `key_frame_asked`; at last `media_end` (frames shown).
pub struct CallReceiver {
    ssrcs: Ssrcs,
    receiver: u32,
    interval: Duration,
    patience: Duration,
    asks: bool,
    reporting: Reporting,
    next_report: Option<Instant>,
    missing: Missing,
    next_nack: Option<Instant>,
    seen: Seen<64>,
    frames: Frames,
    asked_key: Option<Instant>,
    stalled: Option<Instant>,
    started: Instant,
    shown: u64,
    told: Option<Instant>,
    unrepaired: u64,
    over: bool,
    events: Outbox,
}

impl CallReceiver {
    pub(super) fn new(spec: &CallSpec, reports_ecn: bool, ssrcs: Ssrcs, receiver: u32) -> Self {
        CallReceiver {
            ssrcs,
            receiver,
            interval: spec.feedback_interval,
            patience: spec.patience,
            asks: spec.retransmission,
            reporting: Reporting::new(!reports_ecn, ssrcs, receiver),
            next_report: None,
            missing: Missing::default(),
            next_nack: None,
            seen: Seen::default(),
            frames: Frames::new(spec.least_buffer, spec.most_buffer),
            asked_key: None,
            stalled: None,
            started: Instant::ZERO,
            shown: 0,
            told: None,
            unrepaired: 0,
            over: false,
            events: Outbox::default(),
        }
    }

    fn datagram(&mut self, now: Instant, at: Instant, ecn: Ecn, bytes: &Chunk) {
        let Some(packet) = CallPacket::read(bytes.head()) else {
            let mut ends = rtcp::parse(bytes.head()).map_while(Result::ok);
            if ends.any(
                |packet| matches!(&packet, Packet::Bye { sources } if sources.contains(&self.ssrcs.media)),
            ) {
                self.end(now, "the sender has ended it");
            }
            return;
        };
        let expected = if packet.repeats.is_some() { self.ssrcs.repeated } else { self.ssrcs.media };
        if packet.ssrc != expected {
            return;
        }
        self.reporting.came(at, ecn, &packet);
        if self.next_report.is_none() {
            self.next_report = Some(now + self.interval);
        }
        self.media(now, &packet);
    }

    fn media(&mut self, now: Instant, packet: &CallPacket) {
        let near = self.missing.highest().unwrap_or(0);
        let sequence = unwrapped(packet.repeats.unwrap_or(packet.sequence), near);
        if packet.repeats.is_some() {
            self.missing.mended(now, sequence);
        } else if self.missing.came(now, sequence).is_none() {
            self.give_up(now, "too many packets are missing");
        }
        if !self.seen.first(sequence as u32) {
            return;
        }
        if !self.frames.packet(now, &packet.place, sequence) {
            self.events.say(now, "discarded", 1.0, "packets", "it came too late");
        }
    }

    fn give_up(&mut self, now: Instant, why: &'static str) {
        if !self.frames.needs_key() {
            self.frames.give_up();
            self.stalled = Some(now);
            self.events.say(now, "stall", self.shown as f64, "1", why);
        }
    }

    /// Requests missing packets, and gives up unobtainable ones.
    fn ask(&mut self, now: Instant, io: &mut dyn Io) {
        if self.missing.is_empty() {
            self.next_nack = None;
        } else if self.asks && self.next_nack.is_none_or(|next| next <= now) {
            let (packets, is_vain) = self.missing.due(now);
            self.next_nack = Some(now + NACK_EVERY);
            if !packets.is_empty() {
                self.events.say(now, "nack", packets.len() as f64, "packets", "");
                let (receiver_ssrc, media_ssrc) = (self.receiver, self.ssrcs.media);
                let entries = NackEntry::of(&packets);
                let nack = NackPacket { receiver_ssrc, media_ssrc, e_bit: false, entries };
                io.send(MEDIA, Chunk::bytes(rtcp::write(&[Packet::Nack(nack)])));
            }
            if is_vain {
                self.give_up(now, "a packet was asked for in vain");
            }
        }
        let patience = if self.asks { self.patience } else { Duration::ZERO };
        if self.frames.waits().is_some_and(|since| now.saturating_since(since) >= patience) {
            self.give_up(now, "a frame did not come");
        }
        self.ask_for_key(now, io);
    }

    fn ask_for_key(&mut self, now: Instant, io: &mut dyn Io) {
        if !self.frames.needs_key() {
            self.asked_key = None;
            return;
        }
        // A key frame that is on its way gets three times as long.
        let wait = KEY_EVERY * if self.frames.has_key_coming() { 3 } else { 1 };
        if self.asked_key.is_none_or(|asked| now.saturating_since(asked) >= wait) {
            self.asked_key = Some(now);
            self.events.say(now, "key_frame_asked", 1.0, "1", "");
            let loss = PictureLoss { sender_ssrc: self.receiver, media_ssrc: self.ssrcs.media };
            io.send(MEDIA, Chunk::bytes(rtcp::write(&[Packet::PictureLoss(loss)])));
        }
    }

    fn show(&mut self, now: Instant) {
        let (fates, done) = self.frames.advance(now);
        for fate in fates {
            match fate {
                FrameOutcome::Shown(number, behind) => self.shown(now, number, behind),
                FrameOutcome::Late(_, late) => {
                    self.events.say(now, "frame_late", late.as_secs_f64(), "s", "the next was due as well");
                }
                FrameOutcome::Incomplete(_, packets) => {
                    let why = if packets == 0 {
                        "it needs a frame that did not come"
                    } else {
                        "packets are missing"
                    };
                    self.events.say(now, "frame_incomplete", f64::from(packets), "1", why);
                }
            }
        }
        if let Some(done) = done {
            self.missing.forget_before(done);
        }
        let more = self.missing.given_up - self.unrepaired;
        if more > 0 {
            self.unrepaired = self.missing.given_up;
            self.events.say(now, "unrepaired", more as f64, "packets", "");
        }
    }

    fn shown(&mut self, now: Instant, number: u64, behind: Duration) {
        if self.shown == 0 {
            let since = now.saturating_since(self.started).as_secs_f64();
            self.events.say(now, "playout_start", since, "s", "");
        }
        if let Some(since) = self.stalled.take() {
            self.events.say(now, "resume", now.saturating_since(since).as_secs_f64(), "s", "");
        }
        self.events.say(now, "frame_shown", number as f64, "1", "");
        self.events.say(now, "live_latency", behind.as_secs_f64(), "s", "");
        self.shown += 1;
        if self.told.is_none_or(|told| now.saturating_since(told) >= TELL_EVERY) {
            self.told = Some(now);
            self.events.say(now, "buffer", self.frames.buffer().as_secs_f64(), "s", "");
        }
    }

    fn report(&mut self, now: Instant, io: &mut dyn Io) {
        if self.next_report.is_some_and(|next| next <= now) {
            self.next_report = None;
            if self.reporting.is_due() {
                io.send(MEDIA, Chunk::bytes(rtcp::write(&[self.reporting.report(now)])));
            }
        }
    }

    fn end(&mut self, now: Instant, why: &'static str) {
        if !std::mem::replace(&mut self.over, true) {
            self.events.say(now, MEDIA_END, self.shown as f64, "1", why);
        }
    }
}

impl App for CallReceiver {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Start => self.started = now,
            Input::Stop => self.end(now, "stopped"),
            _ if self.over => {}
            Input::Datagram { on: MEDIA, bytes, ecn, at } => self.datagram(now, at, ecn, bytes),
            _ => {}
        }
        if self.over {
            return;
        }
        self.show(now);
        self.ask(now, io);
        self.report(now, io);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.over {
            return None;
        }
        let nack = self.next_nack.filter(|_| !self.missing.is_empty());
        let patience = if self.asks { self.patience } else { Duration::ZERO };
        let waits = self.frames.waits().filter(|_| !self.frames.needs_key()).map(|since| since + patience);
        let wait = KEY_EVERY * if self.frames.has_key_coming() { 3 } else { 1 };
        let key = self.asked_key.filter(|_| self.frames.needs_key()).map(|asked| asked + wait);
        let frames = [self.frames.poll_timeout(), self.frames.next_look()];
        [self.next_report, nack, waits, key].into_iter().chain(frames).flatten().min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.next()
    }
}
