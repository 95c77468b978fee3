//! The choice of the next request, its line, and its data for the server.

use streamgauge_base::{Duration, Instant};

use super::clock::{Clock, Held};
use super::exchange::{Exchange, What};
use super::requester::Asking;
use super::track::{Chosen, Place};
use super::{DashPlayer, LEAST_RELOAD};
use crate::app::Io;
use crate::dash::manifest::{Address, Live, MediaSegment, Segments};

/// The distance of a browser's clock from the end of the held media when that runs dry. The missing part is requested
/// from there. It is half a picture's time at 25 pictures a second, as in real trials (docs/fidelity-abr.md).
const STANDS_BEFORE: Duration = Duration::from_millis(20);

/// After a segment was given up, nothing that is held is replaced for so long (dash.js 5.2.1, `abandonLoadTimeout`).
const WARY: Duration = Duration::from_secs(10);

impl DashPlayer {
    fn ask(
        &mut self,
        now: Instant,
        line: usize,
        what: What,
        address: Address,
        segment: Option<MediaSegment>,
        io: &mut dyn Io,
    ) {
        let there = match self.lines[line].requester.find(&address.url) {
            Ok(there) => there,
            Err(why) => return self.refuse(now, &why, io),
        };
        let headers =
            if self.settings.cmcd { self.client_data(now, what, segment.as_ref()) } else { Vec::new() };
        self.asked_at.get_or_insert(now);
        let first = address.range.map_or(0, |(first, _)| first);
        let reason = match address.range {
            Some((first, last)) => format!("{} bytes={first}-{last}", there.target),
            None => there.target.clone(),
        };
        self.events.say(now, "http_request", first as f64, "B", reason);
        let asking = Asking { there, range: address.range, headers };
        let one = &mut self.lines[line];
        let front_since = one.exchanges.is_empty().then_some(now);
        one.exchanges.push_back(Exchange { front_since, ..Exchange::new(what, address, segment, now) });
        if let Err(wrong) = one.requester.ask(now, asking, io) {
            self.end(now, &wrong.to_string(), io);
        }
    }

    /// Common Media Client Data of a request (CTA-5004), by its header fields.
    fn client_data(
        &self,
        now: Instant,
        what: What,
        segment: Option<&MediaSegment>,
    ) -> Vec<(&'static str, String)> {
        let session = "CMCD-Session";
        let form = if self.settings.format.starts_with("hls") { "h" } else { "d" };
        let kind = if self.manifest.as_ref().is_some_and(|one| one.live.is_some()) { "l" } else { "v" };
        let mut told = vec![(session, format!("sf={form},sid=\"{:016x}\",st={kind}", self.seed))];
        let of = match what {
            What::Manifest | What::Playlist(..) => "m",
            What::Init(..) | What::Index(..) => "i",
            What::Segment(track, ..) if self.tracks[track].is_video() => "v",
            What::Segment(..) => "a",
        };
        if let (What::Segment(track, level, _), Some(segment)) = (what, segment) {
            let one = &self.tracks[track];
            let length = segment.duration.as_secs_f64() * 1000.0;
            // A rate that no manifest states is left out.
            let rate = |name: &str, level| {
                one.ladder.declared_bps(level).map(|bps| format!("{name}={:.0}", bps / 1000.0))
            };
            let middle = [format!("d={length:.0}"), format!("ot={of}")];
            let keys = rate("br", level).into_iter().chain(middle).chain(rate("tb", one.ladder.top()));
            told.push(("CMCD-Object", keys.collect::<Vec<_>>().join(",")));
            let situation = self.situation(now, track);
            // To the nearest 100 ms, as the specification has it.
            let held = (situation.buffer.as_secs_f64() * 10.0).round() * 100.0;
            let starts = if situation.playing { "" } else { ",su" };
            told.push(("CMCD-Request", format!("bl={held:.0}{starts}")));
        } else {
            told.push(("CMCD-Object", format!("ot={of}")));
        }
        told
    }

