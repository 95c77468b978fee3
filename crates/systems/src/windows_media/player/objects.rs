//! Media objects out of the payloads of packets that may come in any order, because some are sent again.

use std::collections::BTreeMap;

use streamgauge_base::{Chunk, Duration};
use streamgauge_wire::asf::DataPayload;

use crate::reception::Place;

/// Media objects of which some is missing, as many as are remembered.
const MOST_OPEN: usize = 1_024;

/// Of a stream and of a time, in ms: an object.
type Key = (u8, u32);

/// An object of which some came.
struct Open {
    bytes: u32,
    pieces: BTreeMap<u32, Chunk>,
}

/// Those that are not whole yet.
#[derive(Default)]
pub struct Objects(BTreeMap<Key, Open>);

impl Objects {
    /// Takes a payload that has not come before. What a playout is told: of an object of which nothing had come that it
    /// begins, and of one that is whole now that it ends, with its bytes if they are kept. `preroll` is in the times that
    /// are presented.
    pub fn take(
        &mut self,
        payload: &DataPayload<'_>,
        preroll: Duration,
        keeps: bool,
    ) -> impl Iterator<Item = (Place, Option<Chunk>)> + use<> {
        let mut told = Vec::new();
        if let Some(of) = payload.of {
            let key = (payload.stream, of.presentation_ms);
            let preroll_ms = (preroll.as_nanos() / 1_000_000) as u32;
            let timestamp = of.presentation_ms.wrapping_sub(preroll_ms);
            // Two parts of each: that something came, and that all did.
            let begins = Place { sequence: 0, timestamp, first: true, last: false };
            let ends = Place { sequence: 1, timestamp, first: false, last: true };
            let open = self.0.entry(key).or_insert_with(|| {
                told.push((begins, None));
                Open { bytes: 0, pieces: BTreeMap::new() }
            });
            open.bytes += payload.data.len() as u32;
            if keeps {
                open.pieces.insert(payload.offset, Chunk::bytes(payload.data));
            }
            if open.bytes >= of.bytes {
                let pieces = self.0.remove(&key).map(|open| open.pieces).unwrap_or_default();
                let whole: Vec<u8> = pieces.values().flat_map(|piece| piece.head().iter().copied()).collect();
                told.push((ends, keeps.then(|| Chunk::bytes(whole))));
            }
            while self.0.len() > MOST_OPEN {
                self.0.pop_first();
            }
        }
        told.into_iter()
    }
}
