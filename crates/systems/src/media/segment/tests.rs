//! Segments that are made here, whole, damaged and of other containers.

mod muxer;
mod others;
mod transport;

use super::*;

/// Returns the content of a segment of these bytes, in any pieces.
fn counted_after(known: Known, bytes: &[u8], piece: usize) -> (Counted, Known) {
    let mut counter = Counter::new(known);
    bytes.chunks(piece).for_each(|piece| counter.push(&Chunk::bytes(piece)));
    counter.finish()
}

fn counted(bytes: &[u8]) -> Counted {
    let (whole, _) = counted_after(Known::default(), bytes, usize::MAX);
    for piece in [1, 7, 188, 1_000] {
        assert_eq!(counted_after(Known::default(), bytes, piece).0, whole, "in pieces of {piece}");
    }
    whole
}

/// How many pictures; none where they cannot be counted.
fn pictures(counted: &Counted) -> Option<u32> {
    match counted.pictures {
        Pictures::Counted { count, .. } => Some(count),
        Pictures::Unknown(_) => None,
    }
}

fn times(counted: &Counted) -> Vec<u64> {
    match &counted.pictures {
        Pictures::Counted { times, .. } => times.iter().map(|time| time.as_nanos() / 1_000_000).collect(),
        Pictures::Unknown(why) => panic!("{why}"),
    }
}

fn why(counted: &Counted) -> &str {
    match &counted.pictures {
        Pictures::Unknown(why) => why,
        Pictures::Counted { count, .. } => panic!("{count} pictures"),
    }
}
