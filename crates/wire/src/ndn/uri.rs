//! Names as text (NDN Packet Format Specification version 0.3, "NDN URI Scheme"; NDN Technical Report NDN-0022, "NDN
//! Naming Conventions", revision 3, of `seg=` and the others).

use std::fmt::{self, Write};
use std::str::FromStr;

use super::component::Component;
use super::fault::{Fault, Problem};
use super::name::Name;
use super::tlv;
use super::types::{
    BYTE_OFFSET, GENERIC, IMPLICIT_SHA256_DIGEST, PARAMETERS_SHA256_DIGEST, SEGMENT, SEQUENCE_NUM, TIMESTAMP,
    VERSION,
};

/// Components that are numbers, and how they begin.
const NUMBERS: [(&str, u16); 5] =
    [("seg", SEGMENT), ("off", BYTE_OFFSET), ("v", VERSION), ("t", TIMESTAMP), ("seq", SEQUENCE_NUM)];
/// Components that are digests, and how they begin.
const DIGESTS: [(&str, u16); 2] =
    [("sha256digest", IMPLICIT_SHA256_DIGEST), ("params-sha256", PARAMETERS_SHA256_DIGEST)];

/// `/a/b/seg=3`, without the scheme.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_char('/');
        }
        self.components().try_for_each(|component| write!(f, "/{component}"))
    }
}

impl fmt::Display for Component<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, value) = (self.kind(), self.value());
        if let Some((text, _)) = DIGESTS.iter().find(|(_, digest)| *digest == kind) {
            write!(f, "{text}=")?;
            return value.iter().try_for_each(|byte| write!(f, "{byte:02x}"));
        }
        let number = tlv::integer(value).filter(|&number| tlv::integer_bytes(number) == value.len());
        let typed = NUMBERS.iter().find(|(_, typed)| *typed == kind);
        if let Some(((text, _), number)) = typed.zip(number) {
            return write!(f, "{text}={number}");
        }
        if kind != GENERIC {
            write!(f, "{kind}=")?;
        }
        if value.iter().all(|&byte| byte == b'.') {
            f.write_str("...")?;
        }
        value.iter().try_for_each(|&byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => f.write_char(byte.into()),
            _ => write!(f, "%{byte:02X}"),
        })
    }
}

/// Reads `/a/b`, `ndn:/a/b` or `ndn://authority/a/b`; an authority is passed over. A `/` at the end is none
/// too many. Characters that should be percent-encoded and are not mean themselves.
impl FromStr for Name {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let scheme = text.get(..4).filter(|scheme| scheme.eq_ignore_ascii_case("ndn:"));
        let mut at = scheme.map_or(0, str::len);
        if text[at..].starts_with("//") {
            at = text[at + 2..].find('/').map_or(text.len(), |slash| at + 2 + slash);
            if at == text.len() {
                return Ok(Name::root());
            }
        }
        let path = text[at..].strip_prefix('/').ok_or(Fault::NoName.at(at))?;
        at += 1;
        let path = path.strip_suffix('/').unwrap_or(path);
        if path.is_empty() {
            return Ok(Name::root());
        }
        let mut components = Vec::new();
        for piece in path.split('/') {
            let component = component(piece).map_err(|what| Fault::Component(what).at(at))?;
            // No name is longer, and `Name::of` reports it.
            components.push(component);
            at += piece.len() + 1;
        }
        Name::of(components)
    }
}

fn component(text: &str) -> Result<Component<'static>, &'static str> {
    let Some((before, value)) = text.split_once('=') else {
        return Ok(Component::generic(unescaped(text)?));
    };
    if let Some((_, kind)) = NUMBERS.iter().find(|(name, _)| *name == before) {
        let number = decimal(value).ok_or("the number is none, or beyond 64 bits")?;
        return Ok(Component::of_number(*kind, number));
    }
    let kind = decimal(before).and_then(|kind| u16::try_from(kind).ok());
    if let Some((_, kind)) = DIGESTS.iter().find(|(name, _)| *name == before) {
        return Component::of(*kind, hexadecimal(value).ok_or("the digest is not hexadecimal")?)
            .ok_or("the digest has not 32 bytes");
    }
    let kind = kind.ok_or("the type before '=' is none of 1 to 65535 and no known word")?;
    Component::of(kind, unescaped(value)?).ok_or("the type is 0, or the digest has not 32 bytes")
}

/// Digits alone, without a zero in front.
fn decimal(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if is_plain { text.parse().ok() } else { None }
}

fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?)).collect()
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

fn unescaped(text: &str) -> Result<Vec<u8>, &'static str> {
    let text = if text.bytes().all(|byte| byte == b'.') {
        text.strip_prefix("...").ok_or("there is nothing but fewer than three periods")?
    } else {
        text
    };
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut next = || rest.next().and_then(digit);
                let (high, low) = (next(), next());
                high.zip(low)
                    .map(|(high, low)| high << 4 | low)
                    .ok_or("'%' is not before two hexadecimal digits")?
            }
            byte => byte,
        });
    }
    Ok(bytes)
}
