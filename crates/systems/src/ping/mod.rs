//! ICMP echo from server to player and back.

mod player;
mod server;

pub use player::PingPlayer;
pub use server::{LOST_AFTER, PingServer};

use streamgauge_base::Duration;

use crate::app::ChannelId;
use crate::machines::{Carrier, Channel, Machines, Refusal};
use crate::plan::PingSpec;

/// The one channel.
pub const ECHO: ChannelId = ChannelId(0);

/// Largest echo data that an Ethernet frame carries unfragmented (1500 - 20 - 8).
pub const MAX_PAYLOAD_BYTES: u32 = 1472;

pub(crate) fn machines(spec: &PingSpec) -> Result<Machines, Refusal> {
    if spec.interval < Duration::from_millis(1) {
        return Err(("app.ping.interval".into(), "shorter than 1 ms; give 1 ms or more".into()));
    }
    if spec.payload_bytes > MAX_PAYLOAD_BYTES {
        let what = format!("{} B do not fit a frame; give at most {MAX_PAYLOAD_BYTES} B", spec.payload_bytes);
        return Err(("app.ping.payload_bytes".into(), what));
    }
    Ok(Machines {
        channels: vec![Channel { id: ECHO, carrier: Carrier::IcmpEcho }],
        server: Box::new(PingServer::new(spec)),
        player: Box::new(PingPlayer),
    })
}

#[cfg(test)]
mod tests {
    use streamgauge_base::Instant;

    use super::*;
    use crate::app::Input;
    use crate::testing::{Pair, Pipe};

    #[test]
    fn every_reply_gives_its_round_trip_and_every_loss_is_known() {
        let made = machines(&PingSpec { interval: Duration::from_millis(200), payload_bytes: 56 }).unwrap();
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
        let made = machines(&PingSpec { interval: Duration::from_secs(60), payload_bytes: 0 }).unwrap();
        let pipe = Pipe { delay: Duration::from_secs(6), echo: true, ..Pipe::default() };
        let mut pair = Pair::new(made.server, made.player, pipe);
        pair.run(Instant::from_nanos(30_000_000_000));
        let names: Vec<_> = pair.events.iter().map(|e| e.name.as_ref()).collect();
        assert_eq!(names, ["probe_lost", "rtt"]);
    }
}
