//! The level that the player subscribes to and the rate at which it asks for it: from the delay, the loss, the received
//! rate, and the configured rate of the link.
//!
//! The rules are those of the published client; the constants are [`PlayerSettings`]'s.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use streamgauge_base::{Duration, Instant};

use super::settings::PlayerSettings;
use crate::rtsp::MediaTransport;

/// The preference up to which `slow_share` of it is believed.
const SLOW_BPS: u64 = 150_000;

/// Preferences of modems, and the rate that the client assumes for each.
const MODEMS_BPS: [(u64, f64); 4] =
    [(28_800, 21_600.0), (33_600, 25_000.0), (57_600, 50_000.0), (115_200, 100_000.0)];

/// Up to the first rate a preference is a ceiling of that; up to the second `fast_share` of itself; beyond, the second.
const CEILINGS_BPS: [u64; 2] = [65_000, 600_000];

/// After loss the ceiling is no lower.
const LEAST_CEILING_BPS: f64 = 15_000.0;

/// Two packets that are no further apart arrived together.
const LEAST_PAIR_S: f64 = 1e-6;

/// Least divisor, in place of a received rate of zero.
const LEAST_BPS: f64 = 1_000.0;

/// The player's requests to the server.
#[derive(Clone, PartialEq, Debug)]
pub struct Wanted {
    /// The place of the level among those offered.
    pub level: usize,
    /// The rate of all that is sent, in bit/s.
    pub delivery_bps: f64,
    /// Why.
    pub reason: Cow<'static, str>,
}

/// Shares of one window of time.
#[derive(Clone, Copy, Default)]
struct Losses {
    received: u64,
    lost: u64,
}

/// The decisions.
pub struct Adaptation {
    settings: Arc<PlayerSettings>,
    /// Rate of each level, ascending, in bit/s.
    needs: Vec<f64>,
    /// The first that has pictures and is not thinned.
    whole: usize,
    wanted: Wanted,
    received: Received,
    /// Bit/s of the last packet pairs.
    pairs: VecDeque<f64>,
    /// The least delay from server to player, by two clocks with an unknown difference.
    least_delay: Option<i64>,
    excess: Duration,
    limit: Duration,
    /// Reports without congestion since the last change; below zero after one.
    raises: i64,
    offers: i64,
    /// The rate that was received when a higher one was tried.
    stable_bps: Option<f64>,
    is_testing: bool,
    test_share: f64,
    ceiling_bps: f64,
    clean_windows: u32,
    losses: Losses,
    /// Time when the loss is counted next.
    loss_due: Option<Instant>,
    /// Whether it has buffered enough.
    has_enough: bool,
}

impl Adaptation {
    /// Makes the adaptation for levels of such rates, ascending; the one at `whole` is the lowest with all of its
    /// pictures. Panics without any.
    pub fn new(settings: Arc<PlayerSettings>, needs: Vec<f64>, whole: usize) -> Self {
        let believed = believed(&settings);
        let level = fitting(&needs, believed);
        let highest = needs[needs.len() - 1];
        let most = settings.acceleration * highest;
        let delivery_bps = if settings.turboplay { believed } else { needs[level].max(LEAST_BPS) };
        let reason = format!("{:.0} kbit/s are said to be there", believed / 1e3).into();
        let preference = settings.preference_bps;
        let ceiling_bps = match preference {
            _ if preference < CEILINGS_BPS[0] => CEILINGS_BPS[0] as f64,
            _ if preference < CEILINGS_BPS[1] => preference as f64 * settings.fast_share,
            _ => CEILINGS_BPS[1] as f64,
        };
        let mut adaptation = Adaptation {
            limit: behind(&settings),
            test_share: settings.test_share,
            wanted: Wanted { level, delivery_bps: delivery_bps.min(most), reason },
            received: Received::default(),
            pairs: VecDeque::new(),
            least_delay: None,
            excess: Duration::ZERO,
            raises: 0,
            offers: 0,
            stable_bps: None,
            is_testing: false,
            ceiling_bps,
            clean_windows: 0,
            losses: Losses::default(),
            loss_due: None,
            has_enough: false,
            needs,
            whole,
            settings,
        };
        adaptation.keep_floor();
        adaptation
    }

    /// Returns the present request.
    pub fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// Returns by how much the last delay exceeded the least.
    pub fn excess(&self) -> Duration {
        self.excess
    }

