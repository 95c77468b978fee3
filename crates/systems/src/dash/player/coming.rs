//! The results of requests: bytes, complete answers, failures.

use streamgauge_base::{BitRate, Chunk, Duration, Instant};

use super::clock::{Clock, Held};
use super::exchange::{Exchange, What};
use super::fragment::{Timing, shown_of};
use super::requester::{Answer, Failure};
use super::track::{Chosen, Place};
use super::{DashPlayer, LEAST_RELOAD};
use crate::abr::{Fetched, Situation};
use crate::app::Io;
use crate::dash::manifest::{
    Flaw, Live, Manifest, ManifestError, MediaSegment, Oddity, Playlist, Segments, check_length,
    encryption_of_init, read_index, read_playlist,
};
use crate::media::segment::{Counted, Counter, Known};

/// This much of a segment's head is kept for the data of its fragments.
const MOST_HEAD: usize = 256 << 10;

/// The longest wait before a segment is asked for again.
const LONGEST_BACKOFF: Duration = Duration::from_secs(8);

impl DashPlayer {
    /// Handles the event of the request at a line's front. Returns false if there are no more events.
    pub(super) fn take(&mut self, now: Instant, line: usize, io: &mut dyn Io) -> bool {
        if self.lines[line].held_off.is_some() || self.waits_for_init(line) {
            return false;
        }
        let one = &mut self.lines[line];
        let Some(answer) = one.requester.next(now, io) else { return false };
        match answer {
            Answer::Redirected { status, to } => {
                self.events.say(now, "http_redirect", f64::from(status), "1", to);
            }
            Answer::Head { length, date, at } => {
                if let Some(exchange) = one.exchanges.front_mut() {
                    (exchange.first_byte, exchange.length) = (Some(now), length);
                    // References in it are relative to its own address (RFC 3986 section 5.1.3).
                    if !matches!(exchange.what, What::Segment(..) | What::Init(..)) {
                        exchange.address.url = at;
                    }
                }
                // A date has whole seconds: it is half a second late on average.
                let zero = date.map(|date| date as f64 + 0.5 - now.as_secs_f64());
                self.server_zero = self.server_zero.or(zero);
            }
            Answer::Body(chunk, came) => self.body(now, line, &chunk, came, io),
            Answer::Done => self.done(now, line, io),
            Answer::Failed(failure) => self.failed(now, line, failure, io),
        }
        !self.gone
    }

    /// Takes bytes of a body, and their number as they arrived.
    fn body(&mut self, now: Instant, line: usize, chunk: &Chunk, came: u64, io: &mut dyn Io) {
        self.bytes += came;
        let Some(exchange) = self.lines[line].exchanges.front_mut() else { return };
        let what = exchange.what;
        let before = exchange.head.len().max(exchange.bytes as usize) as u64;
        exchange.bytes += came;
        match what {
            What::Segment(track, level, _) | What::Init(track, level) => {
                let room = MOST_HEAD.saturating_sub(exchange.head.len());
                // Only the bytes before any filler are in place.
                if exchange.head.len() as u64 == before {
                    exchange.head.extend(&chunk.head()[..chunk.head().len().min(room)]);
                }
                let known = || self.tracks[track].known_before(level, exchange.segment.as_ref());
                exchange.counter.get_or_insert_with(|| Counter::new(known())).push(chunk);
                if track == 0 && self.kept.is_some() {
                    exchange.body.push(chunk.clone());
                }
                self.consider_abandoning(now, line, io);
            }
            _ => {
                let length = exchange.head.len() as u64 + chunk.len() as u64;
                if let Err(error) = check_length(length.max(exchange.length.unwrap_or(0))) {
                    let why = format!("{}: {error}", exchange.address.url);
                    return self.refuse(now, &why, io);
                }
                exchange.head.extend(chunk.head());
                exchange.head.resize(length as usize, 0);
            }
        }
    }

