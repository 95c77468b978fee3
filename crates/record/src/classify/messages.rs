//! Messages of text on a TCP connection, as RTSP and HTTP have them: a start line, fields, an empty line, and perhaps
//! a body (RFC 2326 section 4, RFC 9112 section 2.1).

use streamgauge_base::Direction;

use super::reader::{Say, Segment};

/// The signs of one protocol's messages.
#[derive(Clone, Copy)]
pub struct Grammar {
    /// Returns whether a message begins with these bytes, as far as its start line is known.
    pub begins: fn(&[u8]) -> bool,
    /// The start of the version in a start line.
    pub version: &'static [u8],
    /// A body of declared length belongs to the message. Without this it is payload.
    pub with_body: bool,
}

/// A longer head is not accepted.
const LONGEST_HEAD: u32 = 1 << 16;

/// As much of a start line is kept, in bytes.
const LONGEST_TEXT: usize = 256;

/// A message that ends this many bytes before new payload is forgotten: a quarter of the sequence space behind a
/// number.
const FORGOTTEN: i32 = 1 << 29;

/// The messages of a flow's connections, by the connection's number.
#[derive(Default)]
pub struct Messages(Vec<[Way; 2]>);

impl Messages {
    /// Returns whether all of a segment, which is about to be sent, is of messages.
    pub fn fill(&mut self, grammar: Grammar, segment: &Segment<'_>, say: &mut Say<'_>) -> bool {
        let index = segment.connection as usize;
        if index >= self.0.len() {
            self.0.resize_with(index + 1, Default::default);
        }
        let way = &mut self.0[index][segment.direction as usize];
        if way.is_before(segment.seq) {
            // Sent again, from before the messages that are known: it is classified by itself.
            return Way::default().fill(grammar, segment, &mut |_| {});
        }
        way.fill(grammar, segment, say)
    }
}

const _: () = assert!(Direction::Down as usize == 0 && Direction::Up as usize == 1);

/// One direction of a connection: the place of the last seen message in sequence space, as far as is known.
#[derive(Clone, Copy, Default)]
struct Way {
    from: u32,
    to: u32,
    /// Whether its head continues at `to`.
    is_open: bool,
    /// Whether the last line of that head so far is empty.
    at_line: bool,
    /// There has been one.
    seen: bool,
}

impl Way {
    fn is_before(&self, seq: u32) -> bool {
        self.seen && seq.wrapping_sub(self.from).cast_signed() < 0
    }

    /// Forgets a message far behind new bytes: half the sequence space on, it would lie ahead of them.
    fn follow(&mut self, seq: u32) {
        if self.seen && seq.wrapping_sub(self.to).cast_signed() > FORGOTTEN {
            *self = Way { from: seq, to: seq, seen: true, ..Way::default() };
        }
    }

    fn fill(&mut self, grammar: Grammar, segment: &Segment<'_>, say: &mut Say<'_>) -> bool {
        let Segment { seq, bytes, head, .. } = *segment;
        let known = self.to.wrapping_sub(self.from);
        let into = seq.wrapping_sub(self.from);
        let mut rest = head;
        if self.seen && into < known {
            let left = known - into;
            if bytes <= left {
                return true;
            }
            rest = head.get(left as usize..).unwrap_or_default();
        } else if !(self.is_open && seq == self.to) {
            if !(grammar.begins)(head) {
                self.follow(seq);
                return false;
            }
            *self = Way { from: seq, to: seq, seen: true, ..Way::default() };
        }
        while !rest.is_empty() {
            let begins_here = !self.is_open;
            if begins_here {
                if !(grammar.begins)(rest) {
                    return false;
                }
                (self.is_open, self.at_line) = (true, false);
                say(said(grammar, rest));
            }
            match self.end_of_head(rest) {
                Some(end) => {
                    self.is_open = false;
                    // The length of a body is read in heads of one segment: longer ones are not seen in practice.
                    let body =
                        if grammar.with_body && begins_here { content_length(&rest[..end]) } else { 0 };
                    self.to = self.to.wrapping_add(end as u32).wrapping_add(body);
                    rest = rest.get(end.saturating_add(body as usize)..).unwrap_or_default();
                }
                None => {
                    self.to = self.to.wrapping_add(rest.len() as u32);
                    if self.to.wrapping_sub(self.from) > LONGEST_HEAD {
                        *self = Way::default();
                        return false;
                    }
                    break;
                }
            }
        }
        // The unknown part of the segment must lie within a body.
        self.to.wrapping_sub(seq) >= bytes
    }

    /// Returns the place after the empty line that ends a head, if that is in `bytes`. A line may end with LF alone
    /// (RFC 9112 section 2.2).
    fn end_of_head(&mut self, bytes: &[u8]) -> Option<usize> {
        for (index, byte) in bytes.iter().enumerate() {
            match byte {
                b'\n' if self.at_line => return Some(index + 1),
                b'\n' => self.at_line = true,
                b'\r' => {}
                _ => self.at_line = false,
            }
        }
        None
    }
}

/// Returns the content of a message that begins with `head`: a request's method and target, an answer's code and
/// phrase.
#[cold]
fn said(grammar: Grammar, head: &[u8]) -> String {
    let end = head.iter().position(|&byte| byte == b'\r' || byte == b'\n').unwrap_or(head.len());
    let (line, blank) = (&head[..end], |&byte: &u8| byte == b' ');
    let text = if line.starts_with(grammar.version) {
        line.iter().position(blank).map_or(line, |at| &line[at + 1..])
    } else {
        match line.iter().rposition(blank) {
            Some(at) if line[at + 1..].starts_with(grammar.version) => &line[..at],
            _ => line,
        }
    };
    let text = String::from_utf8_lossy(&text[..text.len().min(LONGEST_TEXT)]);
    text.trim().replace(char::is_control, "\u{fffd}")
}

/// Returns the length of the body from the head (RFC 2326 section 12.14); 0 if it has none.
fn content_length(head: &[u8]) -> u32 {
    const NAME: &[u8] = b"content-length:";
    let field = head.split(|&byte| byte == b'\n').find_map(|line| {
        let (name, value) = line.split_at_checked(NAME.len())?;
        name.eq_ignore_ascii_case(NAME).then_some(value)
    });
    let value = field.and_then(|value| std::str::from_utf8(value).ok()).map(str::trim);
    // Half of sequence space is more than a connection may have on its way.
    value.and_then(|value| value.parse().ok()).unwrap_or(0).min(u32::MAX / 2)
}

/// Returns whether a request's start line, as far as it is known, names one of `methods` and, at its end, a version
/// that begins with `version`.
pub fn is_request(head: &[u8], methods: &[&[u8]], version: &[u8]) -> bool {
    // Most bytes of media are no letter: that is cheap to see.
    let may_be = head.first().is_some_and(u8::is_ascii_uppercase);
    if !may_be || !methods.iter().any(|method| head.starts_with(method)) {
        return false;
    }
    match head.iter().position(|&byte| byte == b'\r' || byte == b'\n') {
        Some(end) => head[..end].windows(version.len()).any(|window| window == version),
        None => true,
    }
}
