//! Rate control of media over datagrams: feedback on packets in, a target for the encoder and a rate for the pacer out.
//!
//! A [`RateFactory`] makes one [`RateController`] for each sender. Those of this crate are a file each; another crate adds its
//! own with [`register_rate_control`]. Like congestion controllers they read no clock and draw no chance but from their seed.

#[cfg(test)]
mod bed;
mod fixed;
mod gcc;
mod gcc_draft;
mod groups;
mod nada;
mod overuse;
mod scream;

use std::fmt::Debug;
use std::sync::{Arc, RwLock};

use streamgauge_base::{BitRate, Duration, Ecn, Instant};

pub use fixed::Fixed;

/// The fate of one packet, as feedback reports it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketResult {
    /// The sender's number of the packet; they count up by one.
    pub number: u64,
    /// Bytes of the IP packet.
    pub bytes: u32,
    /// Time when it left the sender, by the sender's clock.
    pub sent: Instant,
    /// Arrival time by the receiver's clock, where only differences have a meaning; `None` if it was lost.
    pub arrived: Option<Instant>,
    /// The ECN bits with which it arrived; those that it was sent with if it was lost.
    pub ecn: Ecn,
    /// The probe that it is part of: how many [`RateController::probe`] had given before.
    pub probe: Option<u32>,
}

impl PacketResult {
    /// Returns whether it did not arrive by the time of the report.
    pub fn is_lost(&self) -> bool {
        self.arrived.is_none()
    }
    /// Returns whether it arrived with congestion experienced.
    pub fn is_marked(&self) -> bool {
        self.arrived.is_some() && self.ecn == Ecn::Ce
    }
}

/// Packets that are sent faster than the target, to see whether the path carries as much.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probe {
    /// At which rate.
    pub rate: BitRate,
    /// How many packets at the least.
    pub packets: u32,
    /// For how long at the least.
    pub lasts: Duration,
}

/// The rate controller of one sender.
pub trait RateController: Debug + Send {
    /// Notes that a packet left: its number and the bytes of the IP packet. Default: nothing.
    fn on_sent(&mut self, _now: Instant, _number: u64, _bytes: u32) {}
    /// Notes that a frame was made; `bytes` of those before it still wait to leave. Default: nothing.
    fn on_backlog(&mut self, _now: Instant, _bytes: u64) {}
    /// Handles a report on packets in the order sent; a packet is reported once, or again if it arrived after it was
    /// reported lost.
    fn on_feedback(&mut self, now: Instant, results: &[PacketResult]);
    /// Handles the time of [`Self::poll_timeout`]. Default: nothing.
    fn on_timeout(&mut self, _now: Instant) {}
    /// Returns the time of the next [`Self::on_timeout`], such as where reports fail to arrive; `None` for never.
    /// Default: never.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    /// Returns the bit rate at which the sender is to send IP packets. The encoder's share is the remainder after
    /// headers and repair.
    fn target(&self) -> BitRate;
    /// Returns the bit rate at which packets leave at the most.
    fn pacing(&self) -> BitRate;
    /// Returns the next probe to send now, if one is due. Default: none.
    fn probe(&mut self, _now: Instant) -> Option<Probe> {
        None
    }
    /// Returns the bytes that may be on their way without feedback; `None` for no such limit. Default: none.
    fn window(&self) -> Option<u64> {
        None
    }
    /// Returns the ECN bits that its packets leave with. Default: not ECN-capable.
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
}

/// Returns `value` bit/s.
fn bps(value: f64) -> BitRate {
    BitRate::from_bps(value as u64)
}

/// Returns the least sum of a packet's time to its receiver and its report's time back, the receiver's wait left out.
fn round_trip(now: Instant, results: &[PacketResult]) -> Option<Duration> {
    let last = results.iter().filter_map(|result| result.arrived).max()?;
    let of = |result: &PacketResult| {
        let waited = last.saturating_since(result.arrived?);
        Some(now.saturating_since(result.sent).saturating_sub(waited))
    };
    results.iter().filter_map(of).min()
}

/// The conditions under which a sender starts. `least` ≤ `start` ≤ `most`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateStart {
    /// The first target.
    pub start: BitRate,
    /// The encoder produces no less.
    pub least: BitRate,
    /// The encoder never exceeds this.
    pub most: BitRate,
    /// Start of the controller's own random stream.
    pub seed: u64,
}

impl RateStart {
    /// Returns `least` and `most`, bit/s.
    fn bounds(&self) -> (f64, f64) {
        let least = self.least.as_bps() as f64;
        (least, (self.most.as_bps() as f64).max(least))
    }
    /// Returns the first target within them.
    fn first(&self) -> f64 {
        let (least, most) = self.bounds();
        (self.start.as_bps() as f64).clamp(least, most)
    }
}

/// Makes the rate controllers of one name.
pub trait RateFactory: Debug + Send + Sync {
    /// Returns the name that scenarios and records have for it.
    fn name(&self) -> &str;
    /// Makes the controller of a sender.
    fn make(&self, start: &RateStart) -> Box<dyn RateController>;
}