    /// The state of the front's answer so far.
    pub(super) fn fetched_of(&mut self, now: Instant, line: usize, abandoned: bool) -> Option<Fetched> {
        let exchange = self.lines[line].exchanges.front()?;
        let What::Segment(track, level, ordinal) = exchange.what else { return None };
        let late = self.late_at_end(now, track);
        let exchange = self.lines[line].exchanges.front()?;
        let front = exchange.front_since.unwrap_or(now);
        Some(Fetched {
            segment: ordinal as usize,
            level,
            bytes: exchange.bytes,
            asked: self.since(exchange.asked),
            first_byte: self.since(exchange.first_byte.unwrap_or(now)),
            done: self.since(now),
            seen: self.since(now + late),
            appended: self.since(now + self.tracks[track].append_time),
            reading: now.saturating_since(front).saturating_sub(exchange.unread),
            abandoned,
        })
    }

    pub(super) fn tell(&mut self, now: Instant, track: usize, fetched: &Fetched) {
        self.with_rule(now, track, |rule, now| rule.fetched(fetched, now));
    }

    /// Drops the requests of a line; the segments among them are next again.
    pub(super) fn drop_exchanges(&mut self, line: usize, io: &mut dyn Io) {
        if let Some(beside) = self.beside.filter(|beside| *beside != line)
            && self.lines[beside].exchanges.front().is_some_and(|init| self.is_line_of(line, init.what))
        {
            self.drop_exchanges(beside, io);
        }
        self.lines[line].requester.cancel(io);
        self.lines[line].held_off = None;
        while let Some(exchange) = self.lines[line].exchanges.pop_back() {
            self.next_again(&exchange);
        }
    }

    pub(super) fn next_again(&mut self, exchange: &Exchange) {
        let What::Segment(track, _, ordinal) = exchange.what else { return };
        let one = &mut self.tracks[track];
        one.next = one.next.min(ordinal);
        one.is_complete = false;
        one.chosen = None;
        if let Some(segment) = &exchange.segment {
            one.asked_to = one.asked_to.min(segment.start);
        }
    }

    fn done(&mut self, now: Instant, line: usize, io: &mut dyn Io) {
        if self.gives_up_whole(now, line) {
            return;
        }
        let fetched = self.fetched_of(now, line, false);
        let Some(exchange) = self.lines[line].exchanges.front_mut() else { return };
        let counter = exchange.counter.take().unwrap_or_else(|| Counter::new(Known::default()));
        let (counted, known) = counter.finish();
        if let Some(why) = cut_short(exchange, &counted) {
            return self.failed(now, line, Failure::for_now(why), io);
        }
        let Some(mut exchange) = self.lines[line].exchanges.pop_front() else { return };
        match exchange.what {
            What::Segment(track, level, _) => {
                self.tracks[track].learn(level, exchange.segment.as_ref(), known);
            }
            What::Init(track, level) => {
                self.tracks[track].known.insert((level, Some(exchange.address.clone())), known);
            }
            _ => {}
        }
        if let Some(next) = self.lines[line].exchanges.front_mut() {
            next.front_since = Some(now);
        }
        if let Some(kept) = &mut self.kept {
            kept.extend(exchange.body.drain(..));
        }
        match exchange.what {
            What::Manifest => self.manifest_came(now, &exchange, io),
            What::Playlist(track, level) => {
                let url = &exchange.address.url;
                let variables = self.manifest.as_ref().map_or(&[][..], |manifest| &manifest.variables);
                match read_playlist(&exchange.head, url, variables) {
                    Ok(playlist) => {
                        self.playlist_came(now, track, level, playlist);
                        self.init_came(now, track, line);
                    }
                    Err(error) => self.unreadable(now, (track, level), url, &error, io),
                }
            }
            What::Index(track, level) => {
                let first = exchange.address.range.map_or(0, |(first, _)| first);
                let Segments::Indexed { window, .. } = self.tracks[track].set.representations[level].segments
                else {
                    return;
                };
                let url = &exchange.address.url;
                match read_index(&exchange.head, first, url, &window) {
                    Ok(segments) => {
                        self.tracks[track].listed(level, segments, true);
                        self.begin_in_list(track, level);
                    }
                    Err(error) => self.unreadable(now, (track, level), url, &error, io),
                }
            }
            What::Init(track, level) => match encryption_of_init(&exchange.head) {
                Some(scheme) => {
                    let url = &exchange.address.url;
                    let why =
                        format!("{url}: its media are encrypted with {scheme}; name a clear presentation");
                    self.leave_out(now, track, level, &why, io);
                }
                None => {
                    let timing = Timing::of_init(&exchange.head);
                    self.tracks[track].inits.insert(exchange.address, timing);
                    self.init_came(now, track, line);
                }
            },
            What::Segment(track, level, ordinal) => {
                let (Some(fetched), Some(segment)) = (fetched, exchange.segment) else { return };
                self.segment_came(
                    now,
                    (track, level, ordinal),
                    &segment,
                    (&exchange.head, counted),
                    &fetched,
                );
            }
        }
    }

