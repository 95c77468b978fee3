//! The protocol-independent part of a session: the server's object and the selection from it, media objects on their
//! way to the playout buffer, and the losses.

use std::borrow::Cow;
use std::sync::Arc;

use streamgauge_base::{Duration, Instant};
use streamgauge_wire::asf::DataPacket;
use streamgauge_wire::mms::ThinningLevel;

use super::super::sdp::{Presentation, StreamDescription};
use super::choice::{Choice, Taken};
use super::keeping::Keeping;
use super::losses::{Arrival, Losses, WmsCame};
use super::objects::Objects;
use super::settings::PlayerSettings;
use super::starving::{Refill, Starving};
use crate::outbox::Outbox;
use crate::playout::{End, Gathers, HostLate, Manner, Playout, Start, Timeline};

/// Times of ASF are milliseconds.
const CLOCK_RATE: u32 = 1_000;

/// Media is gathered by its bytes, and not by the clock: until then no time is enough.
const NEVER: Duration = Duration::from_secs(86_400);

/// Where the session is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// The connection is not there yet.
    Connecting,
    /// From the first request to the response to that which begins the media.
    SettingUp,
    /// The server sends, or holds.
    Playing { server_holds: bool },
    /// The server got the goodbye; the connection is closed at this time at the latest.
    Leaving { until: Instant },
    /// The session is over.
    Gone,
}

/// From sound at several rates the highest is played, with any pictures (the thesis, section 4.2).
fn with_one_sound(streams: Vec<StreamDescription>) -> Vec<StreamDescription> {
    let sound = streams.iter().filter(|stream| !stream.is_video).max_by_key(|stream| stream.bit_rate_bps);
    let heard = sound.map(|sound| sound.number);
    streams.into_iter().filter(|stream| stream.is_video || Some(stream.number) == heard).collect()
}

/// A session.
pub struct Core {
    pub settings: Arc<PlayerSettings>,
    pub phase: Phase,
    /// Whether another protocol is tried if this one does not work.
    pub rolls: bool,
    /// The failure, if there is one.
    pub failed: Option<Cow<'static, str>>,
    /// The server's streams.
    pub streams: Vec<StreamDescription>,
    pub preroll: Duration,
    pub duration: Option<Duration>,
    /// Missing packets are sent again.
    pub is_sent_again: bool,
    pub began: Instant,
    /// The link's rate by the packet pair, in bit/s.
    pub estimate_bps: Option<f64>,
    pub choice: Choice,
    /// The streams that are set up, in this order, by number.
    pub chosen: Vec<u8>,
    pub losses: Losses,
    /// Too much was lost, which is not yet done anything about.
    heeded_loss: Option<f64>,
    pub objects: Objects,
    /// From when media was asked for.
    pub playout: Option<Playout>,
    /// Received media, in bits, and the amount needed before it plays.
    pub gathered_bits: f64,
    /// Whether it holds enough, or did once.
    pub is_gathered: bool,
    /// Whether the server was asked for media faster than it plays.
    pub accelerated: bool,
    /// Whether the whole has been sent.
    pub ended: bool,
    pub play_asked: Option<Instant>,
    pub look_due: Instant,
    pub starving: Starving,
    pub refill: Refill,
    /// Whether it has starved long enough for the server to pause.
    pub is_halted: bool,
    pub paused: bool,
    pub heard: Instant,
    pub came: WmsCame,
    pub keeping: Keeping,
    /// The last answer's status, if it was no success.
    pub refused: Option<u16>,
    pub is_unplayable: bool,
    pub events: Outbox,
}

impl Core {
    /// Makes the state before its connection.
    pub fn new(settings: Arc<PlayerSettings>) -> Self {
        Core {
            phase: Phase::Connecting,
            rolls: false,
            failed: None,
            streams: Vec::new(),
            preroll: Duration::ZERO,
            duration: None,
            is_sent_again: false,
            began: Instant::ZERO,
            estimate_bps: None,
            choice: Choice::default(),
            chosen: Vec::new(),
            losses: Losses::new(settings.clone()),
            heeded_loss: None,
            objects: Objects::default(),
            playout: None,
            gathered_bits: 0.0,
            is_gathered: false,
            accelerated: false,
            ended: false,
            play_asked: None,
            look_due: Instant::ZERO,
            starving: Starving::new(settings.clone()),
            refill: Refill::new(settings.clone()),
            is_halted: false,
            paused: false,
            heard: Instant::ZERO,
            came: WmsCame::default(),
            keeping: Keeping::default(),
            refused: None,
            is_unplayable: false,
            events: Outbox::default(),
            settings,
        }
    }