    /// Sends the next request on each line that has room.
    pub(super) fn ask_more(&mut self, now: Instant, io: &mut dyn Io) {
        if self.paused {
            return;
        }
        if self.manifest.is_none() {
            let is_asked = !self.lines[0].exchanges.is_empty();
            if !is_asked && self.manifest_again.is_none_or(|at| at <= now) {
                self.manifest_again = None;
                let address = self.manifest_at.clone();
                self.ask(now, 0, What::Manifest, address, None, io);
            }
            return;
        }
        self.reload_manifest(now, io);
        // If tracks share a line, the one with less media is first.
        let mut order: Vec<usize> = (0..self.tracks.len()).collect();
        order.sort_by_key(|&track| self.tracks[track].asked_to);
        for track in order {
            while !self.gone && self.has_room_for_request(track) && self.ask_next(now, track, io) {}
        }
    }

    fn reload_manifest(&mut self, now: Instant, io: &mut dyn Io) {
        let Some(at) = self.manifest_due() else { return };
        let is_asked = self.lines[0].exchanges.iter().any(|exchange| exchange.what == What::Manifest);
        if at <= now && !is_asked && self.lines[0].exchanges.is_empty() {
            self.manifest_again = None;
            let address = self.manifest_at.clone();
            self.ask(now, 0, What::Manifest, address, None, io);
        }
    }

    /// When a live manifest is to be fetched again: its lists grow, and periods are added.
    pub(super) fn manifest_due(&self) -> Option<Instant> {
        let update = self.live()?.update?;
        let is_dash = !self.settings.format.starts_with("hls");
        (!self.tracks.is_empty() && is_dash)
            .then(|| self.manifest_again.unwrap_or(self.manifest_read + update.max(LEAST_RELOAD)))
    }

    /// Whether the track's line takes another request.
    pub(super) fn has_room_for_request(&self, track: usize) -> bool {
        let line = &self.lines[self.line_of(track)];
        let depth = self.settings.pipeline as usize;
        match line.exchanges.back() {
            None => true,
            Some(_) if line.exchanges.len() >= depth || !self.settings.persistent => false,
            // After a segment with enough received bytes.
            Some(last) => {
                let enough = u64::from(self.settings.choose_at_percent);
                let of = last.length.unwrap_or(u64::MAX / 100);
                matches!(last.what, What::Segment(..)) && last.bytes * 100 >= of.saturating_mul(enough)
            }
        }
    }

    /// Requests the track's next part. Returns false if nothing is to be requested now.
    fn ask_next(&mut self, now: Instant, track: usize, io: &mut dyn Io) -> bool {
        if self.tracks[track].is_complete || self.tracks[track].again.is_some_and(|at| at > now) {
            return false;
        }
        self.tracks[track].again = None;
        if !self.settings.stops_reading && !self.has_room(now, track) {
            return false;
        }
        let line = self.line_of(track);
        // Without any list there is no choice of levels.
        let unlisted = self.tracks[track].indexes.iter().all(Option::is_none);
        if !unlisted && self.tracks[track].chosen.is_none() {
            let known = self.tracks[track].indexes.iter().position(Option::is_some).unwrap_or(0);
            // Too old to be there still, or before the first that a live list ever had.
            if let Some((first, _)) = self.tracks[track].listed_now(known) {
                self.tracks[track].next = self.tracks[track].next.max(first);
            }
            match self.tracks[track].place(known, self.tracks[track].next) {
                Place::End => return self.next_part(now, track, io),
                Place::Found(segment) if !self.is_available(now, &segment) => return false,
                Place::NotYet => return false,
                _ => {}
            }
        }
        let Some(chosen) = self.choose(now, track) else { return false };
        let (level, ordinal) = (chosen.level, self.tracks[track].next);
        let segment = match self.tracks[track].place(level, ordinal) {
            Place::Found(segment) => segment,
            Place::End => return self.next_part(now, track, io),
            Place::NotYet => return false,
            Place::Ask(address) => {
                if self.tracks[track].goes_on(level) && self.tracks[track].reload.is_some_and(|at| at > now) {
                    return false;
                }
                if self.passes_over(now, track, level, &address.url) {
                    return true;
                }
                let what = match self.tracks[track].set.representations[level].segments {
                    Segments::Indexed { .. } => What::Index(track, level),
                    _ => What::Playlist(track, level),
                };
                self.ask(now, line, what, address, None, io);
                return false;
            }
        };
        // Too old to be there still.
        if let Some((first, _)) = self.tracks[track].listed_now(level)
            && ordinal < first
        {
            self.tracks[track].next = first;
            return true;
        }
        if !self.is_available(now, &segment) {
            return false;
        }
        let one = &self.tracks[track];
        let init = segment.init.as_deref().or(one.set.representations[level].init.as_ref());
        let init = init.filter(|init| !one.inits.contains_key(*init)).cloned();
        if self.passes_over(now, track, level, &init.as_ref().unwrap_or(&segment.address).url) {
            return true;
        }
        self.share_lines(track, init.is_some());
        if let Some(init) = init {
            let beside = self.beside.filter(|_| self.is_beside(track));
            self.ask(now, beside.unwrap_or(line), What::Init(track, level), init, None, io);
            if beside.is_none() || self.gone {
                return false;
            }
        }
        let kept = self.tracks[track].cached.get(&(level, ordinal)).cloned();
        let one = &mut self.tracks[track];
        (one.level, one.chosen, one.next) = (Some(level), None, ordinal + 1);
        one.asked_to = segment.start + segment.duration;
        if let Some(held) = kept {
            self.cache_had(now, track, level, held);
            return true;
        }
        self.ask(now, line, What::Segment(track, level, ordinal), segment.address.clone(), Some(segment), io);
        true
    }

