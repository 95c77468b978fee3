//! Constant bit rate UDP from server to player, as mgen sends it.

mod player;
mod server;
mod spec;

pub use player::CbrPlayer;
pub use server::CbrServer;
pub use spec::{CbrSpec, EcnField};

use streamgauge_base::Duration;
use streamgauge_plan::{DatagramProtocol, Parameter, Protocols};

use crate::app::ChannelId;
use crate::carrier::Carrier;
use crate::describe::{Content, EventKind, Pace, Refusal, System, events};
use crate::machines::{Channel, Machines};
use crate::rates::{datagram_bytes, fragments};

/// The one channel, of datagrams.
pub const DATA: ChannelId = ChannelId(0);

/// The port: mgen's.
pub const PORT: u16 = 5000;

/// Largest UDP payload of an IPv4 packet (65,535 - 20 - 8). The host sends datagrams of more than 1,472 in
/// fragments.
pub const MAX_PAYLOAD_BYTES: u32 = 65_507;

/// Faster than any clock of ours ticks.
pub const MAX_PACKETS_PER_S: f64 = 1e9;

impl System for CbrSpec {
    const NAME: &'static str = "cbr";
    const TITLE: &'static str = "Constant bit rate UDP, as mgen";
    const VERSION: u32 = 1;
    const CONTENT: Content = Content::None;
    const EVENTS: &'static [EventKind] = &events([]);

    fn usual() -> Self {
        let (windows, ecn) = (Vec::new(), EcnField::No);
        CbrSpec { packets_per_s: 1.0, payload_bytes: 1000, burst: 1, windows, ecn }
    }

    fn parameters() -> Vec<Parameter> {
        Self::fields()
    }

    fn machines(&self, _: &str, _: u64) -> Result<Machines, Refusal> {
        // The negated comparison refuses NaN too.
        if !(self.packets_per_s > 0.0 && self.packets_per_s <= MAX_PACKETS_PER_S) {
            let what =
                format!("{} packets/s; give a rate above 0 and up to 1e9 packets/s", self.packets_per_s);
            return Err(("app.cbr.packets_per_s".into(), what));
        }
        if self.burst == 0 {
            return Err(("app.cbr.burst".into(), "0 packets at each tick; give 1 or more".into()));
        }
        if self.payload_bytes > MAX_PAYLOAD_BYTES {
            let what =
                format!("{} B do not fit a datagram; give at most {MAX_PAYLOAD_BYTES} B", self.payload_bytes);
            return Err(("app.cbr.payload_bytes".into(), what));
        }
        let ascending = self.windows.windows(2).all(|w| w[0].1 <= w[1].0);
        if !ascending || self.windows.iter().any(|w| w.0 >= w.1) {
            let what = "each window [on, off) must end after it begins and not overlap the one before";
            return Err(("app.cbr.windows".into(), what.into()));
        }
        Ok(Machines {
            channels: vec![Channel { id: DATA, carrier: Carrier::Udp { port: PORT, ecn: self.ecn.into() } }],
            server: Box::new(CbrServer::new(self)),
            player: Box::new(CbrPlayer),
        })
    }

    fn protocols(&self) -> Protocols {
        Protocols::udp(DatagramProtocol::Opaque)
    }

    fn wanted_bps(&self, link_bytes: u32) -> Option<f64> {
        Some(8.0 * self.packets_per_s * datagram_bytes(self.payload_bytes, link_bytes) as f64)
    }

    fn pace(&self) -> Option<Pace> {
        let CbrSpec { packets_per_s, burst, payload_bytes, .. } = *self;
        Some(Pace { packets_per_s, burst, fragments: fragments(payload_bytes) })
    }

