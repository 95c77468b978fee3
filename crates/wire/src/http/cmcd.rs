//! Data that players report to servers about themselves (Common Media Client Data, CTA-5004 version 1): keys
//! and values in four headers or in one argument of the query.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::str::FromStr;

use super::Request;

/// The headers that carry it (section 2.1).
pub const CMCD_HEADERS: [&str; 4] = ["CMCD-Object", "CMCD-Request", "CMCD-Session", "CMCD-Status"];

/// The argument of the query that carries it (section 2.2).
const ARGUMENT: &str = "CMCD";

/// Longer lists are not read; the longest values that are specified have 64 characters.
const MOST_BYTES: usize = 4096;
/// The specification has 18; players may have keys of their own.
const MOST_KEYS: usize = 64;
const MOST_KEY_BYTES: usize = 64;

/// Keys with numbers as values (section 3).
const NUMBERS: [&str; 9] = ["bl", "br", "d", "dl", "mtp", "pr", "rtp", "tb", "v"];
/// Keys that are there or not.
const FLAGS: [&str; 2] = ["bs", "su"];
/// Keys with values in quotes.
const TEXTS: [&str; 4] = ["cid", "nor", "nrr", "sid"];

/// Text that is not such a list.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct NoCmcd(String);

/// A key's value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CmcdValue {
    /// True if it is there without a value.
    Flag(bool),
    /// A number or one of a key's words, as it was written.
    Bare(String),
    /// Text that was in quotes.
    Text(String),
}

/// Keys and their values. In words: the list that has them in the alphabet's order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Cmcd(BTreeMap<String, CmcdValue>);

impl Cmcd {
    /// Returns the data of `request` in its headers and its query; `None` if there are none. The first of a
    /// repeated key counts.
    ///
    /// # Errors
    ///
    /// The parts that cannot be read.
    pub fn of_request(request: &Request) -> Option<Result<Cmcd, NoCmcd>> {
        let headers = CMCD_HEADERS.iter().flat_map(|name| request.headers.all(name)).map(str::to_owned);
        let query = request.target.split_once('?').map_or("", |(_, query)| query);
        let query = query.split('#').next().unwrap_or_default();
        let arguments = query.split('&').filter_map(|argument| argument.split_once('='));
        let arguments = arguments.filter(|(name, _)| *name == ARGUMENT).map(|(_, value)| decoded(value));
        let mut lists = headers.map(Ok).chain(arguments).peekable();
        lists.peek()?;
        Some(lists.try_fold(Cmcd::default(), |mut all, list| {
            for (key, value) in list?.parse::<Cmcd>()?.0 {
                all.0.entry(key).or_insert(value);
            }
            Ok(all)
        }))
    }

    /// Returns a key's value.
    pub fn get(&self, key: &str) -> Option<&CmcdValue> {
        self.0.get(key)
    }

    /// Returns a key's value as a number, in the unit that the key has.
    pub fn number(&self, key: &str) -> Option<f64> {
        match self.get(key)? {
            CmcdValue::Bare(text) => number(text),
            CmcdValue::Flag(_) | CmcdValue::Text(_) => None,
        }
    }

    /// Returns how much media the player holds, in seconds (`bl`).
    pub fn buffer_s(&self) -> Option<f64> {
        self.number("bl").map(|ms| ms / 1000.0)
    }

    /// Keys and values, in the alphabet's order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &CmcdValue)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }
}

/// Returns a decimal number that is not negative.
fn number(text: &str) -> Option<f64> {
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse().ok().filter(|number: &f64| is_decimal && number.is_finite())
}

/// Returns the text percent-decoded (RFC 3986 section 2.1).
fn decoded(text: &str) -> Result<String, NoCmcd> {
    let wrong = || NoCmcd("the query's CMCD is not percent-encoded UTF-8".into());
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (digits, after) = rest.split_first_chunk::<2>().ok_or_else(wrong)?;
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let (high, low) = digit(digits[0]).zip(digit(digits[1])).ok_or_else(wrong)?;
        bytes.push((high * 16 + low) as u8);
        rest = after;
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

fn is_key(key: &str) -> bool {
    let is_of_key = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    (1..=MOST_KEY_BYTES).contains(&key.len()) && key.bytes().all(is_of_key)
}

fn is_bare(value: &str) -> bool {
    // A token of RFC 8941 section 3.3.4, and numbers.
    let is_of_value = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte);
    !value.is_empty() && value.bytes().all(is_of_value)
}

