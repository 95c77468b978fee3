//! The first look at two captures: packets that both have, the side of each address, and both clocks.

use std::collections::HashMap;
use std::path::Path;

use crate::capture::Capture;
use crate::clock::{Clock, Envelope, slope_along};
use crate::copies::{PAYLOAD_BYTES, fingerprint};
use crate::error::CaptureError;
use crate::hash::Mixed;
use crate::packet::Address;
use crate::translation::Renamed;

/// Packets of the first capture, about, by which clocks and sides are found.
const SAMPLED: u64 = 1 << 19;
/// A packet takes at least so many bytes of a file, about.
const LEAST_RECORD: u64 = 100;
/// Matches that are needed.
const FEWEST: usize = 10;

/// A direction has many packets if it has this part of the largest one's.
const MANY_SHARE: usize = 10;

/// Known beforehand about two captures.
#[derive(Clone, Debug, Default)]
pub struct KnownBeforehand {
    /// Where A was taken. It counts only where packets of both directions do not show it, and is asked for there.
    pub a_is_receiver: Option<bool>,
    /// The least one-way delay in the direction of most payload (ns).
    pub base_ns: Option<i64>,
    /// Ends of B by their names in A, where addresses are translated between both.
    pub renamed: Vec<Renamed>,
    /// The part that is left out, to show that it is needed. Only tests set it.
    pub without: Option<Mechanism>,
}

/// A part of matching without which it is worse.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mechanism {
    /// A packet that was acknowledged and is not there was missed by the capture.
    GapTest,
    /// Acknowledgements decide on packets without a match.
    Acknowledgements,
    /// Resets of a closed receiver decide, too.
    Refusals,
    /// Receiver reports decide on packets of RTP.
    Reports,
    /// Feedback on single packets decides, too.
    Feedback,
    /// The second clock's skew.
    Skew,
    /// Clocks by least delays, not by the median.
    LeastDelay,
    /// Sides by differences without the skew.
    SidesWithoutSkew,
    /// The rate behind jitter by the waits of all packets.
    QueueModel,
    /// Departures placed where accepted and refused packets overlap least.
    Placement,
    /// The rate by the median part of busy times.
    MedianRate,
    /// Transmission is taken out of the least delays.
    Balance,
}

impl Mechanism {
    /// By its name.
    pub fn of(name: &str) -> Option<Mechanism> {
        Some(match name {
            "gap test" => Mechanism::GapTest,
            "acknowledgements" => Mechanism::Acknowledgements,
            "refusals" => Mechanism::Refusals,
            "reports" => Mechanism::Reports,
            "feedback" => Mechanism::Feedback,
            "skew" => Mechanism::Skew,
            "least delay" => Mechanism::LeastDelay,
            "sides without skew" => Mechanism::SidesWithoutSkew,
            "queue model" => Mechanism::QueueModel,
            "placement" => Mechanism::Placement,
            "median rate" => Mechanism::MedianRate,
            "balance" => Mechanism::Balance,
            _ => return None,
        })
    }
}

/// One of the two captures.
pub struct CaptureSource<'a> {
    /// Its file.
    pub path: &'a Path,
    /// The interface that is read; `None` for all.
    pub only: Option<u32>,
}

/// The first look at both files.
pub struct FirstLook {
    /// Addresses of A's side.
    pub is_a: HashMap<Address, bool, Mixed>,
    /// Payload bytes that both captures have of every packet.
    pub payload: usize,
    pub clock: Clock,
}

/// Finds packets that both files have.
pub fn first_look(
    a: &CaptureSource<'_>,
    b: &CaptureSource<'_>,
    known: &KnownBeforehand,
) -> Result<FirstLook, CaptureError> {
    let mut captures = [Capture::open(a.path, a.only)?, Capture::open(b.path, b.only)?];
    captures[1].renamed.clone_from(&known.renamed);
    // Bytes of the payload that each has of packets which are cut.
    let mut payload = PAYLOAD_BYTES;
    for capture in &captures {
        payload = payload.min(capture.survey.payload);
    }
    let mut times: HashMap<u64, Option<i64>, Mixed> = HashMap::default();
    // One packet in a power of two for a long file, the same ones in both files, over its whole length.
    let size = std::fs::metadata(a.path).map_or(0, |file| file.len());
    let mask = (size / (SAMPLED * LEAST_RECORD)).next_power_of_two() - 1;
    let mut is_more = true;
    while is_more && times.len() < 2 * SAMPLED as usize {
        is_more = captures[0].next_packet(|packet| {
            let print = fingerprint(packet, payload);
            if print & mask == 0 {
                // A print that occurs twice shows no time.
                times.entry(print).and_modify(|at| *at = None).or_insert(Some(packet.at_ns));
            }
        });
    }
    let mut ways = Ways::default();
    let mut count = 0;
    is_more = true;
    while is_more {
        is_more = captures[1].next_packet(|packet| {
            let Some(at_ns) = times.get_mut(&fingerprint(packet, payload)).and_then(Option::take) else {
                return;
            };
            let way = ways.entry((packet.source.address, packet.destination.address)).or_default();
            way.0.push((at_ns, packet.at_ns - at_ns));
            way.1 += u64::from(packet.payload_bytes);
            count += 1;
        });
    }
    if count < FEWEST {
        let names = [a.path.display(), b.path.display()];
        return Err(CaptureError::NoMatch(format!(
            "{} and {} have {count} packets in common, at least {FEWEST} are needed. Name captures of the same traffic \
             and time. For a translated address, give --flow A=B.",
            names[0], names[1]
        )));
    }
    let skew = if known.without == Some(Mechanism::SidesWithoutSkew) { 0.0 } else { rough_skew(&ways) };
    let shown = sides(&ways, skew);
    let both = || a.path.display().to_string() + " and " + &b.path.display().to_string();
    let Some(is_a) = with_known_side(&ways, shown, known.a_is_receiver) else {
        return Err(CaptureError::NoSide(unshown(&ways, both())));
    };
    let from_a = |source: &Address| is_a.get(source).copied().unwrap_or(known.a_is_receiver != Some(true));
    let mut envelopes = [Envelope::default(), Envelope::default()];
    let mut points: Vec<(bool, i64, i64)> = Vec::new();
    for ((source, _), (differences, _)) in &ways {
        let forward = from_a(source);
        points.extend(differences.iter().map(|&(at, ns)| (forward, at, ns)));
    }
    points.sort_unstable_by_key(|point| point.1);
    if known.without == Some(Mechanism::LeastDelay) {
        level_to_median(&mut points);
    }
    for (forward, at_ns, ns) in points {
        if forward { envelopes[0].add(at_ns, ns) } else { envelopes[1].add(at_ns, -ns) }
    }
    let payload_of = |forward: bool| {
        ways.iter()
            .filter(|((source, _), _)| from_a(source) == forward)
            .map(|(_, (_, bytes))| bytes)
            .sum::<u64>()
    };
    let main_is_forward = payload_of(true) >= payload_of(false);
    let base = known.base_ns.map(|ns| (main_is_forward, ns));
    let mut clock = Clock::estimate(&envelopes[0], &envelopes[1], base)
        .ok_or_else(|| CaptureError::NoMatch("both captures have no time in common".into()))?;
    if known.without == Some(Mechanism::Skew) {
        clock.skew = 0.0;
    }
    Ok(FirstLook { is_a, payload, clock })
}

