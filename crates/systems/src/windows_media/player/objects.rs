//! Media objects out of the payloads of packets that may arrive in any order, because some are sent again.

use std::collections::BTreeMap;

use streamgauge_base::{Chunk, Duration};
use streamgauge_wire::asf::DataPayload;

use crate::reception::Place;

/// Most incomplete media objects that are remembered.
const MOST_OPEN: usize = 1_024;

/// No picture is larger; one that is declared larger is dropped.
const MOST_OBJECT_BYTES: u32 = 1 << 24;

/// Most bytes kept of those that are not whole.
const MOST_KEPT_BYTES: usize = 1 << 26;

/// An object: a stream and a time, in ms.
type Key = (u8, u32);

/// An object that is received in part.
struct Open {
    bytes: u32,
    pieces: BTreeMap<u32, Chunk>,
}

/// Those that are not whole yet.
#[derive(Default)]
pub struct Objects {
    open: BTreeMap<Key, Open>,
    /// Bytes kept of all of them.
    kept_bytes: usize,
}

impl Objects {
    /// Adds a payload that is new. Returns the playout's input: that an object begins, at its first payload, and that
    /// it ends once it is whole, with its bytes if they are kept. `preroll` is in the times that are presented.
    pub fn take(
        &mut self,
        payload: &DataPayload<'_>,
        preroll: Duration,
        keeps: bool,
    ) -> impl Iterator<Item = (Place, Option<Chunk>)> + use<> {
        let mut told = Vec::new();
        if let Some(of) = payload.of.filter(|of| of.bytes <= MOST_OBJECT_BYTES) {
            let key = (payload.stream, of.presentation_ms);
            let preroll_ms = (preroll.as_nanos() / 1_000_000) as u32;
            let timestamp = of.presentation_ms.wrapping_sub(preroll_ms);
            // Two parts of each: that some arrived, and that all did.
            let begins = Place { sequence: 0, timestamp, first: true, last: false };
            let ends = Place { sequence: 1, timestamp, first: false, last: true };
            let open = self.open.entry(key).or_insert_with(|| {
                told.push((begins, None));
                Open { bytes: 0, pieces: BTreeMap::new() }
            });
            open.bytes = open.bytes.saturating_add(payload.data.len() as u32);
            if keeps && !payload.data.is_empty() {
                let before = open.pieces.insert(payload.offset, Chunk::bytes(payload.data));
                self.kept_bytes += payload.data.len();
                self.kept_bytes -= before.map_or(0, |before| before.len());
            }
            if open.bytes >= of.bytes {
                let pieces = self.open.remove(&key).map(|open| open.pieces).unwrap_or_default();
                self.kept_bytes -= pieces.values().map(Chunk::len).sum::<usize>();
                let whole: Vec<u8> = pieces.values().flat_map(|piece| piece.head().iter().copied()).collect();
                told.push((ends, keeps.then(|| Chunk::bytes(whole))));
            }
            while self.open.len() > MOST_OPEN || self.kept_bytes > MOST_KEPT_BYTES {
                let Some((_, oldest)) = self.open.pop_first() else { break };
                self.kept_bytes -= oldest.pieces.values().map(Chunk::len).sum::<usize>();
            }
        }
        told.into_iter()
    }
}
