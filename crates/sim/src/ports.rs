//! The ports that a host chooses by itself.

use std::collections::BTreeSet;

use streamgauge_systems::ChannelError;

/// Linux's range (`net.ipv4.ip_local_port_range`), its first and last.
const RANGE: (u16, u16) = (32_768, 60_999);

/// The port of a host's first connection; any of the range would do.
pub const FIRST_EPHEMERAL_PORT: u16 = 40_000;

/// The ports of the connections that a host opens, used in order and round and round: one that has become free is used
/// last.
#[derive(Debug)]
pub struct EphemeralPorts {
    next: u16,
    taken: BTreeSet<u16>,
}

impl Default for EphemeralPorts {
    fn default() -> Self {
        EphemeralPorts { next: FIRST_EPHEMERAL_PORT, taken: BTreeSet::new() }
    }
}

impl EphemeralPorts {
    /// Returns the next that is free: in no connection and in no TIME-WAIT, and not reported as used by `others`.
    pub fn take(&mut self, others: impl Fn(u16) -> bool) -> Result<u16, ChannelError> {
        let (first, last) = RANGE;
        for _ in first..=last {
            let port = self.next;
            self.next = if port == last { first } else { port + 1 };
            if !others(port) && self.taken.insert(port) {
                return Ok(port);
            }
        }
        Err(ChannelError::NoPort { first, last })
    }

    /// Returns how many are in use.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.taken.len()
    }

    /// Frees `port`.
    pub fn release(&mut self, port: u16) {
        self.taken.remove(&port);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_port_is_given_once_and_then_none_until_one_is_free_again() {
        let mut ports = EphemeralPorts::default();
        let listens = |port| port == 50_000;
        let given: Vec<u16> = std::iter::from_fn(|| ports.take(listens).ok()).collect();
        let mut sorted = given.clone();
        sorted.sort_unstable();
        assert!(sorted.iter().copied().eq((32_768..=60_999).filter(|&port| port != 50_000)));
        assert_eq!((given[0], given[1]), (40_000, 40_001));
        let why = ports.take(listens).unwrap_err();
        assert_eq!(why, ChannelError::NoPort { first: 32_768, last: 60_999 });
        assert!(why.to_string().contains("32768 to 60999"), "{why}");
        ports.release(40_007);
        assert_eq!(ports.take(listens), Ok(40_007));
    }

    #[test]
    fn a_port_that_is_free_again_is_the_last_to_be_taken() {
        let mut ports = EphemeralPorts::default();
        let mut first = None;
        for _ in 0..28_232 {
            let port = ports.take(|_| false).unwrap();
            ports.release(port);
            assert_ne!(first, Some(port));
            first = first.or(Some(port));
        }
        assert_eq!(ports.take(|_| false).ok(), first);
    }
}
