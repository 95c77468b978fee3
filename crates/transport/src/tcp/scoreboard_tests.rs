//! Unit tests of the scoreboard and of RACK; `super` is `scoreboard`.

use super::*;

const MSS: u32 = 1000;
const SECOND: Duration = Duration::from_secs(1);

fn board(segments: u64) -> Scoreboard {
    let mut board = Scoreboard::new(MSS);
    for i in 0..segments {
        board.push(1 + i * u64::from(MSS), MSS, false, Instant::from_nanos(i));
    }
    board
}

fn edge(segment: u64) -> u64 {
    1 + segment * u64::from(MSS)
}

/// Returns an acknowledgement without a timestamp, while nothing is being repaired.
fn learn(board: &Scoreboard) -> Learned {
    board.learn(0, None, Instant::FAR_FUTURE)
}

/// Judges as after an acknowledgement at 1 us, with RACK's window while nothing is being repaired, for a least round
/// trip of 4 s; true if more is lost.
fn judge(board: &mut Scoreboard, learned: &Learned) -> bool {
    let now = Instant::from_nanos(1_000);
    board.note_newest(now, learned, true);
    let window = board.rack.window(false, board.sacked(), SECOND * 4, SECOND * 4);
    let before = board.lost_ever();
    board.judge(now, window);
    board.lost_ever() > before
}

/// Checks that the counts are those of the ring.
fn audit(board: &Scoreboard) {
    let count = |bit: u8| board.ring.iter().filter(|s| s.is(bit)).count() as u32;
    assert_eq!((board.sacked, board.lost, board.resent), (count(SACKED), count(LOST), count(RESENT)));
}

#[test]
fn the_third_segment_sacked_above_makes_one_lost() {
    let mut board = board(10);
    for (n, lost) in [(2, 0), (3, 0), (4, 1)] {
        let mut learned = learn(&board);
        board.sack(edge(1), edge(n), &mut learned);
        board.remember([(edge(1), edge(n))].into_iter());
        assert_eq!(learned.delivered, 1);
        assert_eq!(judge(&mut board, &learned), lost > 0);
        assert_eq!(board.lost(), lost);
        audit(&board);
    }
    assert_eq!(board.pipe(), 10_000 - 3_000 - 1_000);
    let (sent, oldest) = board.next_lost().unwrap();
    assert_eq!((sent.start, oldest), (1, true));
    board.resent(Instant::from_nanos(99));
    assert!(board.next_lost().is_none());
    assert_eq!(board.pipe(), 7_000);
    let mut learned = learn(&board);
    board.acknowledge(edge(4), &mut learned);
    assert_eq!((learned.delivered, learned.ambiguous, learned.sent), (1, true, None));
    assert_eq!(board.pipe(), 6_000);
    audit(&board);
}

#[test]
fn several_holes_are_found_and_resent_in_order() {
    let mut board = board(12);
    let mut learned = learn(&board);
    for (left, right) in [(9, 12), (5, 6), (2, 3)] {
        board.sack(edge(left), edge(right), &mut learned);
    }
    assert_eq!(learned.delivered, 5);
    judge(&mut board, &learned);
    let mut starts = Vec::new();
    while let Some((sent, _)) = board.next_lost() {
        starts.push(sent.start);
        board.resent(Instant::from_nanos(50));
    }
    assert_eq!(starts, [0, 1, 3, 4, 6, 7, 8].map(edge));
    audit(&board);
}

#[test]
fn a_copy_is_lost_when_something_sent_after_it_has_arrived() {
    let mut board = board(6);
    let mut learned = learn(&board);
    board.sack(edge(1), edge(4), &mut learned);
    assert!(judge(&mut board, &learned));
    board.next_lost();
    board.resent(Instant::from_nanos(99));
    // Segment 5 was sent before the copy and gives no evidence of it; a new one shows that it is lost.
    board.push(edge(6), MSS, false, Instant::from_nanos(99));
    for (n, lost) in [(5, false), (6, true)] {
        let mut learned = learn(&board);
        board.sack(edge(n), edge(n + 1), &mut learned);
        judge(&mut board, &learned);
        assert_eq!(board.next_lost().is_some_and(|(sent, _)| sent.start == edge(0)), lost);
        audit(&board);
    }
}

#[test]
fn an_answer_sooner_than_any_round_trip_is_to_the_first_copy() {
    let mut board = board(3);
    board.time_out(Instant::from_nanos(90));
    for at in [99, 100] {
        board.next_lost();
        board.resent(Instant::from_nanos(at));
    }
    for (now, lost_ever) in [(120, 3_000), (150, 4_000)] {
        let mut board = board.clone();
        let now = Instant::from_nanos(now);
        let mut learned = board.learn(0, None, now - Duration::from_nanos(50));
        board.sack(edge(1), edge(2), &mut learned);
        board.note_newest(now, &learned, true);
        board.judge(now, Duration::ZERO);
        assert_eq!(board.lost_ever(), lost_ever);
    }
}

