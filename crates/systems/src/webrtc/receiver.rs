//! The end that receives and shows.

use streamgauge_base::{Duration, Event, Instant};
use streamgauge_hosted::datagram::Arrival;
use streamgauge_hosted::webrtc::{Call, CallEnd, CallPeer, Gathered, Told};

use crate::app::{App, Envelope, Input, Io};
use crate::call::{MEDIA, Place, Screen};
use crate::outbox::{MEDIA_END, Outbox};

/// A frame is waited for so long while later ones have come. str0m gathers frames in order and gives up by itself.
const PATIENCE: Duration = Duration::from_secs(3);

/// Gives packets to str0m and shows the frames that it gathers.
///
/// Events: those of a call's receiver, with `nack_requests` (requests for lost packets, each second) for `nack`; `call_failed`,
/// with str0m's words.
pub struct WebRtcReceiver {
    call: Call,
    peer: Option<CallPeer>,
    screen: Screen,
    over: bool,
    events: Outbox,
}

impl WebRtcReceiver {
    pub(super) fn new(call: Call, least_buffer: Duration, most_buffer: Duration) -> Self {
        let screen = Screen::new(least_buffer, most_buffer);
        WebRtcReceiver { call, peer: None, screen, over: false, events: Outbox::default() }
    }

    fn start(&mut self, now: Instant) {
        self.screen.start(now);
        match CallPeer::new(CallEnd::Receiver, &self.call, now) {
            Ok(peer) => self.peer = Some(peer),
            Err(why) => self.fail(now, why),
        }
    }

    fn fail(&mut self, now: Instant, why: String) {
        if !self.over {
            self.events.say(now, "call_failed", 1.0, "1", why);
        }
        self.end(now, "str0m ended the call");
    }

    fn end(&mut self, now: Instant, why: &'static str) {
        if !std::mem::replace(&mut self.over, true) {
            self.events.say(now, MEDIA_END, self.screen.frames_shown() as f64, "1", why);
        }
    }

    fn frame(&mut self, now: Instant, frame: &Gathered) {
        if frame.missing > 0 {
            self.events.say(now, "unrepaired", frame.missing as f64, "packets", "");
        }
        if !frame.is_contiguous && !frame.head.is_key {
            self.screen.give_up(now, "packets are missing before a frame", &mut self.events);
        }
        let head = frame.head;
        let place =
            Place { frame: head.number, packet: 0, packets: 1, is_key: head.is_key, captured: head.captured };
        if !self.screen.packet(now, &place, head.number.into()) {
            self.events.say(now, "discarded", frame.packets as f64, "packets", "its frame came too late");
        }
    }

    /// Hands over all that str0m has.
    fn listen(&mut self, now: Instant, io: &mut dyn Io) {
        while let Some(told) = self.peer.as_mut().and_then(CallPeer::poll) {
            match told {
                Told::Send(sent) => {
                    io.send_as(MEDIA, sent.bytes, Envelope { ecn: Some(sent.ecn), departs: None });
                }
                Told::Requests(more) => self.events.say(now, "nack_requests", more as f64, "1", ""),
                Told::Frame(frame) => self.frame(now, &frame),
                Told::Closed => self.end(now, "the sender has ended it"),
                Told::Failed(why) => self.fail(now, why),
                Told::Connected | Told::Estimate(_) | Told::KeyAsked | Told::RoundTrip(_) => {}
            }
        }
    }
}

impl App for WebRtcReceiver {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Stop => self.end(now, "stopped"),
            _ if self.over => {}
            Input::Start => self.start(now),
            Input::Datagram { on: MEDIA, bytes, ecn, at } => {
                if let Some(peer) = &mut self.peer {
                    peer.datagram(Arrival { bytes, ecn, at });
                }
            }
            _ => {}
        }
        if self.over {
            return;
        }
        if let Some(peer) = self.peer.as_mut().filter(|peer| peer.poll_timeout().is_some_and(|at| at <= now))
        {
            peer.timeout(now);
        }
        self.listen(now, io);
        self.screen.show(now, &mut self.events);
        self.screen.check_patience(now, PATIENCE, &mut self.events);
        if self.screen.asks_for_key(now, &mut self.events)
            && let Some(peer) = &mut self.peer
        {
            peer.ask_for_key(now);
            self.listen(now, io);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.over {
            return None;
        }
        let peer = self.peer.as_ref().and_then(CallPeer::poll_timeout);
        [peer, self.screen.poll_timeout(PATIENCE)].into_iter().flatten().min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.next()
    }
}
