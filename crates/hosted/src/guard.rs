//! Finds hosted code that reads the clock or the chance of the system.
//!
//! A test program that defines the C symbols `clock_gettime` and `getrandom` receives each such call of the
//! standard library and of the `getrandom` crate. It asks [`is_watched`] and aborts if hosted code is the caller
//! (`tests/guarded.rs`). In other programs nothing asks.

use std::cell::Cell;

thread_local! {
    /// How many calls into hosted code this thread is in. Without a destructor and without first use: it can be
    /// read whenever a program calls the C library.
    static WATCHED: Cell<u32> = const { Cell::new(0) };
}

/// Hosted code runs while this lives.
pub(crate) struct Watch(());

/// Begins to watch this thread.
#[cfg_attr(not(feature = "webrtc"), allow(dead_code))]
pub(crate) fn watch() -> Watch {
    WATCHED.with(|watched| watched.set(watched.get() + 1));
    Watch(())
}

impl Drop for Watch {
    fn drop(&mut self) {
        WATCHED.with(|watched| watched.set(watched.get() - 1));
    }
}

/// Returns whether this thread runs hosted code now.
pub fn is_watched() -> bool {
    WATCHED.with(Cell::get) > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_watched_until_the_last_watch_ends() {
        assert!(!is_watched());
        let outer = watch();
        drop(watch());
        assert!(is_watched());
        drop(outer);
        assert!(!is_watched());
    }
}
