//! Connections in TIME-WAIT.

use std::collections::{BTreeMap, VecDeque};

use streamgauge_base::{Duration, Instant};
use streamgauge_transport::tcp::{Connection, Segment};

use crate::table::Address;

/// How long an end that finished first answers for its connection and keeps its port: Linux's TCP_TIMEWAIT_LEN, in
/// place of RFC 9293's two maximum segment lifetimes of two minutes.
pub const TIME_WAIT: Duration = Duration::from_secs(60);

/// The connections of one end that are over and still answer.
#[derive(Debug, Default)]
pub struct Lingering {
    open: BTreeMap<Address, Lingerer>,
    /// In order of time; some may be closed, or be of a later connection with the same ports.
    until: VecDeque<(Instant, Address)>,
}

#[derive(Debug)]
struct Lingerer {
    connection: Box<Connection>,
    until: Instant,
    /// Whether it has a port of the host's choosing, which no other connection gets meanwhile.
    keeps_port: bool,
}

/// The result of a segment of such a connection.
#[derive(Debug)]
pub enum Answer {
    /// Segments that are sent.
    Segments(Vec<Segment>),
    /// The connection has ended for good, by a reset; the port that it kept is free.
    Gone(Option<u16>),
}

impl Lingering {
    /// Adds `connection`, which is over; whether it keeps its port from others.
    pub fn insert(&mut self, now: Instant, address: Address, connection: Box<Connection>, keeps_port: bool) {
        let until = now + TIME_WAIT;
        self.open.insert(address, Lingerer { connection, until, keeps_port });
        self.until.push_back((until, address));
    }

    /// Handles a segment for `address`; `None` if nothing lingers there.
    pub fn receive(&mut self, now: Instant, address: Address, segment: &Segment) -> Option<Answer> {
        let connection = &mut self.open.get_mut(&address)?.connection;
        connection.handle(now, segment);
        let answers = std::iter::from_fn(|| connection.poll_transmit(now)).collect();
        if connection.is_open() {
            return Some(Answer::Segments(answers));
        }
        Some(Answer::Gone(self.forget(address)))
    }

    /// Forgets the connection of `address`; the port that it kept is free.
    pub fn forget(&mut self, address: Address) -> Option<u16> {
        self.open.remove(&address).filter(|one| one.keeps_port).map(|_| address.own)
    }

    /// Forgets those past their time, until one kept its port, which is free; call until `None`.
    pub fn expire(&mut self, now: Instant) -> Option<u16> {
        while let Some(&(until, address)) = self.until.front().filter(|(until, _)| *until <= now) {
            self.until.pop_front();
            if self.open.get(&address).is_some_and(|one| one.until == until)
                && let Some(port) = self.forget(address)
            {
                return Some(port);
            }
        }
        None
    }

    /// Returns how many there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.open.len()
    }
}

#[cfg(test)]
mod tests {
    use streamgauge_plan::TcpSpec;

    use super::*;
    use crate::settings::settings;

    const OPENED: Address = Address { protocol: 6, own: 40_000, peer: 80, whom: 0 };
    /// By a listener at a port of the range that hosts choose from.
    const ACCEPTED: Address = Address { protocol: 6, own: 40_001, peer: 50_000, whom: 0 };

    fn both() -> Lingering {
        let mut lingering = Lingering::default();
        for (address, keeps_port) in [(OPENED, true), (ACCEPTED, false)] {
            let connection = Connection::listen(settings(&TcpSpec::default()).unwrap().config.clone());
            lingering.insert(Instant::ZERO, address, Box::new(connection), keeps_port);
        }
        lingering
    }

    #[test]
    fn a_port_is_free_when_what_kept_it_gives_way_to_a_new_connection() {
        let mut lingering = both();
        assert_eq!(lingering.forget(OPENED), Some(40_000));
        assert_eq!(lingering.forget(OPENED), None);
        assert_eq!(lingering.forget(ACCEPTED), None);
        assert_eq!(lingering.len(), 0);
    }

    #[test]
    fn after_a_listeners_connection_nobodys_port_is_freed() {
        let mut lingering = both();
        assert_eq!(lingering.expire(Instant::ZERO), None);
        assert_eq!(lingering.len(), 2);
        assert_eq!(lingering.expire(Instant::ZERO + TIME_WAIT), Some(40_000));
        assert_eq!(lingering.expire(Instant::ZERO + TIME_WAIT), None);
        assert_eq!(lingering.len(), 0);
    }
}