    /// A page takes its time over an initialization or a playlist too. Those before the first segment are in `set_up`.
    /// A request beside the page's segment delays no other request.
    fn init_came(&mut self, now: Instant, track: usize, line: usize) {
        if self.tracks[track].has_appended && self.beside != Some(line) {
            let time = self.page.draw(&self.settings.init_append);
            let one = &mut self.tracks[track];
            one.again = (time > Duration::ZERO).then_some(now + time).or(one.again);
        }
    }

    /// A playlist or index that cannot be read ends it; an encrypted one is left out.
    fn unreadable(
        &mut self,
        now: Instant,
        (track, level): (usize, usize),
        url: &str,
        error: &ManifestError,
        io: &mut dyn Io,
    ) {
        let why = format!("{url}: {error}");
        if matches!(error, ManifestError::Encrypted { .. }) {
            self.leave_out(now, track, level, &why, io);
        } else {
            self.refuse(now, &why, io);
        }
    }

    fn playlist_came(&mut self, now: Instant, track: usize, level: usize, playlist: Playlist) {
        let (live, target, is_ended) = (playlist.live(), playlist.target, playlist.is_ended);
        if is_ended {
            let flaws = playlist.flaws(&self.tracks[track].set.representations[level].id);
            self.say_flaws(now, flaws);
        }
        for part in playlist.left_out {
            if !self.left_out.contains(&part) {
                self.left_out.push(part);
            }
        }
        let one = &mut self.tracks[track];
        let before = one.listed_now(level);
        one.listed(level, playlist.segments, is_ended);
        // Asked for again after a segment's time, or half of it where nothing had come (RFC 8216 section 6.3.4).
        let wait = if one.listed_now(level) == before { target.div(2) } else { target };
        one.reload = (!is_ended).then(|| now + wait.max(LEAST_RELOAD));
        match live {
            Some(live) if self.live().is_none() => self.go_live(track, level, live),
            None if self.duration().is_none() => self.ends_with(track, level),
            _ => {}
        }
        self.begin_in_list(track, level);
    }

    /// A track without a request begins with the segment at `begin_at`, once a list gives its place.
    fn begin_in_list(&mut self, track: usize, level: usize) {
        let (begin, is_live) = (self.settings.begin_at, self.live().is_some());
        let early = self.settings.begin_early;
        let one = &mut self.tracks[track];
        if is_live || begin == Duration::ZERO || one.level.is_some() {
            return;
        }
        let begin = begin.saturating_sub(early);
        if let Some((first, last)) = one.listed_now(level) {
            let found = (first..=last).rev().find(|at| starts_by(one.place(level, *at), begin));
            one.next = found.unwrap_or(first);
        }
    }

    /// Missing and double segments are reported, and played around.
    fn say_flaws(&mut self, now: Instant, flaws: Vec<Flaw>) {
        for flaw in flaws {
            let (Oddity::Gap(from, _) | Oddity::Overlap(from, _)) = flaw.what;
            self.events.say(now, "manifest_flaw", from.as_secs_f64(), "s", flaw.to_string());
        }
    }

