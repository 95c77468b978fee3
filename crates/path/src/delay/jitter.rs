//! The jitter added to a delay: draws by integers and by `libm`, so that every machine draws the same.

use core::f64::consts::TAU;

use streamgauge_base::RandomStream;

use crate::error::StageProblem;
use crate::spec::Distribution;

impl Distribution {
    /// Nanoseconds to add to the delay, which may be negative.
    pub(super) fn draw(&self, random: &mut RandomStream) -> i64 {
        match self {
            Distribution::Uniform { spread } => {
                let spread = spread.as_nanos();
                random.below(2 * spread + 1) as i64 - spread as i64
            }
            Distribution::Normal { deviation } => (normal(random) * deviation.as_nanos() as f64) as i64,
            Distribution::Pareto { scale, shape } => {
                let excess = libm::pow(uniform(random), -1.0 / shape) - 1.0;
                (excess * scale.as_nanos() as f64) as i64
            }
            Distribution::Gamma { shape, scale } => (gamma(random, *shape) * scale.as_nanos() as f64) as i64,
            Distribution::Table { quantiles } => {
                // The uniform draw is a place along the table: whole steps and, in 32 bits, the fraction between them.
                let place = u128::from(random.bits()) * (quantiles.len() as u128 - 1);
                let (step, part) = ((place >> 64) as usize, (place >> 32) as u32);
                let (low, high) = (quantiles[step].as_nanos(), quantiles[step + 1].as_nanos());
                low as i64 + ((u128::from(high - low) * u128::from(part)) >> 32) as i64
            }
        }
    }

    /// Returns the least that it ever adds, ns.
    pub(super) fn least(&self) -> i64 {
        match self {
            Distribution::Uniform { spread } => -(spread.as_nanos() as i64),
            Distribution::Normal { .. } => i64::MIN,
            Distribution::Pareto { .. } | Distribution::Gamma { .. } => 0,
            Distribution::Table { quantiles } => quantiles.first().map_or(0, |least| least.as_nanos() as i64),
        }
    }

    /// Returns its own measure of how much it varies, s: spread, deviation, scale, or a table's range.
    pub(super) fn size_s(&self) -> f64 {
        match self {
            Distribution::Uniform { spread } => spread.as_secs_f64(),
            Distribution::Normal { deviation } => deviation.as_secs_f64(),
            Distribution::Pareto { scale, .. } | Distribution::Gamma { scale, .. } => scale.as_secs_f64(),
            Distribution::Table { quantiles } => match (quantiles.first(), quantiles.last()) {
                (Some(&least), Some(&most)) => most.saturating_sub(least).as_secs_f64(),
                _ => 0.0,
            },
        }
    }

    pub(super) fn check(&self) -> Result<(), StageProblem> {
        let sizes: &[_] = match self {
            Distribution::Uniform { spread } => &[("spread", *spread)],
            Distribution::Normal { deviation } => &[("deviation", *deviation)],
            Distribution::Pareto { scale, shape } => {
                // The mean of the jitter is scale / (shape - 1).
                if !(*shape > 1.0 && shape.is_finite()) {
                    return Err(StageProblem::ParetoShape(*shape));
                }
                &[("scale", *scale)]
            }
            Distribution::Gamma { shape, scale } => {
                if !(*shape > 0.0 && shape.is_finite()) {
                    return Err(StageProblem::GammaShape(*shape));
                }
                &[("scale", *scale)]
            }
            Distribution::Table { quantiles } => {
                if quantiles.len() < 2 {
                    return Err(StageProblem::ShortTable(quantiles.len()));
                }
                if let Some(before) = quantiles.windows(2).position(|pair| pair[1] < pair[0]) {
                    return Err(StageProblem::TableDescends {
                        index: before + 1,
                        value: quantiles[before + 1],
                    });
                }
                &[("quantiles", quantiles[quantiles.len() - 1])]
            }
        };
        match sizes.iter().find(|(_, size)| size.as_nanos() > MOST_NS) {
            Some(&(which, size)) => Err(StageProblem::JitterTooLarge { which, size }),
            None => Ok(()),
        }
    }
}

/// An hour: more is a mistake in a unit, and less keeps all sums in 64 bits.
const MOST_NS: u64 = 3_600_000_000_000;

/// Draws uniformly from (0, 1], so that the logarithm is finite.
fn uniform(random: &mut RandomStream) -> f64 {
    ((random.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64
}

/// Draws from the standard normal distribution (Box and Muller 1958, "A note on the generation of random normal
/// deviates").
fn normal(random: &mut RandomStream) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(uniform(random)));
    radius * libm::cos(TAU * uniform(random))
}

/// Draws from the gamma distribution of this shape and scale 1 (Marsaglia and Tsang 2000, "A simple method for
/// generating gamma variables", sections 2 and 6): by rejection, so the number of draws varies.
fn gamma(random: &mut RandomStream, shape: f64) -> f64 {
    if shape < 1.0 {
        let boost = libm::pow(uniform(random), 1.0 / shape);
        return gamma(random, shape + 1.0) * boost;
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / libm::sqrt(9.0 * d);
    loop {
        let x = normal(random);
        let root = 1.0 + c * x;
        if root <= 0.0 {
            continue;
        }
        let v = root * root * root;
        if libm::log(uniform(random)) < 0.5 * x * x + d - d * v + d * libm::log(v) {
            return d * v;
        }
    }
}
