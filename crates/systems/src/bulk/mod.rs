//! Greedy TCP from server to player, as FTP or iperf3 -R; or many short transfers, each on a connection of its own.

mod agreed;
mod player;
mod server;
mod spec;
mod transfers;

pub use player::BulkPlayer;
pub use server::BulkServer;
pub use spec::BulkSpec;

use streamgauge_base::Duration;
use streamgauge_plan::{Arrivals, Parameter, Protocols, StreamProtocol, TcpSpec};

use crate::app::ChannelId;
use crate::carrier::Carrier;
use crate::describe::{Content, EventKind, Refusal, System, events, tcp_last};
use crate::machines::{Channel, Machines};

/// The one channel, a stream.
pub const DATA: ChannelId = ChannelId(0);

/// The server's port: iperf3's.
pub const PORT: u16 = 5201;

/// Bytes offered at once where there is no end: more than any send buffer holds.
const OFFER: u64 = 1 << 30;

/// Its lead over acknowledgements: more than any window here, as of a program that always has more to write.
const MOST_AHEAD: u64 = 4 << 20;

/// Header bytes of a segment with timestamps.
const TCP_AND_IP_BYTES: u32 = 52;

impl System for BulkSpec {
    const NAME: &'static str = "bulk";
    const TITLE: &'static str = "Greedy TCP, as FTP";
    const VERSION: u32 = 1;
    const CONTENT: Content = Content::None;
    const EVENTS: &'static [EventKind] = &events([(transfers::COMPLETE, "s"), (transfers::FAILED, "s")]);
    const ARRIVALS: bool = true;

    fn usual() -> Self {
        let tcp = TcpSpec { send_buffer: Some(MOST_AHEAD), ..TcpSpec::default() };
        BulkSpec { tcp, bytes: None, control_connection: false, arrivals: None }
    }

    fn parameters() -> Vec<Parameter> {
        tcp_last(Self::fields())
    }

    fn machines(&self, flow: &str, seed: u64) -> Result<Machines, Refusal> {
        if let Some(arrivals) = &self.arrivals {
            if self.bytes.is_some() {
                let what = "each transfer has its own size; leave this out, or the arrivals";
                return Err(("app.bulk.bytes".into(), what.into()));
            }
            if self.control_connection {
                let what = "transfers have none; leave this out, or the arrivals";
                return Err(("app.bulk.control_connection".into(), what.into()));
            }
            return Ok(transfers::machines(&arrivals.0, &self.tcp));
        }
        if self.control_connection {
            return Ok(agreed::machines(self.bytes, &self.tcp, flow, seed));
        }
        let carrier = Carrier::Tcp { port: PORT, settings: self.tcp.clone() };
        Ok(Machines {
            channels: vec![Channel { id: DATA, carrier }],
            server: Box::new(BulkServer::new(self.bytes)),
            player: Box::new(BulkPlayer::default()),
        })
    }

    fn protocols(&self) -> Protocols {
        Protocols::tcp(StreamProtocol::Opaque)
    }

    fn media_tcp(&self) -> Option<&TcpSpec> {
        Some(&self.tcp)
    }

    fn begins_with_control(&self) -> bool {
        self.control_connection && self.arrivals.is_none()
    }

    /// Returns `None`: a stream uses any rate. Transfers are as many as they are: all but the last, over the
    /// time to its arrival.
    fn wanted_bps(&self, link_bytes: u32) -> Option<f64> {
        let transfers = &self.arrivals.as_ref()?.0;
        let [first, .., last] = &transfers[..] else { return None };
        // Asked for unchecked plans too: any numbers may be in them.
        let mss = u64::from(self.tcp.mss).max(1);
        let overhead = u128::from(TCP_AND_IP_BYTES) + u128::from(link_bytes);
        let octets = |bytes: u64| u128::from(bytes) + u128::from(bytes.div_ceil(mss)) * overhead;
        let sent: u128 = transfers[..transfers.len() - 1].iter().map(|transfer| octets(transfer.bytes)).sum();
        let seconds = last.at.as_secs_f64() - first.at.as_secs_f64();
        (seconds > 0.0).then(|| 8.0 * sent as f64 / seconds)
    }

    fn is_finite(&self) -> bool {
        self.bytes.is_some() || self.arrivals.is_some()
    }

    fn begins(&self) -> Duration {
        let first = |arrivals: &Arrivals| arrivals.0.first().map_or(Duration::MAX, |transfer| transfer.at);
        self.arrivals.as_ref().map_or(Duration::ZERO, first)
    }
}

#[cfg(test)]
mod tests {
    use streamgauge_base::Instant;
    use streamgauge_plan::Transfer;

    use super::*;
    use crate::app::Input;
    use crate::testing::{Pair, Pipe};

    fn pair(bytes: Option<u64>) -> Pair {
        let pipe = Pipe { stream_bytes_per_s: Some(1_000_000), ..Pipe::default() };
        Pair::new(Box::new(BulkServer::new(bytes)), Box::new(BulkPlayer::default()), pipe)
    }

    #[test]
    fn transfers_want_what_they_come_to_and_begin_when_the_first_arrives() {
        let at = |ms, bytes| Transfer { at: Duration::from_millis(ms), bytes };
        let of = |transfers| BulkSpec { arrivals: Some(Arrivals(transfers)), ..BulkSpec::usual() };
        let several = of(vec![at(1_000, 1448), at(1_500, 1449), at(3_000, 9_000)]);
        // Three segments in two seconds.
        assert_eq!(several.wanted_bps(0), Some(8.0 * (2_897.0 + 3.0 * 52.0) / 2.0));
        assert_eq!(several.wanted_bps(14), Some(8.0 * (2_897.0 + 3.0 * 66.0) / 2.0));
        assert_eq!((several.begins(), several.is_finite()), (Duration::from_secs(1), true));
        assert_eq!(of(vec![at(1, 1)]).wanted_bps(0), None);
        let mut damaged = of(vec![at(0, u64::MAX), at(1, u64::MAX), at(2, 1)]);
        damaged.tcp.mss = 0;
        assert!(damaged.wanted_bps(u32::MAX).is_some_and(|rate| rate.is_finite() && rate > 0.0));
        assert_eq!(of(Vec::new()).begins(), Duration::MAX);
        assert_eq!((BulkSpec::usual().begins(), BulkSpec::usual().wanted_bps(0)), (Duration::ZERO, None));
    }

    #[test]
    fn what_is_of_one_transfer_is_refused_beside_arrivals() {
        let both = BulkSpec { bytes: Some(1), arrivals: Some(Arrivals::default()), ..BulkSpec::usual() };
        let (key, what) = both.machines("x", 1).err().unwrap();
        assert!(key == "app.bulk.bytes" && what.contains("leave this out"), "{key}: {what}");
        let both = BulkSpec { control_connection: true, bytes: None, ..both };
        let (key, what) = both.machines("x", 1).err().unwrap();
        assert!(key == "app.bulk.control_connection" && what.contains("have none"), "{key}: {what}");
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
