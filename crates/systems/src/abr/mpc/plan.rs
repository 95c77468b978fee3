//! The best plan for the next segments: the result of an enumeration of all plans, without a look at most of them.
//!
//! The search is depth first, with the most promising level first. It leaves a beginning once no end can be as good as
//! the best plan so far.
//!
//! The bound of an end: take segments that need S seconds together, and a buffer of B. In any order they stall for at
//! least max(0, S - A) seconds, where A is B and the playing time of all but the last. That is at least theta (S - A)
//! for any theta from 0 to 1. With stalls counted this way, qualities add up segment by segment. The best end is then
//! known for each previous level (computed backwards once for each theta). The bound is the lowest over some thetas.

use super::super::Ladder;

/// Segments of a plan.
pub const HORIZON: usize = 5;
/// The cost of a second of stalling, in kbit/s of a segment.
pub const STALL: f64 = 3000.0;
/// Thetas, in units of the gain of a further kbit/s of a segment over its cost in time.
const THETAS: [f64; 8] = [0.0, 0.5, 0.7, 0.8, 1.0, 1.2, 1.5, 2.0];

/// The inputs of a plan.
#[derive(Clone, Copy, Debug)]
pub struct Outlook<'a> {
    /// The content.
    pub ladder: &'a Ladder,
    /// The first segment of the plan.
    pub segment: usize,
    /// The level before it.
    pub before: Option<usize>,
    /// Media held.
    pub buffer_s: f64,
    /// No segment is asked for while more is held.
    pub most_s: f64,
    /// How fast segments come.
    pub bps: f64,
}

impl Outlook<'_> {
    /// How many segments the plan is for.
    pub fn horizon(&self) -> usize {
        self.ladder.segments.map_or(HORIZON, |all| all.saturating_sub(self.segment).clamp(1, HORIZON))
    }

    /// Seconds that the plan's `step`th segment takes at `level`.
    pub fn fetch_s(&self, step: usize, level: usize) -> f64 {
        self.ladder.bytes(level, self.segment + step) * 8.0 / self.bps.max(1.0)
    }
}

/// A plan that has come so far.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// Its last level.
    pub level: Option<usize>,
    /// Media held then.
    pub buffer_s: f64,
    /// The sum so far.
    pub quality: f64,
}

impl Node {
    /// Before the first segment.
    pub fn start(outlook: &Outlook<'_>) -> Self {
        Node { level: outlook.before, buffer_s: outlook.buffer_s.min(outlook.most_s), quality: 0.0 }
    }

    /// Returns the node after one more segment of `level` with rate `kbps`, fetched in `fetch_s`. `before_kbps` is the
    /// previous level's rate.
    pub fn and(
        &self,
        level: usize,
        kbps: f64,
        before_kbps: f64,
        fetch_s: f64,
        outlook: &Outlook<'_>,
    ) -> Self {
        let stall_s = (fetch_s - self.buffer_s).max(0.0);
        let held_s = (self.buffer_s - fetch_s).max(0.0) + outlook.ladder.segment.as_secs_f64();
        Node {
            level: Some(level),
            buffer_s: held_s.min(outlook.most_s),
            quality: self.quality + kbps - (kbps - before_kbps).abs() - STALL * stall_s,
        }
    }
}

/// The best plan's first level, and its quality.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Best {
    /// If plans are equally good, the level of the one that begins higher.
    pub level: usize,
    /// The plan's.
    pub quality: f64,
}

/// The memory of the search, kept from one search to the next.
#[derive(Default)]
pub struct Planner {
    levels: usize,
    horizon: usize,
    kbps: Vec<f64>,
    /// Seconds of each segment at each level, a segment's together.
    fetch_s: Vec<f64>,
    thetas: Vec<f64>,
    /// For each theta, step and previous level: the best quality of the rest, without the buffer's part.
    rest: Vec<f64>,
    /// For each step: the candidates with their bounds.
    next: [Vec<(f64, Node)>; HORIZON],
    best: Option<Best>,
    /// Beginnings looked at.
    pub looked_at: usize,
}

