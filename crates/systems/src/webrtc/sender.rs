//! The end that sends.

use streamgauge_base::{BitRate, Duration, Event, Instant};
use streamgauge_hosted::datagram::Arrival;
use streamgauge_hosted::webrtc::{Call, CallEnd, CallPeer, FrameHead, Told};

use crate::app::{App, Envelope, Input, Io};
use crate::call::MEDIA;
use crate::media::live::LiveEncoder;
use crate::outbox::{MEDIA_END, Outbox};

/// Interval of reports of the rates.
const TELL_EVERY: Duration = Duration::from_millis(200);
/// Least interval of key frames made on request.
const KEY_EVERY: Duration = Duration::from_millis(300);

/// Encodes frames at its share of str0m's estimate and gives them to str0m.
///
/// Events: `connected` (s, the time that ICE and DTLS took); each 200 ms at the most `estimate` (bit/s) and `encoder_rate`
/// (bit/s); `rtcp_rtt` (s); `key_frame` (bytes); `call_failed`, with str0m's words; at last `media_end` (frames).
pub struct WebRtcSender {
    call: Call,
    encoder: LiveEncoder,
    share: f64,
    peer: Option<CallPeer>,
    estimate: BitRate,
    started: Instant,
    /// When frame 0 was due, and how many were since.
    base: Option<Instant>,
    ticks: u64,
    frames: u32,
    paused: bool,
    over: bool,
    keyed: Option<Instant>,
    told: Option<Instant>,
    events: Outbox,
}

impl WebRtcSender {
    pub(super) fn new(call: Call, encoder: LiveEncoder, share: f64) -> Self {
        WebRtcSender {
            estimate: call.start,
            call,
            encoder,
            share,
            peer: None,
            started: Instant::ZERO,
            base: None,
            ticks: 0,
            frames: 0,
            paused: false,
            over: false,
            keyed: None,
            told: None,
            events: Outbox::default(),
        }
    }

    fn next_frame(&self) -> Option<Instant> {
        let base = self.base.filter(|_| !self.paused && !self.over)?;
        Some(base + self.encoder.interval() * self.ticks)
    }

    fn start(&mut self, now: Instant) {
        self.started = now;
        match CallPeer::new(CallEnd::Sender, &self.call, now) {
            Ok(peer) => self.peer = Some(peer),
            Err(why) => self.fail(now, why),
        }
    }

    fn fail(&mut self, now: Instant, why: String) {
        if !std::mem::replace(&mut self.over, true) {
            self.events.say(now, "call_failed", 1.0, "1", why);
            self.events.say(now, MEDIA_END, f64::from(self.frames), "1", "str0m ended the call");
        }
    }

    fn frame(&mut self, now: Instant, due: Instant) {
        self.ticks += 1;
        if self.told.is_none_or(|told| now.saturating_since(told) >= TELL_EVERY) {
            self.told = Some(now);
            self.events.say(now, "estimate", self.estimate.as_bps() as f64, "bit/s", "");
            self.events.say(now, "encoder_rate", self.encoder.rate().as_bps() as f64, "bit/s", "");
        }
        self.encoder.set_target(BitRate::from_bps((self.estimate.as_bps() as f64 * self.share) as u64));
        let frame = self.encoder.next_frame();
        if frame.is_key {
            self.events.say(now, "key_frame", f64::from(frame.bytes), "B", "");
        }
        let head = FrameHead { number: self.frames, is_key: frame.is_key, captured: due };
        self.frames = self.frames.wrapping_add(1);
        if let Some(peer) = &mut self.peer {
            peer.frame(now, head, frame.bytes);
        }
    }

    fn key_asked(&mut self, now: Instant) {
        if self.keyed.is_none_or(|keyed| now.saturating_since(keyed) >= KEY_EVERY) {
            self.keyed = Some(now);
            self.encoder.ask_for_key();
        }
    }

    /// Hands over all that str0m has.
    fn listen(&mut self, now: Instant, io: &mut dyn Io) {
        while let Some(told) = self.peer.as_mut().and_then(CallPeer::poll) {
            match told {
                Told::Send(sent) => {
                    io.send_as(MEDIA, sent.bytes, Envelope { ecn: Some(sent.ecn), departs: None });
                }
                Told::Connected => {
                    let took = now.saturating_since(self.started).as_secs_f64();
                    self.events.say(now, "connected", took, "s", "");
                    self.base = Some(now);
                }
                Told::Estimate(rate) => self.estimate = rate,
                Told::KeyAsked => self.key_asked(now),
                Told::RoundTrip(trip) => self.events.say(now, "rtcp_rtt", trip.as_secs_f64(), "s", ""),
                Told::Closed => self.fail(now, "the receiver closed the call".into()),
                Told::Failed(why) => self.fail(now, why),
                Told::Requests(_) | Told::Frame(_) => {}
            }
        }
    }

    fn resume(&mut self, now: Instant) {
        if std::mem::replace(&mut self.paused, false) {
            self.base = self.base.map(|_| now);
            self.ticks = 0;
            self.encoder.ask_for_key();
        }
    }

    fn stop(&mut self, now: Instant, io: &mut dyn Io) {
        if self.over {
            return;
        }
        if let Some(peer) = &mut self.peer {
            peer.close();
        }
        // The end that str0m reports then is no failure.
        self.over = true;
        self.listen(now, io);
        self.events.say(now, MEDIA_END, f64::from(self.frames), "1", "stopped");
    }
}

impl App for WebRtcSender {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Stop => self.stop(now, io),
            _ if self.over => {}
            Input::Start => self.start(now),
            Input::Datagram { on: MEDIA, bytes, ecn, at } => {
                if let Some(peer) = &mut self.peer {
                    peer.datagram(Arrival { bytes, ecn, at });
                }
            }
            Input::Pause => self.paused = true,
            Input::Resume => self.resume(now),
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
        while let Some(due) = self.next_frame().filter(|due| *due <= now) {
            self.frame(now, due);
            self.listen(now, io);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.over {
            return None;
        }
        let peer = self.peer.as_ref().and_then(CallPeer::poll_timeout);
        [self.next_frame(), peer].into_iter().flatten().min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.next()
    }
}
