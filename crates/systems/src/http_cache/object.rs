//! A cache's state of one resource.

use std::collections::BTreeMap;

use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_wire::http::{CacheControl, EntityTag, HttpHeaders, Response};

/// The longest run of filler that is kept as one.
const LONGEST_RUN: usize = 1 << 20;

/// A resource, whole or in parts, while it is received and afterwards.
#[derive(Default)]
pub struct Object {
    /// Its key in the store; `None` for one of a single answer, or one that is not to be kept.
    pub key: Option<String>,
    /// The status and headers that the server gave of it, once they are here; a part's status is kept as 200.
    pub head: Option<(u16, HttpHeaders)>,
    /// Bytes of the whole; `None` without a declared length, until it has ended.
    pub total: Option<u64>,
    /// Parts that do not overlap, by their first byte.
    parts: BTreeMap<u64, Chunk>,
    stored: u64,
    /// It need not be asked for again until then.
    pub fresh_until: Instant,
    /// When the server last vouched for it, and how old it was then (RFC 9111 section 4.2.3).
    came: (Instant, Duration),
    /// The server is being asked whether it still holds.
    pub validating: bool,
    /// The status for players when it is unobtainable.
    pub failed: Option<u16>,
    /// Counts up with each use.
    pub used: u64,
}

impl Object {
    /// Returns one that nothing is known of, found by `key`.
    pub fn new(key: Option<String>) -> Self {
        Object { key, ..Object::default() }
    }

    pub fn tag(&self) -> Option<EntityTag> {
        self.head.as_ref()?.1.get("ETag")?.parse().ok()
    }

    /// Returns whether `response` is of this representation still; a server that gives no tags is believed by
    /// the length.
    pub fn is_of(&self, response: &Response, total: Option<u64>) -> bool {
        let tag: Option<EntityTag> = response.headers.get("ETag").and_then(|tag| tag.parse().ok());
        let same_tag = match (self.tag(), tag) {
            (Some(ours), Some(theirs)) => ours.is_same(&theirs),
            (None, None) => true,
            _ => false,
        };
        same_tag && self.total == total
    }

    /// Sets a new head, and forgets stored bytes of another representation.
    pub fn begin(&mut self, now: Instant, response: &Response, total: Option<u64>) {
        if self.head.is_some() && !self.is_of(response, total) {
            self.parts.clear();
            self.stored = 0;
        }
        let status = if response.status == 206 { 200 } else { response.status };
        self.total = total;
        self.head = Some((status, response.headers.clone()));
        self.renew(now, response);
    }

    /// Applies the lifetime in `response` (RFC 9111 section 4.2), if any.
    pub fn renew(&mut self, now: Instant, response: &Response) {
        let control = cache_control(&response.headers);
        let age = response.headers.get("Age").and_then(|age| age.trim().parse().ok()).unwrap_or(0);
        let lifetime = control.shared_lifetime_s().filter(|_| !control.no_cache).unwrap_or(0);
        let seconds = |s: u64| Duration::from_secs(s.min(1 << 31));
        self.fresh_until = now + seconds(lifetime.saturating_sub(age));
        self.came = (now, seconds(age));
        self.validating = false;
    }

    /// Returns how old it is, in whole seconds.
    pub fn age_s(&self, now: Instant) -> u64 {
        let (came, age) = self.came;
        (now - came + age).as_nanos() / 1_000_000_000
    }

    /// Returns the bytes that are stored.
    pub fn stored(&self) -> u64 {
        self.stored
    }

    /// Stores the bytes of `chunk` that are missing, from byte `at` on.
    pub fn store(&mut self, mut at: u64, mut chunk: Chunk) {
        while !chunk.is_empty() {
            if let Some((start, known)) = self.parts.range(..=at).next_back()
                && start + known.len() as u64 > at
            {
                let known = (start + known.len() as u64 - at).min(chunk.len() as u64);
                chunk = chunk.split_off(known as usize);
                at += known;
                continue;
            }
            let next = self.parts.range(at..).next().map(|(start, _)| *start);
            let room = next.map_or(u64::MAX, |next| next - at).min(chunk.len() as u64);
            let rest = chunk.split_off(room as usize);
            self.stored += room;
            self.insert(at, chunk);
            (at, chunk) = (at + room, rest);
        }
    }

    fn insert(&mut self, at: u64, chunk: Chunk) {
        if let Some((start, before)) = self.parts.range_mut(..at).next_back()
            && start + before.len() as u64 == at
            && chunk.head().is_empty()
            && before.len() + chunk.len() <= LONGEST_RUN
        {
            let filler = before.len() - before.head().len() + chunk.len();
            *before = Chunk::with_filler(before.head(), filler as u32);
            return;
        }
        self.parts.insert(at, chunk);
    }

    /// Returns the stored bytes from byte `at` on, at most `most` of them.
    pub fn read(&self, at: u64, most: u64) -> Option<Chunk> {
        let (start, part) = self.parts.range(..=at).next_back()?;
        let mut chunk = part.clone();
        let mut chunk = chunk.split_off((at - start).min(part.len() as u64) as usize);
        let _ = chunk.split_off(most.min(chunk.len() as u64) as usize);
        Some(chunk).filter(|chunk| !chunk.is_empty())
    }

    /// Returns where the bytes end that are stored from `at` on without a gap.
    pub fn covered_to(&self, mut at: u64) -> u64 {
        while let Some((start, part)) = self.parts.range(..=at).next_back() {
            let end = start + part.len() as u64;
            if end <= at {
                break;
            }
            at = end;
        }
        at
    }

    /// Returns the first stored byte behind `at`.
    pub fn next_after(&self, at: u64) -> Option<u64> {
        self.parts.range(at + 1..).next().map(|(start, _)| *start)
    }
}

/// Returns the header Cache-Control, of a message that may have several.
pub fn cache_control(headers: &HttpHeaders) -> CacheControl {
    headers.list("Cache-Control").and_then(|list| list.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// For any parts in any order, each byte is kept once and read back as it was.
        #[test]
        fn parts_of_a_resource_are_kept_once_and_read_back(
            parts in prop::collection::vec((0usize..200, 1usize..60), 0..20),
            at in 0usize..260,
            most in 1u64..100,
        ) {
            let whole: Vec<u8> = (0..=255).cycle().take(260).map(|byte: u8| byte.wrapping_mul(7)).collect();
            let (mut object, mut has) = (Object::default(), vec![false; 260]);
            for (start, bytes) in parts {
                object.store(start as u64, Chunk::bytes(&whole[start..start + bytes]));
                has[start..start + bytes].fill(true);
            }
            prop_assert_eq!(object.stored(), has.iter().filter(|has| **has).count() as u64);
            let end = at + has[at..].iter().take_while(|has| **has).count();
            prop_assert_eq!(object.covered_to(at as u64), end as u64);
            match object.read(at as u64, most) {
                None => prop_assert!(!has[at]),
                Some(chunk) => {
                    prop_assert!(chunk.len() as u64 <= most && at + chunk.len() <= end);
                    prop_assert_eq!(chunk.head(), &whole[at..at + chunk.len()]);
                }
            }
        }
    }

    #[test]
    fn filler_costs_no_memory() {
        let mut object = Object::default();
        for at in 0..10_000 {
            object.store(at * 1_448, Chunk::filler(1_448));
        }
        assert_eq!((object.stored(), object.covered_to(0)), (14_480_000, 14_480_000));
        assert!(object.parts.len() <= 15, "{}", object.parts.len());
    }
}
