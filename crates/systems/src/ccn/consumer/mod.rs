//! The end that asks: one object after another, segment by segment, and each again that did not come in time.

pub mod window;

use std::collections::BTreeMap;

use streamgauge_base::{Chunk, Instant};

use window::{Stamp, Window};

/// A segment that is asked for.
struct Asked {
    stamp: Stamp,
    expires: Instant,
    tries: u32,
}

/// A segment was asked for as often as is allowed, and did not come.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("segment {segment} did not come, asked for {tries} times")]
pub struct GivenUp {
    /// Which.
    pub segment: u64,
    /// How often.
    pub tries: u32,
}

/// The final result of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FetchReport {
    /// Interests that were expressed.
    pub interests: u64,
    /// The Interests among them that expired.
    pub expired: u64,
    /// Bytes of content that were read.
    pub bytes: u64,
}

/// One object, from a segment on.
pub struct Fetch {
    /// The first segment that was never asked for, and the one that is read next.
    next: u64,
    read: u64,
    /// The last one, once that is known.
    last: Option<u64>,
    /// Nothing behind it is wanted.
    until: Option<u64>,
    asked: BTreeMap<u64, Asked>,
    /// Expired segments to be requested again, with the number of their tries.
    again: BTreeMap<u64, u32>,
    /// Segments that have arrived and wait to be read.
    held: BTreeMap<u64, Chunk>,
    most_tries: u32,
    report: FetchReport,
}

impl Fetch {
    /// Returns the fetch of the segments from `first` to `until`, with at most `most_tries` for each.
    pub fn new(first: u64, until: Option<u64>, most_tries: u32) -> Self {
        Fetch {
            next: first,
            read: first,
            last: None,
            until,
            asked: BTreeMap::new(),
            again: BTreeMap::new(),
            held: BTreeMap::new(),
            most_tries,
            report: FetchReport::default(),
        }
    }

    /// Returns the result so far.
    pub fn report(&self) -> FetchReport {
        self.report
    }

    /// Returns the last segment of the object, once that is known.
    pub fn last(&self) -> Option<u64> {
        self.last
    }

    /// Returns whether all wanted segments have been read.
    pub fn is_done(&self) -> bool {
        let end = match (self.last, self.until) {
            (Some(last), Some(until)) => last.min(until),
            (Some(last), None) => last,
            (None, Some(until)) => until,
            (None, None) => return false,
        };
        self.read > end
    }

    /// Returns the next segment to ask for, if the window has room for it.
    pub fn ask(&mut self, now: Instant, window: &mut Window) -> Option<u64> {
        let in_flight = self.asked.len() as u64;
        let (segment, tries) = match self.again.first_key_value() {
            // It has been let go already; it is on its way no more.
            Some((&segment, &tries)) => (segment, tries),
            None => {
                let end = self.last.unwrap_or(u64::MAX).min(self.until.unwrap_or(u64::MAX));
                // It is unknown whether there are more than the first, but a request for it reveals that.
                if self.next > end {
                    return None;
                }
                (self.next, 0)
            }
        };
        if !window.has_room(segment - self.read, in_flight) || window.departs() > now {
            return None;
        }
        if tries > 0 {
            self.again.remove(&segment);
        } else {
            self.next += 1;
        }
        let stamp = window.expressed(now, tries == 0, in_flight);
        self.asked.insert(segment, Asked { stamp, expires: now + window.timeout(), tries: tries + 1 });
        self.report.interests += 1;
        Some(segment)
    }

    /// Notes a received segment. `last` is the object's last, if its Data declares it. A segment that was not
    /// requested, or is a duplicate, is ignored.
    pub fn came(
        &mut self,
        now: Instant,
        window: &mut Window,
        segment: u64,
        content: Chunk,
        last: Option<u64>,
    ) {
        if let Some(last) = last.filter(|_| last != self.last) {
            self.last = Some(last);
            self.asked.retain(|asked, _| *asked <= last);
            self.again.retain(|again, _| *again <= last);
            // Where the object turns out to be longer after all, dropped segments are requested again.
            self.next = self.next.min(last.saturating_add(1)).max(self.read);
        }
        match self.asked.remove(&segment) {
            Some(asked) => window.answered(now, &asked.stamp, self.asked.len() as u64),
            // It was late, and is not asked for again.
            None if self.again.remove(&segment).is_some() => {}
            None => return,
        }
        self.held.insert(segment, content);
    }

    /// Returns the next bytes in order; the window advances with reading.
    pub fn take(&mut self) -> Option<Chunk> {
        let content = self.held.remove(&self.read)?;
        self.read += 1;
        self.report.bytes += content.len() as u64;
        Some(content)
    }

    /// Drops the segments that expired by `now`, and returns them in order.
    ///
    /// # Errors
    ///
    /// One of them was asked for as often as is allowed.
    pub fn expire(&mut self, now: Instant, window: &mut Window) -> Result<Vec<u64>, GivenUp> {
        let due: Vec<u64> = self
            .asked
            .iter()
            .filter(|(_, asked)| asked.expires <= now)
            .map(|(segment, _)| *segment)
            .collect();
        for &segment in &due {
            let Some(asked) = self.asked.remove(&segment) else { continue };
            self.report.expired += 1;
            window.expired(now, &asked.stamp);
            if asked.tries >= self.most_tries {
                return Err(GivenUp { segment, tries: asked.tries });
            }
            self.again.insert(segment, asked.tries);
        }
        Ok(due)
    }

    /// Returns when something expires, or may be asked for.
    pub fn deadline(&self, now: Instant, window: &Window) -> Option<Instant> {
        let expires = self.asked.values().map(|asked| asked.expires).min();
        let departs = Some(window.departs()).filter(|departs| *departs > now);
        expires.into_iter().chain(departs).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ccn::spec::{CcnPreset, CcnSettings};

    #[test]
    fn what_was_let_go_behind_an_end_that_moves_on_is_asked_for_again() {
        let mut window = Window::new(&CcnSettings::of(CcnPreset::NdnToday).window(), 1);
        let (mut fetch, now) = (Fetch::new(0, None, 3), Instant::ZERO);
        let mut asked = Vec::new();
        while fetch.read < 10 {
            asked.extend(std::iter::from_fn(|| fetch.ask(now, &mut window)));
            let segment = fetch.read;
            assert!(asked.contains(&segment), "{segment}");
            // Each declares the next segment to be the last, up to the ninth, which is the last.
            fetch.came(now, &mut window, segment, Chunk::filler(1), Some((segment + 1).min(9)));
            assert!(fetch.take().is_some());
        }
        assert!(fetch.is_done() && fetch.report().bytes == 10);
    }
}