    /// A live playlist: its presentation is live.
    fn go_live(&mut self, track: usize, level: usize, live: Live) {
        let segment = self.tracks[track].ladder.segment;
        if let Some(manifest) = &mut self.manifest {
            (manifest.live, manifest.duration) = (Some(live), None);
        }
        let delay = self.live_delay(segment).as_nanos().div_ceil(segment.as_nanos().max(1));
        let last = self.tracks[track].listed_now(level).map_or(0, |(first, last)| {
            // Play begins so far from the end (RFC 8216 section 6.3.3).
            (last + 1).saturating_sub(delay).max(first)
        });
        for one in &mut self.tracks {
            one.next = last;
            one.ladder.segments = None;
        }
    }

    /// An ended playlist: its length is the presentation's.
    fn ends_with(&mut self, track: usize, level: usize) {
        let Some((_, last)) = self.tracks[track].listed_now(level) else { return };
        if let (Place::Found(segment), Some(manifest)) =
            (self.tracks[track].place(level, last), &mut self.manifest)
            && manifest.live.is_none()
        {
            manifest.duration = Some(segment.start + segment.duration);
        }
    }

    fn segment_came(
        &mut self,
        now: Instant,
        (track, level, ordinal): (usize, usize, u64),
        segment: &MediaSegment,
        (head, counted): (&[u8], Counted),
        fetched: &Fetched,
    ) {
        let is_main = track == 0;
        let (count, times) = if is_main { self.content.take(ordinal, counted) } else { (0, Vec::new()) };
        let frames = self.shown_frames(track, level, segment, head, count);
        let bps = self.tracks[track].ladder.rates[level].as_bps();
        let end = segment.start + segment.duration;
        let position = self.position(now);
        let bytes = fetched.bytes;
        let held = Held { ordinal, start: segment.start, end, bps, bytes, frames, times, is_filler: false };
        if self.settings.cache {
            self.tracks[track].cached.insert((level, ordinal), held.clone());
        }
        let begins = self.buffer(now) == Duration::ZERO;
        self.shelves[track].push(held, position);
        self.tracks[track].measured = Some(BitRate::from_bps(fetched.throughput_bps() as u64));
        (self.tracks[track].failures, self.tracks[track].skipped) = (0, 0);
        if is_main {
            let rate = match bps {
                0 => "an unknown rate".to_owned(),
                bps => format!("{} kbit/s", bps / 1000),
            };
            let reason = format!(
                "segment {ordinal} at {rate}: {} B in {:.3} s, {:.3} s to the first",
                fetched.bytes,
                fetched.done.saturating_sub(fetched.asked).as_secs_f64(),
                fetched.first_byte.saturating_sub(fetched.asked).as_secs_f64(),
            );
            self.events.say(now, "segment_fetched", fetched.throughput_from_request_bps(), "bit/s", reason);
        }
        self.append(now, track, begins);
        // The buffer changes before the rule gets the report.
        self.advance(now);
        self.tell(now, track, fetched);
    }

    /// A segment is given to the decoder: the track requests nothing more until that is done. If play begins with it,
    /// its first picture is later still.
    fn append(&mut self, now: Instant, track: usize, begins: bool) {
        let ready = now + self.tracks[track].append_time;
        self.tracks[track].append_time = self.page.draw(&self.settings.append);
        self.tracks[track].has_appended = true;
        if ready > now {
            self.tracks[track].again = Some(ready);
        }
        if begins && let Some(clock) = &mut self.clock {
            // After a stall it is shown as soon as the decoder has it.
            let shown =
                if clock.has_begun() { ready } else { now + self.page.draw(&self.settings.first_picture) };
            clock.wait_until(shown);
        }
    }

