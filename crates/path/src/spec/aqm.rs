//! Active queue management: parameters, the RFCs' values by default, and the refused values.

use serde::{Deserialize, Serialize};
use streamgauge_base::{BitRate, Duration};

use crate::error::{StageProblem, refuse};
use crate::spec::{Layer, Limit};

/// CoDel (RFC 8289).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CodelSpec {
    /// The acceptable standing delay; 5 ms (RFC 8289 section 4.4).
    pub target: Duration,
    /// A worst-case round-trip time; 100 ms (RFC 8289 section 4.3).
    pub interval: Duration,
    /// The buffer's size; an arrival beyond it is dropped. 1,000 packets, as Linux.
    pub limit: Limit,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// A queue of at most these bytes of the bottleneck's layer is never too long: one full packet.
    pub mtu: u32,
}

impl Default for CodelSpec {
    fn default() -> Self {
        CodelSpec {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            limit: Limit::Packets(1000),
            ecn: false,
            mtu: FULL_FRAME,
        }
    }
}

/// FQ-CoDel (RFC 8290).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FqCodelSpec {
    /// Each queue's CoDel target; 5 ms.
    pub target: Duration,
    /// Each queue's CoDel interval; 100 ms.
    pub interval: Duration,
    /// The size of all queues together; beyond it the longest loses its head. 10,240 packets (RFC 8290 section 5.2.3).
    pub limit: Limit,
    /// Queues that flows are hashed to; 1,024 (RFC 8290 section 5.2).
    pub flows: u32,
    /// Bytes that a queue may send a round; 1,514 (RFC 8290 section 5.2).
    pub quantum: u32,
    /// Mark ECN-capable packets instead of dropping them; on (RFC 8290 section 5.2).
    pub ecn: bool,
    /// Each queue's CoDel `mtu`.
    pub mtu: u32,
}

impl Default for FqCodelSpec {
    fn default() -> Self {
        FqCodelSpec {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            limit: Limit::Packets(10_240),
            flows: 1024,
            quantum: FULL_FRAME,
            ecn: true,
            mtu: FULL_FRAME,
        }
    }
}

/// PIE (RFC 8033).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PieSpec {
    /// QDELAY_REF, the delay that is steered for; 15 ms.
    pub target: Duration,
    /// T_UPDATE, how often the probability is recalculated; 15 ms.
    pub update: Duration,
    /// Gain of the deviation from the target, Hz; 0.125.
    pub alpha: f64,
    /// Gain of the delay's trend, Hz; 1.25.
    pub beta: f64,
    /// MAX_BURST, how long a burst after a rest passes undropped; 150 ms.
    pub max_burst: Duration,
    /// The buffer's size; an arrival beyond it is dropped. 1,000 packets, as Linux.
    pub limit: Limit,
    /// Mark ECN-capable packets instead of dropping them, up to `mark_below`.
    pub ecn: bool,
    /// mark_ecnth: at a higher drop probability ECN-capable packets are dropped too; 0.1 (RFC 8033 section
    /// 5.1).
    pub mark_below: f64,
    /// MEAN_PKTSIZE: two of these may wait without a drop; 1,514, a full Ethernet frame.
    pub mean_packet: u32,
    /// How the delay is found.
    pub delay: PieDelay,
    /// Space the drops out (RFC 8033 section 5.4); on, as Linux.
    pub derandomize: bool,
}

impl Default for PieSpec {
    fn default() -> Self {
        PieSpec {
            target: Duration::from_millis(15),
            update: Duration::from_millis(15),
            alpha: 0.125,
            beta: 1.25,
            max_burst: Duration::from_millis(150),
            limit: Limit::Packets(1000),
            ecn: false,
            mark_below: 0.1,
            mean_packet: FULL_FRAME,
            delay: PieDelay::Timestamps,
            derandomize: true,
        }
    }
}

/// How PIE finds its queue's delay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PieDelay {
    /// From the arrival time of the packet that left last (RFC 8033 section 4.3).
    #[default]
    Timestamps,
    /// By Little's law from the departure rate (RFC 8033 section 5.2).
    DepartureRate,
}

/// DualPI2 (RFC 9332 appendix A).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Dualpi2Spec {
    /// The classic queue's delay that is steered for; 15 ms.
    pub target: Duration,
    /// Tupdate, how often the probability is recalculated; 16 ms.
    pub update: Duration,
    /// Integral gain, Hz; 0.16.
    pub alpha: f64,
    /// Proportional gain, Hz; 3.2.
    pub beta: f64,
    /// k: the L4S probability is this times the base probability; 2.
    pub coupling: f64,
    /// The L4S queue's own marking.
    pub l4s: L4sMarking,
    /// Packets that the L4S queue may hold, the one that leaves included, without marking of its own; 1.
    pub l4s_packets: u32,
    /// Which queue is served.
    pub scheduler: DualScheduler,
    /// The size of both queues together; 250 ms at the rate in force.
    pub limit: Limit,
    /// Mark ECN-capable classic packets, which are ECT(0), instead of dropping them. L4S packets are marked
    /// anyway.
    pub ecn: bool,
}

impl Default for Dualpi2Spec {
    fn default() -> Self {
        Dualpi2Spec {
            target: Duration::from_millis(15),
            update: Duration::from_millis(16),
            alpha: 0.16,
            beta: 3.2,
            coupling: 2.0,
            l4s: L4sMarking::default(),
            l4s_packets: 1,
            scheduler: DualScheduler::default(),
            limit: Limit::Time(Duration::from_millis(250)),
            ecn: true,
        }
    }
}

