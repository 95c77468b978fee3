//! A queue of one direction, from all packets that arrived at it and those that passed.
//!
//! It gives two estimates that single gaps and waits cannot show.
//!
//! **The rate behind jitter.** A first-in, first-out queue is served at one rate, which gives each packet's wait from
//! the arrivals alone. The rate is the one with waits that explain most of the measured delays.
//!
//! **The limit of a queue.** No accepted packet found more than the limit, no refused one less. If departures are
//! placed a little wrong, both overlap. Therefore they are placed where they overlap least.

use std::collections::VecDeque;

/// Arrivals that are kept.
pub const MOST_ARRIVALS: usize = 1 << 17;
/// Fewer packets allow no estimate.
const FEWEST: usize = 200;
const FEWEST_LOSSES: usize = 5;
/// The most of the delays' variance that a model may leave unexplained.
const UNEXPLAINED: f64 = 0.5;
/// The remainder is jitter if its means over this time (ns) vary by less than this part: a rate that changes leaves
/// errors that last.
const BLOCK_NS: i64 = 1_000_000_000;
const DRIFT: f64 = 0.25;
/// Delays that a rate explains so well (deviation against deviation) have no jitter.
const EXACT: f64 = 0.01;
/// Rates that are tried: from this part of the first estimate to its inverse, in so many steps.
const SLOWEST: f64 = 0.7;
const RATES: u32 = 25;
const REFINED: u32 = 24;
/// Rates within this part of the fitted one, in so many steps on either side, by the losses.
const CLOSE: f64 = 0.003;
const CLOSEST: u32 = 15;
/// Places of the departures that are tried, on either side: parts of the way, and halves of it down to jitter.
const PLACES: i64 = 16;
const HALVES: u32 = 10;
/// Levels of a queue that are distinguished.
const LEVELS: usize = 4096;

/// A packet that arrived at the path.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// When it arrived (ns).
    pub in_ns: i64,
    /// How long it took; `None` if it was lost.
    pub delay_ns: Option<i64>,
    /// Ethernet bytes.
    pub bytes: u32,
    /// Both captures have it; of others that passed the delay is their neighbour's.
    pub is_measured: bool,
}

/// A packet that passed and that one capture missed.
#[derive(Clone, Copy, Debug)]
pub struct Unseen {
    /// When it arrived, or when it left if `is_departure` (ns).
    pub at_ns: i64,
    /// The sender's capture missed it.
    pub is_departure: bool,
    /// Ethernet bytes.
    pub bytes: u32,
}

/// Adds packets that one capture missed to the arrivals, with the delays of their neighbours, in order of time.
pub fn complete(arrivals: &mut Vec<Arrival>, unseen: &[Unseen]) {
    let passed = || arrivals.iter().filter_map(|one| Some((one.in_ns, one.delay_ns?)));
    let mut by_arrival: Vec<(i64, i64)> = passed().collect();
    let mut by_departure: Vec<(i64, i64)> =
        passed().map(|(at, delay)| (at.saturating_add(delay), delay)).collect();
    by_arrival.sort_unstable();
    by_departure.sort_unstable();
    let found = unseen.iter().filter_map(|one| {
        let known = if one.is_departure { &by_departure } else { &by_arrival };
        let place = known.partition_point(|&(at, _)| at < one.at_ns);
        let &(_, delay) = known.get(place).or(known.last())?;
        let in_ns = if one.is_departure { one.at_ns.saturating_sub(delay) } else { one.at_ns };
        Some(Arrival { in_ns, delay_ns: Some(delay), bytes: one.bytes, is_measured: false })
    });
    let found: Vec<Arrival> = found.collect();
    arrivals.extend(found);
    arrivals.sort_by_key(|one| one.in_ns);
}

/// The bytes in a queue.
#[derive(Clone, Copy, Debug)]
pub struct QueueLevels {
    /// Most bytes that were held with an accepted packet.
    pub accepted: u64,
    /// Fewest that would have been held with a refused one, of those above.
    pub refused: Option<u64>,
    /// Losses at a queue that was at least half as full as ever, and others.
    pub losses: [u64; 2],
}

/// A queue served at one rate.
#[derive(Clone, Copy, Debug)]
pub struct ServedQueue {
    /// Bit/s of Ethernet bytes.
    pub rate_bps: f64,
    /// Longest wait, without the jitter behind it (ns).
    pub longest_ns: i64,
    /// Its bytes.
    pub levels: QueueLevels,
}

