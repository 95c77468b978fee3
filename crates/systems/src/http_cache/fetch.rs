//! A running fetch from a server.

use streamgauge_base::{Chunk, Instant};
use streamgauge_wire::http::{Reader, Request};

use super::answer::Wanted;
use crate::app::{ChannelId, Io, Peer};

/// One request to a server, and its answer as far as it is here.
pub struct Fetch {
    pub peer: Peer,
    /// The object that it is for.
    pub object: u64,
    /// The player that made the request first.
    pub for_player: ChannelId,
    pub request: Request,
    pub wanted: Wanted,
    pub reader: Reader,
    /// Where the next byte of its body belongs, once its head is here.
    pub at: Option<u64>,
    /// Behind its last byte, if that is known.
    pub end: Option<u64>,
    /// The server has no ranges: players that wait for a later byte wait for this.
    pub brings_all: bool,
    /// Its body is discarded: the requested bytes are here already, or cannot be used.
    pub skips: bool,
    /// Its connection carried another before, and may have been closed meanwhile by the server.
    pub reused: bool,
    /// Something of the answer is here.
    pub answered: bool,
    pub keeps_alive: bool,
    /// The part of the request still to be written.
    pub unsent: Option<Chunk>,
    /// The server is given up then.
    pub deadline: Instant,
}

/// A fetch further behind than this does not serve a waiting player: a request of its own does (a player that
/// jumps ahead).
const NEAR_BYTES: u64 = 256 * 1024;

impl Fetch {
    /// Returns whether it brings byte `at` soon.
    pub fn brings(&self, at: u64) -> bool {
        match self.at {
            None => !self.skips,
            Some(now) => {
                let is_near = self.brings_all || at.saturating_sub(now) <= NEAR_BYTES;
                !self.skips && now <= at && is_near && self.end.is_none_or(|end| at < end)
            }
        }
    }

    /// Writes as much of the request as the connection accepts.
    pub fn write(&mut self, channel: ChannelId, io: &mut dyn Io) {
        if let Some(mut chunk) = self.unsent.take() {
            let taken = io.write(channel, chunk.clone());
            self.unsent = Some(chunk.split_off(taken)).filter(|rest| !rest.is_empty());
        }
    }
}
