//! The parts of a header's value.

/// The parts between `separator`s that are not in quotes.
pub fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    text.split(move |c| {
        quoted ^= c == '"';
        c == separator && !quoted
    })
}
