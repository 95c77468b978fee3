//! Attribute lists of HLS (RFC 8216 section 4.2).

/// The names and values of `list`, quotes taken off; `None` if it is none.
pub fn read(list: &str) -> Option<Vec<(&str, &str)>> {
    let mut found = Vec::new();
    let mut rest = list.trim();
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=')?;
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
        for wrong in ["A", r#"A=""#, r#"A="b"c"#, r#"A="b" C=d"#] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
