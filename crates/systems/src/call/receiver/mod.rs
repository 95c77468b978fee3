//! The end that receives and shows.

mod delay;
mod frames;
mod missing;
mod reporting;
mod screen;

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
use missing::Missing;
use reporting::Reporting;
pub(crate) use screen::Screen;

/// The list of missing packets is looked through so often.
const NACK_EVERY: Duration = Duration::from_millis(20);

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
    screen: Screen,
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
            screen: Screen::new(spec.least_buffer, spec.most_buffer),
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
        if !self.screen.packet(now, &packet.place, sequence) {
            self.events.say(now, "discarded", 1.0, "packets", "it came too late");
        }
    }

    fn give_up(&mut self, now: Instant, why: &'static str) {
        self.screen.give_up(now, why, &mut self.events);
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
        let patience = self.patience();
        self.screen.check_patience(now, patience, &mut self.events);
        if self.screen.asks_for_key(now, &mut self.events) {
            let loss = PictureLoss { sender_ssrc: self.receiver, media_ssrc: self.ssrcs.media };
            io.send(MEDIA, Chunk::bytes(rtcp::write(&[Packet::PictureLoss(loss)])));
        }
    }

    /// Returns how long a frame is waited for: not at all if nothing comes again.
    fn patience(&self) -> Duration {
        if self.asks { self.patience } else { Duration::ZERO }
    }

    fn show(&mut self, now: Instant) {
        if let Some(done) = self.screen.show(now, &mut self.events) {
            self.missing.forget_before(done);
        }
        let more = self.missing.given_up - self.unrepaired;
        if more > 0 {
            self.unrepaired = self.missing.given_up;
            self.events.say(now, "unrepaired", more as f64, "packets", "");
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
            self.events.say(now, MEDIA_END, self.screen.frames_shown() as f64, "1", why);
        }
    }
}

impl App for CallReceiver {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Start => self.screen.start(now),
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
        [self.next_report, nack, self.screen.poll_timeout(self.patience())].into_iter().flatten().min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.next()
    }
}
