//! Greedy TCP from server to player, as FTP or iperf3 -R.

mod player;
mod server;

pub use player::BulkPlayer;
pub use server::BulkServer;

use crate::app::ChannelId;
use crate::machines::{Carrier, Channel, Machines, Refusal};
use crate::plan::BulkSpec;

/// The one channel, a stream.
pub const DATA: ChannelId = ChannelId(0);

/// The server's port: iperf3's.
pub const PORT: u16 = 5201;

pub(crate) fn machines(spec: &BulkSpec) -> Result<Machines, Refusal> {
    Ok(Machines {
        channels: vec![Channel {
            id: DATA,
            carrier: Carrier::Tcp { port: PORT, settings: spec.tcp.clone() },
        }],
        server: Box::new(BulkServer::new(spec.bytes)),
        player: Box::new(BulkPlayer::default()),
    })
}

#[cfg(test)]
mod tests {
    use streamgauge_base::{Duration, Instant};

    use super::*;
    use crate::app::Input;
    use crate::testing::{Pair, Pipe};

    fn pair(bytes: Option<u64>) -> Pair {
        let pipe = Pipe { stream_bytes_per_s: Some(1_000_000), ..Pipe::default() };
        Pair::new(Box::new(BulkServer::new(bytes)), Box::new(BulkPlayer::default()), pipe)
    }

    #[test]
    fn moves_exactly_the_bytes_asked_for_and_then_closes() {
        let mut pair = pair(Some(1_234_567));
        pair.run(Instant::from_nanos(5_000_000_000));
        assert_eq!(pair.stream_bytes_read(), 1_234_567);
        let ends: Vec<_> = pair.events.iter().filter(|e| e.name == crate::MEDIA_END).collect();
        assert_eq!(ends.len(), 1);
        assert_eq!(ends[0].value, Some(1_234_567.0));
    }

    #[test]
    fn keeps_the_stream_full_without_end_but_for_a_pause() {
        let mut pair = pair(None);
        pair.at(Duration::from_secs(2), Input::Pause);
        pair.at(Duration::from_secs(3), Input::Resume);
        pair.run(Instant::from_nanos(5_000_000_000));
        // 4 s at 1 MB/s, give or take the send buffer (64 kB) that drains into the pause.
        let read = pair.stream_bytes_read();
        assert!((3_900_000..=4_100_000).contains(&read), "{read}");
    }

    #[test]
    fn a_stopped_flow_gives_up_what_waits_unsent() {
        let mut pair = pair(None);
        pair.at(Duration::from_secs(1), Input::Stop);
        pair.run(Instant::from_nanos(5_000_000_000));
        // 1 MB/s for a second, and nothing of the send buffer (64 kB).
        assert!(pair.stream_bytes_read() <= 1_001_000, "{}", pair.stream_bytes_read());
        let ends: Vec<_> = pair.events.iter().filter(|e| e.name == crate::MEDIA_END).collect();
        assert_eq!((ends.len(), ends[0].reason.as_ref()), (1, "stopped"));
    }
}
