//! The course of one direction of a flow: bytes over time, silences, bursts.

/// Bins that are kept; when they are full, their width doubles.
const MOST_BINS: usize = 256;
/// The width at first (ns).
const NARROWEST: i64 = 100_000_000;
/// Packets that follow each other within this time are one burst (ns).
const BURST_NS: i64 = 1_000_000;
/// A longer silence between data is an OFF period (ns).
pub const SILENCE_NS: i64 = 250_000_000;
/// Silences that are kept.
const MOST_SILENCES: usize = 256;

/// Bytes over time.
#[derive(Clone, Debug)]
pub struct Course {
    from_ns: i64,
    /// Width of a bin in ns.
    pub width_ns: i64,
    /// Bytes in each bin, from the first packet on, but for `held`.
    bins: Vec<u32>,
    /// The bin of the last packet, its beginning (ns) and bytes that are to be added to it: most packets are in the same
    /// one.
    bin: usize,
    bin_ns: i64,
    held: u32,
    last_ns: i64,
    burst: u32,
    /// Longest burst, in packets.
    pub longest_burst: u32,
    /// Bursts of two packets and more.
    pub bursts: u64,
    /// Packets in them.
    pub in_bursts: u64,
    /// Begin and end of silences, ns; the first ones.
    pub silences: Vec<(i64, i64)>,
    /// All silences: their number and their whole length (ns).
    pub silent: (u64, i64),
}

impl Course {
    /// Starts with the first packet.
    pub fn new(at_ns: i64) -> Self {
        Course {
            from_ns: at_ns,
            width_ns: NARROWEST,
            bins: Vec::new(),
            bin: 0,
            bin_ns: at_ns,
            held: 0,
            last_ns: at_ns,
            burst: 0,
            longest_burst: 0,
            bursts: 0,
            in_bursts: 0,
            silences: Vec::new(),
            silent: (0, 0),
        }
    }

    /// Adds a packet with payload.
    #[inline]
    pub fn add(&mut self, at_ns: i64, bytes: u32) {
        let apart = at_ns - self.last_ns;
        self.last_ns = self.last_ns.max(at_ns);
        if self.burst > 0 && apart < BURST_NS {
            self.burst += 1;
        } else {
            self.end_burst();
            self.burst = 1;
        }
        if apart > SILENCE_NS {
            if self.silences.len() < MOST_SILENCES {
                self.silences.push((at_ns - apart, at_ns));
            }
            self.silent = (self.silent.0 + 1, self.silent.1.saturating_add(apart));
        }
        if !(0..self.width_ns).contains(&(at_ns - self.bin_ns)) || self.bins.is_empty() {
            self.find_bin(at_ns);
        }
        self.held = self.held.saturating_add(bytes);
    }

    /// Bytes in each bin, from the first packet on.
    pub fn bins(&self) -> Vec<u32> {
        let mut bins = self.bins.clone();
        if let Some(bin) = bins.get_mut(self.bin) {
            *bin = bin.saturating_add(self.held);
        }
        bins
    }

    fn find_bin(&mut self, at_ns: i64) {
        if let Some(bin) = self.bins.get_mut(self.bin) {
            *bin = bin.saturating_add(std::mem::take(&mut self.held));
        }
        let mut bin = ((at_ns - self.from_ns).max(0) / self.width_ns) as usize;
        while bin >= MOST_BINS {
            self.bins = self
                .bins
                .chunks(2)
                .map(|pair| pair.iter().fold(0, |a: u32, &b| a.saturating_add(b)))
                .collect();
            self.width_ns = self.width_ns.saturating_mul(2);
            bin = ((at_ns - self.from_ns).max(0) / self.width_ns) as usize;
        }
        if bin >= self.bins.len() {
            self.bins.resize(bin + 1, 0);
        }
        self.bin = bin;
        self.bin_ns = self.from_ns.saturating_add((bin as i64).saturating_mul(self.width_ns));
    }

    fn end_burst(&mut self) {
        if self.burst > 1 {
            self.bursts += 1;
            self.in_bursts += u64::from(self.burst);
        }
        self.longest_burst = self.longest_burst.max(self.burst);
        self.burst = 0;
    }

    /// The highest rate in a bin of at least one second, or over all of a shorter course, in bit/s.
    pub fn peak_bps(&self) -> f64 {
        let together = (1_000_000_000 / self.width_ns).max(1) as usize;
        let sum = |bins: &[u32]| bins.iter().map(|&bytes| u64::from(bytes)).sum::<u64>();
        let most = self.bins().windows(together.min(self.bins.len().max(1))).map(sum).max().unwrap_or(0);
        most as f64 * 8e9 / (self.width_ns as f64 * together as f64)
    }
}