impl Planner {
    /// The best of all plans.
    pub fn best(&mut self, outlook: &Outlook<'_>) -> Best {
        self.prepare(outlook);
        (self.best, self.looked_at) = (None, 0);
        self.search(outlook, 0, Node::start(outlook), 0);
        self.best.expect("there is a level and a segment")
    }

    fn prepare(&mut self, outlook: &Outlook<'_>) {
        let (ladder, levels, horizon) = (outlook.ladder, outlook.ladder.rates.len(), outlook.horizon());
        (self.levels, self.horizon) = (levels, horizon);
        self.kbps.clear();
        self.kbps.extend((0..levels).map(|level| ladder.bps(level) / 1e3));
        self.fetch_s.clear();
        for step in 0..horizon {
            self.fetch_s.extend((0..levels).map(|level| outlook.fetch_s(step, level)));
        }
        let unit = outlook.bps.max(1.0) / 1e3 / (ladder.segment.as_secs_f64().max(1e-3) * STALL);
        self.thetas.clear();
        self.thetas.extend(THETAS.iter().map(|theta| (theta * unit).min(1.0)));
        self.thetas.push(1.0);
        self.thetas.dedup();
        let size = (horizon + 1) * levels;
        self.rest.clear();
        self.rest.resize(self.thetas.len() * size, 0.0);
        for (&theta, rest) in self.thetas.iter().zip(self.rest.chunks_exact_mut(size)) {
            for step in (1..horizon).rev() {
                let (here, after) = rest[step * levels..].split_at_mut(levels);
                let fetch_s = &self.fetch_s[step * levels..][..levels];
                for (before, here) in here.iter_mut().enumerate() {
                    let reached = (0..levels).map(|level| {
                        let kbps = self.kbps[level];
                        kbps - (kbps - self.kbps[before]).abs() - theta * STALL * fetch_s[level]
                            + after[level]
                    });
                    *here = reached.fold(f64::NEG_INFINITY, f64::max);
                }
            }
        }
    }

    /// Returns an upper bound for a plan that is at `node` before `step`.
    fn bound(&self, outlook: &Outlook<'_>, step: usize, node: &Node) -> f64 {
        let more = self.horizon - step;
        if more == 0 {
            return node.quality;
        }
        let media_s = node.buffer_s + (more - 1) as f64 * outlook.ladder.segment.as_secs_f64();
        let size = (self.horizon + 1) * self.levels;
        let at = step * self.levels + node.level.expect("a level was chosen");
        let rest = self.thetas.iter().zip(self.rest.chunks_exact(size));
        node.quality
            + rest.map(|(theta, rest)| rest[at] + theta * STALL * media_s).fold(f64::INFINITY, f64::min)
    }

    /// No end of it is as good as the best, for certain: the two are computed in different orders.
    fn is_hopeless(&self, bound: f64) -> bool {
        self.best.is_some_and(|best| bound + 1e-9 * (1.0 + bound.abs() + best.quality.abs()) < best.quality)
    }

    fn search(&mut self, outlook: &Outlook<'_>, step: usize, node: Node, first: usize) {
        let mut next = std::mem::take(&mut self.next[step]);
        next.clear();
        for level in 0..self.levels {
            let kbps = self.kbps[level];
            let before = node.level.map_or(kbps, |before| self.kbps[before]);
            let fetch_s = self.fetch_s[step * self.levels + level];
            let one = node.and(level, kbps, before, fetch_s, outlook);
            next.push((self.bound(outlook, step + 1, &one), one));
        }
        self.looked_at += self.levels;
        next.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (bound, one) in &next {
            if self.is_hopeless(*bound) {
                break;
            }
            let first = if step == 0 { one.level.unwrap_or(0) } else { first };
            if step + 1 < self.horizon {
                self.search(outlook, step + 1, *one, first);
            } else if self.best.is_none_or(|best| {
                one.quality > best.quality || one.quality == best.quality && first > best.level
            }) {
                self.best = Some(Best { level: first, quality: one.quality });
            }
        }
        self.next[step] = next;
    }
}
