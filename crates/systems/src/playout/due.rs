//! The next due unit, the held media, and the reason to stop the clock: of a playout buffer as it is now.

use streamgauge_base::{Duration, Instant};

use super::units::{Unit, Units};
use super::{Gathers, LATE_WINDOW, Playout, State};

/// Nothing in the media's last second is waited for. Over UDP, if it does not come, it was lost, and nothing
/// behind it would show that. On a stream that holds only where the last picture is unknown: the clock
/// continues, and late media are shown when they arrive, once all of it is there.
pub(super) const TAIL: Duration = Duration::from_secs(1);

/// Where the last picture is unknown, another track that has received this much since the last picture
/// arrived, and has reached as far past that picture's end, shows that no picture is due: a server sends its
/// tracks by one clock. It leaves room for servers that send a chunk of each by turns; how far one track is
/// sent ahead of the other does not matter.
const LEAD: Duration = Duration::from_secs(1);

impl Playout {
    pub(super) fn due(&self, at: Duration) -> Instant {
        due(self.base, self.at, at)
    }

    /// Returns when `advance` has something to do.
    pub fn next_event(&self) -> Option<Instant> {
        if self.has_ended() || self.paused.is_some() || self.state == State::Gathering {
            return None;
        }
        let oldest = self.tracks.iter().filter_map(Units::oldest).map(|unit| self.due(unit.at) + LATE_WINDOW);
        let playing = self.state == State::Playing;
        let next = self.next_due().filter(|_| playing).map(|(_, due)| due);
        let end = self.all_due().filter(|_| playing && self.tracks[self.main].is_empty());
        oldest.chain(next).chain(end).min()
    }

    /// Returns whether it is known which picture is the last: they are counted, and the end is theirs. Else
    /// one is assumed only where a part of it or of a later one arrived, or where the end is more than
    /// [`TAIL`] away.
    pub(super) fn knows_the_last(&self) -> bool {
        self.of_pictures && self.tracks[self.main].are_numbered()
    }

    /// Returns all tracks but the pictures'.
    pub(super) fn others(&self) -> impl Iterator<Item = (usize, &Units)> {
        self.tracks.iter().enumerate().filter(|&(index, _)| index != self.main)
    }

    /// Returns the track with the buffer that counts, for which the clock stops: the pictures', until another
    /// shows by [`LEAD`] that none of them is due. Its evidence holds until a picture arrives.
    pub(super) fn leading(&self) -> usize {
        let Some(end) = self.tracks[self.main].newest_end().filter(|_| !self.knows_the_last()) else {
            return self.main;
        };
        let shown = end.max(self.others_then) + LEAD;
        let others = self.others().filter_map(|(index, other)| Some((index, other.newest()?)));
        let ahead = others.filter(|&(_, newest)| newest >= shown);
        ahead.max_by_key(|&(_, newest)| newest).map_or(self.main, |(index, _)| index)
    }

    /// Returns when all has arrived or never will, where the last picture is unknown.
    pub(super) fn all_due(&self) -> Option<Instant> {
        let due = self.due(self.end.filter(|_| !self.knows_the_last())?);
        // On a stream nothing is lost, and slow data may be on their way still.
        let slow = self.manner.in_order && self.over.is_none();
        Some(if slow { due.max(self.heard) + LATE_WINDOW } else { due })
    }

    /// Returns the track with the next due unit, and its due time.
    pub(super) fn next_due(&self) -> Option<(usize, Instant)> {
        let leading = self.leading();
        let tracks = self.tracks.iter().enumerate().filter_map(|(index, track)| {
            let at = track.next_at()?;
            let expected = match track.next() {
                Some(unit) => index != leading || !self.holds(leading, unit),
                None => index == leading && self.expects(leading, at),
            };
            expected.then_some((index, at))
        });
        tracks.min_by_key(|&(_, at)| at).map(|(index, at)| (index, self.due(at)))
    }

    /// Returns whether the track `leading`, which counts, should have a unit at `at`, though no part of it or
    /// of a later one arrived.
    fn expects(&self, leading: usize, at: Duration) -> bool {
        let tail = if self.knows_the_last() { Duration::ZERO } else { TAIL };
        let before_the_end = self.end.is_some_and(|end| at + tail < end);
        self.waits_at(leading, at) || before_the_end && self.tracks[leading].are_numbered()
    }

    /// Returns whether the clock stops for the track `leading`, which counts, rather than go past `at`.
    pub(super) fn waits_at(&self, leading: usize, at: Duration) -> bool {
        let tail = if self.manner.in_order && self.knows_the_last() { Duration::ZERO } else { TAIL };
        self.manner.stalls
            && self.over.is_none()
            && self.tracks[leading].is_dry()
            && self.end.is_none_or(|end| at + tail < end)
    }

    /// Returns whether the rest of `unit`, the next of the track `leading`, which counts, is on its way in
    /// order, and the clock does not stop for it: it falls due once it is whole.
    fn holds(&self, leading: usize, unit: &Unit) -> bool {
        self.manner.in_order
            && self.over.is_none()
            && unit.whole_at.is_none()
            && self.tracks[leading].is_dry()
            && !self.waits_at(leading, unit.at)
    }

    /// Returns the gathered media of the track `leading`, which counts, from the media's time `next` on, and
    /// its reach; the latter is `None` if nothing arrived.
    pub(super) fn gathered(&self, leading: usize, next: Duration) -> (Duration, Option<Duration>) {
        let leading = &self.tracks[leading];
        let newest = leading.newest_end();
        match self.manner.gathers {
            Gathers::Begun => (newest.unwrap_or(Duration::ZERO).saturating_sub(next), newest),
            Gathers::Whole => {
                let whole = leading.whole();
                (whole, newest.map(|_| next + whole))
            }
        }
    }
}

/// Returns when the media's time `time` is due, if its time `at` is at `base`.
pub(super) fn due(base: Instant, at: Duration, time: Duration) -> Instant {
    if time >= at { base + time.saturating_sub(at) } else { base - at.saturating_sub(time) }
}
