//! Lines of playlists (RFC 8216 section 4.1).

use super::attributes;
use super::fault::{ManifestError, broken};

/// A line: its number, its tag without `#EXT` or the URI, and the text after the tag's colon.
pub struct Line<'a> {
    pub number: u32,
    pub tag: &'a str,
    pub value: &'a str,
    pub uri: Option<&'a str>,
}

/// The lines that mean something.
pub fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let numbered = (1u32..).zip(text.lines().map(str::trim));
    numbered.filter(|(_, line)| !line.is_empty()).filter_map(|(number, line)| {
        let Some(comment) = line.strip_prefix('#') else {
            return Some(Line { number, tag: "", value: "", uri: Some(line) });
        };
        let tag = comment.strip_prefix("EXT")?;
        let (tag, value) = tag.split_once(':').unwrap_or((tag, ""));
        Some(Line { number, tag: tag.trim_end(), value, uri: None })
    })
}

impl<'a> Line<'a> {
    /// An error that shows the tag and its value.
    pub fn wrong(&self, what: &str) -> ManifestError {
        let value: String = self.value.chars().take(60).collect();
        broken(self.number, format!("#EXT{} has {value:?}; {what}", self.tag))
    }

    /// The tag's attributes.
    pub fn attributes(&self) -> Result<Vec<(&'a str, &'a str)>, ManifestError> {
        attributes::read(self.value).ok_or_else(|| self.wrong("NAME=VALUE,... is wanted"))
    }

    /// The tag's value as a whole number.
    pub fn count(&self) -> Result<u64, ManifestError> {
        self.value.trim().parse().map_err(|_| self.wrong("a number from 0 to 2^64 is wanted"))
    }
}
