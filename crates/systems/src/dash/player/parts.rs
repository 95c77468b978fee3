//! Changes of period and of copy, and the parts that are left out.

use streamgauge_base::{Duration, Instant};

use super::clock::{Held, Shelf};
use super::exchange::{Exchange, What};
use super::track::{Part, Place, Track};
use super::{DashPlayer, Line};
use crate::abr::{self, Rule, Tuning};
use crate::app::Io;
use crate::dash::manifest::{AdaptationSet, Manifest, MediaKind, Representation, Segments};

impl DashPlayer {
    /// Ends at once because this player does not support the content.
    pub(super) fn refuse(&mut self, now: Instant, why: &str, io: &mut dyn Io) {
        self.is_refused = true;
        self.end(now, why, io);
    }

    /// Makes a track for each kind in the manifest, each with its periods. A live one begins at `from`.
    ///
    /// # Errors
    ///
    /// Nothing to play, or a rule that cannot be made.
    pub(super) fn lay_tracks(
        &mut self,
        now: Instant,
        manifest: &Manifest,
        from: Option<Duration>,
    ) -> Result<(), String> {
        for kind in [MediaKind::Video, MediaKind::Audio] {
            let mut parts = Part::all(manifest, kind);
            if let Some(from) = from {
                // Nothing is played of the periods before.
                let behind = parts.iter().rposition(|part| part.start <= from).unwrap_or(0);
                parts.drain(..behind);
            }
            let Some(begins) = parts.iter().position(|part| part.set.is_some()) else { continue };
            let silent: Vec<Part> = parts.drain(..begins).collect();
            let Some((part, set)) = parts.pop_front().and_then(|part| Some((part.clone(), part.set?))) else {
                continue;
            };
            let place = self.tracks.len();
            if place == 0 {
                self.content.is_sound = set.kind == MediaKind::Audio;
            }
            let rule = self.rule_of(place, &set, None)?;
            let mut track = Track::new(part, set, rule);
            track.later = parts;
            self.shelves.push(Shelf::default());
            self.tracks.push(track);
            silent.iter().for_each(|part| self.fill(now, place, part));
            let track = &mut self.tracks[place];
            // Ordinals of fillers are first.
            track.enter(track.part.clone(), track.set.clone());
            track.know(manifest.duration, manifest.goes_on());
            if place > 0 && self.settings.parallel {
                let mut line = Line::new(&self.source, &self.settings);
                line.requester.allow(&self.allowed);
                self.lines.push(line);
            }
        }
        if self.settings.init_beside && self.beside.is_none() {
            let mut line = Line::new(&self.source, &self.settings);
            line.requester.allow(&self.allowed);
            self.beside = Some(self.lines.len());
            self.lines.push(line);
        }
        if self.tracks.is_empty() {
            Err("the manifest has neither pictures nor sound".into())
        } else {
            Ok(())
        }
    }

    fn rule_of(
        &self,
        track: usize,
        set: &AdaptationSet,
        initial: Option<Tuning>,
    ) -> Result<Box<dyn Rule>, String> {
        let tuning = initial.unwrap_or_else(|| self.settings.tuning(self.seed.wrapping_add(track as u64)));
        // A single level leaves no choice.
        match set.representations.len() {
            1 => Ok(abr::fixed(&tuning)),
            _ => abr::make(&self.settings.rule, &tuning),
        }
    }

    /// The track's rule begins anew, as its levels are others. It starts with the old estimate of the throughput.
    fn renew_rule(&mut self, now: Instant, track: usize, io: &mut dyn Io) {
        let one = &self.tracks[track];
        let usual = self.settings.tuning(self.seed.wrapping_add(track as u64));
        let tuning = Tuning { initial: one.estimate.or(one.measured).or(usual.initial), ..usual };
        match self.rule_of(track, &one.set, Some(tuning)) {
            Ok(rule) => {
                let one = &mut self.tracks[track];
                (one.rule, one.level) = (rule, None);
            }
            Err(why) => self.end(now, &why, io),
        }
    }

    /// Nothing is asked for in a period that has none of the track's kind.
    fn fill(&mut self, now: Instant, track: usize, part: &Part) {
        let Some(end) = part.end else { return };
        let position = self.position(now);
        let one = &mut self.tracks[track];
        let (ordinal, start) = (one.next, part.start);
        (one.next, one.asked_to) = (ordinal + 1, end);
        self.shelves[track].push(
            Held { ordinal, start, end, bps: 0, bytes: 0, frames: 0, is_filler: true, times: Vec::new() },
            position,
        );
    }

    /// Moves to the track's next period. Returns false if there is none, or if a part of this one is still in flight.
    pub(super) fn next_part(&mut self, now: Instant, track: usize, io: &mut dyn Io) -> bool {
        let is_under_way = |what: What| what.track() == Some(track);
        if self.lines.iter().flat_map(|line| &line.exchanges).any(|one| is_under_way(one.what)) {
            return false;
        }
        while let Some(mut part) = self.tracks[track].later.pop_front() {
            let Some(set) = part.set.take() else {
                self.fill(now, track, &part);
                continue;
            };
            let ends = self.duration();
            let goes_on = self.manifest.as_ref().is_some_and(Manifest::goes_on);
            let one = &mut self.tracks[track];
            let before = one.ladder.rates.clone();
            one.enter(part, set);
            one.know(ends, goes_on);
            if one.ladder.rates != before {
                self.renew_rule(now, track, io);
            }
            return true;
        }
        // A live presentation may still get a period.
        let goes_on = self.manifest.as_ref().is_some_and(Manifest::goes_on) && self.duration().is_none();
        self.tracks[track].is_complete = !goes_on;
        false
    }