/// The waits of a queue at this rate: calls `each` with an arrival and the time until the queue is empty of all before it.
fn serve(arrivals: &[Arrival], rate_bps: f64, mut each: impl FnMut(&Arrival, f64)) {
    let Some(zero_ns) = arrivals.first().map(|one| one.in_ns) else { return };
    let mut free = 0.0_f64;
    for one in arrivals {
        let at = one.in_ns.saturating_sub(zero_ns) as f64;
        let wait = (free - at).max(0.0);
        each(one, wait);
        if one.delay_ns.is_some() {
            free = at + wait + f64::from(one.bytes) * 8e9 / rate_bps;
        }
    }
}

/// Mean and variance of the delays that a rate leaves unexplained (ms).
fn unexplained(arrivals: &[Arrival], rate_bps: f64) -> f64 {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    serve(arrivals, rate_bps, |one, wait| {
        if let Some(delay) = one.delay_ns.filter(|_| one.is_measured) {
            let rest = (delay as f64 - wait - f64::from(one.bytes) * 8e9 / rate_bps) / 1e6;
            count += 1.0;
            sum += rest;
            squares += rest * rest;
        }
    });
    if count > 0.0 { (squares / count - (sum / count).powi(2)).max(0.0) } else { f64::INFINITY }
}

/// How much of the variance that a rate leaves lasts for longer than jitter does.
fn drift(arrivals: &[Arrival], rate_bps: f64) -> f64 {
    let Some(zero_ns) = arrivals.first().map(|one| one.in_ns) else { return 0.0 };
    let mut blocks: Vec<(f64, f64)> = Vec::new();
    serve(arrivals, rate_bps, |one, wait| {
        if let Some(delay) = one.delay_ns.filter(|_| one.is_measured) {
            let block = (one.in_ns.saturating_sub(zero_ns) / BLOCK_NS) as usize;
            if block < MOST_ARRIVALS {
                blocks.resize(blocks.len().max(block + 1), (0.0, 0.0));
                let rest = (delay as f64 - wait - f64::from(one.bytes) * 8e9 / rate_bps) / 1e6;
                blocks[block] = (blocks[block].0 + 1.0, blocks[block].1 + rest);
            }
        }
    });
    let count = blocks.iter().map(|block| block.0).sum::<f64>().max(1.0);
    let mean = blocks.iter().map(|block| block.1).sum::<f64>() / count;
    let full = blocks.iter().filter(|block| block.0 > 0.0);
    let between = full.map(|(count, sum)| count * (sum / count - mean).powi(2)).sum::<f64>() / count;
    between / unexplained(arrivals, rate_bps).max(f64::MIN_POSITIVE)
}

/// The queue with jitter behind it, if one rate explains the delays; `arrivals` are in order of time. `None` also where
/// delays have no jitter: then each busy packet shows the rate exactly.
pub fn served(arrivals: &[Arrival], first_bps: f64) -> Option<ServedQueue> {
    let whole = unexplained(arrivals, f64::INFINITY);
    let before = unexplained(arrivals, first_bps);
    if arrivals.len() < FEWEST || whole <= 0.0 || before <= whole * EXACT * EXACT {
        return None;
    }
    let step = (1.0 / SLOWEST).ln() * 2.0 / f64::from(RATES - 1);
    let cost = |log: f64| unexplained(arrivals, first_bps * log.exp());
    let tried = (0..RATES).map(|at| SLOWEST.ln() + step * f64::from(at));
    let (middle, _) = tried.map(|log| (log, cost(log))).min_by(|a, b| a.1.total_cmp(&b.1))?;
    let (mut low, mut high) = (middle - step, middle + step);
    for _ in 0..REFINED {
        let third = (high - low) / 3.0;
        if cost(low + third) < cost(high - third) { high -= third } else { low += third }
    }
    let log = f64::midpoint(low, high);
    let rate_bps = first_bps * log.exp();
    if cost(log) > whole * UNEXPLAINED || drift(arrivals, rate_bps) > DRIFT {
        return None;
    }
    // Jitter that keeps packets in order is a little longer in a queue's time, so the rate is fitted a little low.
    let near = (0..=CLOSEST).flat_map(|at| [f64::from(at), -f64::from(at)]);
    let rates = near.map(|at| rate_bps * (1.0 + CLOSE * at / f64::from(CLOSEST)));
    let found = rates.filter_map(|rate| Some((rate, levels_at(arrivals, rate)?)));
    let (rate_bps, (levels, longest, _)) = found.min_by_key(|(_, (_, _, wrong))| *wrong)?;
    Some(ServedQueue { rate_bps, longest_ns: longest as i64, levels })
}

