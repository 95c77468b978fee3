//! One direction of a path over time, apart from its bottleneck: the delay of packets that no other delayed, and the
//! share of packets that were lost elsewhere than at a full queue.

/// Bins that are kept; when they are full, their width doubles.
const MOST_BINS: usize = 2048;
/// The width at first (ns).
const NARROWEST: i64 = 1_000_000_000;

#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    passed: u64,
    lost: u64,
    least_ns: Option<i64>,
}

impl Bin {
    fn with(self, other: Bin) -> Bin {
        let least_ns = [self.least_ns, other.least_ns].into_iter().flatten().min();
        Bin { passed: self.passed + other.passed, lost: self.lost + other.lost, least_ns }
    }
}

/// The course of both.
#[derive(Clone, Debug, Default)]
pub struct PathCourse {
    from_ns: Option<i64>,
    width_ns: i64,
    bins: Vec<Bin>,
}

impl PathCourse {
    /// Takes a packet that passed; its delay (ns) if no other packet delayed it.
    pub fn pass(&mut self, in_ns: i64, delay_ns: Option<i64>) {
        self.add(in_ns, Bin { passed: 1, lost: 0, least_ns: delay_ns });
    }

    /// Takes a packet that was lost at a queue that was not full.
    pub fn lose(&mut self, in_ns: i64) {
        self.add(in_ns, Bin { passed: 0, lost: 1, least_ns: None });
    }

    fn add(&mut self, at_ns: i64, one: Bin) {
        let from_ns = *self.from_ns.get_or_insert(at_ns);
        self.width_ns = self.width_ns.max(NARROWEST);
        let since = at_ns.saturating_sub(from_ns).max(0);
        while since / self.width_ns >= MOST_BINS as i64 {
            let sum = |two: &[Bin]| two.iter().fold(Bin::default(), |sum, bin| sum.with(*bin));
            self.bins = self.bins.chunks(2).map(sum).collect();
            self.width_ns = self.width_ns.saturating_mul(2);
        }
        let bin = (since / self.width_ns) as usize;
        if bin >= self.bins.len() {
            self.bins.resize(bin + 1, Bin::default());
        }
        self.bins[bin] = self.bins[bin].with(one);
    }

    fn at_s(&self, bin: usize, zero_ns: i64) -> f64 {
        (self.from_ns.unwrap_or(0) - zero_ns + bin as i64 * self.width_ns) as f64 / 1e9
    }

    /// Least delays without a queue over time: s since `zero_ns` and s, of the parts with such a packet. `shift_ns` is
    /// added to each.
    pub fn delays(&self, zero_ns: i64, shift_ns: i64) -> Vec<(f64, f64)> {
        let known = self.bins.iter().enumerate().filter_map(|(at, bin)| Some((at, bin.least_ns?)));
        known
            .map(|(at, ns)| (self.at_s(at, zero_ns), ns.saturating_add(shift_ns).max(0) as f64 / 1e9))
            .collect()
    }

    /// Losses over time: s since `zero_ns` and parts of 1, of the parts with packets.
    pub fn losses(&self, zero_ns: i64) -> Vec<(f64, f64)> {
        let full = self.bins.iter().enumerate().filter(|(_, bin)| bin.passed + bin.lost > 0);
        full.map(|(at, bin)| (self.at_s(at, zero_ns), bin.lost as f64 / (bin.passed + bin.lost) as f64))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_and_losses_of_a_second() {
        let mut course = PathCourse::default();
        for n in 0..40 {
            let at = n * 100_000_000;
            // The second second has a longer way, and loses every fifth packet.
            let is_second = (10..20).contains(&n);
            if is_second && n % 5 == 0 {
                course.lose(at);
            } else {
                course.pass(at, (n % 3 == 0).then_some(if is_second { 80_000_000 } else { 20_000_000 + n }));
            }
        }
        assert_eq!(course.losses(0), [(0.0, 0.0), (1.0, 0.2), (2.0, 0.0), (3.0, 0.0)]);
        let delays = course.delays(0, 1_000_000);
        assert_eq!(delays[..2], [(0.0, 0.021), (1.0, 0.081)]);
        assert!((delays[2].1 - 0.021).abs() < 1e-6 && delays.len() == 4);
    }

    #[test]
    fn a_long_course_keeps_its_sums() {
        let mut course = PathCourse::default();
        for n in 0..5000 {
            course.pass(n * 1_000_000_000, Some(n));
            course.lose(n * 1_000_000_000);
        }
        assert_eq!(course.bins.len(), 1250);
        assert!(course.losses(0).iter().all(|one| one.1 == 0.5));
        assert_eq!(course.bins.iter().map(|bin| bin.lost).sum::<u64>(), 5000);
    }
}
