//! Bulk data costs no memory traffic: once a connection runs, filler segments are made, carried and read
//! without a single allocation.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::VecDeque;

use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_transport::tcp::{Config, Connection, Segment};

struct Counting;

thread_local! {
    // Allocations of this thread only: the test harness allocates in its own.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Carries the segments of `from` to `to` over a link that loses every `loss`th data segment (0 for none).
struct Link {
    queue: VecDeque<Segment>,
    loss: u64,
    count: u64,
}

impl Link {
    fn carry(&mut self, now: Instant, from: &mut Connection, to: &mut Connection) {
        while let Some(segment) = from.poll_transmit(now) {
            self.count += u64::from(!segment.payload.is_empty());
            if segment.payload.is_empty() || self.loss == 0 || !self.count.is_multiple_of(self.loss) {
                self.queue.push_back(segment);
            }
        }
        while let Some(segment) = self.queue.pop_front() {
            to.handle(now, &segment);
        }
    }
}

fn rounds(loss: u64) -> (u64, u64) {
    let config = Config { receive_window: 200_000, send_buffer: Some(400_000), ..Config::default() };
    let mut now = Instant::ZERO;
    let mut client = Connection::connect(config.clone(), now);
    let mut server = Connection::listen(config);
    let link = || Link { queue: VecDeque::with_capacity(1024), loss: 0, count: 0 };
    let (mut down, mut up) = (Link { loss, ..link() }, link());
    let mut before = (0, 0);
    for round in 0..2_000 {
        if round == 200 {
            before = (ALLOCATIONS.get(), server.stats().segments);
        }
        now += Duration::from_millis(10);
        up.carry(now, &mut client, &mut server);
        server.handle_timeout(now);
        server.write(Chunk::filler(1 << 20));
        down.carry(now, &mut server, &mut client);
        while client.read(1 << 20).is_some() {}
        client.handle_timeout(now);
    }
    (ALLOCATIONS.get() - before.0, server.stats().segments - before.1)
}

#[test]
fn a_running_transfer_does_not_allocate() {
    let (allocations, segments) = rounds(0);
    assert!(segments > 100_000, "{segments}");
    assert_eq!(allocations, 0);
    // With losses the lists of gaps grow now and then to a new high-water mark.
    let (allocations, segments) = rounds(97);
    assert!(segments > 10_000, "{segments}");
    assert!(allocations <= 20, "{allocations} for {segments} segments");
}

#[test]
fn an_idle_connection_is_small() {
    assert!(std::mem::size_of::<Connection>() <= 256, "{}", std::mem::size_of::<Connection>());
    assert!(std::mem::size_of::<Segment>() <= 96, "{}", std::mem::size_of::<Segment>());
}