#[test]
fn a_timeout_loses_all_but_what_is_sacked_and_forgets_reneged_blocks() {
    let mut board = board(6);
    let mut learned = learn(&board);
    board.sack(edge(2), edge(4), &mut learned);
    board.time_out(Instant::from_nanos(90));
    assert_eq!((board.lost(), board.pipe()), (4, 0));
    audit(&board);
    board.acknowledge(edge(2), &mut learned);
    board.time_out(Instant::from_nanos(90));
    assert_eq!((board.lost(), board.sacked), (4, 0));
    audit(&board);
    // The same block counts again.
    let mut again = learn(&board);
    board.sack(edge(2), edge(4), &mut again);
    assert_eq!(again.delivered, 2);
}

#[test]
fn a_partial_acknowledgement_trims_the_oldest() {
    let mut board = board(3);
    let mut learned = learn(&board);
    board.acknowledge(edge(0) + 300, &mut learned);
    assert_eq!(
        (learned.delivered, board.outstanding(), board.oldest().unwrap().start),
        (0, 3, edge(0) + 300)
    );
    board.acknowledge(edge(1), &mut learned);
    assert_eq!((learned.delivered, board.outstanding()), (1, 2));
    audit(&board);
}

#[test]
fn a_hole_that_was_filled_gives_no_round_trip_to_what_waited_behind_it() {
    let mut board = board(5);
    board.time_out(Instant::from_nanos(90));
    board.next_lost();
    board.resent(Instant::from_nanos(99));
    let mut learned = learn(&board);
    board.acknowledge(edge(5), &mut learned);
    assert_eq!((learned.delivered, learned.ambiguous, learned.sent), (5, true, None));
}

#[test]
fn old_and_duplicate_blocks_teach_nothing() {
    let mut board = board(8);
    let mut learned = learn(&board);
    board.acknowledge(edge(4), &mut learned);
    let mut nothing = learn(&board);
    board.sack(edge(1), edge(3), &mut nothing);
    assert_eq!((nothing.delivered, board.pipe()), (0, 4_000));
    audit(&board);
}

#[test]
fn a_timeout_spares_what_went_out_less_than_a_round_trip_ago() {
    let mut board = board(3);
    let mut learned = learn(&board);
    board.sack(edge(2), edge(3), &mut learned);
    board.note_newest(Instant::from_nanos(52), &learned, true);
    board.push(edge(3), MSS, false, Instant::from_nanos(960));
    board.time_out(Instant::from_nanos(1_000));
    assert_eq!((board.lost(), board.in_flight()), (2, 1));
    audit(&board);
}

#[test]
fn an_answer_to_the_first_copy_says_nothing_of_the_second() {
    let ms = |n: u64| Instant::ZERO + Duration::from_millis(n);
    for (echo, lost) in [(99, 0), (100, 1)] {
        let mut board = Scoreboard::new(MSS);
        (0..3).for_each(|i| board.push(edge(i), MSS, false, ms(i)));
        board.time_out(ms(2));
        board.unmark_losses();
        board.time_out(ms(100));
        board.next_lost();
        board.resent(ms(100));
        board.unmark_losses();
        let mut learned = board.learn(0, Some(echo), ms(300));
        board.acknowledge(edge(1), &mut learned);
        board.note_newest(ms(300), &learned, true);
        board.judge(ms(300), Duration::ZERO);
        assert_eq!(board.lost() > 0, lost > 0, "echo {echo}");
        audit(&board);
    }
}

#[test]
fn what_overtakes_without_having_been_sent_again_is_reordering() {
    let mut board = board(10);
    let mut learned = learn(&board);
    board.sack(edge(4), edge(6), &mut learned);
    assert_eq!(learned.reordered, None);
    let mut learned = learn(&board);
    board.sack(edge(2), edge(3), &mut learned);
    board.acknowledge(edge(1), &mut learned);
    assert_eq!(learned.reordered, Some(edge(0)));
    assert_eq!(board.overtaken_by(edge(0)), 6);
}

#[test]
fn the_window_widens_by_duplicates_once_per_round_trip_and_narrows_after_sixteen_calm_recoveries() {
    let mut board = board(10);
    let window = |board: &Scoreboard| {
        let window = board.rack.window(true, 5, SECOND, SECOND * 9);
        window.as_nanos() * 4 / SECOND.as_nanos()
    };
    assert_eq!(window(&board), 0);
    board.rack.note_duplicates();
    board.rack.note_reordering(4);
    let mut learned = learn(&board);
    board.acknowledge(edge(1), &mut learned);
    board.note_newest(Instant::from_nanos(50), &learned, true);
    board.adapt_reordering();
    assert_eq!(window(&board), 1, "duplicates before any reordering count for nothing");
    for expected in [2, 2] {
        board.rack.note_duplicates();
        board.adapt_reordering();
        assert_eq!(window(&board), expected);
    }
    for calm in 0..16 {
        assert_eq!(window(&board), 2, "{calm}");
        board.rack.calm_recovery();
        board.adapt_reordering();
    }
    assert_eq!(window(&board), 1);
}
