//! Parts of a manifest that are not played: each is named, so that nothing is missing in silence.

/// Further ones add nothing new.
const MOST: usize = 100;

/// Collects the parts that are not played.
#[derive(Default)]
pub struct LeftOut {
    named: Vec<String>,
    more: usize,
}

impl LeftOut {
    /// Names a part and the reason: `sound of line 7 (fr): other sound is played`.
    pub fn add(&mut self, what: impl Into<String>, why: &str) {
        let entry = format!("{}: {why}", what.into());
        if self.named.contains(&entry) {
            return;
        }
        if self.named.len() < MOST {
            self.named.push(entry);
        } else {
            self.more += 1;
        }
    }

    /// Each part with its reason.
    pub fn into_list(mut self) -> Vec<String> {
        if self.more > 0 {
            self.named.push(format!("{} more", self.more));
        }
        self.named
    }
}

/// As much of a text from outside as a line has room for.
pub fn shown(text: &str) -> String {
    text.chars().take(60).map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_is_counted() {
        let mut left = LeftOut::default();
        (0..103)
            .for_each(|line| left.add(format!("text of line {line}"), "only pictures and sound are played"));
        let list = left.into_list();
        assert_eq!((list.len(), list[100].as_str()), (101, "3 more"));
        assert_eq!(list[0], "text of line 0: only pictures and sound are played");
    }
}
