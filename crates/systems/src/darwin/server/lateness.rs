//! A session's treatment of late packets: it drops them, and asks for less.

use super::millis;
use super::settings::ServerSettings;
use super::thinning::WORST;

/// The tolerance of a track of a Reliable UDP or TCP session, and the lateness of its packets. Times in milliseconds;
/// lateness is negative ahead of time.
pub struct Lateness {
    limits: Limits,
    /// By how much the delays are less than at a tolerance of 1.5 s.
    shift: i64,
    /// Lateness of a packet, at the last check or where thinning began.
    last: i64,
    /// Whether the last check of mild lateness did not raise the level; the next will.
    waited: bool,
}

/// Whether lateness limits the sent media, and how much: for a track, or for all tracks of a session together.
#[derive(Default)]
pub struct Checks {
    level: u8,
    last: Option<Check>,
    thinning: bool,
}

impl Checks {
    /// Returns the level: 0 sends all, [`WORST`] the least.
    pub fn level(&self) -> u8 {
        self.level
    }

    /// Begins anew at PLAY: the next packet is the first of its checks. The level stays.
    pub fn begin_anew(&mut self) {
        (self.last, self.thinning) = (None, false);
    }
}

struct Limits {
    drop: i64,
    thin_all: i64,
    always_thin: i64,
    start_thinning: i64,
    start_thicking: i64,
    thick_all: i64,
    interval: i64,
}

/// When the last check was, and when the packet of it was due.
struct Check {
    at: i64,
    media: i64,
}

/// The treatment of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Say {
    /// Send it.
    Send,
    /// Send it; the level has changed.
    Changed,
    /// Too late to be of use.
    Drop,
}

/// The tolerance that the delays of the settings are for.
const USUAL_TOLERANCE: i64 = 1500;

/// Lateness of at most this above the least seen does not begin thinning.
const ONSET: i64 = 250;

impl Lateness {
    pub fn new(settings: &ServerSettings, video: bool) -> Self {
        let drop = if video { settings.drop_video_delay } else { settings.drop_other_delay };
        let mut lateness = Lateness {
            limits: Limits {
                drop: millis(drop),
                thin_all: millis(settings.thin_all_delay),
                always_thin: millis(settings.always_thin_delay),
                start_thinning: millis(settings.start_thinning_delay),
                start_thicking: millis(settings.start_thicking_delay),
                thick_all: -millis(settings.thick_all_ahead),
                interval: millis(settings.quality_check_interval),
            },
            shift: 0,
            last: 0,
            waited: false,
        };
        lateness.tolerate(millis(settings.late_tolerance));
        lateness
    }

    /// Sets the lateness that the player tolerates.
    pub fn tolerate(&mut self, tolerance: i64) {
        self.shift = USUAL_TOLERANCE - tolerance;
    }

    /// Begins anew at PLAY: no packet was late yet.
    pub fn begin_anew(&mut self) {
        self.last = 0;
    }

    /// Returns how late a packet may be.
    pub fn drop_after(&self) -> i64 {
        self.limits.drop - self.shift
    }

