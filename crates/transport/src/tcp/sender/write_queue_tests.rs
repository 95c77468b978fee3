use super::*;
use crate::tcp::mechanisms::Mechanisms;

const MSS: u64 = 1_448;
/// Twelve segments and a bit: blocks are of six.
const WINDOW: u64 = 17_520;

fn config(receive_window: u64) -> Config {
    let mut mechanisms = Mechanisms::default();
    assert!(mechanisms.switch_off("whole_segments"));
    Config { receive_window, mechanisms, ..Config::default() }
}

/// A queue and its surroundings: a program with much to write, ten segments of window.
struct Bench {
    queue: WriteQueue,
    next: u64,
    offered: u64,
    pipe: u64,
    window: u64,
}

impl Bench {
    fn new(receive_window: u64) -> Self {
        let queue = WriteQueue::new(0, &config(receive_window));
        Bench { queue, next: 0, offered: 1 << 30, pipe: 10 * MSS, window: 10 * MSS }
    }

    fn write(&mut self) -> Option<Push> {
        let Bench { next, offered, pipe, window, .. } = *self;
        self.queue.write_on(View { offered, next, max_window: WINDOW, pipe, window })
    }

    /// Writes until nothing more happens.
    fn fill(&mut self) {
        while self.write().is_some() {}
    }

    /// Sends some segments as one; which of them push by themselves.
    fn send(&mut self, segments: u64) -> Vec<u64> {
        let from = self.next / MSS;
        (from..from + segments)
            .filter(|segment| {
                self.next += MSS;
                self.queue.takes(self.next, segment + 1 == from + segments)
            })
            .collect()
    }

    fn acknowledge(&mut self, segment: u64, sacked: &[(u64, u64)]) {
        let blocks: Vec<_> = sacked.iter().map(|&(left, right)| (left * MSS, right * MSS)).collect();
        self.queue.acknowledged(segment * MSS, blocks.into_iter());
    }

    fn blocks(&self) -> Vec<(u64, bool)> {
        self.queue.waiting.iter().map(|block| (block.end / MSS, block.push)).collect()
    }
}

/// Makes a bench as the guest starts: five, five and one, each as the program writes.
fn started() -> Bench {
    let mut bench = Bench::new(WINDOW);
    assert_eq!(bench.write(), Some(Push::One));
    assert!(bench.send(5).is_empty());
    assert!(bench.queue.is_held(), "the sixth segment waits for the block to be filled");
    assert_eq!(bench.write(), Some(Push::All));
    assert_eq!(
        bench.blocks(),
        [(11, true)],
        "what is more than half of the window since the last mark pushes"
    );
    bench.send(5);
    bench.fill();
    bench
}

#[test]
fn a_program_writes_while_there_is_memory_and_what_it_wrote_last_pushes() {
    let mut bench = started();
    // The eleventh segment's mark has stayed with the data added to it. 36,976 B of memory are no less than 35,040.
    assert_eq!(bench.blocks(), [(16, true), (22, true)]);
    assert_eq!(bench.queue.memory(), 22 * MSS + 4 * OVERHEAD);
    assert_eq!(bench.write(), None);
    assert_eq!(bench.send(6), [15]);
}

#[test]
fn it_writes_on_once_a_third_is_free_and_what_is_left_of_the_last_block_is_filled_up() {
    let mut bench = started();
    bench.send(6);
    bench.send(1);
    // 22 segments less 9, in four pieces: 23,944 B are more than two thirds.
    bench.acknowledge(9, &[]);
    assert_eq!(bench.queue.memory(), 23_944);
    assert_eq!(bench.write(), None);
    bench.acknowledge(17, &[]);
    bench.send(4);
    bench.fill();
    // The guest's blocks after its first recovery; no mark was before the twenty-eighth segment.
    assert_eq!(bench.blocks(), [(27, false), (33, true), (39, true)]);
    assert_eq!((bench.send(1), bench.send(5), bench.send(6)), (vec![], vec![], vec![32]));
}

#[test]
fn memory_counts_each_piece_in_which_segments_are_remembered() {
    let mut bench = started();
    bench.acknowledge(0, &[(6, 7)]);
    let pieces = |bench: &Bench| bench.queue.sent.iter().map(|sent| sent.end / MSS).collect::<Vec<_>>();
    assert_eq!(pieces(&bench), [5, 6, 7, 10]);
    bench.acknowledge(0, &[(6, 8), (9, 10)]);
    assert_eq!(pieces(&bench), [5, 6, 8, 9, 10], "acknowledged neighbours are one");
    bench.queue.repeats(2 * MSS, 3 * MSS);
    assert_eq!(pieces(&bench), [2, 3, 5, 6, 8, 9, 10]);
    assert_eq!(bench.queue.memory(), 22 * MSS + 9 * OVERHEAD);
    bench.acknowledge(4, &[]);
    assert_eq!(bench.queue.memory(), 18 * MSS + 7 * OVERHEAD);
}

#[test]
fn a_write_pushes_its_end_until_the_next_one_adds_to_that() {
    let mut bench = Bench::new(200_000);
    while bench.queue.written < WRITE {
        bench.write();
    }
    assert!(bench.queue.waiting.back().is_some_and(|last| last.end == WRITE && last.push));
    assert_eq!(bench.write(), Some(Push::All));
    // The write ended within the sixteenth block; the data added to that is no more than half of the window.
    assert_eq!(bench.blocks()[15..], [(96, false), (102, true)]);
    bench.offered = 103 * MSS;
    assert_eq!((bench.write(), bench.write()), (Some(Push::All), None));
    assert_eq!(bench.blocks()[17..], [(103, true)], "the end of all that there is pushes");
}

#[test]
fn a_buffer_that_nobody_asked_for_follows_the_window_while_that_is_not_full() {
    let mut bench = Bench::new(6 << 20);
    assert_eq!(bench.queue.limit.bytes(), 46_080);
    bench.fill();
    bench.send(12);
    (bench.pipe, bench.window) = (40 * MSS, 40 * MSS);
    bench.acknowledge(12, &[]);
    bench.fill();
    assert_eq!(bench.queue.limit.bytes(), 46_080);
    bench.acknowledge(12, &[]);
    bench.pipe = 39 * MSS;
    bench.fill();
    assert_eq!(bench.queue.limit.bytes(), 2 * 40 * 2_304);
}

#[test]
fn a_write_begins_as_the_program_is_woken_and_where_the_last_one_ended() {
    let mut bench = Bench::new(6 << 20);
    let (mut began, mut woken) = (Vec::new(), vec![0, WRITE, 2 * WRITE]);
    while bench.queue.written < 3 * WRITE {
        let before = bench.queue.written;
        let something = bench.write().is_some();
        if bench.queue.began() {
            began.push(before);
        }
        if !something {
            // For want of memory: all of it is freed.
            woken.push(before);
            bench.send((before - bench.next) / MSS);
            bench.acknowledge(bench.next / MSS, &[]);
        }
    }
    woken.sort_unstable();
    woken.dedup();
    began.dedup();
    assert!(woken.len() > 6, "{woken:?}");
    assert_eq!(began, woken);
}
