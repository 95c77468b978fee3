//! The player's end: a protocol, or one after another, the selection of the media, and the playout buffer.

mod choice;
mod core;
mod header;
mod http;
mod keeping;
mod losses;
mod mms;
mod objects;
mod probe;
mod protocol_session;
mod report;
mod rollover;
mod rtsp;
mod settings;
mod starving;
mod waiting;

pub use losses::WmsCame;
pub use report::WmPlayerReport;
pub use settings::{PlayerKind, PlayerSettings, WmTransport};

use std::borrow::Cow;
use std::sync::Arc;

use streamgauge_base::{Duration, Event, Instant};
use streamgauge_plan::TcpSpec;

use self::core::{Core, Phase};
use self::http::Http;
use self::mms::Mms;
use self::protocol_session::ProtocolSession;
use self::rollover::{Protocol, Rollover};
use self::rtsp::Rtsp;
use super::RTSP;
use crate::app::{App, CloseReason, Input, Io};
use crate::carrier::Carrier;
use crate::outbox::MEDIA_END;
use crate::playout::Playout;

/// How long the answer to a goodbye is waited for.
const FAREWELL: Duration = Duration::from_secs(1);

/// Interval at which the quality is checked, and reported.
const LOOK: Duration = Duration::from_secs(1);

/// Plays one URL.
///
/// Events: `media_end` (value: frames shown; its reason names the end of the session), `playout_start` (s since media
/// was asked for), `frame_shown` (value: the frame's number), `frame_late` (s) and `frame_incomplete` (packets missing,
/// as far as known), `stall` (value: the frame waited for) and `resume` (s stalled), `buffer` (s of media held, at most
/// each 0.5 s); `estimate` (bit/s by the packet pair), `level_changed` (bit/s of the selection, with the reason),
/// `delivery_asked` (bit/s) when the server is asked for media faster than it plays, and no more; each second
/// `buffering` (1, the share of the media needed before it plays) or `reception_quality` (1, the share of packets that
/// arrived in the last `quality_time`); `packets_missed` (1); with rollover, `protocol_tried` (value: which try, from
/// 1; the reason names it and the failure of the one before).
pub struct WmPlayer {
    url: String,
    core: Core,
    session: Box<dyn ProtocolSession>,
    rollover: Rollover,
    /// TCP settings of connections, where it opens them by itself.
    tcp: Option<TcpSpec>,
}

impl WmPlayer {
    /// Makes a player of `url`, by RTSP on a connection that is there from the start.
    pub fn new(settings: PlayerSettings, url: &str) -> Self {
        let rollover = Rollover::new(settings.transport);
        let session = Rtsp::new(url, RTSP, settings.transport != WmTransport::Tcp);
        let core = Core::new(Arc::new(settings));
        WmPlayer { url: url.into(), core, session: Box::new(session), rollover, tcp: None }
    }

    /// Makes it use the protocols of its settings, on connections that it opens by itself.
    pub(super) fn connecting(mut self, tcp: TcpSpec) -> Self {
        self.core.rolls = self.core.settings.transport == WmTransport::Rollover;
        self.tcp = Some(tcp);
        self
    }

    /// Tries the next protocol.
    fn connect(&mut self, now: Instant, io: &mut dyn Io) {
        let Some(tcp) = &self.tcp else { return };
        let protocol = self.rollover.protocol();
        if self.core.rolls {
            let (count, told) = self.rollover.told();
            self.core.events.say(now, "protocol_tried", count as f64, "1", told);
        }
        let channel = io.open(&Carrier::Tcp { port: protocol.port(), settings: tcp.clone() });
        self.session = match protocol {
            Protocol::RtspUdp | Protocol::RtspTcp => {
                Box::new(Rtsp::new(&self.url, channel, protocol == Protocol::RtspUdp))
            }
            Protocol::MmsUdp | Protocol::MmsTcp => {
                Box::new(Mms::new(&self.url, channel, protocol == Protocol::MmsUdp))
            }
            Protocol::Http => Box::new(Http::new(&self.url, channel)),
        };
    }

