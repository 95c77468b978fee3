//! Attribute lists of HLS (RFC 8216 section 4.2).

/// The names and values of `list`, without quotes; `None` if it is no list. Packagers write values with commas and
/// leave the quotes out. Text between two commas without a name is dropped.
pub fn read(list: &str) -> Option<Vec<(&str, &str)>> {
    let mut found = Vec::new();
    let mut rest = list.trim();
    while !rest.is_empty() {
        if let Some((piece, behind)) = rest.split_once(',')
            && !piece.contains('=')
        {
            rest = behind.trim_start();
            continue;
        }
        let Some((name, after)) = rest.split_once('=') else {
            return Some(found).filter(|found| !found.is_empty());
        };
        let (value, behind) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_at(after.find(',').unwrap_or(after.len())),
        };
        found.push((name.trim(), value.trim()));
        rest = match behind.trim_start() {
            "" => "",
            behind => behind.strip_prefix(',')?.trim_start(),
        };
    }
    Some(found)
}

/// The value of an attribute.
pub fn get<'a>(list: &[(&'a str, &'a str)], name: &str) -> Option<&'a str> {
    list.iter().find(|(own, _)| *own == name).map(|(_, value)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_in_quotes_are_no_ends() {
        let list = read(r#"BANDWIDTH=1280000, CODECS="avc1.4d401f,mp4a.40.2",RESOLUTION=640x360"#).unwrap();
        assert_eq!(get(&list, "CODECS"), Some("avc1.4d401f,mp4a.40.2"));
        assert_eq!(get(&list, "RESOLUTION"), Some("640x360"));
        assert_eq!(get(&list, "URI"), None);
        assert_eq!(read(""), Some(Vec::new()));
        assert_eq!(read(r#"A="""#), Some(vec![("A", "")]));
        // Without quotes, and with an end too many.
        assert_eq!(read("A=b, c,D=e,"), Some(vec![("A", "b"), ("D", "e")]));
        assert_eq!(read("A=b, c"), Some(vec![("A", "b")]));
        for wrong in ["A", r#"A=""#, r#"A="b"c"#, r#"A="b" C=d"#] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
