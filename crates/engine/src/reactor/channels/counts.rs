//! Traffic at this end, for reports.

use serde_json::{Value, json};
use streamgauge_base::Chunk;

use super::{Channels, Socket};

/// Traffic at this end.
#[derive(Clone, Copy, Default, Debug, serde::Serialize)]
pub struct Counts {
    /// Datagrams that the kernel took.
    pub datagrams_sent: u64,
    /// Their bytes.
    pub datagram_bytes_sent: u64,
    /// Datagrams that the kernel did not take.
    pub send_errors: u64,
    /// Datagrams that arrived.
    pub datagrams_received: u64,
    /// Their bytes.
    pub datagram_bytes_received: u64,
    /// Bytes written to streams.
    pub stream_bytes_sent: u64,
    /// Bytes read from them.
    pub stream_bytes_received: u64,
}

impl Channels {
    /// Counts a datagram that arrived by another way than a channel's own socket.
    pub fn note_datagram(&mut self, datagram: &Chunk) {
        self.counts.datagrams_received += 1;
        self.counts.datagram_bytes_received += datagram.len() as u64;
    }

    /// Returns the traffic so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns the received bytes of streams that the machine has not read, and, for those that it ended at
    /// once, never will.
    pub fn unread_bytes(&self) -> u64 {
        let held = self.list.values().filter_map(|entry| match &entry.socket {
            Socket::Stream(stream, _) => Some(stream.unread_bytes()),
            _ => None,
        });
        held.sum::<u64>() + self.given_up
    }

    /// Returns the bytes that other ends of streams have not acknowledged.
    pub fn unacknowledged_bytes(&self) -> u64 {
        let held = self.list.values().filter_map(|entry| match &entry.socket {
            Socket::Stream(stream, _) => Some(stream.unacknowledged_bytes()),
            _ => None,
        });
        held.sum()
    }

    /// Returns the traffic, and the first stream's settings.
    pub fn stats(&self) -> Value {
        let counts = &self.counts;
        let mut stats = json!({
            "sent_packets": counts.datagrams_sent,
            "sent_bytes": counts.datagram_bytes_sent + counts.stream_bytes_sent,
            "send_errors": counts.send_errors,
            "received_packets": counts.datagrams_received,
            "received_bytes": counts.datagram_bytes_received + counts.stream_bytes_received,
        });
        let first = self.list.values().find_map(|entry| match &entry.socket {
            Socket::Stream(stream, _) => Some(stream.settings()),
            _ => None,
        });
        let settings = first.or_else(|| self.settings.clone());
        if let (Value::Object(stats), Some(Value::Object(settings))) = (&mut stats, settings) {
            stats.extend(settings);
        }
        if let Some(relayed) = &self.relayed {
            stats["received_from_servers_bytes"] = relayed.from_servers.into();
            stats["received_from_servers_packets"] = relayed.datagrams_from_servers.into();
        }
        stats
    }
}
