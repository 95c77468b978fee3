//! A relay that hands bytes on, for tests of the relays' drivers: each stream of a player becomes one to its server.

use std::collections::{BTreeMap, BTreeSet};

use streamgauge_base::{Chunk, Event, Instant};
use streamgauge_plan::TcpSpec;
use streamgauge_systems::{App, Carrier, ChannelError, ChannelId, CloseReason, Input, Io, Peer};

/// The relay's observations.
#[derive(Default, Debug)]
pub struct Passed {
    /// Streams accepted, by the flow they are of.
    pub accepted: BTreeMap<Peer, usize>,
    pub refused: Vec<String>,
}

#[derive(Default)]
pub struct Splice {
    pub other: BTreeMap<ChannelId, ChannelId>,
    pub waiting: BTreeMap<ChannelId, Vec<Chunk>>,
    /// Streams that end when the data waiting for them is written: the other end has finished.
    pub ending: BTreeSet<ChannelId>,
    pub passed: std::sync::Arc<std::sync::Mutex<Passed>>,
    pub port: u16,
}

impl Splice {
    fn pass(&mut self, from: ChannelId, io: &mut dyn Io) {
        let Some(&to) = self.other.get(&from) else { return };
        let waiting = self.waiting.entry(to).or_default();
        while let Some(chunk) = io.read(from, 100_000) {
            waiting.push(chunk);
        }
        self.push(to, io);
    }

    fn push(&mut self, to: ChannelId, io: &mut dyn Io) {
        let Some(waiting) = self.waiting.get_mut(&to) else { return };
        while !waiting.is_empty() {
            let mut chunk = waiting.remove(0);
            let taken = io.write(to, chunk.clone());
            if taken < chunk.len() {
                waiting.insert(0, chunk.split_off(taken));
                return;
            }
        }
        if self.ending.remove(&to) {
            io.close(to);
        }
    }
}

impl App for Splice {
    fn handle(&mut self, _: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Accepted { channel, on } => {
                assert_eq!((on, io.peer(on)), (ChannelId(0), None));
                let peer = io.peer(channel).expect("a player's stream is of a flow");
                *self.passed.lock().unwrap().accepted.entry(peer).or_default() += 1;
                let up = io.open_to(peer, &Carrier::Tcp { port: self.port, settings: TcpSpec::default() });
                assert_eq!(io.peer(up), Some(peer));
                self.other.extend([(channel, up), (up, channel)]);
            }
            Input::Opened(channel) => {
                let down = self.other[&channel];
                self.pass(down, io);
            }
            Input::Readable(channel) => self.pass(channel, io),
            Input::Writable(channel) => self.push(channel, io),
            Input::Closed(channel, CloseReason::Finished) => {
                self.ending.extend(self.other.get(&channel));
                self.pass(channel, io);
            }
            Input::Closed(channel, _) => {
                if let Some(other) = self.other.remove(&channel) {
                    io.abort(other);
                }
            }
            Input::Refused(channel, why) => {
                self.passed.lock().unwrap().refused.push(ChannelError::to_string(why));
                if let Some(other) = self.other.remove(&channel) {
                    io.abort(other);
                }
            }
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}
