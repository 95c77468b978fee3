//! Variables of playlists (`EXT-X-DEFINE`, draft-pantos-hls-rfc8216bis section 4.4.2.3).

use std::borrow::Cow;

use super::attributes;
use super::fault::{ManifestError, broken};
use super::lines::lines;
use super::place::Place;

/// A playlist with its variables filled in is at most so many times as long.
const MOST_GROWTH: usize = 4;
/// Variables of one playlist.
const MOST_VARIABLES: usize = 100;

/// Name and value of each variable.
pub type Variables = Vec<(String, String)>;

/// Fills the variables into `text`, and returns them too. `outer` are those of the playlist that names it.
///
/// # Errors
///
/// A variable without a definition, or definitions of the wrong form.
pub fn filled<'a>(
    text: &'a str,
    url: &str,
    outer: &[(String, String)],
) -> Result<(Cow<'a, str>, Variables), ManifestError> {
    let mut known: Variables = Vec::new();
    if !text.contains("#EXT-X-DEFINE") {
        return Ok((Cow::Borrowed(text), known));
    }
    for line in lines(text).filter(|line| line.tag == "-X-DEFINE") {
        let list = line.attributes()?;
        let get = |name| attributes::get(&list, name);
        let (name, value) = match (get("NAME"), get("IMPORT"), get("QUERYPARAM")) {
            (Some(name), _, _) => {
                let value = get("VALUE").ok_or_else(|| line.wrong("VALUE is wanted beside NAME"))?;
                (name, replaced(value, &known, line.number)?.into_owned())
            }
            (_, Some(name), _) => {
                let found = outer.iter().find(|(own, _)| own == name);
                let missing = || line.wrong("no playlist that names this one defines it");
                (name, found.ok_or_else(missing)?.1.clone())
            }
            (_, _, Some(name)) => {
                let found = Place::of(url)?.query_value(name);
                (name, found.ok_or_else(|| line.wrong("the playlist's own address has no such parameter"))?)
            }
            _ => return Err(line.wrong("NAME, IMPORT or QUERYPARAM is wanted")),
        };
        if known.len() == MOST_VARIABLES {
            return Err(line.wrong("at most 100 variables are read"));
        }
        if !known.iter().any(|(own, _)| own == name) {
            known.push((name.to_owned(), value));
        }
    }
    let (mut whole, most) =
        (String::with_capacity(text.len()), text.len().saturating_mul(MOST_GROWTH) + 65_536);
    for (number, line) in (1u32..).zip(text.lines()) {
        let line =
            if line.starts_with("#EXT-X-DEFINE") { line.into() } else { replaced(line, &known, number)? };
        whole.push_str(&line);
        whole.push('\n');
        if whole.len() > most {
            return Err(broken(number, "variables make the playlist more than four times as long"));
        }
    }
    Ok((Cow::Owned(whole), known))
}

/// `text` with the values in place of `{$NAME}`.
fn replaced<'a>(text: &'a str, known: &Variables, line: u32) -> Result<Cow<'a, str>, ManifestError> {
    if !text.contains("{$") {
        return Ok(Cow::Borrowed(text));
    }
    let (mut whole, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once("{$") {
        let is_name = |name: &str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        whole.push_str(before);
        let Some((name, behind)) = after.split_once('}').filter(|(name, _)| is_name(name)) else {
            whole.push_str("{$");
            rest = after;
            continue;
        };
        let found = known.iter().find(|(own, _)| own == name);
        let missing = || broken(line, format!("{{${name:.60}}} is a variable that no #EXT-X-DEFINE defines"));
        whole.push_str(&found.ok_or_else(missing)?.1);
        rest = behind;
    }
    whole.push_str(rest);
    Ok(Cow::Owned(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "http://origin.example/a/x.m3u8?token=t%201&n=4";

    fn of(text: &str) -> Result<String, String> {
        let outer = [("host".to_owned(), "http://cdn.example".to_owned())];
        filled(text, URL, &outer).map(|(text, _)| text.into_owned()).map_err(|error| error.to_string())
    }

    #[test]
    fn variables_are_filled_in() {
        let text = "#EXT-X-DEFINE:NAME=\"a\",VALUE=\"1\"\n#EXT-X-DEFINE:NAME=\"b\",VALUE=\"{$a}2\"\n\
            #EXT-X-DEFINE:IMPORT=\"host\"\n#EXT-X-DEFINE:QUERYPARAM=\"n\"\n{$host}/{$b}/{$n}?{$ {x}";
        assert_eq!(of(text).unwrap().lines().last(), Some("http://cdn.example/12/4?{$ {x}"));
        assert_eq!(of("{$a}").unwrap(), "{$a}");
        let define = "#EXT-X-DEFINE:NAME=\"a\",VALUE=\"1\"\n";
        for (text, wanted) in [
            (format!("{define}{{$c}}"), "line 2: {$c} is a variable that no #EXT-X-DEFINE defines"),
            ("#EXT-X-DEFINE:NAME=\"a\"".into(), "VALUE is wanted beside NAME"),
            ("#EXT-X-DEFINE:IMPORT=\"c\"".into(), "no playlist that names this one defines it"),
            ("#EXT-X-DEFINE:QUERYPARAM=\"c\"".into(), "no such parameter"),
            ("#EXT-X-DEFINE:X=1".into(), "NAME, IMPORT or QUERYPARAM is wanted"),
        ] {
            let told = of(&text).unwrap_err();
            assert!(told.contains(wanted), "{told}");
        }
        let long =
            format!("#EXT-X-DEFINE:NAME=\"a\",VALUE=\"{}\"\n{}", "x".repeat(50_000), "{$a}\n".repeat(9));
        assert!(of(&long).unwrap_err().contains("four times as long"));
    }
}