    /// With so much media held, or on its way, no segment of the track is asked for.
    pub(super) fn full(&self, track: usize) -> Duration {
        let (most, one) = (self.settings.buffer, &self.tracks[track]);
        let segment = one.ladder.segment;
        // A buffer that no segment fits takes one all the same.
        let fits = self.settings.fits_whole && one.is_video() && segment < most;
        if fits { most.saturating_sub(segment) } else { most }
    }

    /// Media held, and on its way.
    pub(super) fn held_or_asked(&self, now: Instant, track: usize) -> Duration {
        let position = self.position(now);
        // A replacement for a held segment is requested before new media.
        let held = self.shelves.get(track).map_or(position, |shelf| shelf.end(position));
        held.max(self.tracks[track].asked_to).saturating_sub(position)
    }

    /// Returns whether less media is held and in flight than the buffer takes, and reports a change of that.
    fn has_room(&mut self, now: Instant, track: usize) -> bool {
        if self.tracks[track].look.is_some_and(|at| at > now) {
            return false;
        }
        let (held, full) = (self.held_or_asked(now, track), self.full(track));
        let looks_each = Some(self.settings.look_each).filter(|each| *each > Duration::ZERO);
        let one = &mut self.tracks[track];
        let is_full = held >= full && self.clock.as_ref().is_some_and(Clock::is_playing);
        one.look = looks_each.filter(|_| is_full).map(|each| now + each);
        match (is_full, one.off) {
            (true, None) => {
                one.off = Some(now);
                if track == 0 {
                    self.events.say(now, "download_off", held.as_secs_f64(), "s", "");
                }
            }
            (false, Some(since)) => {
                one.off = None;
                one.rule.idled(now.saturating_since(since));
                if track == 0 {
                    self.events.say(now, "download_on", held.as_secs_f64(), "s", "");
                }
            }
            _ => {}
        }
        !is_full
    }

    /// Returns whether the line is read now. It is not while the buffer is full and the player stops reading.
    pub(super) fn hold_off(&mut self, now: Instant, line: usize) {
        if !self.settings.stops_reading {
            return;
        }
        let Some(track) = self.lines[line].exchanges.front().and_then(|exchange| match exchange.what {
            What::Segment(track, ..) => Some(track),
            _ => None,
        }) else {
            return;
        };
        let held = self.situation(now, track).buffer;
        let is_full = held >= self.settings.buffer && self.clock.as_ref().is_some_and(Clock::is_playing);
        let one = &mut self.lines[line];
        match (is_full, one.held_off) {
            (true, None) => {
                one.held_off = Some(now);
                self.events.say(now, "download_off", held.as_secs_f64(), "s", "");
            }
            (false, Some(since)) => {
                one.held_off = None;
                one.requester.go_on(now);
                if let Some(exchange) = one.exchanges.front_mut() {
                    exchange.unread += now.saturating_since(since);
                }
                self.tracks[track].rule.idled(now.saturating_since(since));
                self.events.say(now, "download_on", held.as_secs_f64(), "s", "");
            }
            _ => {}
        }
    }