    /// The number of pictures in a segment that are in its period.
    fn shown_frames(
        &self,
        track: usize,
        level: usize,
        segment: &MediaSegment,
        head: &[u8],
        frames: u32,
    ) -> u32 {
        let outside = segment.outside;
        let mut length = outside.before + segment.duration + outside.after;
        if outside.after > Duration::ZERO && outside.nominal {
            // It may be as short as its shown part: its own fragments have the length.
            let one = &self.tracks[track];
            let init = segment.init.as_deref().or(one.set.representations[level].init.as_ref());
            let timing = init.and_then(|init| one.inits.get(init).copied().flatten());
            let told = timing.and_then(|timing| timing.length(head));
            length = told.unwrap_or(outside.before + segment.duration);
        }
        shown_of(frames, outside.before, segment.duration, length)
    }

    /// A segment is fetched again at a level at which it was complete before: the browser still has it.
    pub(super) fn cache_had(&mut self, now: Instant, track: usize, level: usize, held: Held) {
        let (ordinal, bps) = (held.ordinal, held.bps);
        let position = self.position(now);
        self.shelves[track].push(held, position);
        if self.tracks[track].is_video() {
            let reason = format!("segment {ordinal} at {} kbit/s", bps / 1000);
            self.events.say(now, "segment_from_cache", bps as f64, "bit/s", reason);
        }
        self.advance(now);
        self.with_rule(now, track, |rule, now| {
            rule.cache_had(level, &Situation { segment: ordinal as usize, ..*now });
        });
    }

    fn manifest_came(&mut self, now: Instant, exchange: &Exchange, io: &mut dyn Io) {
        let read = Manifest::read_without(&exchange.head, &exchange.address.url, &self.failed_copies);
        let manifest = match read {
            Ok(manifest) => manifest,
            Err(error) => return self.refuse(now, &error.to_string(), io),
        };
        self.manifest_read = now;
        self.manifest_failures = 0;
        let has_copies = manifest.sets().flat_map(|set| &set.representations).any(|one| one.copy.is_some());
        if has_copies {
            self.manifest_bytes.clone_from(&exchange.head);
        }
        if !self.tracks.is_empty() {
            return self.manifest_again_came(now, manifest);
        }
        self.say_flaws(now, manifest.flaws());
        self.left_out.extend(manifest.left_out.iter().cloned());
        let live = manifest.live;
        self.manifest = Some(manifest.clone());
        let begin = if live.is_some() { Duration::ZERO } else { self.settings.begin_at };
        let mut from = (begin > Duration::ZERO).then_some(begin);
        if let Some(Live { starts: Some(starts), .. }) = live {
            let edge = self.server_now(now).saturating_sub(starts);
            from = Some(edge.saturating_sub(self.live_delay(manifest.segment_length())));
        }
        if let Err(why) = self.lay_tracks(now, &manifest, from) {
            return self.refuse(now, &why, io);
        }
        if live.is_none() {
            from = from.map(|from| from.saturating_sub(self.settings.begin_early));
        }
        for one in &mut self.tracks {
            let within = from.unwrap_or(Duration::ZERO).saturating_sub(one.part.start);
            let ordinal = match one.listed_now(0) {
                Some((first, last)) if from.is_some() => {
                    let starts_by = |at| starts_by(one.place(0, at), from.unwrap_or(Duration::ZERO));
                    (first..=last).rev().find(|at| starts_by(*at)).unwrap_or(first)
                }
                Some((first, _)) => first,
                // The list with the position arrives later (`begin_in_list`).
                None if one.ladder.segment == Duration::ZERO => one.first,
                None => one.first + within.as_nanos() / one.ladder.segment.as_nanos().max(1),
            };
            one.next = ordinal;
        }
        let set_up = self.page.draw(&self.settings.set_up);
        for one in &mut self.tracks {
            one.again = (set_up > Duration::ZERO).then_some(now + set_up).or(one.again);
            one.append_time = self.page.draw(&self.settings.first_append);
        }
        let asked = self.asked_at.unwrap_or(now);
        let begins = match self.tracks[0].place(0, self.tracks[0].next) {
            Place::Found(segment) => segment.start.max(begin),
            _ => begin,
        };
        self.clock = Some(Clock::new(self.settings.prebuffer, self.settings.rebuffer, asked, begins));
    }