/// Returns the text in quotes at the start of `text`, and the rest behind it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.strip_prefix('"')?.chars();
    loop {
        match chars.next()? {
            '"' => return Some((value, chars.as_str())),
            '\\' => value.push(chars.next().filter(|c| matches!(c, '"' | '\\'))?),
            c => value.push(c),
        }
    }
}

impl FromStr for Cmcd {
    type Err = NoCmcd;

    /// Reads `bl=21300,sid="6e2f",bs`, in any order.
    fn from_str(list: &str) -> Result<Self, NoCmcd> {
        if list.len() > MOST_BYTES {
            return Err(NoCmcd(format!("{} B; at most {MOST_BYTES} are read", list.len())));
        }
        if list.chars().any(char::is_control) {
            return Err(NoCmcd("it has control characters".into()));
        }
        let mut read = BTreeMap::new();
        let mut rest = list.trim();
        while !rest.is_empty() {
            let end = rest.find(['=', ',']).unwrap_or(rest.len());
            let (key, after) = rest.split_at(end);
            let key = key.trim();
            let wrong = |what: &str| {
                let key: String = key.chars().take(MOST_KEY_BYTES).collect();
                NoCmcd(format!("{key:?}: {what}"))
            };
            if !is_key(key) {
                return Err(wrong("this is no key"));
            }
            let (value, after) = match after.strip_prefix('=') {
                None => (CmcdValue::Flag(true), after),
                Some(text) if text.starts_with('"') => {
                    let (value, after) = quoted(text).ok_or_else(|| wrong("its quotes do not end"))?;
                    (CmcdValue::Text(value), after)
                }
                Some(text) => {
                    let (value, after) = text.split_at(text.find(',').unwrap_or(text.len()));
                    let value = value.trim();
                    let value = match value {
                        "true" | "false" => CmcdValue::Flag(value == "true"),
                        value if is_bare(value) => CmcdValue::Bare(value.to_owned()),
                        _ => return Err(wrong("its value is no number and no word")),
                    };
                    (value, after)
                }
            };
            let fits = match &value {
                CmcdValue::Flag(_) => !NUMBERS.contains(&key) && !TEXTS.contains(&key),
                CmcdValue::Bare(text) if NUMBERS.contains(&key) => number(text).is_some(),
                CmcdValue::Bare(_) => !FLAGS.contains(&key) && !TEXTS.contains(&key),
                CmcdValue::Text(_) => !NUMBERS.contains(&key) && !FLAGS.contains(&key),
            };
            if !fits {
                return Err(wrong("its value is not of its kind"));
            }
            if read.len() == MOST_KEYS {
                return Err(NoCmcd(format!("more than {MOST_KEYS} keys")));
            }
            read.entry(key.to_owned()).or_insert(value);
            rest = match after.trim_start() {
                "" => "",
                after => {
                    after.strip_prefix(',').ok_or_else(|| wrong("its value does not end with a comma"))?
                }
            };
            rest = rest.trim_start();
        }
        Ok(Cmcd(read))
    }
}

