//! Rules and their properties.

use std::fmt;

use super::condition::AsmCondition;
use super::fault::Fault;

/// The rules of a stream, or of a whole file.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AsmRuleBook {
    /// By number.
    pub rules: Vec<AsmRule>,
}

/// When some packets of a stream are sent, and their properties.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AsmRule {
    /// When it holds; always, if there is none.
    pub condition: Option<AsmCondition>,
    /// The properties, in order.
    pub properties: Vec<AsmProperty>,
}

/// A name and a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AsmProperty {
    name: Box<str>,
    value: Box<str>,
    quoted: bool,
}

impl AsmRuleBook {
    /// Returns the numbers of the rules that hold at a bandwidth in bit/s, all other variables being 0.
    pub fn holding(&self, bandwidth_bps: f64) -> impl Iterator<Item = usize> + '_ {
        let hold = move |rule: &AsmRule| rule.holds(bandwidth_bps);
        self.rules.iter().enumerate().filter(move |(_, rule)| hold(rule)).map(|(number, _)| number)
    }

    /// Returns the rate that the rules valid at a bandwidth need together, in bit/s.
    pub fn average_bandwidth_bps(&self, bandwidth_bps: f64) -> u64 {
        let average = |number: usize| self.rules[number].average_bandwidth_bps().unwrap_or(0);
        self.holding(bandwidth_bps).map(average).fold(0, u64::saturating_add)
    }

    /// Returns the bandwidths in bit/s that conditions name, each once, the lowest first: where other rules
    /// begin to hold.
    pub fn bandwidths(&self) -> Vec<f64> {
        let mut found = Vec::new();
        for condition in self.rules.iter().filter_map(|rule| rule.condition.as_ref()) {
            condition.bandwidths(&mut |bandwidth| found.push(bandwidth));
        }
        found.sort_by(f64::total_cmp);
        found.dedup();
        found
    }
}

impl AsmRule {
    /// `AverageBandwidth`, in bit/s.
    pub const AVERAGE_BANDWIDTH: &str = "AverageBandwidth";
    /// `Priority`: 10 is required, 9 key frames, 5 packets that depend on these.
    pub const PRIORITY: &str = "Priority";
    /// `OnDepend`: rules without which this one's packets are of no use.
    pub const ON_DEPEND: &str = "OnDepend";
    /// `OffDepend`: rules that have to be off before this one is.
    pub const OFF_DEPEND: &str = "OffDepend";
    /// `TimestampDelivery`: packets are sent by their timestamps instead of by the rate.
    pub const TIMESTAMP_DELIVERY: &str = "TimestampDelivery";
    /// `DropByN`: the server may leave packets out, one of every N.
    pub const DROP_BY_N: &str = "DropByN";

    /// Returns a rule without properties.
    pub fn when(condition: Option<AsmCondition>) -> Self {
        AsmRule { condition, properties: Vec::new() }
    }

    /// Adds one property, as `name=value`. Panics where [`AsmProperty::new`] has a fault.
    pub fn with(mut self, name: &str, value: impl fmt::Display) -> Self {
        let property = AsmProperty::new(name, &value.to_string(), false);
        self.properties.push(property.expect("a name and a value that can be written"));
        self
    }

    /// Adds one property, as `name="value"`. Panics where [`AsmProperty::new`] has a fault.
    pub fn with_quoted(mut self, name: &str, value: impl fmt::Display) -> Self {
        let property = AsmProperty::new(name, &value.to_string(), true);
        self.properties.push(property.expect("a name and a value that can be written"));
        self
    }

    /// Returns whether it holds at a bandwidth in bit/s, all other variables being 0.
    pub fn holds(&self, bandwidth_bps: f64) -> bool {
        let variables = |name: &str| {
            if name.eq_ignore_ascii_case(AsmCondition::BANDWIDTH) { bandwidth_bps } else { 0.0 }
        };
        self.condition.as_ref().is_none_or(|condition| condition.holds(&variables))
    }

    /// Returns the value of the first property of a name, in any case.
    pub fn property(&self, name: &str) -> Option<&str> {
        let named = self.properties.iter().find(|property| property.name.eq_ignore_ascii_case(name));
        named.map(|property| &*property.value)
    }

    /// Returns whether a property is `T`, `True` or a number other than 0.
    pub fn is_set(&self, name: &str) -> bool {
        self.property(name).is_some_and(|value| {
            let is_true = ["t", "true"].iter().any(|word| value.eq_ignore_ascii_case(word));
            is_true || value.parse().is_ok_and(|number: i64| number != 0)
        })
    }

    /// Returns [`AVERAGE_BANDWIDTH`](Self::AVERAGE_BANDWIDTH), if it is a number.
    pub fn average_bandwidth_bps(&self) -> Option<u64> {
        self.property(Self::AVERAGE_BANDWIDTH)?.parse().ok()
    }

    /// Returns [`PRIORITY`](Self::PRIORITY), if it is a number.
    pub fn priority(&self) -> Option<u32> {
        self.property(Self::PRIORITY)?.parse().ok()
    }

    /// Returns [`ON_DEPEND`](Self::ON_DEPEND): numbers, separated by commas; other text is left out.
    pub fn on_depend(&self) -> impl Iterator<Item = usize> + '_ {
        let list = self.property(Self::ON_DEPEND).unwrap_or_default();
        list.split(',').filter_map(|number| number.trim().parse().ok())
    }

    /// Returns whether [`TIMESTAMP_DELIVERY`](Self::TIMESTAMP_DELIVERY) is set.
    pub fn is_timestamp_delivered(&self) -> bool {
        self.is_set(Self::TIMESTAMP_DELIVERY)
    }

    /// Returns whether [`DROP_BY_N`](Self::DROP_BY_N) is set.
    pub fn drops_by_n(&self) -> bool {
        self.is_set(Self::DROP_BY_N)
    }
}

impl AsmProperty {
    /// Faults: [`Fault::Name`] and [`Fault::Value`].
    pub fn new(name: &str, value: &str, quoted: bool) -> Result<Self, Fault> {
        if !is_name(name) {
            return Err(Fault::Name);
        }
        let is_bare = || value.trim() == value && !value.contains([',', ';', '\\']);
        if value.contains('"') || !(if quoted { !value.ends_with('\\') } else { is_bare() }) {
            return Err(Fault::Value);
        }
        Ok(AsmProperty { name: name.into(), value: value.into(), quoted })
    }

    /// Its name, as it was written.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its value, without quotes.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Returns whether its value is in quotes.
    pub fn is_quoted(&self) -> bool {
        self.quoted
    }
}

/// Returns whether names may contain `c`; digits, `-` and `.` do not begin one.
pub(super) fn is_in_names(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && text.chars().all(is_in_names)
}

impl fmt::Display for AsmRuleBook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rules.iter().try_for_each(|rule| write!(f, "{rule};"))
    }
}

impl fmt::Display for AsmRule {
    /// Without the `;`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.condition {
            // A comparison alone has parentheses in RealNetworks' books.
            Some(compare @ AsmCondition::Compare(..)) => write!(f, "#({compare})")?,
            Some(condition) => write!(f, "#{condition}")?,
            None => {}
        }
        for (index, property) in self.properties.iter().enumerate() {
            f.write_str(if index > 0 || self.condition.is_some() { "," } else { "" })?;
            property.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for AsmProperty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quote = if self.quoted { "\"" } else { "" };
        write!(f, "{}={quote}{}{quote}", self.name, self.value)
    }
}
