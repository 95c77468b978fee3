//! The player of any server's manifests.

use serde_json::{Map, Value, json};
use streamgauge_base::{Event, Instant};

use crate::app::{App, Input, Io};
use crate::dash::player::DashPlayer;
use crate::dash::player::settings::{DashPlayerSettings, PlayerKind};
use crate::http::{PORT, source_of};
use crate::standalone::{ContentFault, Playable, Playing, Seen, by_name, counted, names};

/// A player's results, from its reports.
#[derive(Default)]
pub(crate) struct Tally {
    segments: u64,
    abandoned: u64,
    skipped: u64,
    failures: u64,
    redirects: u64,
    changes: u64,
    has_level: bool,
    /// Each segment's declared rate, bit/s, as it was shown last; none where its manifest states no rate.
    shown_bps: Vec<Option<f64>>,
    /// The last segment shown, as its event names it.
    shown: String,
}

impl Tally {
    /// Takes a player's report.
    pub(crate) fn note(&mut self, event: &Event) {
        match event.name.as_ref() {
            "segment_fetched" => self.segments += 1,
            "segment_abandoned" => self.abandoned += 1,
            "segment_skipped" => self.skipped += 1,
            "http_failure" => self.failures += 1,
            "http_redirect" => self.redirects += 1,
            // The first is a choice and no change.
            "level_changed" => self.changes += u64::from(std::mem::replace(&mut self.has_level, true)),
            "segment_shown" => {
                // A segment that is fetched again at another level while it is shown replaces the former one.
                if self.shown == event.reason {
                    self.shown_bps.pop();
                }
                self.shown = event.reason.clone().into_owned();
                self.shown_bps.push(event.value);
            }
            _ => {}
        }
    }

    /// The declared rates, if each is known and there is one.
    fn declared(&self) -> Option<Vec<f64>> {
        let rates: Option<Vec<f64>> = self.shown_bps.iter().copied().collect();
        rates.filter(|rates| !rates.is_empty())
    }

    fn mean_bps(&self) -> Option<f64> {
        self.declared().map(|rates| rates.iter().sum::<f64>() / rates.len() as f64)
    }

    /// Each value by its name; `measured_bps` is the shown rate, bytes by time.
    pub(crate) fn figures(&self, measured_bps: Option<f64>) -> Map<String, Value> {
        let lowest = self.declared().and_then(|rates| rates.into_iter().reduce(f64::min));
        by_name(json!({
            "segments": self.segments,
            "segments_abandoned": self.abandoned,
            "segments_skipped": self.skipped,
            "requests_failed": self.failures,
            "redirects": self.redirects,
            "level_changes": self.changes,
            "shown_mean_bps": self.mean_bps(),
            "shown_least_bps": lowest,
            "shown_measured_bps": measured_bps,
        }))
    }

    /// In a line; `rate` is that of the media, in words.
    pub(crate) fn in_words(&self, rate: &str, measured_bps: Option<f64>) -> String {
        let mean = match (self.mean_bps(), measured_bps) {
            _ if self.shown_bps.is_empty() => String::new(),
            (Some(bps), _) => format!(", shown at {:.0} kbit/s on average", bps / 1e3),
            (None, Some(bps)) => format!(", shown at an unknown rate ({:.0} kbit/s measured)", bps / 1e3),
            (None, None) => ", shown at an unknown rate".into(),
        };
        let redirects = if self.redirects > 0 {
            format!(", {}", counted(self.redirects, "redirection"))
        } else {
            String::new()
        };
        let changes = if self.changes == 1 {
            "1 change of level".into()
        } else {
            format!("{} changes of level", self.changes)
        };
        format!(
            "adaptive: {} came ({rate}){mean}; {changes}, {} given up, {} skipped, {} failed{redirects}",
            counted(self.segments, "segment"),
            self.abandoned,
            self.skipped,
            counted(self.failures, "request"),
        )
    }
}

/// The player's results by `now`.
pub(crate) fn seen(player: &DashPlayer, now: Instant) -> Seen {
    Seen {
        shows: player.shows(),
        bytes: player.bytes(),
        lost: None,
        frames: player.fates(),
        startup: player.startup(),
        buffer: player.buffer(now),
        position: player.position(now),
        duration: player.duration(),
    }
}

/// Makes the player of the manifest at `url`. With `keep` it keeps the shown media.
pub(crate) fn player_of(mut settings: DashPlayerSettings, url: &str, keep: bool, seed: u64) -> DashPlayer {
    // The URL names the manifest: its form is not chosen.
    if url.split(['?', '#']).next().unwrap_or_default().ends_with(".m3u8") {
        settings.format = "hls".into();
    }
    let mut player = DashPlayer::new(settings, source_of(url), seed);
    if keep {
        player.keep_bytes();
    }
    player
}

