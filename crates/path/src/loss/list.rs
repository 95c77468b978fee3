//! Chosen packets, so that an experiment can lose exactly the packets that it studies.

/// Loses the packets with these numbers, counted from 0 as they arrive.
#[derive(Clone, Debug)]
pub(super) struct List {
    /// Ascending.
    packets: Vec<u64>,
    next: usize,
    arrived: u64,
}

impl List {
    pub fn new(packets: Vec<u64>) -> Self {
        List { packets, next: 0, arrived: 0 }
    }

    #[inline]
    pub fn loses(&mut self) -> bool {
        let lost = self.packets.get(self.next) == Some(&self.arrived);
        self.next += usize::from(lost);
        self.arrived += 1;
        lost
    }

    /// Returns how many it has yet to lose.
    pub fn left(&self) -> usize {
        self.packets.len() - self.next
    }
}
