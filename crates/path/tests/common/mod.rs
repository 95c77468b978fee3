//! Shared parts of this crate's tests: items, a sink that remembers, and specs in short.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub mod any;
pub mod aqm;
pub mod link;

use std::collections::HashMap;

use streamgauge_base::{
    BitRate, Direction, Duration, Fate, FateSink, FlowId, Instant, Item, Outcome, PacketId, StageId,
};
use streamgauge_path::spec::{
    BottleneckSpec, DelaySpec, Layer, Limit, LossModel, LossSpec, QueueSpec, RateSpec, ShaperSpec, StageKind,
    StageSpec,
};
use streamgauge_path::{Chain, Departure, Path, Stage};

/// Makes a packet of `bytes` Ethernet bytes.
pub fn item(id: u64, bytes: u32) -> Item {
    item_of(id, bytes, FlowId(0))
}

pub fn item_of(id: u64, bytes: u32, flow: FlowId) -> Item {
    let hash = u32::from(flow.0);
    Item { hash, ..Item::new(PacketId(id), flow, bytes - 14) }
}

pub fn at(ns: u64) -> Instant {
    Instant::from_nanos(ns)
}
pub fn ns(ns: u64) -> Duration {
    Duration::from_nanos(ns)
}
pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
pub fn bps(bps: u64) -> BitRate {
    BitRate::from_bps(bps)
}

/// Remembers every fate and change in order.
#[derive(Default, Debug)]
pub struct Log {
    pub fates: Vec<Fate>,
    pub changes: Vec<(StageId, Instant, &'static str, f64)>,
    /// Each item made: stage, original, itself.
    pub made: Vec<(StageId, Item, Item)>,
}

impl FateSink for Log {
    fn fate(&mut self, fate: &Fate) {
        self.fates.push(*fate);
    }
    fn made(&mut self, stage: StageId, from: &Item, made: &Item) {
        self.made.push((stage, *from, *made));
    }
    fn changed(&mut self, stage: StageId, at: Instant, what: &'static str, value: f64, _: &'static str) {
        self.changes.push((stage, at, what, value));
    }
}

impl Log {
    pub fn at_stage(&self, stage: u8) -> impl Iterator<Item = &Fate> {
        self.fates.iter().filter(move |fate| fate.stage == StageId(stage))
    }
    pub fn count(&self, stage: u8, outcome: Outcome) -> usize {
        self.at_stage(stage).filter(|fate| fate.outcome == outcome).count()
    }
    /// Panics unless every packet, copy and fragment that entered a stage or was made in it has one fate there, in
    /// packets and in bytes, and the items that leave one stage are those that enter the next. `entered` are the items
    /// of stage 0.
    pub fn assert_conserved(&self, entered: &[Item], stages: u8) {
        let key = |item: &Item| (item.id, item.copy, item.fragment.offset());
        let mut inside: HashMap<_, u32> = entered.iter().map(|item| (key(item), item.bytes)).collect();
        for stage in 0..stages {
            for (_, from, made) in self.made.iter().filter(|made| made.0 == StageId(stage)) {
                let other = inside.insert(key(made), made.bytes);
                assert_eq!(other, None, "{made:?} is there already");
                // A fragment's payload is no longer in the item that it was cut from.
                let taken = made.bytes - from.bytes_added_by(made);
                *inside.get_mut(&key(from)).unwrap_or_else(|| panic!("{from:?} is not in {stage}")) -= taken;
            }
            let mut left = HashMap::new();
            for fate in self.at_stage(stage) {
                let key = key(&fate.item);
                let bytes =
                    inside.remove(&key).unwrap_or_else(|| panic!("{key:?} again or never in {stage}"));
                assert_eq!(bytes, fate.item.bytes);
                if fate.outcome == Outcome::Delivered {
                    left.insert(key, bytes);
                }
            }
            assert!(inside.is_empty(), "no fate in stage {stage}: {inside:?}");
            inside = left;
        }
    }
}

pub fn drain<S: Stage>(chain: &mut Chain<S>, now: Instant, log: &mut Log) -> Vec<Departure> {
    std::iter::from_fn(|| chain.dequeue(now, log)).collect()
}

/// Calls the path exactly when it asks to be called until `end`, and returns the departures.
pub fn follow<S: Stage>(chain: &mut Chain<S>, end: Instant, log: &mut Log) -> Vec<Departure> {
    let mut departures = Vec::new();
    while let Some(next) = chain.next_event().filter(|&next| next <= end) {
        let left = drain(chain, next, log);
        // An item that leaves when the path asked to be called leaves at that very time.
        assert!(left.iter().all(|departure| departure.at == next), "{left:?} at {next:?}");
        departures.extend(left);
    }
    departures
}

pub fn stage(name: &str, kind: StageKind) -> StageSpec {
    StageSpec { name: name.to_owned(), kind, changes: vec![] }
}
pub fn bernoulli(name: &str, probability: f64) -> StageSpec {
    let model = LossModel::Bernoulli { probability };
    stage(name, StageKind::Loss(LossSpec { model, switches: vec![] }))
}
pub fn gilbert(name: &str, good_packets: f64, bad_packets: f64) -> StageSpec {
    let model = LossModel::Gilbert { good_packets, bad_packets };
    stage(name, StageKind::Loss(LossSpec { model, switches: vec![] }))
}
pub fn bottleneck(rate: RateSpec, limit: Limit) -> StageSpec {
    let spec = BottleneckSpec {
        rate,
        shaper: ShaperSpec::Serial,
        queue: QueueSpec::Droptail(limit),
        layer: Layer::Ethernet,
    };
    stage("bottleneck", StageKind::Bottleneck(spec))
}
pub fn shaped(rate: RateSpec, shaper: ShaperSpec, limit: Limit) -> StageSpec {
    let spec = BottleneckSpec { rate, shaper, queue: QueueSpec::Droptail(limit), layer: Layer::Ethernet };
    stage("bottleneck", StageKind::Bottleneck(spec))
}
/// Offers `arrivals` in (ns, bytes), ascending, to one stage alone, as a driver does that wakes when asked, and lets
/// it drain. Panics unless every packet has its one fate.
pub fn offer(stage: &StageSpec, arrivals: &[(u64, u32)]) -> Log {
    let mut path = Path::new(std::slice::from_ref(stage), StageId(0), 1, Direction::Down).unwrap();
    let mut log = Log::default();
    let mut entered = Vec::new();
    for (id, &(now, bytes)) in arrivals.iter().enumerate() {
        follow(&mut path, at(now), &mut log);
        entered.push(item(id as u64, bytes));
        path.enqueue(at(now), entered[id], &mut log);
    }
    follow(&mut path, at(1 << 62), &mut log);
    path.finish(at(1 << 62), &mut log);
    log.assert_conserved(&entered, 1);
    log
}
/// Returns the departures, in order: (id, time in ns, bytes).
pub fn sent(log: &Log) -> Vec<(u64, u64, u32)> {
    let out = |fate: &Fate| Some((fate.item.id.0, fate.t_out()?.as_nanos(), fate.item.bytes));
    log.fates.iter().filter_map(out).collect()
}
pub fn constant(rate: u64, limit: Limit) -> StageSpec {
    bottleneck(RateSpec::Constant(bps(rate)), limit)
}
pub fn delay(delay: Duration) -> StageSpec {
    stage("delay", StageKind::Delay(DelaySpec::constant(delay)))
}
