//! The time that the player has starved for pictures, its reaction then, and the refilling of its buffer after a loss.

use std::sync::Arc;

use streamgauge_base::{Duration, Instant};

use super::settings::PlayerSettings;
use crate::playout::PlayoutStats;

/// The time that the player has been without pictures.
pub struct Starving {
    settings: Arc<PlayerSettings>,
    /// Time when it last was fed, or began.
    fed_at: Instant,
    /// Pictures shown at the last look.
    shown: u64,
    /// Pictures that had fallen due by then.
    due: u64,
}

impl Starving {
    /// Makes the state before any request.
    pub fn new(settings: Arc<PlayerSettings>) -> Self {
        Starving { settings, fed_at: Instant::ZERO, shown: 0, due: 0 }
    }

    /// Restarts the time.
    pub fn begin(&mut self, now: Instant) {
        self.fed_at = now;
    }

    /// Notes that pictures have arrived so far; with a share of whole ones to reach, [`Starving::look`] alone counts.
    pub fn shows(&mut self, now: Instant, stats: PlayoutStats) {
        if self.settings.starved_share == 0.0 && stats.shown > self.shown {
            (self.shown, self.fed_at) = (stats.shown, now);
        }
    }

    /// Handles the end of a second: counts the share of whole pictures among those that fell due in it.
    pub fn look(&mut self, now: Instant, stats: PlayoutStats) {
        if self.settings.starved_share == 0.0 {
            return;
        }
        let due = stats.shown + stats.late + stats.incomplete;
        let (whole, all) = (stats.shown - self.shown, due - self.due);
        let is_fed = all > 0 && whole as f64 >= self.settings.starved_share * all as f64;
        if is_fed || due == 0 {
            self.fed_at = now;
        }
        (self.shown, self.due) = (stats.shown, due);
    }

    /// Returns when the player has starved long enough to ask the server to pause.
    pub fn pauses_at(&self) -> Option<Instant> {
        self.after(self.settings.starved_pause)
    }

    /// Returns when it has starved long enough to stop with an error.
    pub fn fails_at(&self) -> Option<Instant> {
        self.after(self.settings.starved_after)
    }

    fn after(&self, time: Duration) -> Option<Instant> {
        (time > Duration::ZERO).then(|| self.fed_at + time)
    }
}

/// The refilling of the buffer, once a loss is over.
pub struct Refill {
    settings: Arc<PlayerSettings>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    /// Nothing is to be made up for.
    Idle,
    /// Too much was lost, and it is not calm yet.
    Wanted,
    /// Media is sent faster: since then, with that many bits received by then.
    Fills { since: Instant, bits: f64 },
}

impl Refill {
    /// Makes the state before any loss.
    pub fn new(settings: Arc<PlayerSettings>) -> Self {
        Refill { settings, state: State::Idle }
    }

    /// Handles the end of a second, with such a share of packets received and `bits` of media in all. Returns whether
    /// media is requested faster from now on.
    pub fn begins(&mut self, now: Instant, quality: f64, calm_from: Option<Instant>, bits: f64) -> bool {
        if self.settings.refill == 0.0 {
            return false;
        }
        if self.state == State::Idle && 1.0 - quality > self.settings.most_loss {
            self.state = State::Wanted;
        }
        let begins = self.state == State::Wanted && calm_from.is_some_and(|from| from <= now);
        if begins {
            self.state = State::Fills { since: now, bits };
        }
        begins
    }

    /// Returns whether the buffer is full again: `buffered` of media at `rate_bps` has arrived beyond the played part.
    /// Earlier losses are then made up for.
    pub fn ends(&mut self, now: Instant, bits: f64, rate_bps: f64, has_ended: bool) -> bool {
        let State::Fills { since, bits: before } = self.state else { return false };
        let wanted = (now.saturating_since(since) + self.settings.buffered).as_secs_f64() * rate_bps;
        let ends = has_ended || bits - before >= wanted;
        if ends {
            self.state = State::Idle;
        }
        ends
    }

    /// Returns the rate that is asked for, in bit/s, where media's own is `rate_bps`; `None` while nothing is to be
    /// made up for.
    pub fn wanted_bps(&self, rate_bps: f64) -> Option<u32> {
        matches!(self.state, State::Fills { .. }).then(|| (self.settings.refill * rate_bps) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::PlayerKind;
    use super::*;

    fn settings(change: impl FnOnce(&mut PlayerSettings)) -> Arc<PlayerSettings> {
        let mut settings = PlayerSettings::of(PlayerKind::Wmp9Helix);
        change(&mut settings);
        Arc::new(settings)
    }

    fn at(s: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(s)
    }

    fn stats(shown: u64, incomplete: u64) -> PlayoutStats {
        PlayoutStats { shown, incomplete, ..PlayoutStats::default() }
    }

    #[test]
    fn by_default_any_picture_ends_the_starving() {
        let mut starving = Starving::new(settings(|_| ()));
        starving.begin(at(1));
        assert_eq!((starving.fails_at(), starving.pauses_at()), (Some(at(111)), None));
        starving.shows(at(20), stats(1, 24));
        starving.look(at(21), stats(1, 49));
        assert_eq!(starving.fails_at(), Some(at(130)));
    }

    #[test]
    fn with_a_share_the_start_is_exempt_and_few_whole_pictures_starve() {
        let mut starving = Starving::new(settings(|settings| {
            settings.starved_share = 0.5;
            settings.starved_pause = Duration::from_secs(30);
            settings.starved_after = Duration::from_secs(60);
        }));
        starving.begin(at(0));
        // The buffer fills; then all, then a quarter of 20 pictures a second are whole; then nothing falls due.
        let counts = |second: u64| {
            let played = second.saturating_sub(10).min(40);
            let bad = played.saturating_sub(10);
            (20 * (played - bad) + 5 * bad, 15 * bad)
        };
        for second in 1..=60 {
            let (shown, incomplete) = counts(second);
            starving.shows(at(second), stats(shown, incomplete));
            starving.look(at(second), stats(shown, incomplete));
            let fed = second.min(20);
            assert_eq!(starving.pauses_at(), Some(at(fed + 30)), "at {second} s");
            assert_eq!(starving.fails_at(), Some(at(fed + 60)), "at {second} s");
        }
    }

    #[test]
    fn a_refill_waits_for_calm_and_brings_a_buffer_beyond_what_is_played() {
        let mut refill = Refill::new(settings(|settings| settings.refill = 2.0));
        assert!(!refill.begins(at(10), 1.0, None, 0.0));
        assert!(!refill.begins(at(20), 0.9, Some(at(25)), 0.0), "not calm yet");
        assert_eq!(refill.wanted_bps(1_000.0), None);
        // The loss is half a minute ago by now, and the refill is still due.
        assert!(refill.begins(at(60), 1.0, Some(at(55)), 500.0));
        assert_eq!(refill.wanted_bps(1_000.0), Some(2_000));
        assert!(!refill.begins(at(61), 0.5, Some(at(55)), 500.0), "it is under way");
        // 15 s at 1 kbit/s beyond 10 s of play.
        assert!(!refill.ends(at(70), 500.0 + 24_999.0, 1_000.0, false));
        assert!(refill.ends(at(70), 500.0 + 25_000.0, 1_000.0, false));
        assert_eq!(refill.wanted_bps(1_000.0), None);
        assert!(!refill.ends(at(71), 1e9, 1_000.0, true));
    }

    #[test]
    fn without_the_setting_nothing_is_filled_anew() {
        let mut refill = Refill::new(settings(|_| ()));
        assert!(!refill.begins(at(60), 0.1, Some(at(1)), 0.0));
    }
}