    /// Fails the protocol: continues with another, if there is one and no media has arrived, or ends.
    fn fail(&mut self, now: Instant, why: &str, io: &mut dyn Io) {
        if !self.rolls() {
            return self.give_up(now, why.to_owned(), io);
        }
        match self.rollover.next(why) {
            Ok(()) => {
                self.session.leave(now, &mut self.core, io);
                self.session.close(io);
                self.core.begin_anew(now);
                self.connect(now, io);
            }
            Err(all) => {
                self.core.playout = None;
                self.core.phase = Phase::SettingUp;
                self.give_up(now, all, io);
            }
        }
    }

    /// Returns whether another protocol would be tried if this one did not work.
    fn rolls(&self) -> bool {
        let is_over = matches!(self.core.phase, Phase::Leaving { .. } | Phase::Gone);
        self.core.rolls && self.core.came.packets == 0 && !is_over
    }

    /// Ends at once, and records why.
    fn give_up(&mut self, now: Instant, why: impl Into<Cow<'static, str>>, io: &mut dyn Io) {
        let core = &mut self.core;
        match &mut core.playout {
            Some(playout) => playout.end(now, why, &mut core.events),
            None if matches!(core.phase, Phase::Connecting | Phase::SettingUp) => {
                core.events.say(now, MEDIA_END, 0.0, "1", why);
            }
            None => {}
        }
        self.leave(now, io);
    }

    /// Sends the goodbye.
    fn leave(&mut self, now: Instant, io: &mut dyn Io) {
        if matches!(self.core.phase, Phase::Leaving { .. } | Phase::Gone) {
            return;
        }
        if self.session.leave(now, &mut self.core, io) {
            self.core.phase = Phase::Leaving { until: now + FAREWELL };
        } else {
            self.core.phase = Phase::Gone;
            self.session.close(io);
        }
    }

    fn closed(&mut self, now: Instant, why: &'static str, io: &mut dyn Io) {
        self.session.forget();
        if self.rolls() {
            return self.fail(now, why, io);
        }
        match (&mut self.core.playout, self.core.phase) {
            (_, Phase::Leaving { .. }) => self.core.phase = Phase::Gone,
            (Some(playout), _) => playout.nothing_more(why),
            (None, _) => self.give_up(now, why, io),
        }
    }

    /// Reports the buffered media, or the received packets; asks for media faster where the buffer is to be refilled.
    fn look(&mut self, now: Instant, io: &mut dyn Io) {
        if self.core.playout.is_none() || self.core.look_due > now {
            return;
        }
        self.core.look_due = now + LOOK;
        if self.core.looks_after_itself(now) {
            self.session.refill(now, &mut self.core, io);
        }
        let core = &mut self.core;
        if !core.is_gathered {
            let share = (core.gathered_bits / core.wanted_bits()).min(1.0);
            return core.events.say(now, "buffering", share, "1", "");
        }
        core.events.say(now, "reception_quality", core.losses.quality(), "1", "");
    }

    /// Selects less of the pictures, if there is less.
    fn take_less(&mut self, now: Instant, reason: &str, io: &mut dyn Io) {
        let before = self.core.choice.taken();
        let (Some(before), true) = (before, self.core.choice.take_less()) else { return };
        let Some(after) = self.core.choice.taken() else { return };
        self.session.switch(now, before, after, &mut self.core, io);
        self.core.say_less(now, after, reason);
    }

    /// Handles a failure of the last step.
    fn heed_failure(&mut self, now: Instant, io: &mut dyn Io) {
        if let Some(why) = self.core.failed.take() {
            self.fail(now, &why, io);
        }
    }