    /// Notes a packet with transmit time `due` before it is sent, in a session that has played since `played`.
    pub fn note(&mut self, checks: &mut Checks, due: i64, now: i64, played: i64) -> Say {
        if due <= played {
            return Say::Send;
        }
        let late = now - due;
        let this = Check { at: now, media: due };
        let Some(check) = &checks.last else {
            (checks.last, self.last) = (Some(this), late);
            return Say::Send;
        };
        let limits = &self.limits;
        if !checks.thinning {
            if late > limits.start_thinning - self.shift && late - self.last < ONSET {
                self.last = self.last.min(late);
                return Say::Send;
            }
            checks.thinning = true;
        }
        let before = checks.level;
        if late > limits.thin_all - self.shift {
            checks.level = WORST;
            (checks.last, self.last) = (Some(this), late);
            if late > limits.drop - self.shift {
                return Say::Drop;
            }
        } else if now - check.at > limits.interval || due - check.media > limits.interval {
            let grows = late > self.last;
            if late > limits.always_thin - self.shift {
                checks.level = (checks.level + 1).min(WORST);
            } else if late > limits.start_thinning - self.shift && grows {
                if self.waited {
                    checks.level = (checks.level + 1).min(WORST);
                }
                self.waited = !self.waited;
            }
            if late < limits.start_thicking - self.shift && checks.level > 0 && late < self.last {
                checks.level -= 1;
            }
            if late < limits.thick_all {
                checks.level = 0;
            }
            (checks.last, self.last) = (Some(this), late);
        }
        if checks.level == before { Say::Send } else { Say::Changed }
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::Preset;
    use super::*;

    /// A track by itself.
    struct Alone {
        lateness: Lateness,
        checks: Checks,
    }

    impl Alone {
        fn note(&mut self, due: i64, now: i64, played: i64) -> Say {
            self.lateness.note(&mut self.checks, due, now, played)
        }

        fn level(&self) -> u8 {
            self.checks.level()
        }
    }

    fn lateness(tolerance: i64) -> Alone {
        let mut lateness = Lateness::new(&ServerSettings::of(Preset::Source), true);
        lateness.tolerate(tolerance);
        Alone { lateness, checks: Checks::default() }
    }

    /// Returns the treatment of a packet so late, sent at `now`.
    fn note(alone: &mut Alone, now: i64, late: i64) -> Say {
        alone.note(now - late, now, -1_000_000)
    }

    #[test]
    fn tracks_that_share_their_checks_begin_together() {
        let settings = ServerSettings::of(Preset::Source);
        let said = |shared: bool| {
            let mut video = (Lateness::new(&settings, true), Checks::default());
            let mut sound = (Lateness::new(&settings, false), Checks::default());
            let note = |(lateness, own): &mut (Lateness, Checks), checks: &mut Checks, late: i64| {
                lateness.note(if shared { checks } else { own }, 5000 - late, 5000, -1_000_000)
            };
            let mut checks = Checks::default();
            note(&mut video, &mut checks, 0);
            note(&mut video, &mut checks, -100);
            (note(&mut sound, &mut checks, 2600), note(&mut video, &mut checks, 200), checks.level())
        };
        // By itself the sound's first packet is sent, however late it is.
        assert_eq!(said(false), (Say::Send, Say::Send, 0));
        assert_eq!(said(true), (Say::Drop, Say::Send, WORST));
    }

    #[test]
    fn a_packet_later_than_the_player_bears_is_dropped() {
        for (tolerance, limit) in [(1500, 1750), (10_000, 10_250), (2384, 2634), (400, 650)] {
            let mut lateness = lateness(tolerance);
            assert_eq!(lateness.lateness.drop_after(), limit);
            note(&mut lateness, 0, 0);
            assert_ne!(note(&mut lateness, 20_000, limit), Say::Drop);
            assert_eq!(note(&mut lateness, 20_010, limit + 1), Say::Drop);
        }
        let sound = Lateness::new(&ServerSettings::of(Preset::Source), false);
        assert_eq!(sound.drop_after(), 2500);
    }

    #[test]
    fn packets_from_before_the_session_played_are_never_late() {
        let mut lateness = lateness(1500);
        assert_eq!(lateness.note(5000, 90_000, 5000), Say::Send);
        assert!(lateness.checks.last.is_none());
    }

    #[test]
    fn the_first_packet_and_a_little_lateness_thin_nothing() {
        let mut lateness = lateness(1500);
        assert_eq!(note(&mut lateness, 0, 9000), Say::Send);
        // From there on lateness counts by how much it has grown.
        assert_eq!(note(&mut lateness, 10, 9249), Say::Send);
        assert_eq!(note(&mut lateness, 20, 8000), Say::Send);
        assert_eq!(note(&mut lateness, 30, 8250), Say::Drop);
        assert_eq!(lateness.level(), WORST);
    }

    #[test]
    fn the_level_follows_lateness_at_each_check() {
        let mut lateness = lateness(1500);
        note(&mut lateness, 0, 0);
        note(&mut lateness, 10, 300);
        assert_eq!(note(&mut lateness, 1000, 800), Say::Send, "not yet a second since the check");
        assert_eq!(note(&mut lateness, 1001, 800), Say::Changed);
        note(&mut lateness, 2002, 800);
        assert_eq!(lateness.level(), 2, "every check above 750 ms");
        note(&mut lateness, 3003, 500);
        assert_eq!(lateness.level(), 2, "late, but less than before");
        note(&mut lateness, 4004, 510);
        assert_eq!(lateness.level(), 2, "more than before: the next check counts");
        note(&mut lateness, 5005, 520);
        assert_eq!(lateness.level(), 3);
        note(&mut lateness, 6006, 200);
        assert_eq!(lateness.level(), 2);
        note(&mut lateness, 7007, -2001);
        assert_eq!(lateness.level(), 0);
        note(&mut lateness, 7008, 1501);
        assert_eq!(lateness.level(), WORST, "without waiting for a check");
    }

    #[test]
    fn at_play_the_checks_begin_anew_and_the_level_stays() {
        let mut lateness = lateness(1500);
        note(&mut lateness, 0, 0);
        note(&mut lateness, 10, 300);
        assert_eq!(note(&mut lateness, 1001, 800), Say::Changed);
        lateness.checks.begin_anew();
        lateness.lateness.begin_anew();
        assert_eq!(note(&mut lateness, 20_000, 600), Say::Send, "the first, however late");
        assert_eq!(note(&mut lateness, 20_010, 840), Say::Send, "late, but little more than before");
        assert_eq!(lateness.level(), 1);
        // Another track of a session that shares its checks has no lateness of before the PLAY either.
        let mut other = Lateness::new(&ServerSettings::of(Preset::Source), true);
        (other.last, lateness.checks.thinning) = (5000, false);
        other.begin_anew();
        other.note(&mut lateness.checks, 20_020 - 800, 20_020, -1_000_000);
        assert!(lateness.checks.thinning, "it is 800 ms later than nothing");
    }

    #[test]
    fn media_time_brings_checks_too() {
        let mut lateness = lateness(1500);
        note(&mut lateness, 0, 0);
        note(&mut lateness, 10, 400);
        assert_eq!(note(&mut lateness, 1001, 800), Say::Changed);
        let media = 1001 - 800;
        assert_eq!(lateness.note(media + 1000, 1002, -1), Say::Send);
        assert_eq!(lateness.note(media + 1001, 1002, -1), Say::Changed);
        assert_eq!(lateness.level(), 0, "ahead of time, and less late than before");
    }
}