impl Display for Cmcd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (key, value)) in self.iter().enumerate() {
            f.write_str(if place > 0 { "," } else { "" })?;
            match value {
                CmcdValue::Flag(true) => f.write_str(key)?,
                CmcdValue::Flag(false) => write!(f, "{key}=false")?,
                CmcdValue::Bare(value) => write!(f, "{key}={value}")?,
                CmcdValue::Text(value) => {
                    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
                    write!(f, "{key}=\"{value}\"")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn request(target: &str, headers: &[(&str, &str)]) -> Request {
        let mut request = Request::new("GET", target, "server").unwrap();
        headers.iter().for_each(|(name, value)| request.headers.add(name, value));
        request
    }

    fn told(target: &str, headers: &[(&str, &str)]) -> Option<String> {
        let read = Cmcd::of_request(&request(target, headers))?;
        Some(read.map_or_else(|wrong| format!("wrong: {wrong}"), |read| read.to_string()))
    }

    /// Examples 1, 2 and 4 of CTA-5004 section 2.
    #[test]
    fn headers_and_query_tell_the_same() {
        let headers = [
            ("CMCD-Request", "bl=21300,mtp=25400"),
            ("CMCD-Object", "br=3200,d=4004,ot=v,tb=6000"),
            ("CMCD-Status", "rtp=15000"),
            ("CMCD-Session", r#"sid="6e2fb550-c457-11e9-bb97-0800200c9a66""#),
        ];
        let wanted = r#"bl=21300,br=3200,d=4004,mtp=25400,ot=v,rtp=15000,sid="6e2fb550-c457-11e9-bb97-0800200c9a66",tb=6000"#;
        assert_eq!(told("/1.m4s", &headers).as_deref(), Some(wanted));
        let query = "/1.m4s?a=b&CMCD=br%3D3200%2Cbl%3D21300%2Cd%3D4004%2Cmtp%3D25400%2Cot%3Dv%2Crtp%3D15000%2C\
                     sid%3D%226e2fb550-c457-11e9-bb97-0800200c9a66%22%2Ctb%3D6000";
        assert_eq!(told(query, &[]).as_deref(), Some(wanted));
        let read = Cmcd::of_request(&request(query, &[])).unwrap().unwrap();
        assert_eq!(
            (read.buffer_s(), read.number("mtp"), read.number("sid")),
            (Some(21.3), Some(25_400.0), None)
        );
        assert_eq!(read.get("ot"), Some(&CmcdValue::Bare("v".into())));
    }

    #[test]
    fn what_is_not_there_is_nothing_and_flags_are_true() {
        assert_eq!(told("/1.m4s?CMCDX=bs&x", &[("Range", "bytes=0-")]), None);
        assert_eq!(told("/1.m4s?CMCD=", &[]).as_deref(), Some(""));
        assert_eq!(
            told("/", &[("cmcd-status", "su, bs=true ,com.example-x=false")]).as_deref(),
            Some("bs,com.example-x=false,su")
        );
        // The first counts.
        assert_eq!(told("/?CMCD=bl%3D1&CMCD=bl%3D2", &[]).as_deref(), Some("bl=1"));
        assert_eq!(
            told("/", &[("CMCD-Session", r#"cid="a\"\\,b",pr=1.08"#)]).as_deref(),
            Some(r#"cid="a\"\\,b",pr=1.08"#)
        );
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        for (list, wanted) in [
            ("bl=-1", "\"bl\": its value is not of its kind"),
            ("bl=1e9", "not of its kind"),
            ("bl", "not of its kind"),
            ("bs=3", "not of its kind"),
            ("sid=abc", "not of its kind"),
            ("br=\"3\"", "not of its kind"),
            ("=3", "this is no key"),
            ("a b=3", "this is no key"),
            ("bl=1,,d=2", "this is no key"),
            ("sid=\"a", "quotes do not end"),
            ("sid=\"a\\b\"", "quotes do not end"),
            ("sid=\"a\"b", "does not end with a comma"),
            ("x=", "no number and no word"),
            ("x=(", "no number and no word"),
            ("x=\"a\tb\"", "control characters"),
        ] {
            let error = list.parse::<Cmcd>().unwrap_err().to_string();
            assert!(error.contains(wanted), "{list}: {error}");
        }
        let many: Vec<String> = (0..65).map(|n| format!("x-{n}=1")).collect();
        assert!(many.join(",").parse::<Cmcd>().unwrap_err().to_string().contains("more than 64 keys"));
        assert!("x".repeat(5_000).parse::<Cmcd>().unwrap_err().to_string().contains("at most 4096"));
        assert!(told("/?CMCD=%4", &[]).unwrap().contains("not percent-encoded"));
        assert!(told("/?CMCD=%ff", &[]).unwrap().contains("not percent-encoded"));
    }

    proptest! {
        #[test]
        fn what_is_read_is_written_and_read_again(list in "[a-z]{1,3}(=[0-9a-z\"\\\\., =-]{0,6})?(,[a-z]{1,3}(=[0-9a-z\"\\\\.,-]{0,6})?){0,3}") {
            if let Ok(read) = list.parse::<Cmcd>() {
                prop_assert_eq!(read.to_string().parse(), Ok(read.clone()));
                read.buffer_s();
            }
        }

        #[test]
        fn any_text(list: String, target in "/[!-~]{0,40}") {
            if let Ok(read) = list.parse::<Cmcd>() {
                prop_assert_eq!(read.to_string().parse(), Ok(read));
            }
            let _ = Cmcd::of_request(&request(&format!("{target}?CMCD={target}"), &[]));
        }
    }
}