/// A controller of this crate.
struct BuiltIn {
    name: &'static str,
    make: fn(&RateStart) -> Box<dyn RateController>,
}

static BUILT_IN: [BuiltIn; 5] = [
    BuiltIn { name: "gcc", make: |start| Box::new(gcc::Gcc::new(start)) },
    BuiltIn { name: "gcc-draft", make: |start| Box::new(gcc_draft::GccDraft::new(start)) },
    BuiltIn { name: "nada", make: |start| Box::new(nada::Nada::new(start)) },
    BuiltIn { name: "scream-v2", make: |start| Box::new(scream::Scream::new(start)) },
    BuiltIn { name: "fixed", make: |start| Box::new(Fixed::new(start)) },
];

/// Returns the names of this crate's, in the order that people read.
pub fn built_in_rate_controls() -> Vec<&'static str> {
    BUILT_IN.iter().map(|one| one.name).collect()
}

impl Debug for BuiltIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl RateFactory for &'static BuiltIn {
    fn name(&self) -> &str {
        self.name
    }
    fn make(&self, start: &RateStart) -> Box<dyn RateController> {
        (self.make)(start)
    }
}

static REGISTERED: RwLock<Vec<Arc<dyn RateFactory>>> = RwLock::new(Vec::new());

/// Returns the names of those of this crate and of those registered.
pub fn rate_control_names() -> Vec<String> {
    let registered = REGISTERED.read().expect("no panic holds it");
    let built_in = BUILT_IN.iter().map(|one| one.name.to_owned());
    built_in.chain(registered.iter().map(|known| known.name().to_owned())).collect()
}

/// Returns the factory of a name.
///
/// # Errors
///
/// There is none of that name; those that there are.
pub fn rate_control(name: &str) -> Result<Arc<dyn RateFactory>, String> {
    if let Some(one) = BUILT_IN.iter().find(|one| one.name == name) {
        return Ok(Arc::new(one));
    }
    let registered = REGISTERED.read().expect("no panic holds it");
    let found = registered.iter().find(|known| known.name() == name).cloned();
    drop(registered);
    found.ok_or_else(|| {
        format!("there is no rate control {name:?}; give one of {}", rate_control_names().join(", "))
    })
}

/// Adds a factory to those that [`rate_control`] finds, for the rest of this process.
///
/// # Errors
///
/// The name is already in use.
pub fn register_rate_control(factory: Arc<dyn RateFactory>) -> Result<(), String> {
    let name = factory.name().to_owned();
    let mut registered = REGISTERED.write().expect("no panic holds it");
    if BUILT_IN.iter().any(|one| one.name == name) || registered.iter().any(|known| known.name() == name) {
        return Err(format!("there is a rate control {name:?} already; register another name"));
    }
    registered.push(factory);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Halves its target for each reported loss.
    #[derive(Debug)]
    struct Halving(BitRate);

    impl RateController for Halving {
        fn on_feedback(&mut self, _: Instant, results: &[PacketResult]) {
            let lost = results.iter().filter(|result| result.is_lost()).count();
            self.0 = BitRate::from_bps(self.0.as_bps() >> lost);
        }
        fn target(&self) -> BitRate {
            self.0
        }
        fn pacing(&self) -> BitRate {
            self.0
        }
    }

    #[derive(Debug)]
    struct HalvingFactory;

    impl RateFactory for HalvingFactory {
        fn name(&self) -> &str {
            "halving_test"
        }
        fn make(&self, start: &RateStart) -> Box<dyn RateController> {
            Box::new(Halving(start.start))
        }
    }

    pub(super) fn start() -> RateStart {
        let bps = BitRate::from_bps;
        RateStart { start: bps(800_000), least: bps(100_000), most: bps(2_000_000), seed: 1 }
    }

    fn result(arrived: Option<Instant>, ecn: Ecn) -> PacketResult {
        PacketResult { number: 1, bytes: 1200, sent: Instant::ZERO, arrived, ecn, probe: None }
    }

    #[test]
    fn a_result_is_lost_marked_or_neither() {
        let came = Some(Instant::from_nanos(1));
        assert!(result(None, Ecn::Ect1).is_lost() && !result(None, Ecn::Ce).is_marked());
        assert!(result(came, Ecn::Ce).is_marked() && !result(came, Ecn::Ce).is_lost());
        assert!(!result(came, Ecn::Ect1).is_marked() && !result(came, Ecn::NotEct).is_lost());
    }

    #[test]
    fn a_stranger_s_controller_is_found_by_its_name_and_obeyed() {
        assert!(rate_control("halving_test").unwrap_err().contains("fixed"));
        register_rate_control(Arc::new(HalvingFactory)).unwrap();
        let mut halving = rate_control("halving_test").unwrap().make(&start());
        halving.on_feedback(Instant::ZERO, &[result(None, Ecn::NotEct), result(None, Ecn::NotEct)]);
        assert_eq!(halving.target(), BitRate::from_bps(200_000));
        assert!(rate_control_names().contains(&"halving_test".to_owned()));
        assert!(register_rate_control(Arc::new(HalvingFactory)).unwrap_err().contains("already"));
    }
}
