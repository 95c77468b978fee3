//! When a rule holds.

use std::fmt;

/// An expression. A value other than 0 is true: comparisons, [`All`](Self::All) and [`Any`](Self::Any) have
/// the value 1 or 0.
///
/// A parsed expression has two parts or more in [`All`](Self::All) and [`Any`](Self::Any), and finite
/// numbers; any other is not read back as it was.
#[derive(Clone, PartialEq, Debug)]
pub enum AsmCondition {
    /// A number.
    Number(f64),
    /// A variable's name, without `$`.
    Variable(Box<str>),
    /// Two sides.
    Compare(Box<AsmCondition>, AsmOperator, Box<AsmCondition>),
    /// `&&`.
    All(Vec<AsmCondition>),
    /// `||`, which binds less.
    Any(Vec<AsmCondition>),
}

/// How two sides are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AsmOperator {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
}

impl AsmOperator {
    /// With their signs, the longer before those that they begin with.
    pub(super) const ALL: [(&str, AsmOperator); 6] = [
        ("<=", AsmOperator::LessOrEqual),
        (">=", AsmOperator::GreaterOrEqual),
        ("==", AsmOperator::Equal),
        ("!=", AsmOperator::NotEqual),
        ("<", AsmOperator::Less),
        (">", AsmOperator::Greater),
    ];

    fn holds(self, left: f64, right: f64) -> bool {
        match self {
            AsmOperator::Less => left < right,
            AsmOperator::LessOrEqual => left <= right,
            AsmOperator::Greater => left > right,
            AsmOperator::GreaterOrEqual => left >= right,
            AsmOperator::Equal => left == right,
            AsmOperator::NotEqual => left != right,
        }
    }
}

impl fmt::Display for AsmOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = Self::ALL.iter().find(|(_, operator)| operator == self);
        f.write_str(sign.expect("all are there").0)
    }
}

impl AsmCondition {
    /// The variable that holds a player's bandwidth in bit/s.
    pub const BANDWIDTH: &str = "Bandwidth";

    /// Returns the condition that `$Bandwidth` is at least `from_bps` and, if there is an end, below
    /// `to_bps`.
    pub fn bandwidth(from_bps: u32, to_bps: Option<u32>) -> Self {
        let compare = |operator, bps: u32| {
            let variable = AsmCondition::Variable(Self::BANDWIDTH.into());
            AsmCondition::Compare(variable.into(), operator, AsmCondition::Number(bps.into()).into())
        };
        let from = compare(AsmOperator::GreaterOrEqual, from_bps);
        match to_bps {
            Some(to) if from_bps == 0 => compare(AsmOperator::Less, to),
            Some(to) => AsmCondition::All(vec![from, compare(AsmOperator::Less, to)]),
            None => from,
        }
    }

    /// Returns whether it holds where the variables, by their names without `$`, have these values.
    pub fn holds(&self, variables: &dyn Fn(&str) -> f64) -> bool {
        self.value(variables) != 0.0
    }

    fn value(&self, variables: &dyn Fn(&str) -> f64) -> f64 {
        let holds = match self {
            AsmCondition::Number(number) => return *number,
            AsmCondition::Variable(name) => return variables(name),
            AsmCondition::Compare(left, operator, right) => {
                operator.holds(left.value(variables), right.value(variables))
            }
            AsmCondition::All(parts) => parts.iter().all(|part| part.holds(variables)),
            AsmCondition::Any(parts) => parts.iter().any(|part| part.holds(variables)),
        };
        f64::from(u8::from(holds))
    }

    /// Parts within parts.
    pub(super) fn depth(&self) -> usize {
        match self {
            AsmCondition::Number(_) | AsmCondition::Variable(_) => 0,
            AsmCondition::Compare(left, _, right) => 1 + left.depth().max(right.depth()),
            AsmCondition::All(parts) | AsmCondition::Any(parts) => {
                1 + parts.iter().map(Self::depth).max().unwrap_or(0)
            }
        }
    }

    /// Reports every number beside `$Bandwidth` in a comparison.
    pub(super) fn bandwidths(&self, say: &mut dyn FnMut(f64)) {
        let is_bandwidth = |side: &AsmCondition| matches!(side, AsmCondition::Variable(name) if name.eq_ignore_ascii_case(Self::BANDWIDTH));
        match self {
            AsmCondition::Number(_) | AsmCondition::Variable(_) => {}
            AsmCondition::Compare(left, _, right) => match (&**left, &**right) {
                (AsmCondition::Number(number), other) | (other, AsmCondition::Number(number))
                    if is_bandwidth(other) =>
                {
                    say(*number);
                }
                (left, right) => {
                    left.bandwidths(say);
                    right.bandwidths(say);
                }
            },
            AsmCondition::All(parts) | AsmCondition::Any(parts) => {
                parts.iter().for_each(|part| part.bandwidths(say));
            }
        }
    }

    /// Parts of more than one word get parentheses.
    fn write_part(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AsmCondition::Number(_) | AsmCondition::Variable(_) => write!(f, "{self}"),
            _ => write!(f, "({self})"),
        }
    }
}

impl fmt::Display for AsmCondition {
    /// Without the parentheses that RealNetworks' books have around a whole condition.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (parts, sign) = match self {
            AsmCondition::Number(number) => return number.fmt(f),
            AsmCondition::Variable(name) => return write!(f, "${name}"),
            AsmCondition::Compare(left, operator, right) => {
                left.write_part(f)?;
                write!(f, " {operator} ")?;
                return right.write_part(f);
            }
            AsmCondition::All(parts) => (parts, " && "),
            AsmCondition::Any(parts) => (parts, " || "),
        };
        for (index, part) in parts.iter().enumerate() {
            f.write_str(if index > 0 { sign } else { "" })?;
            part.write_part(f)?;
        }
        Ok(())
    }
}