    /// Whether a live segment is whole at the server.
    fn is_available(&self, now: Instant, segment: &MediaSegment) -> bool {
        self.available_at(segment).is_none_or(|at| at <= now)
    }

    pub(super) fn available_at(&self, segment: &MediaSegment) -> Option<Instant> {
        let Live { starts: Some(starts), early, .. } = self.live()? else { return None };
        let there = (starts + segment.start + segment.duration).saturating_sub(early);
        let now_zero = self.server_zero.unwrap_or(0.0);
        let at = there.as_secs_f64() - now_zero;
        Some(Instant::from_nanos((at.max(0.0) * 1e9).ceil() as u64))
    }

    /// The level of the track's next segment; `None` while the rule waits.
    fn choose(&mut self, now: Instant, track: usize) -> Option<Chosen> {
        if self.tracks[track].chosen.is_none() {
            let (decision, held) = self.with_rule(now, track, |rule, now| (rule.decide(now), now.buffer));
            let level = decision.level.min(self.tracks[track].ladder.top());
            let goes_back = self.go_back(now, track, level);
            let one = &mut self.tracks[track];
            if track == 0 {
                let bps = one.ladder.declared_bps(level);
                let before = one.level.and_then(|level| one.ladder.declared_bps(level));
                let before = before.map_or(String::new(), |bps| format!(", was {:.0}", bps / 1000.0));
                let estimate = decision
                    .estimate
                    .map_or(String::new(), |rate| format!("; estimate {} kbit/s", rate.as_bps() / 1000));
                let reason = format!(
                    "segment {}{}: {}{before}: {}{estimate}; {:.3} s held",
                    one.next,
                    if goes_back { " again" } else { "" },
                    one.ladder.in_words(level),
                    decision.why,
                    held.as_secs_f64()
                );
                self.events.say(now, "decision", bps, "bit/s", reason);
                if let Some(rate) = decision.estimate {
                    self.events.say(now, "estimate", rate.as_bps() as f64, "bit/s", "");
                }
            }
            // No wait lets the buffer run dry.
            let wait = decision.wait.min(held);
            one.chosen = Some(Chosen { level, from: now + wait });
            one.estimate = decision.estimate.or(one.estimate);
            if wait > Duration::ZERO {
                one.rule.idled(wait);
            }
        }
        self.tracks[track].chosen.filter(|chosen| chosen.from <= now)
    }

    /// Where `level` is another than before, and above that of the segment at the play position, the track continues
    /// from there. dash.js 5.2.1 adds 1.5 lengths of a segment to the position. But it reads the length from a
    /// representation that has none yet, which is null, and therefore adds nothing.
    fn go_back(&mut self, now: Instant, track: usize, level: usize) -> bool {
        let one = &self.tracks[track];
        let changes = one.level.is_some_and(|before| before != level);
        let is_wary = one.gave_up.is_some_and(|at| now.saturating_since(at) < WARY);
        if !self.settings.fast_switch || !changes || is_wary {
            return false;
        }
        let bps = one.ladder.rates[level].as_bps();
        let first = one.first;
        let is_lower = |held: &&Held| held.bps < bps && held.ordinal >= first;
        let position = self.position(now).saturating_sub(STANDS_BEFORE);
        let shown = self.shelves[track].at(position);
        let Some(replaced) = shown.filter(is_lower) else { return false };
        let (next, start) = (replaced.ordinal, replaced.start);
        (self.tracks[track].next, self.tracks[track].asked_to) = (next, start);
        true
    }
}
