//! Rules that are functions of somebody else's: `FILE.py:NAME`, called by whoever can.

use std::sync::OnceLock;

use super::{Rule, Tuning};

/// Makes the rule that is a function of that name; else what is wrong with it.
pub type Maker = fn(&str, &Tuning) -> Result<Box<dyn Rule>, String>;

static MAKER: OnceLock<Maker> = OnceLock::new();

/// Rules that are functions are made by `maker` from now on, in this process. The first one stays.
pub fn call_functions_by(maker: Maker) {
    let _ = MAKER.set(maker);
}

/// Whether a rule's name is a function's.
pub fn is_function(name: &str) -> bool {
    name.rsplit_once(".py:").is_some_and(|(file, function)| !file.is_empty() && !function.is_empty())
}

/// The maker of a function of that name.
pub(super) fn maker(name: &str) -> Result<Maker, String> {
    let why = || format!("{name} is a function of Python, and nobody here can call it: it runs in sim alone");
    MAKER.get().copied().ok_or_else(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_named_by_its_file() {
        for (name, is) in [
            ("rule.py:choose", true),
            ("/a b/c.py:F", true),
            ("bola", false),
            (".py:x", false),
            ("a.py:", false),
        ] {
            assert_eq!(is_function(name), is, "{name}");
        }
    }
}
