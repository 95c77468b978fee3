//! A path that reads from JSON and is accepted carries packets: nothing panics, and each stage gives every packet that
//! entered it or was made in it one fate.
#![no_main]

use libfuzzer_sys::fuzz_target;
use streamgauge_base::{Direction, Ecn, Fate, FateSink, FlowId, Instant, Item, Outcome, PacketId, StageId};
use streamgauge_path::Path;
use streamgauge_path::spec::{PathSpec, StageSpec};

/// Per stage: entered and made, fates, and what left it.
#[derive(Default)]
struct Balance(Vec<[u64; 3]>);

impl Balance {
    fn count(&mut self, stage: StageId, what: usize) {
        if let Some(counts) = self.0.get_mut(usize::from(stage.0)) {
            counts[what] += 1;
        }
    }
}

impl FateSink for Balance {
    fn fate(&mut self, fate: &Fate) {
        self.count(fate.stage, 1);
        if fate.outcome == Outcome::Delivered {
            self.count(fate.stage, 2);
            self.count(StageId(fate.stage.0.saturating_add(1)), 0);
        }
    }
    fn made(&mut self, stage: StageId, _: &Item, _: &Item) {
        self.count(stage, 0);
    }
    fn changed(&mut self, _: StageId, _: Instant, _: &'static str, _: f64, _: &'static str) {}
}

fn carry(stages: &[StageSpec], direction: Direction) {
    let Ok(mut path) = Path::new(stages, StageId(0), 7, direction) else { return };
    let mut balance = Balance(vec![[0; 3]; stages.len()]);
    // Not for long: a square wave may turn every nanosecond.
    for step in 0..20 {
        let now = Instant::from_nanos(step * 1_000);
        let ip_bytes = 46 + 120 * step as u32;
        let ecn = if step % 2 == 0 { Ecn::Ect0 } else { Ecn::NotEct };
        let (id, flow) = (PacketId(step), FlowId(step as u16 % 3));
        let item = Item { ecn, hash: step as u32, ..Item::new(id, flow, ip_bytes) };
        balance.count(StageId(0), 0);
        path.enqueue(now, item, &mut balance);
        while path.dequeue(now, &mut balance).is_some() {}
    }
    path.finish(Instant::from_nanos(100_000), &mut balance);
    while path.dequeue(Instant::from_nanos(100_000), &mut balance).is_some() {}
    for (stage, counts) in balance.0.iter().enumerate() {
        assert_eq!(counts[0], counts[1], "stage {stage} of {stages:?}");
    }
}

fuzz_target!(|text: &str| {
    let Ok(spec) = serde_json::from_str::<PathSpec>(text) else { return };
    let again = serde_json::to_string(&spec).expect("a specification can be written");
    assert_eq!(serde_json::from_str::<PathSpec>(&again).expect("and read"), spec);
    carry(&spec.down, Direction::Down);
    carry(&spec.up, Direction::Up);
});
