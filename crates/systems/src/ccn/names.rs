//! Names of objects, of their segments and of their metadata.
//!
//! The object at the path `/a/b` has the name `/prefix/a/b`, its segments `/prefix/a/b/seg=N`. A
//! percent-encoded byte in a path (RFC 3986 section 2.1) is a byte of its component.
//! [`Metadata`](streamgauge_wire::ndn::Metadata) of it is at `/prefix/a/b/32=metadata`, as real-time data
//! retrieval has it (RDR).

use streamgauge_wire::ndn::types::GENERIC;
use streamgauge_wire::ndn::{Component, Name};

use crate::rtsp::decoded;

const METADATA: &[u8] = b"metadata";

/// Characters that a path may contain unencoded, beside letters and digits (RFC 3986 section 3.3).
const MARKS: &[u8] = b"-._~!$&'()*+,;=:@";

/// Returns the name for `path`, without the part behind a question mark. `None` of a path that is none.
pub fn object_of(prefix: &Name, path: &str) -> Option<Name> {
    let parts = path.strip_prefix('/')?.split('/').filter(|part| !part.is_empty());
    let name = prefix.with(parts.map(|part| Component::generic(decoded(part).into_bytes()))).ok()?;
    (name.len() > prefix.len()).then_some(name)
}

/// Returns the path of an object's name, percent-encoded. `None` if it has a component that is no part of a
/// path.
pub fn path_of(prefix: &Name, name: &Name) -> Option<String> {
    if !name.starts_with(prefix) || name.len() == prefix.len() {
        return None;
    }
    let mut path = String::new();
    for component in name.components().skip(prefix.len()) {
        if component.kind() != GENERIC || component.value().contains(&b'/') {
            return None;
        }
        path.push('/');
        for &byte in component.value() {
            match byte {
                _ if byte.is_ascii_alphanumeric() || MARKS.contains(&byte) => path.push(byte.into()),
                _ => path.push_str(&format!("%{byte:02X}")),
            }
        }
    }
    Some(path)
}

/// Returns the number of the segment of `object` that `name` is.
pub fn segment_of(object: &Name, name: &Name) -> Option<u64> {
    if name.len() != object.len() + 1 || !name.starts_with(object) {
        return None;
    }
    name.last()?.as_segment()
}

/// Returns the name of an object's metadata.
pub fn metadata_of(object: &Name) -> Option<Name> {
    object.child(Component::keyword(METADATA)).ok()
}

/// Returns the object with metadata at `name`.
pub fn object_of_metadata(name: &Name) -> Option<Name> {
    let is_metadata = name.last().is_some_and(|last| last == Component::keyword(METADATA));
    is_metadata.then(|| name.parent())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_name_and_back() {
        let prefix: Name = "/clip".parse().unwrap();
        for (path, name) in [
            ("/v3/seg-7.m4s", "/clip/v3/seg-7.m4s"),
            ("/a%20b/50%25.mpd", "/clip/a%20b/50%25.mpd"),
            ("/..%5C", "/clip/..%5C"),
        ] {
            let object = object_of(&prefix, path).unwrap();
            assert_eq!((&object, path_of(&prefix, &object).as_deref()), (&name.parse().unwrap(), Some(path)));
        }
        for name in ["/clip", "/other/a", "/clip/32=x/a", "/clip/a/seg=1", "/clip/a%2Fb", "/"] {
            assert_eq!(path_of(&prefix, &name.parse().unwrap()), None, "{name}");
        }
        assert_eq!(object_of(&Name::root(), "/clip/a"), Some("/clip/a".parse().unwrap()));
        assert_eq!(object_of(&prefix, "/"), None);
    }
}