    /// Prepares for the next connection: only the events of the last one are kept.
    pub fn begin_anew(&mut self, now: Instant) {
        let (paused, events) = (self.paused, std::mem::take(&mut self.events));
        let keeping = Keeping::of(self.keeping.is_wanted);
        let new = Core::new(self.settings.clone());
        *self = Core { rolls: true, paused, keeping, events, heard: now, ..new };
    }

    pub fn is_playing(&self) -> bool {
        matches!(self.phase, Phase::Playing { .. })
    }

    /// Fails the protocol; the player continues with another, or ends.
    pub fn fail(&mut self, why: impl Into<Cow<'static, str>>) {
        self.failed.get_or_insert(why.into());
    }

    /// Returns the rate of the selection, in bit/s.
    pub fn rate_bps(&self) -> f64 {
        let taken = self.choice.taken().map(|taken| taken.number);
        let is_taken = |stream: &&StreamDescription| !stream.is_video || Some(stream.number) == taken;
        self.streams.iter().filter(is_taken).map(|stream| stream.bit_rate_bps as f64).sum()
    }

    /// Returns the assumed rate of the link, in bit/s.
    pub fn link_bps(&self) -> f64 {
        self.estimate_bps.unwrap_or(self.settings.preference_bps as f64)
    }

    /// Returns the rate at which media is requested until the buffer holds enough, in bit/s; 0 for its own.
    pub fn accelerated_bps(&self) -> u32 {
        let fits = self.link_bps() * self.settings.accelerated_share;
        if fits < self.settings.least_acceleration * self.rate_bps() { 0 } else { fits as u32 }
    }

    /// Notes that media is requested; losses are judged from then on.
    pub fn asks_for_media(&mut self, now: Instant) {
        if self.play_asked.is_none() {
            self.play_asked = Some(now);
            self.losses.asked(now);
        }
    }

    /// Returns the loss, if it is too much and the buffer is full: the player must react now.
    pub fn heeds_loss(&mut self, now: Instant) -> Option<f64> {
        if let Some(loss) = self.losses.judge(now) {
            self.heeded_loss = Some(loss).filter(|loss| *loss > self.settings.most_loss);
        }
        self.heeded_loss.take_if(|_| self.is_gathered)
    }

    /// Stores the server's streams.
    pub fn described(&mut self, presentation: Presentation) {
        self.duration = presentation.duration;
        self.preroll = presentation.preroll;
        self.keeping.header = presentation.header;
        self.streams = with_one_sound(presentation.streams);
        self.is_sent_again = presentation.is_sent_again;
    }

    /// Selects the streams that fit, by the measure or without it.
    pub fn choose(&mut self, now: Instant, estimate_bps: Option<f64>) {
        self.estimate_bps = estimate_bps;
        let reason = match self.estimate_bps {
            Some(estimate) => {
                self.events.say(now, "estimate", estimate, "bit/s", "");
                "the highest that fits what the link was measured to carry"
            }
            None => "the highest that fits what the link is said to carry",
        };
        self.choice = Choice::new(&self.streams, self.link_bps() * self.settings.fit_share);
        let sound = self.streams.iter().find(|stream| !stream.is_video).map(|stream| stream.number);
        self.chosen = sound.into_iter().chain(self.choice.taken().map(|taken| taken.number)).collect();
        self.events.say(now, "level_changed", self.rate_bps(), "bit/s", reason);
    }

    /// Records that less of the pictures was requested from the server.
    pub fn say_less(&mut self, now: Instant, after: Taken, reason: &str) {
        let what = match after.level {
            ThinningLevel::All => "a lower rate",
            ThinningLevel::KeyFrames => "key frames alone",
            ThinningLevel::Nothing => "the sound alone",
        };
        let level_bps = match after.level {
            ThinningLevel::All => self.rate_bps(),
            // The rate of key frames is in no description.
            ThinningLevel::KeyFrames | ThinningLevel::Nothing => self
                .streams
                .iter()
                .filter(|stream| !stream.is_video)
                .map(|stream| stream.bit_rate_bps as f64)
                .sum(),
        };
        self.events.say(now, "level_changed", level_bps, "bit/s", format!("{what}: {reason}"));
    }

    /// Notes that media is requested for the first time, and faster than it plays if that is set.
    pub fn say_accelerated(&mut self, now: Instant, asked_bps: u32) {
        if asked_bps > 0 {
            self.accelerated = true;
            self.events.say(now, "delivery_asked", f64::from(asked_bps), "bit/s", "to fill the buffer");
        }
    }