    /// Does all due work.
    fn work(&mut self, now: Instant, io: &mut dyn Io) {
        self.heed_failure(now, io);
        if let Some(why) = self.patience_ended(now) {
            self.lose_patience(now, why, io);
        }
        self.session.set_up_what_is_due(now, &mut self.core, io);
        self.heed_failure(now, io);
        if self.core.gather() && self.core.accelerated && !self.core.ended {
            self.core.accelerated = false;
            self.session.slow_down(now, &mut self.core, io);
        }
        let core = &mut self.core;
        if let Some(playout) = &mut core.playout {
            playout.advance(now, &mut core.events);
            if core.ended {
                playout.nothing_more("the server said that all was sent");
            }
            core.starving.shows(now, playout.stats());
            if playout.has_ended() {
                self.leave(now, io);
            }
        }
        if self.core.is_refilled(now) && !self.core.ended {
            self.session.slow_down(now, &mut self.core, io);
        }
        self.core.is_halted |= self.core.halts_at().is_some_and(|at| at <= now);
        if self.core.starves_at().is_some_and(|at| at <= now) {
            let (settings, seconds) = (&self.core.settings, self.core.settings.starved_after.as_secs_f64());
            let what = match settings.starved_share {
                0.0 => "nothing could be shown".into(),
                share => format!("less than {:.0} % of the pictures were whole", 100.0 * share),
            };
            self.give_up(now, format!("an error: {what} for {seconds:.0} s"), io);
        }
        if self.core.is_playing() {
            self.look(now, io);
            if let Some(loss) = self.core.heeds_loss(now) {
                self.take_less(now, &format!("{:.1} % were lost", 100.0 * loss), io);
            }
            self.session.say_missing(now, &mut self.core, io);
        }
        self.session.steer(now, &mut self.core, io);
        if let Phase::Leaving { until } = self.core.phase
            && until <= now
        {
            self.core.phase = Phase::Gone;
            self.session.close(io);
        }
    }

    fn handle_pause(&mut self, now: Instant, paused: bool) {
        let core = &mut self.core;
        core.paused = paused;
        if !paused {
            core.heard = now;
            core.starving.begin(now);
        }
        match &mut core.playout {
            Some(playout) if paused => playout.pause(now),
            Some(playout) => playout.resume(now),
            None => {}
        }
    }
}

impl App for WmPlayer {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        if self.is_gone() {
            return;
        }
        let connection = self.session.channel();
        match input {
            Input::Start => {
                self.core.heard = now;
                self.connect(now, io);
            }
            Input::Opened(channel) if channel == connection && self.core.phase == Phase::Connecting => {
                self.core.phase = Phase::SettingUp;
                (self.core.heard, self.core.began) = (now, now);
                self.session.begin(now, &mut self.core, io);
            }
            Input::Refused(channel, _) if channel == connection => {
                self.closed(now, "the server could not be reached", io);
            }
            Input::Closed(channel, CloseReason::Finished) if channel == connection => {
                self.closed(now, "the server closed the connection", io);
            }
            Input::Closed(channel, _) if channel == connection => {
                self.closed(now, "the connection to the server failed", io);
            }
            Input::Pause => self.handle_pause(now, true),
            Input::Resume => self.handle_pause(now, false),
            Input::Stop => self.give_up(now, "stopped", io),
            input => self.session.handle(now, &input, &mut self.core, io),
        }
        self.work(now, io);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self.core.phase {
            Phase::Gone => return None,
            Phase::Leaving { until } => return Some(until),
            _ => {}
        }
        let core = &self.core;
        let look = core.playout.as_ref().filter(|_| core.is_playing()).map(|_| core.look_due);
        look.into_iter()
            .chain(self.session.wake(core))
            .chain(core.losses.judges_at().filter(|_| core.is_playing()))
            .chain(core.starves_at())
            .chain(core.halts_at())
            .chain(self.patience_ends())
            .chain(core.playout.as_ref().and_then(Playout::next_event))
            .min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.core.events.next()
    }

    fn is_gone(&self) -> bool {
        self.core.phase == Phase::Gone
    }
}
