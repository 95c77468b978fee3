//! A library's chance, by a seed.

use std::collections::hash_map::RandomState;
use std::hint::black_box;

use crate::guard;

/// The generator of one hosted connection.
///
/// Libraries draw from `fastrand`'s generator, of which each thread has one. Around each call this puts its own
/// state there and takes it away again, so that no connection changes the draws of another one, and nothing
/// that runs on the same thread changes them.
///
/// The order of a `HashMap` remains that of the thread's keys: hosted code must not depend on it.
#[derive(Clone, Debug)]
pub struct Chance {
    state: u64,
}

impl Chance {
    /// Returns the generator of a seed.
    pub fn new(seed: u64) -> Self {
        Chance { state: seed }
    }

    /// Runs hosted code with this generator, watched by the [`guard`].
    pub fn run<T>(&mut self, hosted: impl FnOnce() -> T) -> T {
        // The keys of the thread's hash maps: drawn once, from the system.
        black_box(RandomState::new());
        self.unwatched(|| {
            let _watch = guard::watch();
            hosted()
        })
    }

    /// Runs hosted code with this generator that reads the system's clock or chance once, without consequence.
    pub(crate) fn unwatched<T>(&mut self, hosted: impl FnOnce() -> T) -> T {
        let before = fastrand::get_seed();
        fastrand::seed(self.state);
        let _back = Borrowed { before, state: &mut self.state };
        hosted()
    }
}

/// Gives the thread its generator back, also after a panic.
struct Borrowed<'a> {
    before: u64,
    state: &'a mut u64,
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        *self.state = fastrand::get_seed();
        fastrand::seed(self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generator_goes_on_where_it_was_whatever_else_draws() {
        let draws = |disturbs: bool| {
            let (mut one, mut other) = (Chance::new(7), Chance::new(8));
            let mut drawn = Vec::new();
            for _ in 0..5 {
                drawn.push(one.run(|| fastrand::u64(..)));
                if disturbs {
                    other.run(|| fastrand::u64(..));
                    fastrand::u64(..);
                }
            }
            drawn
        };
        assert_eq!(draws(false), draws(true));
        assert_ne!(draws(false)[0], draws(false)[1]);
    }

    #[test]
    fn the_thread_keeps_its_own_generator() {
        fastrand::seed(3);
        let expected = fastrand::u64(..);
        fastrand::seed(3);
        Chance::new(9).run(|| fastrand::u64(..));
        assert_eq!(fastrand::u64(..), expected);
    }
}
