//! Manifests that pass in plain text: they have the lengths of segments, which their sizes and times do not show.

/// Bytes of one manifest that are kept, and manifests of one connection.
const LONGEST: usize = 64 << 10;
const MOST: usize = 8;

/// Collects the bodies of manifests.
#[derive(Clone, Debug, Default)]
pub struct Manifests {
    /// Those that are whole, or as much of them as was seen.
    pub texts: Vec<String>,
    open: Option<Open>,
}

#[derive(Clone, Debug)]
struct Open {
    from: usize,
    next: u32,
    left: usize,
    bytes: Vec<u8>,
}

impl Manifests {
    /// A body begins: its content type, the sequence number of its first byte and its length, if that is known.
    pub fn begin(&mut self, content_type: &str, from: usize, seq: u32, length: Option<u64>) {
        self.end();
        let kind = content_type.to_ascii_lowercase();
        let is_one = kind.contains("dash+xml") || kind.contains("mpegurl");
        if is_one && self.texts.len() < MOST {
            let left = usize::try_from(length.unwrap_or(u64::MAX)).unwrap_or(usize::MAX).min(LONGEST);
            self.open = Some(Open { from, next: seq, left, bytes: Vec::new() });
        }
    }

    /// Payload that was not seen before, from `from`, beginning at `seq`; bytes that were not captured end a manifest.
    pub fn take(&mut self, from: usize, seq: u32, payload: &[u8]) {
        let Some(open) = self.open.as_mut().filter(|open| open.from == from) else { return };
        let ahead = open.next.wrapping_sub(seq);
        let Some(own) = payload.get(ahead as usize..) else {
            if ahead.cast_signed() < 0 {
                self.end();
            }
            return;
        };
        let own = &own[..own.len().min(open.left)];
        open.bytes.extend_from_slice(own);
        open.left -= own.len();
        open.next = open.next.wrapping_add(own.len() as u32);
        if open.left == 0 {
            self.end();
        }
    }

    fn end(&mut self) {
        if let Some(open) = self.open.take()
            && !open.bytes.is_empty()
        {
            self.texts.push(String::from_utf8_lossy(&open.bytes).into_owned());
        }
    }

    /// All texts, the last one included that is not whole.
    pub fn all(&self) -> impl Iterator<Item = String> + '_ {
        let open = self.open.iter().filter(|open| !open.bytes.is_empty());
        self.texts.iter().cloned().chain(open.map(|open| String::from_utf8_lossy(&open.bytes).into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_in_segments() {
        let mut found = Manifests::default();
        found.begin("application/dash+xml", 1, 100, Some(8));
        found.take(1, 95, b"head:<MPD");
        found.take(0, 100, b"other");
        found.take(1, 104, b"MPD/> and the next answer");
        assert_eq!(found.texts, ["<MPDMPD/"]);
        found.begin("video/mp4", 1, 200, Some(8));
        found.take(1, 200, b"bytes");
        found.begin("application/vnd.apple.mpegurl", 1, 300, None);
        found.take(1, 300, b"#EXTM3U");
        assert_eq!(found.all().nth(1).as_deref(), Some("#EXTM3U"));
        // A hole ends it.
        found.take(1, 900, b"later");
        found.take(1, 307, b"again");
        assert_eq!(found.texts[1..], ["#EXTM3U"]);
    }
}