    /// Returns the rate that the link is believed to carry, in bit/s; `None` before any evidence.
    pub fn available_bps(&self, now: Instant) -> Option<f64> {
        let multiple = match self.settings.transport {
            MediaTransport::Tcp => Some(self.settings.tcp_available),
            MediaTransport::Udp => self.settings.udp_available,
        };
        if let Some(multiple) = multiple {
            return self.received.rate_bps(now, self.window()).map(|rate| rate * multiple);
        }
        let mut sorted: Vec<f64> = self.pairs.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied()
    }

    /// Counts a packet of `bytes` that arrived.
    pub fn packet(&mut self, now: Instant, bytes: usize) {
        self.received.add(now, bytes as u64, self.longest());
        self.losses.received += 1;
        self.loss_due.get_or_insert(now + self.settings.loss_time);
    }

    /// Handles the second of a pair, of `bytes`, which arrived `apart` after the first.
    pub fn pair(&mut self, apart: Duration, bytes: usize) {
        let seconds = apart.as_secs_f64().max(LEAST_PAIR_S);
        self.pairs.push_back(bytes as f64 * 8.0 / seconds);
        if self.pairs.len() > self.settings.pairs as usize {
            self.pairs.pop_front();
        }
    }

    /// Counts packets that are found missing.
    pub fn lost(&mut self, packets: u64) {
        self.losses.lost += packets;
    }

    /// Returns when the loss is counted next.
    pub fn due(&self) -> Option<Instant> {
        self.loss_due.filter(|_| self.settings.transport == MediaTransport::Udp)
    }

    /// Handles the server's clock, `delay` nanoseconds behind ours, with `buffer` of media held.
    pub fn report(&mut self, now: Instant, delay: i64, buffer: Duration) {
        let least = self.least_delay.map_or(delay, |least| least.min(delay));
        self.least_delay = Some(least);
        self.excess = Duration::from_nanos((delay - least).cast_unsigned());
        self.buffered(now, buffer);
        if self.settings.heed_delay && self.excess > self.limit {
            return self.fall_behind(now);
        }
        if self.excess <= behind(&self.settings) {
            self.limit = behind(&self.settings);
        }
        self.raises += 1;
        self.offers += 1;
        if self.excess <= self.settings.slightly_behind {
            self.reach_higher(now);
        }
    }

    /// Counts the loss, if it is time.
    pub fn advance(&mut self, now: Instant) {
        let Some(due) = self.due().filter(|due| *due <= now) else { return };
        self.loss_due = Some(due + self.settings.loss_time);
        let Losses { received, lost } = std::mem::take(&mut self.losses);
        if lost == 0 {
            self.clean_windows += u32::from(received > 0);
            return;
        }
        self.clean_windows = 0;
        if self.settings.heed_loss {
            self.heed_loss(now, lost as f64 / (lost + received) as f64);
        }
    }

    fn heed_loss(&mut self, now: Instant, share: f64) {
        let settings = &self.settings;
        let (delivery, level) = (self.wanted.delivery_bps, self.wanted.level);
        let floor = settings.loss_floor * self.needs[level];
        let percent = share * 100.0;
        if share >= settings.heavy_loss {
            let least = settings.loss_floor * self.needs[self.whole.min(level)];
            let rate = (settings.heavy_share * delivery).max(least);
            let fits = fitting(&self.needs, rate).min(level);
            self.want(
                fits,
                rate,
                format!("{percent:.1} % were lost in {} s", settings.loss_time.as_secs_f64()),
            );
        } else if share >= settings.moderate_loss && delivery > floor {
            let rate = (delivery * (1.0 - share.min(settings.most_loss_cut))).max(floor);
            self.want(level, rate, format!("{percent:.1} % were lost, and the rate is above the level's"));
        } else {
            return;
        }
        let settings = &self.settings;
        (self.raises, self.offers) = (-i64::from(settings.loss_debt), -i64::from(settings.loss_debt));
        self.ceiling_bps =
            self.received.rate_bps(now, self.window()).unwrap_or(delivery).max(LEAST_CEILING_BPS);
    }

