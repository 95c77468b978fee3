//! The parts of a header's value.

/// Returns the parts between `separator`s that are not in quotes.
pub fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    text.split(move |c| {
        quoted ^= c == '"';
        c == separator && !quoted
    })
}

/// Returns the value of `name=value` among `parts`.
pub fn value_of<'a>(mut parts: impl Iterator<Item = &'a str>, name: &str) -> Option<&'a str> {
    parts.find_map(|part| {
        let (key, value) = part.split_once('=')?;
        key.trim().eq_ignore_ascii_case(name).then(|| value.trim())
    })
}