/// How the L4S queue marks for its own delay, beside the coupled probability.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum L4sMarking {
    /// Every packet that has waited at least this long.
    Step(Duration),
    /// With a probability that rises from 0 at `min` to 1 at `min + range`.
    Ramp {
        /// minTh; 800 us.
        min: Duration,
        /// Width of the ramp; 400 us.
        range: Duration,
    },
}

impl Default for L4sMarking {
    fn default() -> Self {
        L4sMarking::Ramp { min: Duration::from_micros(800), range: Duration::from_micros(400) }
    }
}

/// Which of the two queues is served while both hold packets.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum DualScheduler {
    /// Weighted round robin in bytes.
    Weighted {
        /// The classic queue's share of the bytes, percent, 1 to 99; 10, as Linux.
        classic_percent: u8,
    },
    /// The queue with the head that has waited longer, where the L4S queue's head counts as `shift` older.
    TimeShifted {
        /// The head start.
        shift: Duration,
    },
}

impl Default for DualScheduler {
    fn default() -> Self {
        DualScheduler::Weighted { classic_percent: 10 }
    }
}

/// Bytes of a full Ethernet frame as counted here, without FCS.
const FULL_FRAME: u32 = 1514;

fn ms(time: Duration) -> String {
    format!("{} ms", time.as_nanos() as f64 / 1e6)
}

fn positive_time(setting: &'static str, time: Duration) -> Result<(), StageProblem> {
    if time == Duration::ZERO { refuse(setting, ms(time), "longer than 0 ms") } else { Ok(()) }
}

/// An update is worked through for each of these while packets wait, however far apart the packets are.
const SHORTEST_UPDATE: Duration = Duration::from_micros(10);

fn update_time(update: Duration) -> Result<(), StageProblem> {
    if update < SHORTEST_UPDATE { refuse("update", ms(update), "at least 0.01 ms") } else { Ok(()) }
}

fn positive_gain(setting: &'static str, gain: f64) -> Result<(), StageProblem> {
    if gain > 0.0 && gain.is_finite() { Ok(()) } else { refuse(setting, gain, "a positive number of hertz") }
}

fn target_and_interval(target: Duration, interval: Duration) -> Result<(), StageProblem> {
    positive_time("target", target)?;
    if target >= interval {
        return refuse("target", ms(target), "shorter than the interval (RFC 8289: 5 to 10 % of it)");
    }
    Ok(())
}

impl CodelSpec {
    pub(crate) fn check(&self, layer: Layer, highest: BitRate) -> Result<(), StageProblem> {
        target_and_interval(self.target, self.interval)?;
        self.limit.check(layer, highest)
    }
}

impl FqCodelSpec {
    pub(crate) fn check(&self, layer: Layer, highest: BitRate) -> Result<(), StageProblem> {
        target_and_interval(self.target, self.interval)?;
        if self.flows == 0 || self.flows > 65_536 {
            return refuse("flows", self.flows, "between 1 and 65536 queues");
        }
        // Less than the MTU is in use (300 on slow links, RFC 8290 section 5.2), and Linux accepts no less than this.
        if self.quantum < 256 {
            return refuse("quantum", format!("{} bytes", self.quantum), "at least 256 bytes");
        }
        self.limit.check(layer, highest)
    }
}

impl PieSpec {
    pub(crate) fn check(&self, layer: Layer, highest: BitRate) -> Result<(), StageProblem> {
        positive_time("target", self.target)?;
        update_time(self.update)?;
        positive_gain("alpha", self.alpha)?;
        positive_gain("beta", self.beta)?;
        if !(0.0..=1.0).contains(&self.mark_below) {
            return refuse("mark_below", self.mark_below, "a probability between 0 and 1");
        }
        self.limit.check(layer, highest)?;
        if let Limit::Time(limit) = self.limit
            && limit <= self.target
        {
            return refuse(
                "target",
                ms(self.target),
                "shorter than the limit, or the limit drops before PIE does",
            );
        }
        Ok(())
    }
}

impl Dualpi2Spec {
    pub(crate) fn check(&self, layer: Layer, highest: BitRate) -> Result<(), StageProblem> {
        positive_time("target", self.target)?;
        update_time(self.update)?;
        positive_gain("alpha", self.alpha)?;
        positive_gain("beta", self.beta)?;
        if !(self.coupling > 0.0 && self.coupling.is_finite()) {
            return refuse("coupling", self.coupling, "a positive number (RFC 9332: 2)");
        }
        match self.l4s {
            L4sMarking::Step(step) => positive_time("l4s.step", step)?,
            L4sMarking::Ramp { range, .. } => positive_time("l4s.ramp.range", range)?,
        }
        if let DualScheduler::Weighted { classic_percent } = self.scheduler
            && !(1..=99).contains(&classic_percent)
        {
            let expected = "between 1 and 99, so that neither queue starves";
            return refuse("scheduler.weighted.classic_percent", classic_percent, expected);
        }
        self.limit.check(layer, highest)?;
        if let Limit::Time(limit) = self.limit
            && limit <= self.target
        {
            return refuse("target", ms(self.target), "shorter than the limit, or the limit drops first");
        }
        Ok(())
    }
}
