//! XML of strangers, with bounds.

use roxmltree::{Document, Node, ParsingOptions};

use super::fault::{ManifestError, broken};
use super::time::whole_number;

/// Elements, texts and comments of a manifest.
const MOST_NODES: u32 = 2_500_000;
/// Elements within elements; an MPD has some ten.
const MOST_DEPTH: usize = 32;
/// Attributes of an element: the parser compares each with all others.
const MOST_ATTRIBUTES: usize = 100;
/// Declarations of namespaces: the parser copies those of an element to each within it that has its own.
const MOST_NAMESPACES: usize = 1_000;

/// Parses `text`. It rejects DTDs, and with them entities of the document's own.
///
/// # Errors
///
/// Text that is not XML, or that would take time or memory beyond its length.
pub fn parse(text: &str) -> Result<Document<'_>, ManifestError> {
    bounds(text.as_bytes())?;
    let options = ParsingOptions { allow_dtd: false, nodes_limit: MOST_NODES, ..ParsingOptions::default() };
    Document::parse_with_options(text, options)
        .map_err(|error| broken(error.pos().row, format!("no XML that is read: {error}")))
}

/// Scans the tags, without their meaning, for parts that would cost more than their length.
fn bounds(text: &[u8]) -> Result<(), ManifestError> {
    let line_at = |at: usize| 1 + text[..at].iter().filter(|byte| **byte == b'\n').count() as u32;
    let too_much = |at: usize, what: &str| Err(broken(line_at(at), format!("{what}; no MPD has so many")));
    let (mut depth, mut namespaces, mut at) = (0usize, 0, 0);
    while let Some(found) = text[at..].iter().position(|byte| *byte == b'<') {
        at += found;
        let rest = &text[at..];
        let behind =
            |end: &[u8]| rest.windows(end.len()).position(|bytes| bytes == end).map(|to| to + end.len());
        let over: Option<&[u8]> = match rest {
            [b'<', b'!', b'-', b'-', ..] => Some(b"-->"),
            [b'<', b'!', b'[', ..] => Some(b"]]>"),
            [b'<', b'?', ..] => Some(b"?>"),
            _ => None,
        };
        if let Some(end) = over {
            match behind(end) {
                Some(skipped) => at += skipped,
                // The parser stops here too.
                None => return Ok(()),
            }
            continue;
        }
        let (mut quote, mut attributes, mut end) = (None, 0, rest.len());
        for (place, &byte) in rest.iter().enumerate().skip(1) {
            match (quote, byte) {
                (Some(open), _) if byte == open => quote = None,
                (Some(_), _) => {}
                (None, b'"' | b'\'') => quote = Some(byte),
                (None, b'=') => attributes += 1,
                (None, b'>') => {
                    end = place + 1;
                    break;
                }
                (None, _) => {}
            }
        }
        let tag = &rest[..end];
        if attributes > MOST_ATTRIBUTES {
            return too_much(at, "an element with more than 100 attributes");
        }
        namespaces += tag.windows(5).filter(|bytes| *bytes == b"xmlns").count();
        if namespaces > MOST_NAMESPACES {
            return too_much(at, "more than 1000 namespaces");
        }
        match tag {
            [b'<', b'/', ..] => depth = depth.saturating_sub(1),
            [b'<', b'!', ..] | [.., b'/', b'>'] => {}
            _ => depth += 1,
        }
        if depth > MOST_DEPTH {
            return too_much(at, "more than 32 elements within each other");
        }
        at += end;
    }
    Ok(())
}

/// Where the lines of `text` end: asked of each element, a parser's own count would begin anew each time.
pub fn line_ends(text: &str) -> Vec<usize> {
    text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(place, _)| place).collect()
}

/// An element of a manifest, with its content by local names.
#[derive(Clone, Copy)]
pub struct Element<'a> {
    node: Node<'a, 'a>,
    line_ends: &'a [usize],
}

impl<'a> Element<'a> {
    /// The outermost element of a document with lines that end there.
    pub fn root(document: &'a Document<'a>, line_ends: &'a [usize]) -> Self {
        Element { node: document.root_element(), line_ends }
    }

    /// Its name.
    pub fn name(self) -> &'a str {
        self.node.tag_name().name()
    }

    /// Its line, counted from 1.
    pub fn line(self) -> u32 {
        let start = self.node.range().start;
        1 + self.line_ends.partition_point(|end| *end < start) as u32
    }

    /// Those of this name right within it.
    pub fn all(self, name: &'a str) -> impl Iterator<Item = Element<'a>> {
        let children = self.node.children().filter(move |node| node.is_element());
        let named = children.filter(move |node| node.tag_name().name() == name);
        named.map(move |node| Element { node, ..self })
    }

    /// The first of this name right within it.
    pub fn first(self, name: &'a str) -> Option<Element<'a>> {
        self.all(name).next()
    }

    /// An attribute.
    pub fn get(self, name: &str) -> Option<&'a str> {
        self.node.attribute(name)
    }

    /// An attribute of this local name, whichever namespace it is of.
    pub fn get_any(self, name: &str) -> Option<&'a str> {
        self.node.attributes().find(|attribute| attribute.name() == name).map(|attribute| attribute.value())
    }

    /// The text in it.
    pub fn text(self) -> &'a str {
        self.node.text().unwrap_or_default().trim()
    }

    /// The fault of an attribute.
    pub fn wrong(self, name: &str, what: &str) -> ManifestError {
        let value: String = self.get(name).unwrap_or_default().chars().take(60).collect();
        broken(self.line(), format!("{}@{name} is {value:?}; {what}", self.name()))
    }

    /// An attribute as `read` takes it.
    pub fn read<T>(
        self,
        name: &str,
        read: impl FnOnce(&str) -> Option<T>,
        what: &str,
    ) -> Result<Option<T>, ManifestError> {
        let Some(text) = self.get(name) else { return Ok(None) };
        read(text.trim()).map(Some).ok_or_else(|| self.wrong(name, what))
    }

    /// A number. Packagers write whole ones with a decimal point as well.
    pub fn number(self, name: &str) -> Result<Option<u64>, ManifestError> {
        self.read(name, whole_number, "a number from 0 to 2^64 is wanted")
    }

    /// An attribute that play does not need: of another form it is unknown.
    pub fn hint<T>(self, name: &str, read: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        read(self.get(name)?.trim())
    }
}