/// Returns the bytes in a queue of this rate, its longest wait (ns), and the number of packets on the wrong side of its
/// limit. The packet in transmission counts completely, as at a limit.
fn levels_at(arrivals: &[Arrival], rate_bps: f64) -> Option<(QueueLevels, f64, u64)> {
    let zero_ns = arrivals.first()?.in_ns;
    let mut inside = VecDeque::<(f64, u64)>::new();
    let (mut longest, mut held, mut found) = (0.0_f64, 0_u64, Vec::with_capacity(arrivals.len()));
    serve(arrivals, rate_bps, |one, wait| {
        let (bytes, at) = (u64::from(one.bytes), one.in_ns.saturating_sub(zero_ns) as f64);
        while let Some(&(until, gone)) = inside.front()
            && until <= at
        {
            inside.pop_front();
            held -= gone;
        }
        found.push((held + bytes, one.delay_ns.is_some()));
        if one.delay_ns.is_some() {
            let stays = wait + f64::from(one.bytes) * 8e9 / rate_bps;
            longest = longest.max(stays);
            inside.push_back((at + stays, bytes));
            held += bytes;
        }
    });
    let (levels, wrong) = split(&found)?;
    Some((levels, longest, wrong))
}

/// The queue by departures that were seen. They are first taken to be `behind_ns` before the packets' end of the path,
/// and moved by up to `about_ns`. `None` without losses enough.
pub fn placed(arrivals: &[Arrival], behind_ns: i64, about_ns: i64) -> Option<QueueLevels> {
    if arrivals.iter().filter(|one| one.delay_ns.is_none()).count() < FEWEST_LOSSES {
        return None;
    }
    let passed = arrivals
        .iter()
        .filter_map(|one| Some((one.in_ns.saturating_add(one.delay_ns?), u64::from(one.bytes))));
    let mut departures: Vec<(i64, u64)> = passed.collect();
    departures.sort_unstable();
    let at_place = |shift: i64| {
        let behind = behind_ns.saturating_add(shift);
        let (mut held, mut gone) = (0_u64, 0);
        let mut levels = Vec::with_capacity(arrivals.len());
        for one in arrivals {
            while let Some(&(_, bytes)) =
                departures.get(gone).filter(|one_of| one_of.0.saturating_sub(behind) <= one.in_ns)
            {
                held = held.saturating_sub(bytes);
                gone += 1;
            }
            let with = held + u64::from(one.bytes);
            levels.push((with, one.delay_ns.is_some()));
            if one.delay_ns.is_some() {
                held = with;
            }
        }
        split(&levels)
    };
    // The nearest place counts where several are as good.
    let near = (1..=HALVES).map(|half| about_ns >> half);
    let parts = (1..=PLACES).map(|at| about_ns / PLACES * at);
    let mut places: Vec<i64> = near.chain(parts).flat_map(|shift| [shift, -shift]).chain([0]).collect();
    places.sort_by_key(|shift| shift.abs());
    places.dedup();
    places.into_iter().filter_map(at_place).min_by_key(|(_, wrong)| *wrong).map(|(levels, _)| levels)
}

/// The level between accepted and refused packets with the fewest on its wrong side, and their number.
fn split(held: &[(u64, bool)]) -> Option<(QueueLevels, u64)> {
    let most = held.iter().map(|one| one.0).max()?;
    let place = |bytes: u64| (bytes as u128 * (LEVELS as u128 - 1) / u128::from(most.max(1))) as usize;
    let mut counts = vec![[0_u64; 2]; LEVELS];
    for &(bytes, is_accepted) in held {
        counts[place(bytes)][usize::from(!is_accepted)] += 1;
    }
    let mut above = counts.iter().map(|one| one[0]).sum::<u64>();
    let (mut below, mut best) = (0, (u64::MAX, 0));
    for (at, [accepted, refused]) in counts.iter().enumerate() {
        (above, below) = (above - accepted, below + refused);
        if above + below < best.0 {
            best = (above + below, at);
        }
    }
    let (wrong, limit) = best;
    let is_below = |bytes: u64| place(bytes) <= limit;
    let accepted = held.iter().filter(|one| one.1 && is_below(one.0)).map(|one| one.0).max().unwrap_or(0);
    let refused = held.iter().filter(|one| !one.1 && !is_below(one.0)).map(|one| one.0).min();
    let mut losses = [0; 2];
    for one in held.iter().filter(|one| !one.1) {
        losses[usize::from(one.0 * 2 <= accepted)] += 1;
    }
    Some((QueueLevels { accepted, refused, losses }, wrong))
}
