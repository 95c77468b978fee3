//! Units in the names of columns.

/// The unit in a column's name.
#[derive(Clone, PartialEq, Debug)]
pub enum Unit {
    /// None of those looked for.
    None,
    /// A unit of a rate that is read as bits by some and as bytes by others.
    BitsOrBytes,
    /// Base units (ns, bit/s, parts of 1) in one of it, and the name's other words in small letters.
    Scale {
        /// How many of the base unit.
        scale: f64,
        /// The other words.
        rest: Vec<String>,
    },
}

/// Units of a time: ns.
const TIMES: [(&[&str], f64); 5] = [
    (&["s", "sec", "secs", "second", "seconds"], 1e9),
    (&["ms", "msec", "msecs", "millisecond", "milliseconds", "millis"], 1e6),
    (&["us", "usec", "µs", "microsecond", "microseconds", "micros"], 1e3),
    (&["ns", "nsec", "nanosecond", "nanoseconds", "nanos"], 1.0),
    (&["min", "mins", "minute", "minutes"], 60e9),
];

const PREFIXES: [(&str, f64); 4] = [("", 1.0), ("k", 1e3), ("m", 1e6), ("g", 1e9)];

/// Returns the unit of time in a column's name.
pub fn time_unit(name: &str) -> Unit {
    let of = |word: &str| {
        let word = word.to_lowercase();
        TIMES.iter().find(|(words, _)| words.contains(&word.as_str())).map(|(_, scale)| Found::Scale(*scale))
    };
    unit(name, of)
}

/// Returns the unit of a rate in a column's name.
pub fn rate_unit(name: &str) -> Unit {
    unit(name, rate_word)
}

/// Returns the unit of a share in a column's name: parts of 1 in one of it.
pub fn share_unit(name: &str) -> Unit {
    let of = |word: &str| match word.to_lowercase().as_str() {
        "percent" | "pct" => Some(Found::Scale(0.01)),
        "ratio" | "share" | "fraction" | "probability" => Some(Found::Scale(1.0)),
        _ => None,
    };
    unit(&name.replace('%', " percent "), of)
}

/// Meaning of one word.
enum Found {
    Scale(f64),
    BitsOrBytes,
}

fn unit(name: &str, of: impl Fn(&str) -> Option<Found>) -> Unit {
    let name = with_slashes(name);
    let words: Vec<&str> = name
        .split(|c: char| !(c.is_alphanumeric() || c == '/' || c == 'µ'))
        .filter(|word| !word.is_empty())
        .collect();
    // The unit is last where several words could be one: `time since start (ms)`, `bit rate kbps`.
    let found = words.iter().enumerate().rev().find_map(|(place, word)| Some((place, of(word)?)));
    match found {
        None => Unit::None,
        Some((_, Found::BitsOrBytes)) => Unit::BitsOrBytes,
        Some((place, Found::Scale(scale))) => {
            let others = words.iter().enumerate().filter(|(other, _)| *other != place);
            Unit::Scale { scale, rest: others.flat_map(|(_, word)| apart(word)).collect() }
        }
    }
}

/// Writes `kbit_s`, `kbit per second` and `kbit/sec` as `kbit/s`: a column's name often cannot have a slash.
fn with_slashes(name: &str) -> String {
    let mut name = name.to_owned();
    for per in ["_per_", " per ", "-per-"] {
        name = replaced(&name, per, "/");
    }
    for bits in ["bit", "bits", "byte", "bytes"] {
        name = replaced(&name, &format!("{bits}_s"), &format!("{bits}/s"));
        name = replaced(&name, &format!("{bits}_p_s"), &format!("{bits}/s"));
    }
    for second in ["/second", "/sec"] {
        name = replaced(&name, second, "/s");
    }
    name
}