    fn windows(&self) -> &[(Duration, Duration)] {
        &self.windows
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use streamgauge_base::{Duration, Instant};

    use super::*;
    use crate::app::Input;
    use crate::testing::{Pair, Pipe};

    fn spec(packets_per_s: f64, burst: u32, windows: &[(u64, u64)]) -> CbrSpec {
        let windows =
            windows.iter().map(|&(on, off)| (Duration::from_millis(on), Duration::from_millis(off)));
        CbrSpec { packets_per_s, payload_bytes: 1000, burst, windows: windows.collect(), ecn: EcnField::No }
    }

    fn sent_times(spec: &CbrSpec, end_ms: u64) -> Vec<u64> {
        let made = spec.machines("cross", 1).unwrap();
        let mut pair = Pair::new(made.server, made.player, Pipe::default());
        pair.run(Instant::ZERO + Duration::from_millis(end_ms));
        pair.sent.iter().map(|s| s.at.as_nanos()).collect()
    }

    #[test]
    fn the_burst_class_of_hessler_is_144_packets() {
        let times = sent_times(&spec(200.0, 1, &[(30_000, 30_720)]), 120_000);
        assert_eq!(times.len(), 144);
        assert_eq!(times[0], 30_000_000_000);
        assert_eq!(times[143], 30_715_000_000);
    }

    #[test]
    fn a_rate_that_no_tick_divides_keeps_its_remainder() {
        // 7 packets/s over 1,000 s: 142,857,142.857.. ns apart.
        let times = sent_times(&spec(7.0, 1, &[]), 1_000_000);
        assert_eq!(times.len(), 7_000 + 1, "both ends of the interval have a tick");
        assert_eq!(*times.last().unwrap(), 1_000_000_000_000);
    }

    #[test]
    fn a_burst_leaves_back_to_back_at_the_same_mean_rate() {
        let times = sent_times(&spec(100.0, 10, &[(0, 10_000)]), 20_000);
        assert_eq!(times.len(), 1_000);
        assert!(times.chunks(10).all(|tick| tick.iter().all(|t| *t == tick[0])));
    }

    #[test]
    fn paused_ticks_are_not_made_up_for() {
        let made = spec(100.0, 1, &[(0, 10_000)]).machines("cross", 1).unwrap();
        let mut pair = Pair::new(made.server, made.player, Pipe::default());
        pair.at(Duration::from_millis(2_001), Input::Pause);
        pair.at(Duration::from_millis(3_001), Input::Resume);
        pair.at(Duration::from_millis(5_001), Input::Stop);
        pair.run(Instant::from_nanos(20_000_000_000));
        assert_eq!(pair.sent.len(), 401);
    }

    #[test]
    fn refuses_what_it_cannot_send() {
        for (bad, key) in [
            (spec(0.0, 1, &[]), "packets_per_s"),
            (spec(f64::NAN, 1, &[]), "packets_per_s"),
            (spec(1.0, 0, &[]), "burst"),
            (CbrSpec { payload_bytes: 65_508, ..spec(1.0, 1, &[]) }, "payload_bytes"),
            (spec(1.0, 1, &[(5, 5)]), "windows"),
            (spec(1.0, 1, &[(5, 9), (8, 12)]), "windows"),
        ] {
            let refusal = bad.machines("cross", 1).err().unwrap();
            assert!(refusal.0.ends_with(key), "{refusal:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn the_long_run_rate_is_exact(milli_pps in 100u64..5_000_000, burst in 1u32..5, on in 0u64..3_000) {
            let pps = milli_pps as f64 / 1000.0;
            let times = sent_times(&spec(pps, burst, &[(on, on + 4_000)]), 8_000);
            // Ticks k = 0, 1, ... at on + floor(k * burst / pps), those before on + 4 s.
            let ticks = (4_000u128 * u128::from(milli_pps)).div_ceil(1_000_000 * u128::from(burst)).max(1);
            // The rate is kept to 1e-9 packets/s, so a tick on the very edge may fall either side.
            let packets = times.len() as i128;
            prop_assert!((packets - (ticks * u128::from(burst)) as i128).abs() <= i128::from(burst),
                "{packets} packets, {ticks} ticks");
        }
    }
}