    /// An address at a host without requests is skipped if there is another copy.
    pub(super) fn passes_over(&mut self, now: Instant, track: usize, level: usize, url: &str) -> bool {
        let is_asked = self.lines[0].requester.find(url).is_ok();
        !is_asked && self.try_another_copy(now, track, level, "it is at another server")
    }

    /// The manifest's bytes are read once more, without the copies that have failed. False: there is no other one.
    pub(super) fn try_another_copy(&mut self, now: Instant, track: usize, level: usize, why: &str) -> bool {
        let copy = self.tracks[track].set.representations.get(level).and_then(|one| one.copy.clone());
        let Some(copy) = copy else { return false };
        self.failed_copies.insert(copy.clone());
        let url = self.manifest_at.url.clone();
        let Ok(manifest) = Manifest::read_without(&self.manifest_bytes, &url, &self.failed_copies) else {
            return false;
        };
        self.left_out.push(format!("{copy}: {why}, another copy is asked for"));
        self.manifest_again_came(now, manifest);
        true
    }

    /// The resource has another copy's address by now.
    pub(super) fn has_moved(&self, exchange: &Exchange) -> bool {
        let of = |track: usize, level: usize| self.tracks[track].set.representations.get(level);
        let now = match exchange.what {
            What::Manifest => None,
            What::Segment(track, level, ordinal) => match self.tracks[track].place(level, ordinal) {
                Place::Found(segment) => Some(segment.address),
                _ => None,
            },
            What::Init(track, level) => of(track, level).and_then(|one| one.init.clone()),
            What::Playlist(track, level) | What::Index(track, level) => {
                of(track, level).and_then(|one| match &one.segments {
                    Segments::Playlist(address) | Segments::Indexed { address, .. } => Some(address.clone()),
                    _ => None,
                })
            }
        };
        now.is_some_and(|address| address != exchange.address)
    }

    /// A manifest that was read again: its lists have grown, or stand at another copy.
    pub(super) fn manifest_again_came(&mut self, now: Instant, manifest: Manifest) {
        let (ends, goes_on) = (manifest.duration, manifest.goes_on());
        for track in &mut self.tracks {
            let kind = track.set.kind;
            let mut parts = Part::all(&manifest, kind);
            match parts.iter().position(|part| part.is(&track.part)) {
                Some(place) => {
                    track.later = parts.split_off(place + 1);
                    let Some(part) = parts.pop_back() else { continue };
                    if let Some(set) = &part.set {
                        update(track, set);
                    }
                    track.part.end = part.end;
                    track.know(ends, goes_on);
                }
                // The period is listed no more: its known segments are all.
                None => {
                    let end = track.part.end.unwrap_or(track.asked_to);
                    track.later = parts.into_iter().filter(|part| part.start >= end).collect();
                    track.close();
                }
            }
            track.is_complete &= track.later.is_empty();
        }
        self.manifest_read = now;
        self.manifest = Some(manifest);
    }

    /// A level that cannot be played is left out; without any other one its track is, and without any other track it
    /// ends.
    pub(super) fn leave_out(&mut self, now: Instant, track: usize, level: usize, why: &str, io: &mut dyn Io) {
        let one = &self.tracks[track];
        let is_last = one.set.representations.len() == 1;
        if is_last && (self.tracks.len() == 1 || !one.later.is_empty() || one.first > 0) {
            return self.refuse(now, why, io);
        }
        let noun = if one.is_video() { "pictures" } else { "sound" };
        let id = one.set.representations.get(level).map_or("", |one| one.id.as_str());
        self.left_out.push(format!("{noun} {id}: {why}"));
        for line in 0..self.lines.len() {
            self.drop_exchanges(line, io);
        }
        if is_last {
            self.tracks.remove(track);
            self.shelves.remove(track);
        } else {
            self.tracks[track].leave_out(level);
            self.renew_rule(now, track, io);
        }
    }
}

/// Takes the segments that a set lists now.
fn update(track: &mut Track, set: &AdaptationSet) {
    for (level, told) in set.representations.iter().enumerate() {
        let Some(known) = track.set.representations.get_mut(level) else { continue };
        let Representation { init, segments, copy, .. } = told.clone();
        let is_moved = known.segments != segments;
        // Another copy's initialization is the same.
        if let (Some(old), Some(new)) = (&known.init, &init)
            && old != new
            && let Some(timing) = track.inits.get(old).copied()
        {
            track.inits.insert(new.clone(), timing);
            let of_tracks = track.known.get(&(level, Some(old.clone()))).cloned().unwrap_or_default();
            track.known.insert((level, Some(new.clone())), of_tracks);
        }
        let is_asked_for = matches!(segments, Segments::Indexed { .. } | Segments::Playlist(_));
        if is_moved && is_asked_for {
            track.indexes[level] = None;
        }
        (known.segments, known.copy) = (segments, copy);
        known.init = init.or(known.init.take());
    }
}