    /// Notes that the server sends from now on, from `from` to `end`, in order or not.
    pub fn plays(&mut self, now: Instant, from: Duration, end: Option<Duration>, in_order: bool) {
        let asked = self.play_asked.unwrap_or(now);
        let end = end.or(self.duration).filter(|end| *end > from);
        let manner = Manner {
            start: Start::Gathered,
            prebuffer: NEVER,
            rebuffer: self.settings.rebuffered,
            gathers: Gathers::Begun,
            host_late: HostLate::Counts,
            stalls: true,
            in_order,
        };
        // Pictures are the first track, where there are some.
        let kinds =
            [true, false].map(|is_video| self.streams.iter().any(|stream| stream.is_video == is_video));
        let tracks = kinds.iter().filter(|has| **has).count();
        let end = end.map(|at| End { at, of_pictures: tracks == 1 });
        let mut playout = Playout::new(manner, &vec![None; tracks], 0, asked, from, end);
        if !kinds[0] {
            playout.play_sound_alone();
        }
        for track in 0..tracks {
            playout.anchor(track, Timeline::new(CLOCK_RATE, 0, Duration::ZERO));
        }
        if self.paused {
            playout.pause(now);
        }
        if self.keeping.is_wanted {
            playout.keep_units();
        }
        self.playout = Some(playout);
        self.look_due = now;
        self.starving.begin(now);
    }

    /// Handles a packet of media of that number and size. Returns whether it is new.
    pub fn arrived(&mut self, now: Instant, sequence: u16, bytes: usize) -> bool {
        let missed = match self.losses.came(now, sequence) {
            Arrival::New(missed) => missed,
            Arrival::Repaired => {
                self.came.repaired += 1;
                0
            }
            Arrival::Duplicate => {
                self.came.duplicates += 1;
                return false;
            }
        };
        if missed > 0 {
            self.came.missed += u64::from(missed);
            self.events.say(now, "packets_missed", f64::from(missed), "1", "");
        }
        self.came.packets += 1;
        self.came.bytes += bytes as u64;
        true
    }

    /// Extracts media objects from a packet of ASF.
    pub fn packet(&mut self, now: Instant, packet: &[u8]) {
        let Some(playout) = &mut self.playout else { return };
        let Ok(packet) = DataPacket::read(packet) else { return };
        for payload in &packet.payloads {
            let Some(stream) = self.streams.iter().find(|stream| stream.number == payload.stream) else {
                continue;
            };
            self.gathered_bits += 8.0 * payload.data.len() as f64;
            let track = usize::from(!stream.is_video && self.streams.iter().any(|stream| stream.is_video));
            for (place, media) in self.objects.take(payload, self.preroll, self.keeping.is_wanted) {
                self.keeping.came(track, place.timestamp, payload);
                playout.arrived(now, track, place, media, &mut self.events);
            }
        }
    }

    /// Returns the amount needed before it plays, in bits.
    pub fn wanted_bits(&self) -> f64 {
        (self.settings.buffered.as_secs_f64() * self.rate_bps()).max(1.0)
    }

    /// Plays if it holds enough, or all. Returns whether it holds enough for the first time.
    pub fn gather(&mut self) -> bool {
        if self.is_gathered || !self.ended && self.gathered_bits < self.wanted_bits() {
            return false;
        }
        let Some(playout) = &mut self.playout else { return false };
        playout.gather(Duration::ZERO);
        self.is_gathered = true;
        true
    }

    /// Returns when it has starved for as long as it bears.
    pub fn starves_at(&self) -> Option<Instant> {
        self.starving.fails_at().filter(|_| self.is_playing() && !self.paused)
    }

    /// Returns when it has starved long enough for the server to pause, which it is not yet.
    pub fn halts_at(&self) -> Option<Instant> {
        self.starving.pauses_at().filter(|_| self.is_playing() && !self.paused && !self.is_halted)
    }

    /// Returns whether the server is to hold.
    pub fn holds_server(&self) -> bool {
        self.paused || self.is_halted
    }

    /// Handles the end of a second while it plays. Returns whether media is requested faster from now on, to refill the
    /// buffer.
    pub fn looks_after_itself(&mut self, now: Instant) -> bool {
        if let Some(playout) = &self.playout {
            self.starving.look(now, playout.stats());
        }
        let fills = self.is_gathered && !self.accelerated && !self.ended && !self.holds_server();
        let (quality, calm) = (self.losses.quality(), self.losses.calm_from());
        fills && self.refill.begins(now, quality, calm, self.gathered_bits)
    }

    /// Returns whether the refilled buffer is full.
    pub fn is_refilled(&mut self, now: Instant) -> bool {
        let rate = self.rate_bps();
        self.refill.ends(now, self.gathered_bits, rate, self.ended)
    }
}
