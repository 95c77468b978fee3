use super::super::bed::Bed;

#[test]
fn from_300_kbit_s_probes_find_1_4_megabit_within_a_second() {
    let mut bed = Bed::new("gcc", 3_000_000);
    bed.run(5);
    let reached = bed.reaches(1_400_000).unwrap();
    assert!(reached < 1.0, "{reached} s");
}

#[test]
fn alone_it_fills_the_link_and_keeps_the_queue_short() {
    let mut bed = Bed::new("gcc", 1_000_000);
    bed.run(60);
    assert!(bed.used(30, 60) > 0.75, "{}", bed.used(30, 60));
    assert!(bed.queue_p95_ms(30, 60) < 120.0, "{}", bed.queue_p95_ms(30, 60));
}

#[test]
fn a_third_of_the_capacity_is_obeyed_within_two_seconds() {
    let mut bed = Bed::new("gcc", 1_500_000);
    bed.run(30);
    bed.capacity(500_000);
    bed.run(2);
    let target = bed.controller.target().as_bps();
    assert!(target < 550_000, "{target}");
    bed.run(28);
    // The detector sees no queue that keeps its length: the full one empties when losses have been counted.
    assert!(bed.queue_p95_ms(50, 60) < 100.0, "{}", bed.queue_p95_ms(50, 60));
}

#[test]
fn no_feedback_lets_it_fall_to_its_floor() {
    let mut bed = Bed::new("gcc", 1_500_000);
    bed.run(10);
    bed.is_silent = true;
    bed.run(3);
    let before = bed.controller.target().as_bps();
    bed.run(2);
    let after = bed.controller.target().as_bps();
    assert!((after as f64 / before as f64) < 0.85, "{before} {after}");
    bed.run(30);
    assert_eq!(bed.controller.target().as_bps(), 30_000);
}