/// The player with its results.
struct Viewed {
    player: DashPlayer,
    tally: Tally,
}

impl App for Viewed {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        self.player.handle(now, input, io);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.player.poll_timeout()
    }

    fn poll_event(&mut self) -> Option<Event> {
        let event = self.player.poll_event()?;
        self.tally.note(&event);
        Some(event)
    }

    fn is_gone(&self) -> bool {
        self.player.is_gone()
    }
}

impl Playing for Viewed {
    fn seen(&mut self, now: Instant) -> Seen {
        seen(&self.player, now)
    }

    fn figures(&mut self, _: Instant) -> Map<String, Value> {
        self.tally.figures(self.player.measured_bps())
    }

    fn carried_by(&self) -> &'static str {
        "HTTP"
    }

    fn in_words(&mut self, _: Instant, rate: &str) -> String {
        self.tally.in_words(rate, self.player.measured_bps())
    }

    fn allow_hosts(&mut self, hosts: &[String]) {
        self.player.allow_hosts(hosts);
    }

    fn left_out(&self) -> Vec<String> {
        self.player.left_out()
    }

    fn refused(&self) -> Option<u16> {
        self.player.refused().filter(|_| !self.player.has_manifest())
    }

    fn is_unplayable(&self) -> bool {
        self.player.is_unplayable()
    }

    /// Initialisation and media segments of the pictures, in order.
    fn take_kept(&mut self) -> Option<Vec<u8>> {
        self.player.take_bytes().map(|chunk| chunk.head().to_vec())
    }
}

/// The names of all players, the usual first.
pub(crate) const PLAYERS: [&str; PlayerKind::NAMED.len()] = names(&PlayerKind::NAMED);

impl Playable for DashPlayerSettings {
    const SCHEME: &'static str = "http";
    const PORT: u16 = PORT;
    const ENDINGS: &'static [&'static str] = &[".mpd", ".m3u8"];
    const PLAYERS: &'static [&'static str] = &PLAYERS;
    const TRANSPORTS: &'static [&'static str] = &["tcp"];
    const ASKS: &'static str = "GET";
    const IS_CONNECTED: bool = false;

    fn preset(player: &str, _: &str) -> Option<Self> {
        PlayerKind::NAMED
            .iter()
            .find(|(name, _)| *name == player)
            .map(|(_, kind)| DashPlayerSettings::of(*kind))
    }

    fn check(&self) -> Result<(), ContentFault> {
        DashPlayerSettings::check(self)
    }

    fn machine(self, url: &str, keep: bool, seed: u64) -> Box<dyn Playing> {
        Box::new(Viewed { player: player_of(self, url, keep, seed), tally: Tally::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(told: &[(&'static str, f64, &'static str)]) -> Tally {
        let mut tally = Tally::default();
        for &(name, value, reason) in told {
            let (name, unit) = (name.into(), "bit/s".into());
            let value = Some(value);
            tally.note(&Event { at: Instant::ZERO, flow: None, name, value, unit, reason: reason.into() });
        }
        tally
    }

    #[test]
    fn a_segment_that_is_replaced_while_it_is_shown_counts_once_as_it_was_shown_last() {
        let tally = tally(&[
            ("segment_shown", 1e6, "segment 0"),
            ("level_changed", 1e6, "segment 0"),
            ("segment_shown", 3e6, "segment 0"),
            ("level_changed", 3e6, "segment 0"),
            ("segment_shown", 3e6, "segment 1"),
        ]);
        assert_eq!((tally.mean_bps(), tally.changes), (Some(3e6), 1));
    }

    #[test]
    fn one_of_a_thing_is_named_in_the_singular() {
        let mut tally = tally(&[("segment_fetched", 1e6, ""), ("http_redirect", 302.0, "")]);
        assert_eq!(
            tally.in_words("1 Mbit/s", None),
            "adaptive: 1 segment came (1 Mbit/s); 0 changes of level, 0 given up, 0 skipped, 0 requests failed, \
             1 redirection"
        );
        (tally.changes, tally.failures) = (1, 1);
        let said = tally.in_words("1 Mbit/s", None);
        assert!(
            said.contains("; 1 change of level, 0 given up, 0 skipped, 1 request failed, 1 redirection"),
            "{said}"
        );
    }
}
