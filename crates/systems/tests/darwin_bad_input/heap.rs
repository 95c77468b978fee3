//! Heap of a test's thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts each thread's allocations and releases.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: usize, sign: isize) {
    // While a thread ends, its counter is gone before its last deallocations.
    let _ = HELD.try_with(|held| held.set(held.get() + sign * bytes as isize));
}

// SAFETY: every call is passed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        // SAFETY: the caller keeps the contract of `dealloc`, and `alloc` got the memory from there.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Bytes that this thread holds.
pub fn held() -> usize {
    HELD.with(Cell::get).max(0).cast_unsigned()
}