/// Replaces as `str::replace` does, but without regard to the case of `name`; its other letters stay.
fn replaced(name: &str, from: &str, to: &str) -> String {
    let lower = name.to_lowercase();
    // Letters that have another length in the other case are in no unit.
    if lower.len() != name.len() {
        return name.to_owned();
    }
    let (mut out, mut done) = (String::new(), 0);
    for (at, _) in lower.match_indices(from) {
        out.push_str(&name[done..at]);
        out.push_str(to);
        done = at + from.len();
    }
    out + &name[done..]
}

/// Recognises `kbit/s`, `Mbps`, `kB/s`, `bytes/s`. A capital B among small letters is a byte, a small one a bit; all in
/// capitals may be either.
fn rate_word(word: &str) -> Option<Found> {
    let lower = word.to_lowercase();
    for (prefix, scale) in PREFIXES {
        let Some(rest) = lower.strip_prefix(prefix) else { continue };
        let bits = match rest {
            "bit/s" | "bits/s" | "bitps" | "bitsps" => 1.0,
            "byte/s" | "bytes/s" | "byteps" | "bytesps" => 8.0,
            "bps" | "b/s" => {
                let is_capital = word.chars().rev().nth(2) == Some('B');
                if is_capital && !word.chars().any(char::is_lowercase) {
                    return Some(Found::BitsOrBytes);
                }
                if is_capital { 8.0 } else { 1.0 }
            }
            _ => continue,
        };
        return Some(Found::Scale(scale * bits));
    }
    None
}

/// Splits a word: `RttMs` is no word of a name; `bitRate` is two.
fn apart(word: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    for letter in word.chars() {
        if words.is_empty() || (letter.is_uppercase() && before.is_lowercase()) || letter == '/' {
            words.push(String::new());
        }
        if letter != '/'
            && let Some(last) = words.last_mut()
        {
            last.extend(letter.to_lowercase());
        }
        before = letter;
    }
    words.retain(|word| !word.is_empty() && !word.chars().all(char::is_numeric));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_many_spellings() {
        for (name, bps) in [
            ("rate_kbps", 1e3),
            ("rate (Mbit/s)", 1e6),
            ("throughput [kbit/s]", 1e3),
            ("kbit_s", 1e3),
            ("Mbits per second", 1e6),
            ("bps", 1.0),
            ("Bps", 8.0),
            ("rate_kBps", 8e3),
            ("MB/s", 8e6),
            ("Mb/s", 1e6),
            ("mbps", 1e6),
            ("RATE_KBIT_S", 1e3),
            ("RATE_KBYTES/S", 8e3),
            ("bytes/s", 8.0),
            ("bytes_per_sec", 8.0),
            ("GBytes/sec", 8e9),
        ] {
            assert!(matches!(rate_unit(name), Unit::Scale { scale, .. } if scale == bps), "{name}");
        }
        for name in ["RATE_KBPS", "MBPS", "BPS"] {
            assert_eq!(rate_unit(name), Unit::BitsOrBytes, "{name}");
        }
        for name in ["rate", "kibit/s", "bits", "packets/s", "time_s", "İ bps x"] {
            let found = rate_unit(name);
            assert!(name.ends_with('x') || found == Unit::None, "{name}");
        }
    }

    #[test]
    fn shares_of_some_spellings() {
        for (name, scale) in
            [("loss_percent", 0.01), ("loss (%)", 0.01), ("loss ratio", 1.0), ("LossShare", 0.0)]
        {
            let found = matches!(share_unit(name), Unit::Scale { scale: one, .. } if one == scale);
            assert_eq!(found, scale > 0.0, "{name}");
        }
    }

    #[test]
    fn the_other_words_of_a_name() {
        let rest = |name| match time_unit(name) {
            Unit::Scale { rest, .. } => rest.join(" "),
            _ => panic!("{name}"),
        };
        assert_eq!(rest("time_s"), "time");
        assert_eq!(rest("seconds"), "");
        assert_eq!(rest("time since start (ms)"), "time since start");
        assert_eq!(rest("rtt_ms"), "rtt");
        assert_eq!(rest("bufferLevel s"), "buffer level");
        assert_eq!(time_unit("rate_bps"), Unit::None);
    }
}