type Ways = HashMap<(Address, Address), (Vec<(i64, i64)>, u64), Mixed>;

/// Returns the skew before the sides are known, by a direction with many packets near to one line in their differences;
/// 0 where none is long enough.
fn rough_skew(ways: &Ways) -> f64 {
    let most = ways.values().map(|way| way.0.len()).max().unwrap_or(0);
    let many = ways.values().filter(|way| way.0.len() * MANY_SHARE >= most);
    let lines = many.filter_map(|way| slope_along(&way.0));
    lines.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0.0, |(slope, _)| slope)
}

/// The addresses of A's side. Between two addresses, the direction with the larger differences is from A to B: they are
/// offset + delay, the other way offset - delay. The skew is taken out first: in a minute it is more than a short
/// path's delays. Addresses with one direction alone are left out.
fn sides(ways: &Ways, skew: f64) -> HashMap<Address, bool, Mixed> {
    let zero_ns = ways.values().flat_map(|way| way.0.first()).map(|&(at_ns, _)| at_ns).min().unwrap_or(0);
    let median = |differences: &[(i64, i64)]| {
        let level = |&(at_ns, ns): &(i64, i64)| {
            ns.saturating_sub((skew * at_ns.saturating_sub(zero_ns) as f64).round() as i64)
        };
        let mut sorted: Vec<i64> = differences.iter().map(level).collect();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or(0)
    };
    let mut votes: HashMap<Address, i64, Mixed> = HashMap::default();
    for (&(source, destination), (differences, _)) in ways {
        let Some((back, _)) = ways.get(&(destination, source)) else { continue };
        let vote = differences.len() as i64 * (median(differences) - median(back)).signum();
        *votes.entry(source).or_default() += vote;
        *votes.entry(destination).or_default() -= vote;
    }
    votes.into_iter().map(|(address, vote)| (address, vote > 0)).collect()
}

/// Returns the sides, with addresses that were seen in one direction alone. `None` if no packet shows a side and the
/// caller named none.
fn with_known_side(
    ways: &Ways,
    mut is_a: HashMap<Address, bool, Mixed>,
    a_is_receiver: Option<bool>,
) -> Option<HashMap<Address, bool, Mixed>> {
    if is_a.is_empty() && a_is_receiver.is_none() {
        return None;
    }
    let mut rest: Vec<(Address, Address)> = ways.keys().copied().collect();
    rest.sort_unstable();
    for (source, destination) in rest {
        let from_a = match (is_a.get(&source), is_a.get(&destination)) {
            (Some(&is), _) => is,
            (None, Some(&is)) => !is,
            (None, None) => a_is_receiver != Some(true),
        };
        is_a.entry(source).or_insert(from_a);
        is_a.entry(destination).or_insert(!from_a);
    }
    Some(is_a)
}

/// The remedy where no side shows: the largest direction is named.
fn unshown(ways: &Ways, files: String) -> String {
    let largest = ways.iter().max_by_key(|(ends, way)| (way.0.len(), **ends));
    let (source, destination) =
        largest.map(|((one, other), _)| (one.to_string(), other.to_string())).unwrap_or_default();
    format!(
        "{files} have packets of one direction alone ({source} to {destination}). The side of {source} is unknown; \
         give that of the first file: --at sender or --at receiver"
    )
}

/// All differences of a direction at its median: clocks as they would be without least delays.
fn level_to_median(points: &mut [(bool, i64, i64)]) {
    for way in [true, false] {
        let mut own: Vec<i64> = points.iter().filter(|one| one.0 == way).map(|one| one.2).collect();
        own.sort_unstable();
        if let Some(&middle) = own.get(own.len() / 2) {
            points.iter_mut().filter(|one| one.0 == way).for_each(|one| one.2 = middle);
        }
    }
}
