//! Content of a metadata packet of real-time data retrieval (RDR), with the size as in the NDN file servers
//! of NDNts and ndn6: the name of an object's version, its last segment, the size of a segment and of the
//! whole.

use streamgauge_base::Chunk;

use super::component::Component;
use super::name::Name;
use super::tlv::{Elements, put_element, put_integer};
use super::types::{FINAL_BLOCK_ID, NAME};

/// Bytes of a segment.
const SEGMENT_BYTES: u32 = 0xF500;
/// Bytes of the whole.
const SIZE: u32 = 0xF502;

/// Metadata of an object before it is fetched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Metadata {
    /// The name of its version, to which the segments belong.
    pub name: Name,
    /// How large it is. Not every producer sends it: ndnd's does not.
    pub size: Option<ObjectSize>,
}

/// The size of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ObjectSize {
    /// Bytes of a segment, but for the last; more than 0.
    pub segment_bytes: u64,
    /// Bytes in all.
    pub bytes: u64,
}

impl ObjectSize {
    fn last_segment(&self) -> u64 {
        self.bytes.max(1).div_ceil(self.segment_bytes.max(1)) - 1
    }
}

impl Metadata {
    /// Writes it as the content of its Data.
    pub fn write(&self) -> Chunk {
        let mut bytes = Vec::new();
        put_element(&mut bytes, NAME, self.name.as_bytes());
        if let Some(size) = &self.size {
            let last = Name::of([Component::segment(size.last_segment())]).unwrap_or_default();
            put_element(&mut bytes, FINAL_BLOCK_ID, last.as_bytes());
            put_integer(&mut bytes, SEGMENT_BYTES, size.segment_bytes);
            put_integer(&mut bytes, SIZE, size.bytes);
        }
        Chunk::bytes(bytes)
    }

    /// Reads it out of its Data's content; `None` if that is something else.
    pub fn read(content: &Chunk) -> Option<Self> {
        let (mut name, mut segment_bytes, mut size) = (None, None, None);
        let mut elements = Elements::of_bytes(content.head());
        while let Some(element) = elements.next().ok()? {
            match element.kind {
                NAME => name = Some(Name::read(&elements, &element).ok()?),
                SEGMENT_BYTES => segment_bytes = Some(elements.integer(&element).ok()?),
                SIZE => size = Some(elements.integer(&element).ok()?),
                _ => {}
            }
        }
        let size = match (segment_bytes, size) {
            (Some(0), _) => return None,
            (Some(segment_bytes), Some(bytes)) => Some(ObjectSize { segment_bytes, bytes }),
            _ => None,
        };
        Some(Metadata { name: name?, size })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(segment_bytes in 1u64.., bytes: u64, is_told: bool, part in "[a-z]{1,9}") {
            let name = Name::of([Component::generic(part.as_bytes()), Component::version(7)]).unwrap();
            let told = Metadata { name, size: is_told.then_some(ObjectSize { segment_bytes, bytes }) };
            prop_assert_eq!(Metadata::read(&told.write()), Some(told));
        }

        #[test]
        fn anything_else_is_none_and_breaks_nothing(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            Metadata::read(&Chunk::bytes(bytes));
        }
    }

    #[test]
    fn a_segment_of_no_bytes_is_none() {
        let told = Metadata { name: Name::root(), size: Some(ObjectSize { segment_bytes: 0, bytes: 9 }) };
        assert_eq!(Metadata::read(&told.write()), None);
    }
}
