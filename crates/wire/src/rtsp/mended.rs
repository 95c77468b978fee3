//! Heads of responses as cameras write them.

/// Returns the head of a response, in lines that end with CRLF, without parts that `rtsp-types` (0.1.3)
/// refuses: lines that are no header, blanks around a name, bytes that are not UTF-8, a status line without
/// its reason. A length that is there more than once is there once.
pub fn mended(head: &[u8]) -> Vec<u8> {
    let mut lines = head.split_inclusive(|&byte| byte == b'\n').map(String::from_utf8_lossy);
    let start = lines.next().unwrap_or_default();
    let mut words = start.trim().splitn(2, char::is_whitespace);
    let version = words.next().unwrap_or_default();
    let (status, reason) = match words.next().unwrap_or_default().trim_start().split_once(char::is_whitespace)
    {
        Some((status, reason)) => (status, reason.trim_start()),
        None => (start.trim()[version.len()..].trim(), ""),
    };
    let mut sound = format!("{version} {status} {reason}\r\n");
    let mut has_length = false;
    for line in lines {
        let text = line.trim_end();
        let goes_on = text.starts_with([' ', '\t']);
        match text.split_once(':') {
            _ if goes_on || text.is_empty() => sound.push_str(text),
            Some((name, _)) if has_length && is_length(name) => continue,
            Some((name, value)) if !name.trim().is_empty() && name.trim().bytes().all(is_token) => {
                has_length |= is_length(name);
                sound.extend([name.trim(), ":", value]);
            }
            _ => continue,
        }
        sound.push_str("\r\n");
    }
    sound.into_bytes()
}

fn is_length(name: &str) -> bool {
    name.trim().eq_ignore_ascii_case("content-length")
}

/// Returns whether it may be a byte of a header's name (RFC 9110 section 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
