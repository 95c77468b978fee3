//! ICMP echo from server to player and back.

mod player;
mod server;
mod spec;

pub use player::PingPlayer;
pub use server::{LOST_AFTER, PingServer};
pub use spec::PingSpec;

use streamgauge_base::Duration;
use streamgauge_plan::{Parameter, Protocols};

use crate::app::ChannelId;
use crate::carrier::Carrier;
use crate::describe::{Content, EventKind, MediaOver, Refusal, System, events};
use crate::machines::{Channel, Machines};

/// The one channel.
pub const ECHO: ChannelId = ChannelId(0);

/// Largest echo data that an Ethernet frame carries unfragmented (1500 - 20 - 8).
pub const MAX_PAYLOAD_BYTES: u32 = 1472;

/// A probe is no flood.
pub const MIN_INTERVAL: Duration = Duration::from_millis(1);

impl System for PingSpec {
    const NAME: &'static str = "ping";
    const TITLE: &'static str = "ICMP echo";
    const VERSION: u32 = 1;
    const CONTENT: Content = Content::None;
    const EVENTS: &'static [EventKind] = &events([("rtt", "s"), ("probe_lost", "1")]);

    fn usual() -> Self {
        PingSpec { interval: Duration::from_secs(1), payload_bytes: 56 }
    }

    fn parameters() -> Vec<Parameter> {
        Self::fields()
    }

    fn machines(&self, _: &str, _: u64) -> Result<Machines, Refusal> {
        if self.interval < MIN_INTERVAL {
            return Err(("app.ping.interval".into(), "shorter than 1 ms; give 1 ms or more".into()));
        }
        if self.payload_bytes > MAX_PAYLOAD_BYTES {
            let what =
                format!("{} B do not fit a frame; give at most {MAX_PAYLOAD_BYTES} B", self.payload_bytes);
            return Err(("app.ping.payload_bytes".into(), what));
        }
        Ok(Machines {
            channels: vec![Channel { id: ECHO, carrier: Carrier::IcmpEcho }],
            server: Box::new(PingServer::new(self)),
            player: Box::new(PingPlayer),
        })
    }

    /// ICMP identifies itself.
    fn protocols(&self) -> Protocols {
        Protocols::default()
    }

    fn media_over(&self) -> MediaOver {
        MediaOver::Icmp
    }

    fn wanted_bps(&self, _: u32) -> Option<f64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use streamgauge_base::Instant;

    use super::*;
    use crate::app::Input;
    use crate::testing::{Pair, Pipe};

    #[test]
    fn every_reply_gives_its_round_trip_and_every_loss_is_known() {
        let made =
            PingSpec { interval: Duration::from_millis(200), payload_bytes: 56 }.machines("ping", 1).unwrap();
        let pipe =
            Pipe { delay: Duration::from_millis(15), drop: |n| n % 5 == 3, echo: true, ..Pipe::default() };
        let mut pair = Pair::new(made.server, made.player, pipe);
        pair.at(Duration::from_millis(9_900), Input::Stop);
        pair.run(Instant::from_nanos(30_000_000_000));
        let of = |name: &str| pair.events.iter().filter(|e| e.name == name).collect::<Vec<_>>();
        assert_eq!((of("rtt").len(), of("probe_lost").len()), (40, 10));
        assert!(of("rtt").iter().all(|e| e.value == Some(0.030) && e.unit == "s"));
        assert_eq!(of("probe_lost")[0].value, Some(3.0), "the fourth request");
    }

    #[test]
    fn a_reply_after_it_was_given_up_is_still_an_rtt() {
        let made =
            PingSpec { interval: Duration::from_secs(60), payload_bytes: 0 }.machines("ping", 1).unwrap();
        let pipe = Pipe { delay: Duration::from_secs(6), echo: true, ..Pipe::default() };
        let mut pair = Pair::new(made.server, made.player, pipe);
        pair.run(Instant::from_nanos(30_000_000_000));
        let names: Vec<_> = pair.events.iter().map(|e| e.name.as_ref()).collect();
        assert_eq!(names, ["probe_lost", "rtt"]);
    }
}