    fn fall_behind(&mut self, now: Instant) {
        let settings = &self.settings;
        let rate = self.received.rate_bps(now, self.window()).unwrap_or(LEAST_BPS).max(LEAST_BPS);
        let mut offered = settings.behind_share * rate;
        if let Some(stable) =
            self.stable_bps.filter(|stable| (offered - stable).abs() <= settings.stable_within * stable)
        {
            offered = stable;
        }
        let excess = self.excess.as_secs_f64();
        let level = self.wanted.level;
        let fits = fitting(&self.needs, offered).min(level);
        let (delivery, why) = if fits == level {
            (settings.slow_down_share * rate, "its level fits already")
        } else {
            (settings.behind_share * rate, "the highest that fits")
        };
        let reason = format!("{excess:.2} s behind, {:.0} kbit/s received: {why}", rate / 1e3);
        if std::mem::take(&mut self.is_testing) {
            self.test_share = (self.test_share * settings.test_shrink).max(settings.least_test_share);
        }
        self.limit = self.excess + settings.behind_step;
        (self.raises, self.offers) = (-i64::from(settings.behind_debt), -i64::from(settings.behind_debt));
        self.want(fits, delivery, reason);
    }

    fn reach_higher(&mut self, now: Instant) {
        let Some(available) = self.available_bps(now) else { return };
        let settings = &self.settings;
        let used = self.wanted.delivery_bps;
        let mut test = used + self.test_share * (available - used).max(0.0);
        if self.clean_windows <= settings.ceiling_after && settings.transport == MediaTransport::Udp {
            test = test.min(self.ceiling_bps);
        }
        let level = self.wanted.level;
        let highest = self.needs[self.needs.len() - 1];
        if self.offers > i64::from(settings.offer_after) {
            let fits = fitting(&self.needs, test).max(level);
            self.offers = 0;
            if fits > level {
                self.stable_bps = self.received.rate_bps(now, self.window());
                (self.is_testing, self.raises) = (true, 0);
                let reason = format!("{:.0} kbit/s are available", available / 1e3);
                return self.want(fits, test.min(settings.acceleration * highest), reason);
            }
            if self.is_testing {
                // The tried level holds.
                self.is_testing = false;
                self.stable_bps = self.received.rate_bps(now, self.window());
            }
        }
        if self.raises >= i64::from(settings.raise_after) && !self.has_enough {
            let rate = test.min(settings.acceleration * highest);
            if rate > used * 1.01 {
                self.raises = 0;
                self.want(
                    level,
                    rate,
                    format!("to fill the buffer, {:.0} kbit/s are available", available / 1e3),
                );
            }
        }
    }

    /// Asks for less when enough is buffered, and for more when it no longer is.
    fn buffered(&mut self, now: Instant, buffer: Duration) {
        let settings = &self.settings;
        let level = self.wanted.level;
        let need = self.needs[level];
        let bytes = (buffer.as_secs_f64() * need / 8.0) as u64;
        let held = buffer.as_secs_f64();
        if !self.has_enough && (buffer > settings.high_mark || bytes > settings.high_mark_bytes) {
            self.has_enough = true;
        } else if self.has_enough && buffer < settings.low_mark && bytes < settings.low_mark_bytes {
            self.has_enough = false;
            (self.raises, self.offers) = (0, 0);
            return self.want(
                level,
                need.max(LEAST_BPS),
                format!("{held:.1} s buffered: it is less than enough"),
            );
        }
        if self.has_enough {
            let highest = self.needs[self.needs.len() - 1];
            let received = self.received.rate_bps(now, self.window()).unwrap_or(0.0);
            let rate = if received > highest { highest } else { settings.enough_share * need };
            if (rate - self.wanted.delivery_bps).abs() > 0.01 * rate {
                self.want(level, rate, format!("{held:.1} s buffered: it is enough"));
            }
        }
    }

    fn want(&mut self, level: usize, delivery_bps: f64, reason: impl Into<Cow<'static, str>>) {
        let most = self.settings.acceleration * self.needs[self.needs.len() - 1];
        self.wanted = Wanted { level, delivery_bps: delivery_bps.min(most), reason: reason.into() };
        self.keep_floor();
    }

    fn keep_floor(&mut self) {
        let floor = match self.settings.transport {
            MediaTransport::Udp => LEAST_BPS,
            MediaTransport::Tcp => (self.settings.tcp_floor * self.needs[self.wanted.level]).max(LEAST_BPS),
        };
        self.wanted.delivery_bps = self.wanted.delivery_bps.max(floor);
    }

