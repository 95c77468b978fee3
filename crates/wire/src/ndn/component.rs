//! A name's components (NDN Packet Format Specification version 0.3, "Name"; NDN Technical Report NDN-0022, "NDN Naming
//! Conventions", revision 3).

use std::borrow::Cow;
use std::cmp::Ordering;

use super::tlv;
use super::types::{
    BYTE_OFFSET, GENERIC, IMPLICIT_SHA256_DIGEST, KEYWORD, PARAMETERS_SHA256_DIGEST, SEGMENT, SEQUENCE_NUM,
    TIMESTAMP, VERSION,
};

/// One component: a type and a value.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Component<'a> {
    kind: u16,
    value: Cow<'a, [u8]>,
}

impl<'a> Component<'a> {
    /// Returns a component of any type. `None` for type 0 and for a digest that has not 32 bytes.
    pub fn of(kind: u16, value: impl Into<Cow<'a, [u8]>>) -> Option<Self> {
        let value = value.into();
        is_sound(kind, value.len()).then_some(Component { kind, value })
    }

    /// Returns a GenericNameComponent: any bytes.
    pub fn generic(value: impl Into<Cow<'a, [u8]>>) -> Self {
        Component { kind: GENERIC, value: value.into() }
    }

    /// Returns a KeywordNameComponent.
    pub fn keyword(value: impl Into<Cow<'a, [u8]>>) -> Self {
        Component { kind: KEYWORD, value: value.into() }
    }

    /// Returns the TLV-TYPE.
    pub fn kind(&self) -> u16 {
        self.kind
    }

    /// Returns the TLV-VALUE.
    pub fn value(&self) -> &[u8] {
        &self.value
    }

    /// Returns the same, with bytes of its own.
    pub fn into_owned(self) -> Component<'static> {
        Component { kind: self.kind, value: Cow::Owned(self.value.into_owned()) }
    }

    /// Returns the number that a component of type `kind` is.
    pub fn number(&self, kind: u16) -> Option<u64> {
        if self.kind == kind { tlv::integer(&self.value) } else { None }
    }

    /// Returns the number of the segment that it is.
    pub fn as_segment(&self) -> Option<u64> {
        self.number(SEGMENT)
    }

    /// Returns the version that it is.
    pub fn as_version(&self) -> Option<u64> {
        self.number(VERSION)
    }

    /// Returns the bytes of the element.
    pub(crate) fn element_bytes(&self) -> usize {
        tlv::element_bytes(self.kind.into(), self.value.len())
    }

    /// Writes the element.
    pub(crate) fn put(&self, to: &mut Vec<u8>) {
        tlv::put_element(to, self.kind.into(), &self.value);
    }
}

impl Component<'static> {
    /// Returns a component of type `kind` that is a NonNegativeInteger, in its shortest form.
    pub(crate) fn of_number(kind: u16, number: u64) -> Self {
        let bytes = number.to_be_bytes();
        Component { kind, value: Cow::Owned(bytes[8 - tlv::integer_bytes(number)..].to_vec()) }
    }

    /// Returns the number of a segment.
    pub fn segment(number: u64) -> Self {
        Component::of_number(SEGMENT, number)
    }

    /// Returns an offset in bytes.
    pub fn byte_offset(offset: u64) -> Self {
        Component::of_number(BYTE_OFFSET, offset)
    }

    /// Returns a version.
    pub fn version(version: u64) -> Self {
        Component::of_number(VERSION, version)
    }

    /// Returns a time, in microseconds since 1970.
    pub fn timestamp(us: u64) -> Self {
        Component::of_number(TIMESTAMP, us)
    }

    /// Returns a sequence number.
    pub fn sequence_num(number: u64) -> Self {
        Component::of_number(SEQUENCE_NUM, number)
    }

    /// Returns the SHA-256 of a whole Data packet.
    pub fn implicit_digest(digest: [u8; 32]) -> Self {
        Component { kind: IMPLICIT_SHA256_DIGEST, value: Cow::Owned(digest.to_vec()) }
    }

    /// Returns the SHA-256 of an Interest's ApplicationParameters and the elements behind them.
    pub fn parameters_digest(digest: [u8; 32]) -> Self {
        Component { kind: PARAMETERS_SHA256_DIGEST, value: Cow::Owned(digest.to_vec()) }
    }
}

/// Returns whether a component may have this type and a value of this length.
pub(crate) fn is_sound(kind: u16, bytes: usize) -> bool {
    match kind {
        0 => false,
        IMPLICIT_SHA256_DIGEST | PARAMETERS_SHA256_DIGEST => bytes == 32,
        _ => true,
    }
}

/// The canonical order: by type, then the shorter first, then by their bytes ("Name", section "Canonical Order").
impl Ord for Component<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |component: &Self| (component.kind, component.value.len());
        key(self).cmp(&key(other)).then_with(|| self.value.cmp(&other.value))
    }
}

impl PartialOrd for Component<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
