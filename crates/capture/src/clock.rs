//! The second capture's clock against the first's: offset and skew, from the least differences of stamps.
//!
//! A packet from A to B has the difference offset + delay, one from B to A offset - delay. The least delays of each
//! direction bound a line. Its slope is the skew (Moon, Skelly and Towsley, INFOCOM 1999: the line under all points
//! with the least distance to them). The offset is half-way between both lines if the least delays are equal both ways.
//! Two captures cannot show whether they are, so the error is half of the least round trip.

/// Bins that are kept; when they are full, their width doubles.
const MOST_BINS: usize = 4096;
const NARROWEST: i64 = 100_000_000;
/// The skew of a shorter time is not estimated (ns).
const SHORTEST_NS: i64 = 5_000_000_000;
/// Clocks differ by less (ns a ns): NTP slews by 500 ppm at most. A steeper line is a queue that grows.
const LARGEST_SKEW: f64 = 1e-3;

/// The least difference in each bin of time.
#[derive(Clone, Debug, Default)]
pub struct Envelope {
    from_ns: Option<i64>,
    width_ns: i64,
    least: Vec<Option<(i64, i64)>>,
}

impl Envelope {
    /// Adds a difference at this time, both in ns.
    pub fn add(&mut self, at_ns: i64, difference_ns: i64) {
        let from_ns = *self.from_ns.get_or_insert(at_ns);
        self.width_ns = self.width_ns.max(NARROWEST);
        let mut bin = ((at_ns - from_ns).max(0) / self.width_ns) as usize;
        while bin >= MOST_BINS {
            let less = |a: Option<(i64, i64)>, b: Option<(i64, i64)>| match (a, b) {
                (Some(a), Some(b)) => Some(if b.1 < a.1 { b } else { a }),
                (a, b) => a.or(b),
            };
            self.least = self.least.chunks(2).map(|two| two.iter().fold(None, |a, &b| less(a, b))).collect();
            self.width_ns = self.width_ns.saturating_mul(2);
            bin = ((at_ns - from_ns).max(0) / self.width_ns) as usize;
        }
        if bin >= self.least.len() {
            self.least.resize(bin + 1, None);
        }
        match &mut self.least[bin] {
            Some((_, least)) if *least <= difference_ns => {}
            place => *place = Some((at_ns, difference_ns)),
        }
    }

    /// The points in order of time, from `zero_ns` and `from_difference` on.
    fn points(&self, zero_ns: i64, from_difference: i64) -> Vec<(f64, f64)> {
        let shift = |&(at, least): &(i64, i64)| ((at - zero_ns) as f64, (least - from_difference) as f64);
        self.least.iter().flatten().map(shift).collect()
    }

    fn any(&self) -> Option<(i64, i64)> {
        self.least.iter().flatten().next().copied()
    }
}

/// A line under all points: its slope, and the points' median distance to it.
fn line_under(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let (first, last) = (points.first()?, points.last()?);
    if last.0 - first.0 < SHORTEST_NS as f64 {
        return None;
    }
    // The lower hull, by the monotone chain; `points` are in order of time.
    let mut hull: Vec<(f64, f64)> = Vec::new();
    for &point in points {
        while let [.., a, b] = hull[..]
            && (b.0 - a.0) * (point.1 - a.1) - (b.1 - a.1) * (point.0 - a.0) <= 0.0
        {
            hull.pop();
        }
        hull.push(point);
    }
    let middle = points.iter().map(|point| point.0).sum::<f64>() / points.len() as f64;
    let edge = hull.windows(2).find(|edge| edge[0].0 <= middle && middle <= edge[1].0)?;
    let slope = (edge[1].1 - edge[0].1) / (edge[1].0 - edge[0].0);
    if slope.abs() > LARGEST_SKEW {
        return None;
    }
    let mut apart: Vec<f64> =
        points.iter().map(|point| point.1 - edge[0].1 - slope * (point.0 - edge[0].0)).collect();
    apart.sort_by(f64::total_cmp);
    Some((slope, apart[apart.len() / 2]))
}