    fn window(&self) -> Duration {
        let settings = &self.settings;
        match settings.transport {
            MediaTransport::Tcp => settings.tcp_rate_window,
            MediaTransport::Udp => {
                settings.udp_rate_window.saturating_sub(self.limit).max(settings.least_rate_window)
            }
        }
    }

    fn longest(&self) -> Duration {
        self.settings.tcp_rate_window.max(self.settings.udp_rate_window).max(self.settings.least_rate_window)
    }
}

fn behind(settings: &PlayerSettings) -> Duration {
    match settings.transport {
        MediaTransport::Udp => settings.udp_behind,
        MediaTransport::Tcp => settings.tcp_behind,
    }
}

/// Returns the rate that is believed at the start.
fn believed(settings: &PlayerSettings) -> f64 {
    let preference = settings.preference_bps;
    let modem = MODEMS_BPS.iter().find(|(rate, _)| *rate == preference).map(|(_, taken)| *taken);
    let share = if preference > SLOW_BPS { settings.fast_share } else { settings.slow_share };
    modem.unwrap_or(preference as f64 * share)
}

/// Returns the highest level that needs no more than `rate`; the lowest if none does.
fn fitting(needs: &[f64], rate: f64) -> usize {
    needs.iter().rposition(|need| *need <= rate).unwrap_or(0)
}

/// The bytes received lately, in tenths of a second.
#[derive(Default)]
struct Received {
    began: Option<Instant>,
    slots: VecDeque<(u64, u64)>,
}

/// Nanoseconds of a slot.
const SLOT: u64 = 100_000_000;

impl Received {
    fn add(&mut self, now: Instant, bytes: u64, longest: Duration) {
        self.began.get_or_insert(now);
        let slot = now.as_nanos() / SLOT;
        match self.slots.back_mut() {
            Some((last, sum)) if *last == slot => *sum += bytes,
            _ => self.slots.push_back((slot, bytes)),
        }
        let first = slot.saturating_sub(longest.as_nanos() / SLOT + 1);
        while self.slots.front().is_some_and(|(oldest, _)| *oldest < first) {
            self.slots.pop_front();
        }
    }

