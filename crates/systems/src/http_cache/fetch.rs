//! What is under way from a server.

use streamgauge_base::{Chunk, Instant};
use streamgauge_wire::http::{Reader, Request};

use super::answer::Wanted;
use crate::app::{ChannelId, Io, Peer};

/// One request to a server, and its answer as far as it is here.
pub struct Fetch {
    pub peer: Peer,
    /// The object that it is for.
    pub object: u64,
    /// The player whose request it was first.
    pub for_player: ChannelId,
    pub request: Request,
    pub wanted: Wanted,
    pub reader: Reader,
    /// Where the next byte of its body belongs, once its head is here.
    pub at: Option<u64>,
    /// Behind its last byte, if that is known.
    pub end: Option<u64>,
    /// The server gives no parts: whoever waits for a later byte waits for this.
    pub brings_all: bool,
    /// Its body belongs nowhere: what was asked for is here already, or cannot be used.
    pub skips: bool,
    /// Its connection carried another before, and may have been closed meanwhile by the server.
    pub reused: bool,
    /// Something of the answer is here.
    pub answered: bool,
    pub keeps_alive: bool,
    /// Of the request, still to be written.
    pub unsent: Option<Chunk>,
    /// The server is given up then.
    pub deadline: Instant,
}

/// A fetch further behind than this does not serve who waits: a request of its own does (a player that jumps ahead).
const NEAR_BYTES: u64 = 256 * 1024;

impl Fetch {
    /// Whether it brings byte `at` soon.
    pub fn brings(&self, at: u64) -> bool {
        match self.at {
            None => !self.skips,
            Some(now) => {
                let is_near = self.brings_all || at.saturating_sub(now) <= NEAR_BYTES;
                !self.skips && now <= at && is_near && self.end.is_none_or(|end| at < end)
            }
        }
    }

    /// Writes what the connection takes of the request.
    pub fn write(&mut self, channel: ChannelId, io: &mut dyn Io) {
        if let Some(mut chunk) = self.unsent.take() {
            let taken = io.write(channel, chunk.clone());
            self.unsent = Some(chunk.split_off(taken)).filter(|rest| !rest.is_empty());
        }
    }
}