    /// The front of a line failed.
    pub(super) fn failed(&mut self, now: Instant, line: usize, failure: Failure, io: &mut dyn Io) {
        let Some(exchange) = self.lines[line].exchanges.pop_front() else { return };
        self.drop_exchanges(line, io);
        if self.beside == Some(line)
            && let Some(track) = exchange.what.track()
        {
            // The segment that needs the initialization is asked for again with it.
            self.drop_exchanges(self.line_of(track), io);
        }
        self.last_refusal = failure.status.or(self.last_refusal);
        let Failure { why, is_final, retry_after, .. } = failure;
        if is_final {
            self.events.say(now, "http_failure", 1.0, "1", why.clone());
            return self.refuse(now, &why, io);
        }
        let Some(track) = exchange.what.track() else {
            return self.manifest_failed(now, &why, retry_after, io);
        };
        self.tracks[track].failures += 1;
        let tries = self.tracks[track].failures;
        let came = format!("{why}; {} B of it came", exchange.bytes);
        self.events.say(now, "http_failure", f64::from(tries), "1", came);
        let level = exchange.what.level().unwrap_or_default();
        let has_other = self.has_moved(&exchange) || self.try_another_copy(now, track, level, "it failed");
        if has_other {
            self.tracks[track].failures = 0;
        }
        if has_other || tries < self.settings.tries {
            // The same level again, and the rule is not asked a second time.
            if let What::Segment(_, level, ordinal) = exchange.what {
                let one = &mut self.tracks[track];
                one.next = one.next.min(ordinal);
                one.is_complete = false;
                one.chosen = Some(Chosen { level, from: now });
                if let Some(segment) = &exchange.segment {
                    one.asked_to = one.asked_to.min(segment.start);
                }
            }
            let wait = if has_other { Duration::ZERO } else { self.backoff(tries, retry_after) };
            self.tracks[track].again = Some(now + wait);
            return;
        }
        let What::Segment(_, level, ordinal) = exchange.what else {
            let what = &exchange.address.url;
            return self.end(now, &format!("{what} did not come in {tries} attempts: {why}"), io);
        };
        let one = &mut self.tracks[track];
        (one.failures, one.skipped) = (0, one.skipped + 1);
        (one.next, one.chosen) = (ordinal + 1, None);
        one.level = Some(level);
        let skipped = one.skipped;
        self.events.say(now, "segment_skipped", ordinal as f64, "1", why.clone());
        if skipped > self.settings.skips {
            self.end(now, &format!("{skipped} segments one after another did not come: {why}"), io);
        }
    }

    fn manifest_failed(&mut self, now: Instant, why: &str, retry_after: Option<Duration>, io: &mut dyn Io) {
        self.manifest_failures += 1;
        let tries = self.manifest_failures;
        self.events.say(now, "http_failure", f64::from(tries), "1", format!("manifest: {why}"));
        if tries < self.settings.tries {
            self.manifest_again = Some(now + self.backoff(tries, retry_after));
        } else {
            self.end(now, &format!("the manifest did not come in {tries} attempts: {why}"), io);
        }
    }

    /// The wait before the next attempt: the player's own, or the server's if that is longer.
    fn backoff(&self, tries: u32, retry_after: Option<Duration>) -> Duration {
        let own = self.settings.backoff * (1 << (tries - 1).min(20));
        own.max(retry_after.unwrap_or(Duration::ZERO)).min(LONGEST_BACKOFF)
    }
}

fn starts_by(place: Place, from: Duration) -> bool {
    matches!(place, Place::Found(segment) if segment.start <= from)
}

/// The reason for which an ended segment is not complete.
fn cut_short(exchange: &Exchange, counted: &Counted) -> Option<&'static str> {
    match exchange.what {
        What::Segment(..) if exchange.bytes == 0 => Some("the segment is empty"),
        // If the server states a length, the connection itself reports missing bytes.
        What::Segment(..) if exchange.length.is_none() && counted.is_cut => {
            Some("the segment ends in the middle of its media")
        }
        _ => None,
    }
}