    /// Returns the rate over the last `window`, or since it began if that is shorter but half a second at least.
    fn rate_bps(&self, now: Instant, window: Duration) -> Option<f64> {
        let since = now.saturating_since(self.began?).min(window);
        if since < Duration::from_nanos(5 * SLOT) {
            return None;
        }
        let first = (now.as_nanos() - since.as_nanos()) / SLOT;
        let bytes: u64 =
            self.slots.iter().rev().take_while(|(slot, _)| *slot > first).map(|(_, sum)| sum).sum();
        Some(bytes as f64 * 8.0 / since.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::settings::PlayerKind;
    use super::*;

    const LEVELS: [f64; 5] = [8_000.0, 20_000.0, 34_000.0, 80_000.0, 225_000.0];

    fn player(transport: MediaTransport) -> Adaptation {
        let settings = PlayerSettings { transport, ..PlayerSettings::of(PlayerKind::RealPlayer8) };
        Adaptation::new(Arc::new(settings), LEVELS.to_vec(), 1)
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// Receives `bps` for a second that begins at `second`, and a report of `delay_ms` at its end.
    fn second(player: &mut Adaptation, second: u64, bps: u64, delay_ms: i64) {
        for tenth in 0..10 {
            player.packet(at(second * 1000 + tenth * 100), (bps / 80) as usize);
        }
        player.report(at(second * 1000 + 999), delay_ms * 1_000_000, Duration::from_secs(5));
        player.advance(at(second * 1000 + 999));
    }

    #[test]
    fn it_begins_with_the_highest_level_that_the_preference_allows() {
        for (preference_bps, level) in [(28_800, 1), (57_600, 2), (100_000, 3), (700_000, 4), (10_000, 0)] {
            let settings = PlayerSettings { preference_bps, ..PlayerSettings::of(PlayerKind::RealPlayer8) };
            let player = Adaptation::new(Arc::new(settings), LEVELS.to_vec(), 1);
            assert_eq!(player.wanted().level, level, "{preference_bps}");
        }
    }

    #[test]
    fn over_udp_a_second_of_delay_drops_to_what_is_received_and_over_tcp_five_do() {
        for (transport, fine, behind) in
            [(MediaTransport::Udp, 990, 1_010), (MediaTransport::Tcp, 4_990, 5_010)]
        {
            let mut player = player(transport);
            for n in 0..10 {
                second(&mut player, n, 40_000, if n == 0 { 0 } else { fine });
            }
            assert_eq!(player.wanted().level, 4, "{transport:?}");
            second(&mut player, 10, 40_000, behind);
            assert_eq!(player.wanted().level, 2, "{transport:?}: 34 kbit/s fit 39");
            // No further than that while the excess does not grow.
            second(&mut player, 11, 40_000, behind + 100);
            assert_eq!(player.wanted().level, 2, "{transport:?}");
        }
    }

    #[test]
    fn moderate_loss_never_changes_the_level_and_heavy_loss_does() {
        let mut player = player(MediaTransport::Udp);
        let before = player.wanted().level;
        for n in 0..40 {
            player.lost(1);
            second(&mut player, n, 300_000, 0);
        }
        assert_eq!(player.wanted().level, before);
        assert!(player.wanted().delivery_bps >= LEVELS[4]);
        for n in 40..80 {
            player.lost(5);
            second(&mut player, n, 300_000, 0);
        }
        assert!(player.wanted().level < before);
        assert!(player.wanted().delivery_bps >= 1.05 * LEVELS[1] - 1.0, "not below the lowest whole level");
    }

    #[test]
    fn over_tcp_it_asks_for_more_than_its_level_needs() {
        let mut player = player(MediaTransport::Tcp);
        for n in 0..60 {
            second(&mut player, n, 60_000, (n as i64) * 400);
            let wanted = player.wanted();
            assert!(wanted.delivery_bps >= 1.1 * LEVELS[wanted.level] - 1.0);
        }
    }

    #[test]
    fn over_udp_the_links_rate_may_be_a_multiple_of_what_comes() {
        let mut settings = PlayerSettings::of(PlayerKind::RealPlayer8);
        for (udp_available, wanted) in [(None, 800_000.0), (Some(1.5), 60_000.0)] {
            settings.udp_available = udp_available;
            let mut player = Adaptation::new(Arc::new(settings.clone()), LEVELS.to_vec(), 1);
            player.pair(Duration::from_millis(10), 1_000);
            for n in 0..10 {
                second(&mut player, n, 40_000, 0);
            }
            let available = player.available_bps(at(10_000)).unwrap();
            assert!((available / wanted - 1.0).abs() < 0.1, "{available} bit/s for {wanted}");
        }
    }

    #[test]
    fn it_climbs_again_when_the_way_is_clear() {
        let mut player = player(MediaTransport::Udp);
        second(&mut player, 0, 40_000, 0);
        for n in 1..6 {
            second(&mut player, n, 40_000, 1_100);
        }
        let low = player.wanted().level;
        for n in 6..120 {
            player.pair(Duration::from_millis(10), 1_000);
            let asked = player.wanted().delivery_bps as u64;
            second(&mut player, n, asked, 10);
        }
        assert!(player.wanted().level > low, "{:?}", player.wanted());
    }

    proptest! {
        #[test]
        fn what_it_wants_is_always_something_that_is_offered(
            steps in prop::collection::vec((0u64..2_000_000, -3_000i64..20_000, 0u64..40, 0u64..60), 1..60),
            tcp in any::<bool>(),
        ) {
            let mut player = player(if tcp { MediaTransport::Tcp } else { MediaTransport::Udp });
            for (n, (bps, delay_ms, lost, buffer)) in steps.into_iter().enumerate() {
                let now = at(n as u64 * 1000);
                player.packet(now, (bps / 8) as usize);
                player.lost(lost);
                player.pair(Duration::from_millis(lost), 640);
                player.report(now, delay_ms * 1_000_000, Duration::from_secs(buffer));
                player.advance(now);
                let wanted = player.wanted();
                prop_assert!(wanted.level < LEVELS.len());
                prop_assert!(wanted.delivery_bps.is_finite() && wanted.delivery_bps >= LEAST_BPS);
                prop_assert!(wanted.delivery_bps <= 4.0 * LEVELS[4]);
            }
        }
    }
}
