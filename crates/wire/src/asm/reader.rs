//! Text to rules.

use std::str::FromStr;

use super::condition::{AsmCondition, AsmOperator};
use super::fault::{Fault, Problem};
use super::rules::{AsmProperty, AsmRule, AsmRuleBook, is_in_names, is_name};
use super::{MOST_BOOK_BYTES, MOST_DEPTH, MOST_NUMBER_BYTES, MOST_RULES};

/// No number is above, on either side of 0.
const MOST_NUMBER: f64 = 1e18;

impl FromStr for AsmRuleBook {
    type Err = Problem;

    /// The `;` of the last rule may be missing. A `\` before quotes, which session descriptions have, is passed over.
    fn from_str(text: &str) -> Result<Self, Problem> {
        if text.len() > MOST_BOOK_BYTES {
            return Err(Fault::TooLong.at(MOST_BOOK_BYTES));
        }
        let mut reader = Reader { text, rest: text };
        let mut rules = Vec::new();
        while !reader.after_blanks().is_empty() {
            if rules.len() == MOST_RULES {
                return Err(Fault::TooManyRules.at(reader.at()));
            }
            rules.push(reader.rule()?);
        }
        Ok(AsmRuleBook { rules })
    }
}

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn at(&self) -> usize {
        self.text.len() - self.rest.len()
    }

    fn fault(&self, fault: Fault) -> Problem {
        fault.at(self.at())
    }

    /// Returns the rest from the next non-blank character on.
    fn after_blanks(&mut self) -> &'a str {
        self.rest = self.rest.trim_start();
        self.rest
    }

    /// Takes `sign` if it is the next.
    fn takes(&mut self, sign: &str) -> bool {
        let rest = self.after_blanks().strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Returns everything before the first character that `belongs` rejects.
    fn while_in(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !belongs(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn rule(&mut self) -> Result<AsmRule, Problem> {
        let mut rule = AsmRule::default();
        if self.takes("#") {
            let at = self.at();
            let condition = self.any(MOST_DEPTH)?;
            if condition.depth() > MOST_DEPTH {
                return Err(Fault::TooDeep.at(at));
            }
            rule.condition = Some(condition);
            if !self.takes(",") {
                let ends = self.takes(";") || self.rest.is_empty();
                return if ends { Ok(rule) } else { Err(self.fault(Fault::Condition)) };
            }
        } else if self.takes(";") {
            return Ok(rule);
        }
        loop {
            rule.properties.push(self.property()?);
            if !self.takes(",") {
                // A property takes all before one of these.
                self.takes(";");
                return Ok(rule);
            }
        }
    }

    fn name(&mut self) -> Result<&'a str, Problem> {
        let problem = self.fault(Fault::Name);
        let name = self.while_in(is_in_names);
        if is_name(name) { Ok(name) } else { Err(problem) }
    }

    fn property(&mut self) -> Result<AsmProperty, Problem> {
        self.after_blanks();
        let name = self.name()?;
        if !self.takes("=") {
            return Err(self.fault(Fault::Equals));
        }
        self.after_blanks();
        let at = self.at();
        let is_escaped = self.takes("\\\"");
        let quoted = is_escaped || self.takes("\"");
        let value = if quoted {
            let Some((value, rest)) = self.rest.split_once('"') else { return Err(Fault::Quotes.at(at)) };
            self.rest = rest;
            if !matches!(self.after_blanks().chars().next(), None | Some(',' | ';')) {
                return Err(self.fault(Fault::Quotes));
            }
            value.strip_suffix('\\').filter(|_| is_escaped).unwrap_or(value)
        } else {
            self.while_in(|c| !matches!(c, ',' | ';')).trim_end()
        };
        AsmProperty::new(name, value, quoted).map_err(|fault| fault.at(at))
    }

    /// Reads `a || b`, with room for this many parentheses.
    fn any(&mut self, room: usize) -> Result<AsmCondition, Problem> {
        let mut parts = vec![self.all(room)?];
        while self.takes("||") {
            parts.push(self.all(room)?);
        }
        Ok(one_or(parts, AsmCondition::Any))
    }

    /// Reads `a && b`.
    fn all(&mut self, room: usize) -> Result<AsmCondition, Problem> {
        let mut parts = vec![self.comparison(room)?];
        while self.takes("&&") {
            parts.push(self.comparison(room)?);
        }
        Ok(one_or(parts, AsmCondition::All))
    }

    /// Reads `a < b`, or one side alone.
    fn comparison(&mut self, room: usize) -> Result<AsmCondition, Problem> {
        let left = self.operand(room)?;
        let operator = AsmOperator::ALL.into_iter().find(|(sign, _)| self.takes(sign));
        Ok(match operator {
            Some((_, operator)) => AsmCondition::Compare(left.into(), operator, self.operand(room)?.into()),
            None => left,
        })
    }

    fn operand(&mut self, room: usize) -> Result<AsmCondition, Problem> {
        if self.takes("(") {
            let room = room.checked_sub(1).ok_or(self.fault(Fault::TooDeep))?;
            let inside = self.any(room)?;
            return if self.takes(")") { Ok(inside) } else { Err(self.fault(Fault::Parenthesis)) };
        }
        if self.takes("$") {
            return self.name().map(|name| AsmCondition::Variable(name.into()));
        }
        let at = self.at();
        let number = self.while_in(|c| c.is_ascii_digit() || matches!(c, '.' | '-'));
        if number.is_empty() {
            return Err(Fault::Operand.at(at));
        }
        let value = Some(number).filter(|number| number.len() <= MOST_NUMBER_BYTES);
        let value = value.and_then(|number| number.parse().ok());
        let value = value.filter(|value: &f64| value.abs() <= MOST_NUMBER);
        value.map(AsmCondition::Number).ok_or(Fault::Number.at(at))
    }
}

/// Returns the one part, or all of them.
fn one_or(mut parts: Vec<AsmCondition>, all: fn(Vec<AsmCondition>) -> AsmCondition) -> AsmCondition {
    if parts.len() == 1 { parts.remove(0) } else { all(parts) }
}
