//! What a session does with packets that are late: it drops them, and asks for less.

use super::millis;
use super::settings::ServerSettings;
use super::thinning::WORST;

/// Whether lateness has a say in how much is sent, and how much. One for each track of a Reliable UDP or TCP
/// session. Times in milliseconds; lateness is negative ahead of time.
pub struct Lateness {
    limits: Limits,
    /// By how much the delays are less than at a tolerance of 1.5 s.
    shift: i64,
    level: u8,
    last: Option<Last>,
    thinning: bool,
    /// The last check of mild lateness did not raise the level; the next will.
    waited: bool,
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

struct Last {
    checked: i64,
    media: i64,
    lateness: i64,
}

/// What to do with a packet.
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

/// At most so much lateness more than the least seen does not begin thinning.
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
            level: 0,
            last: None,
            thinning: false,
            waited: false,
        };
        lateness.tolerate(millis(settings.late_tolerance));
        lateness
    }

    /// The player bears packets that are so late.
    pub fn tolerate(&mut self, tolerance: i64) {
        self.shift = USUAL_TOLERANCE - tolerance;
    }

    /// How late a packet may be.
    pub fn drop_after(&self) -> i64 {
        self.limits.drop - self.shift
    }

    /// 0 sends all, [`WORST`] the least.
    pub fn level(&self) -> u8 {
        self.level
    }

    /// A packet with transmit time `due` is about to be sent, in a session that has played since `played`.
    pub fn note(&mut self, due: i64, now: i64, played: i64) -> Say {
        if due <= played {
            return Say::Send;
        }
        let late = now - due;
        let Some(last) = &mut self.last else {
            self.last = Some(Last { checked: now, media: due, lateness: late });
            return Say::Send;
        };
        let limits = &self.limits;
        if !self.thinning {
            if late > limits.start_thinning - self.shift && late - last.lateness < ONSET {
                last.lateness = last.lateness.min(late);
                return Say::Send;
            }
            self.thinning = true;
        }
        let before = self.level;
        if late > limits.thin_all - self.shift {
            last.checked = now;
            last.media = due;
            last.lateness = late;
            self.level = WORST;
            if late > limits.drop - self.shift {
                return Say::Drop;
            }
        } else if now - last.checked > limits.interval || due - last.media > limits.interval {
            let grows = late > last.lateness;
            if late > limits.always_thin - self.shift {
                self.level = (self.level + 1).min(WORST);
            } else if late > limits.start_thinning - self.shift && grows {
                if self.waited {
                    self.level = (self.level + 1).min(WORST);
                }
                self.waited = !self.waited;
            }
            if late < limits.start_thicking - self.shift && self.level > 0 && late < last.lateness {
                self.level -= 1;
            }
            if late < limits.thick_all {
                self.level = 0;
            }
            *last = Last { checked: now, media: due, lateness: late };
        }
        if self.level == before { Say::Send } else { Say::Changed }
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::Preset;
    use super::*;

    fn lateness(tolerance: i64) -> Lateness {
        let mut lateness = Lateness::new(&ServerSettings::of(Preset::Source), true);
        lateness.tolerate(tolerance);
        lateness
    }

    /// What is said of a packet so late, sent at `now`.
    fn note(lateness: &mut Lateness, now: i64, late: i64) -> Say {
        lateness.note(now - late, now, -1_000_000)
    }

    #[test]
    fn a_packet_later_than_the_player_bears_is_dropped() {
        for (tolerance, limit) in [(1500, 1750), (10_000, 10_250), (2384, 2634), (400, 650)] {
            let mut lateness = lateness(tolerance);
            assert_eq!(lateness.drop_after(), limit);
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
        assert!(lateness.last.is_none());
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
