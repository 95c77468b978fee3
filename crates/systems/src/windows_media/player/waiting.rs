//! The longest wait for a silent server, and the player's reaction then.

use streamgauge_base::{Duration, Instant};

use super::WmPlayer;
use super::core::Phase;
use crate::app::Io;

impl WmPlayer {
    /// Returns when silence ends the session, or the try; and the length of that wait, and the awaited thing.
    fn patience(&self) -> Option<(Instant, Duration, &'static str)> {
        let core = &self.core;
        if self.rolls()
            && let Some(ends) = self.patience_with_a_protocol()
        {
            return Some(ends);
        }
        let limit = core.settings.give_up_after;
        let waits = match core.phase {
            Phase::Connecting | Phase::SettingUp => true,
            Phase::Playing { .. } if !core.paused => {
                core.playout.as_ref().is_some_and(|playout| !playout.is_over())
            }
            _ => false,
        };
        waits.then(|| (core.heard + limit, limit, "nothing came from the server"))
    }

    /// Returns the same while another protocol may be tried.
    fn patience_with_a_protocol(&self) -> Option<(Instant, Duration, &'static str)> {
        let core = &self.core;
        let (connect, media) = (core.settings.connect_wait, core.settings.media_wait);
        match (core.phase, core.play_asked) {
            (Phase::Connecting, _) => Some((core.heard + connect, connect, "no connection came to be")),
            (Phase::SettingUp | Phase::Playing { .. }, Some(asked)) if !core.paused => {
                Some((asked + media, media, "no media came"))
            }
            (Phase::SettingUp, None) if !self.session.waits() => {
                Some((core.heard + media, media, "nothing came from the server"))
            }
            _ => None,
        }
    }

    pub(super) fn patience_ends(&self) -> Option<Instant> {
        self.patience().map(|(at, ..)| at)
    }

    /// Returns the awaited thing and the wait, if that is too long by now.
    pub(super) fn patience_ended(&self, now: Instant) -> Option<String> {
        let (_, limit, what) = self.patience().filter(|(at, ..)| *at <= now)?;
        // By tenths, where it is not whole seconds.
        let seconds = (10.0 * limit.as_secs_f64()).round() / 10.0;
        Some(format!("{what} for {seconds} s"))
    }

    pub(super) fn lose_patience(&mut self, now: Instant, why: String, io: &mut dyn Io) {
        if self.rolls() {
            return self.fail(now, &why, io);
        }
        match &mut self.core.playout {
            Some(playout) => playout.nothing_more(why),
            None => self.give_up(now, why, io),
        }
    }
}
