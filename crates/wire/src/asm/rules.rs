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

/// When some packets of a stream are sent, and what is known of them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AsmRule {
    /// When it holds; always, if there is none.
    pub condition: Option<AsmCondition>,
    /// What is known, in order.
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
    /// The numbers of the rules that hold at a bandwidth in bit/s, all other variables being 0.
    pub fn holding(&self, bandwidth_bps: f64) -> impl Iterator<Item = usize> + '_ {
        let hold = move |rule: &AsmRule| rule.holds(bandwidth_bps);
        self.rules.iter().enumerate().filter(move |(_, rule)| hold(rule)).map(|(number, _)| number)
    }

    /// What the rules need together that hold at a bandwidth, in bit/s.
    pub fn average_bandwidth_bps(&self, bandwidth_bps: f64) -> u64 {
        let average = |number: usize| self.rules[number].average_bandwidth_bps().unwrap_or(0);
        self.holding(bandwidth_bps).map(average).fold(0, u64::saturating_add)
    }

    /// The bandwidths in bit/s that conditions name, each once, the lowest first: where other rules begin to hold.
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
    /// `Priority`: 10 is what has to come, 9 key frames, 5 what depends on these.
    pub const PRIORITY: &str = "Priority";
    /// `OnDepend`: rules without which this one's packets are of no use.
    pub const ON_DEPEND: &str = "OnDepend";
    /// `OffDepend`: rules that have to be off before this one is.
    pub const OFF_DEPEND: &str = "OffDepend";
    /// `TimestampDelivery`: packets are sent by their timestamps instead of by the rate.
    pub const TIMESTAMP_DELIVERY: &str = "TimestampDelivery";
    /// `DropByN`: the server may leave packets out, one of every N.
    pub const DROP_BY_N: &str = "DropByN";

    /// Without properties.
    pub fn when(condition: Option<AsmCondition>) -> Self {
        AsmRule { condition, properties: Vec::new() }
    }

    /// With one property more, as `name=value`. Panics where [`AsmProperty::new`] has a fault.
    pub fn with(mut self, name: &str, value: impl fmt::Display) -> Self {
        let property = AsmProperty::new(name, &value.to_string(), false);
        self.properties.push(property.expect("a name and a value that can be written"));
        self
    }

    /// With one property more, as `name="value"`. Panics where [`AsmProperty::new`] has a fault.
    pub fn with_quoted(mut self, name: &str, value: impl fmt::Display) -> Self {
        let property = AsmProperty::new(name, &value.to_string(), true);
        self.properties.push(property.expect("a name and a value that can be written"));
        self
    }

    /// Whether it holds at a bandwidth in bit/s, all other variables being 0.
    pub fn holds(&self, bandwidth_bps: f64) -> bool {
        let variables = |name: &str| {
            if name.eq_ignore_ascii_case(AsmCondition::BANDWIDTH) { bandwidth_bps } else { 0.0 }
        };
        self.condition.as_ref().is_none_or(|condition| condition.holds(&variables))
    }

    /// The value of the first property of a name, whose case does not matter.
    pub fn property(&self, name: &str) -> Option<&str> {
        let named = self.properties.iter().find(|property| property.name.eq_ignore_ascii_case(name));
        named.map(|property| &*property.value)
    }

    /// Whether a property is `T`, `True` or a number other than 0.
    pub fn is_set(&self, name: &str) -> bool {
        self.property(name).is_some_and(|value| {
            let is_true = ["t", "true"].iter().any(|word| value.eq_ignore_ascii_case(word));
            is_true || value.parse().is_ok_and(|number: i64| number != 0)
        })
    }

    /// [`AVERAGE_BANDWIDTH`](Self::AVERAGE_BANDWIDTH), if it is a number.
    pub fn average_bandwidth_bps(&self) -> Option<u64> {
        self.property(Self::AVERAGE_BANDWIDTH)?.parse().ok()
    }

    /// [`PRIORITY`](Self::PRIORITY), if it is a number.
    pub fn priority(&self) -> Option<u32> {
        self.property(Self::PRIORITY)?.parse().ok()
    }

    /// [`ON_DEPEND`](Self::ON_DEPEND): numbers, separated by commas; what is none is left out.
    pub fn on_depend(&self) -> impl Iterator<Item = usize> + '_ {
        let list = self.property(Self::ON_DEPEND).unwrap_or_default();
        list.split(',').filter_map(|number| number.trim().parse().ok())
    }

    /// [`TIMESTAMP_DELIVERY`](Self::TIMESTAMP_DELIVERY).
    pub fn is_timestamp_delivered(&self) -> bool {
        self.is_set(Self::TIMESTAMP_DELIVERY)
    }

    /// [`DROP_BY_N`](Self::DROP_BY_N).
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

    /// Its value stands in quotes.
    pub fn is_quoted(&self) -> bool {
        self.quoted
    }
}

/// What names have; digits, `-` and `.` do not begin one.
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