/// Returns the skew by the differences of one direction, and their distance from its line. The line is along the least
/// from A to B, and along the largest from B to A. The direction may be unknown: then the nearer line counts.
pub fn slope_along(differences: &[(i64, i64)]) -> Option<(f64, f64)> {
    let &(zero_ns, about) = differences.iter().min()?;
    let mut sorted = differences.to_vec();
    sorted.sort_unstable();
    let line = |sign: i64| {
        let mut envelope = Envelope::default();
        sorted.iter().for_each(|&(at_ns, ns)| envelope.add(at_ns, sign * ns));
        let (slope, apart) = line_under(&envelope.points(zero_ns, sign * about))?;
        Some((slope * sign as f64, apart.abs()))
    };
    [line(1), line(-1)].into_iter().flatten().min_by(|a, b| a.1.total_cmp(&b.1))
}

/// B's clock minus A's.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// The time on A's clock to which `offset_ns` belongs.
    pub zero_ns: i64,
    /// The difference then, whole ns.
    pub offset_ns: i64,
    /// Its growth, ns a ns; 0 if it is not known.
    pub skew: f64,
    /// The skew was estimated, with about this error (ns a ns).
    pub skew_error: Option<f64>,
    /// Least delays from A to B and back, as the offset has them (ns).
    pub least_ns: [Option<i64>; 2],
    /// The offset may be wrong by so much (ns); `None` if one direction alone was seen.
    pub error_ns: Option<i64>,
}

impl Clock {
    /// From the differences of both directions: `forward` has B - A of packets from A, `back` A - B of packets from B.
    /// `base` is a least delay that is known: whether that from A to B, and its length in ns.
    pub fn estimate(forward: &Envelope, back: &Envelope, base: Option<(bool, i64)>) -> Option<Clock> {
        let zero_ns = [forward, back].iter().filter_map(|one| one.any()).map(|(at, _)| at).min()?;
        let about = forward.any().map(|(_, ns)| ns).or(back.any().map(|(_, ns)| -ns))?;
        let points = [forward.points(zero_ns, about), back.points(zero_ns, -about)];
        // The slope of the way back has the other sign. A direction without a queue is nearer to its line.
        let lines = [line_under(&points[0]), line_under(&points[1]).map(|(slope, apart)| (-slope, apart))];
        let weights = lines.iter().flatten().map(|(slope, apart)| (slope, 1.0 / (apart.abs() + 1.0).powi(2)));
        let (sum, all) =
            weights.fold((0.0, 0.0), |(sum, all), (slope, weight)| (sum + slope * weight, all + weight));
        let skew = if all > 0.0 { sum / all } else { 0.0 };
        let least = |points: &[(f64, f64)], sign: f64| {
            points.iter().map(|(at, ns)| ns - sign * skew * at).min_by(f64::total_cmp)
        };
        let (out, home) = (least(&points[0], 1.0), least(&points[1], -1.0));
        let offset = match (out, home, base) {
            (Some(out), _, Some((true, base))) => out - base as f64,
            (_, Some(home), Some((false, base))) => base as f64 - home,
            (Some(out), Some(home), _) => (out - home) / 2.0,
            // Without the other direction the delays count from the least one.
            (Some(out), None, _) => out,
            (None, Some(home), _) => -home,
            (None, None, _) => return None,
        };
        let whole = |ns: f64| ns.round() as i64;
        let span = points.iter().flatten().map(|point| point.0).fold(0.0, f64::max).max(1.0);
        let nearest = lines.iter().flatten().map(|(_, apart)| *apart).min_by(f64::total_cmp);
        Some(Clock {
            zero_ns,
            offset_ns: about + whole(offset),
            skew,
            skew_error: nearest.map(|apart| apart.max(0.0) / span),
            least_ns: [out.map(|ns| whole(ns - offset)), home.map(|ns| whole(ns + offset))],
            error_ns: match base {
                Some(_) => Some(0),
                None => out.zip(home).map(|(out, home)| whole((out + home) / 2.0)),
            },
        })
    }

    /// B's clock minus A's at this time on A's clock (ns).
    pub fn offset_at(&self, a_ns: i64) -> i64 {
        self.offset_ns + (self.skew * (a_ns - self.zero_ns) as f64).round() as i64
    }

    /// A time on B's clock, on A's.
    pub fn to_a(self, b_ns: i64) -> i64 {
        let about = b_ns - self.offset_ns;
        b_ns - self.offset_at(about)
    }
}
