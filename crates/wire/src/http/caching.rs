//! Validators of a stored response (RFC 9110 sections 8.8.3 and 13) and permission to store one (RFC 9111
//! section 5.2). Dates are not read: a trial has no calendar, and every response of ours has an entity tag.

use std::fmt::{self, Display};
use std::str::FromStr;

use super::ranges::{NoValue, number};

/// An entity tag (RFC 9110 section 8.8.3).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct EntityTag {
    /// It declares only that two are equivalent.
    pub weak: bool,
    /// The text between the quotes.
    pub tag: String,
}

impl EntityTag {
    /// Returns whether they are byte for byte the same (section 8.8.3.2), as joining ranges requires.
    pub fn is_same(&self, other: &EntityTag) -> bool {
        !self.weak && !other.weak && self.tag == other.tag
    }

    /// Returns whether they are equivalent.
    pub fn is_like(&self, other: &EntityTag) -> bool {
        self.tag == other.tag
    }
}

impl Display for EntityTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\"{}\"", if self.weak { "W/" } else { "" }, self.tag)
    }
}

impl FromStr for EntityTag {
    type Err = NoValue;

    fn from_str(text: &str) -> Result<Self, NoValue> {
        let text = text.trim();
        let (weak, quoted) = match text.strip_prefix("W/") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let tag = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).ok_or(NoValue)?;
        let is_of_tag = |c: char| c == '!' || ('#'..='~').contains(&c) || ('\u{80}'..='\u{ff}').contains(&c);
        if !tag.chars().all(is_of_tag) {
            return Err(NoValue);
        }
        Ok(EntityTag { weak, tag: tag.into() })
    }
}

/// The headers If-Match and If-None-Match (RFC 9110 sections 13.1.1 and 13.1.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TagCondition {
    /// `*`: any that there is.
    Any,
    /// One of these.
    Of(Vec<EntityTag>),
}

impl TagCondition {
    /// Returns whether the current tag is among them (If-None-Match).
    pub fn has_like(&self, tag: &EntityTag) -> bool {
        match self {
            TagCondition::Any => true,
            TagCondition::Of(tags) => tags.iter().any(|one| one.is_like(tag)),
        }
    }

    /// Returns whether the current tag is among them, byte for byte (If-Match).
    pub fn has_same(&self, tag: &EntityTag) -> bool {
        match self {
            TagCondition::Any => true,
            TagCondition::Of(tags) => tags.iter().any(|one| one.is_same(tag)),
        }
    }
}

impl FromStr for TagCondition {
    type Err = NoValue;

    fn from_str(text: &str) -> Result<Self, NoValue> {
        if text.trim() == "*" {
            return Ok(TagCondition::Any);
        }
        // A comma may be within the quotes.
        let (mut tags, mut rest) = (Vec::new(), text.trim());
        while !rest.is_empty() {
            let opens = rest.find('"').ok_or(NoValue)?;
            let closes = opens + 1 + rest[opens + 1..].find('"').ok_or(NoValue)?;
            tags.push(rest[..=closes].parse()?);
            rest = rest[closes + 1..].trim_start();
            rest = match rest.strip_prefix(',') {
                Some(more) => more.trim_start(),
                None if rest.is_empty() => rest,
                None => return Err(NoValue),
            };
        }
        if tags.is_empty() { Err(NoValue) } else { Ok(TagCondition::Of(tags)) }
    }
}

impl Display for TagCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TagCondition::Any => f.write_str("*"),
            TagCondition::Of(tags) => {
                f.write_str(&tags.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// The header Cache-Control of requests and responses (RFC 9111 section 5.2), as far as a cache of media uses
/// it. Times are in seconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheControl {
    /// Time for which it is fresh after it was made.
    pub max_age_s: Option<u64>,
    /// The same for shared caches, where it has precedence.
    pub s_maxage_s: Option<u64>,
    /// To be validated before each use.
    pub no_cache: bool,
    /// Not to be kept.
    pub no_store: bool,
    /// Not to be kept by a shared cache.
    pub private: bool,
    /// May be kept by any.
    pub public: bool,
    /// Not to be used once it is stale.
    pub must_revalidate: bool,
    /// In a request: only a stored response, or status 504.
    pub only_if_cached: bool,
    /// Will not change as long as it is fresh (RFC 8246).
    pub immutable: bool,
}

impl CacheControl {
    /// Returns how long a shared cache may use a response without asking; `None` if undeclared.
    pub fn shared_lifetime_s(&self) -> Option<u64> {
        self.s_maxage_s.or(self.max_age_s)
    }

    /// Returns whether a shared cache may keep such a response.
    pub fn may_be_shared(&self) -> bool {
        !self.no_store && !self.private
    }

    fn flags(&mut self) -> [(&'static str, &mut bool); 7] {
        [
            ("no-cache", &mut self.no_cache),
            ("no-store", &mut self.no_store),
            ("private", &mut self.private),
            ("public", &mut self.public),
            ("must-revalidate", &mut self.must_revalidate),
            ("only-if-cached", &mut self.only_if_cached),
            ("immutable", &mut self.immutable),
        ]
    }
}

impl FromStr for CacheControl {
    type Err = NoValue;

    /// Unknown directives are left out (RFC 9111 section 5.2.3). A time that is none is no time at all: the
    /// response is stale (section 4.2.1).
    fn from_str(text: &str) -> Result<Self, NoValue> {
        let mut found = CacheControl::default();
        for directive in text.split(',') {
            let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
            let name = name.trim();
            // A number too large counts as the largest (section 1.2.2).
            let seconds = || number(value.trim().trim_matches('"')).unwrap_or(0).min(1 << 31);
            if name.eq_ignore_ascii_case("max-age") {
                found.max_age_s = found.max_age_s.or(Some(seconds()));
            } else if name.eq_ignore_ascii_case("s-maxage") {
                found.s_maxage_s = found.s_maxage_s.or(Some(seconds()));
            }
            for (flag, is_set) in found.flags() {
                *is_set |= name.eq_ignore_ascii_case(flag);
            }
        }
        Ok(found)
    }
}

impl Display for CacheControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut copy = *self;
        let mut words: Vec<String> =
            copy.flags().into_iter().filter(|(_, is_set)| **is_set).map(|(name, _)| name.into()).collect();
        words.extend(self.max_age_s.map(|s| format!("max-age={s}")));
        words.extend(self.s_maxage_s.map(|s| format!("s-maxage={s}")));
        f.write_str(&words.join(", "))
    }
}
