//! The whole path: order of time, conservation, what a driver is told, and what is refused.

mod common;

use common::*;
use streamgauge_base::{Direction, Instant, Outcome, StageId};
use streamgauge_path::Path;
use streamgauge_path::spec::{Limit, StageSpec};

fn path(stages: &[StageSpec]) -> Path {
    Path::new(stages, StageId(0), 1, Direction::Down).unwrap()
}

#[test]
fn a_full_frame_on_one_megabit_and_twenty_milliseconds() {
    let mut path = path(&[bernoulli("loss", 0.0), constant(1_000_000, Limit::Packets(2)), delay(ms(20))]);
    let mut log = Log::default();
    for id in 0..3 {
        path.enqueue(at(5_000), item(id, 1514), &mut log);
    }
    let times: Vec<Instant> = follow(&mut path, at(u64::MAX - 1), &mut log).iter().map(|d| d.at).collect();
    assert_eq!(times, [at(32_117_000), at(44_229_000)]);
    assert_eq!(log.count(1, Outcome::Dropped), 1);
    assert_eq!(path.next_event(), None);
}
