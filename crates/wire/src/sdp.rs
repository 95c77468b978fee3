//! The lines of a session description (RFC 8866) that players need: media, and attributes.
//!
//! Cameras write the other lines wrongly, in another order or not at all. A line that no player needs is never an error.

/// A session description as far as players read it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SdpLines {
    /// Attributes above the first media line.
    pub attributes: Attributes,
    /// The media, in order; there is at least one.
    pub media: Vec<Media>,
}

/// A media line and the attributes below it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Media {
    /// `video`, `audio`, or another kind.
    pub kind: String,
    /// Formats, in order of preference. Over RTP they are payload types.
    pub formats: Vec<String>,
    /// Its attributes.
    pub attributes: Attributes,
}

/// Attributes in order: each with its name and its value, which is empty for a flag.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Attributes(Vec<(String, String)>);

impl Attributes {
    /// Returns the values of an attribute, with its name in any case.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let named = self.0.iter().filter(move |(other, _)| other.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str())
    }

    /// Returns the first value of an attribute.
    pub fn first(&self, name: &str) -> Option<&str> {
        let named = self.0.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_str())
    }
}

/// A text that describes no media.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the session description is not SDP: no line of it begins with m=")]
pub struct NoMedia;

impl SdpLines {
    /// Reads a description. Lines end with CR, LF or both; blanks and zeros around a line do not matter.
    ///
    /// # Errors
    ///
    /// If no line describes media.
    pub fn read(text: &str) -> Result<Self, NoMedia> {
        let mut found = SdpLines::default();
        for line in text.split(['\r', '\n']) {
            let line = line.trim_matches(|c: char| c.is_whitespace() || c == '\0' || c == '\u{feff}');
            let Some((kind, value)) = line.split_once('=') else { continue };
            match kind.trim() {
                "m" => {
                    let mut words = value.split_whitespace().map(str::to_owned);
                    let kind = words.next().unwrap_or_default().to_ascii_lowercase();
                    // The port and the protocol mean nothing here: SETUP negotiates both.
                    let formats = words.skip(2).collect();
                    found.media.push(Media { kind, formats, attributes: Attributes::default() });
                }
                "a" => {
                    let (name, value) = value.split_once(':').unwrap_or((value, ""));
                    let attributes = match found.media.last_mut() {
                        Some(media) => &mut media.attributes,
                        None => &mut found.attributes,
                    };
                    attributes.0.push((name.trim().to_owned(), value.trim().to_owned()));
                }
                _ => {}
            }
        }
        if found.media.is_empty() { Err(NoMedia) } else { Ok(found) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PLAIN: &str = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 0.0.0.0\r\nt=0 0\r\na=control:*\r\n\
                         m=video 0 RTP/AVP 96\r\nb=AS:64\r\na=rtpmap:96 H264/90000\r\na=control:trackID=1\r\n";

    #[test]
    fn media_and_attributes_are_read_however_the_rest_is_written() {
        let plain = SdpLines::read(PLAIN).unwrap();
        assert_eq!(plain.attributes.first("CONTROL"), Some("*"));
        assert_eq!((plain.media.len(), &*plain.media[0].kind), (1, "video"));
        assert_eq!(plain.media[0].formats, ["96"]);
        assert_eq!(plain.media[0].attributes.first("rtpmap"), Some("96 H264/90000"));
        for (from, to) in [
            ("\r\n", "\n"),
            ("\r\n", "\r"),
            ("\r\n", " \r\n\r\n"),
            ("video 0", "video -1353744643"),
            ("video 0", "VIDEO 99999999999999999999"),
            ("video 0 RTP/AVP", "video 554/2 RTP/SAVPF"),
            ("b=AS:64", "b=AS:-1"),
            ("b=AS:64", "b="),
            ("b=AS:64", "garbage"),
            ("c=IN IP4 0.0.0.0", "c=IN IP4 '&\u{fffd}"),
            ("t=0 0\r\n", ""),
            ("s=x\r\n", ""),
            ("s=x", "s="),
            ("s=x", "s=K\u{fffd}che"),
            ("o=- 1 1 IN IP4 127.0.0.1", "o=- 14665860 31787219 1 IN IP4 127.0.0.1"),
            ("o=- 1 1 IN IP4 127.0.0.1\r\n", ""),
            ("v=0\r\n", ""),
            ("v=0\r\n", "i=x\r\nv=0\r\n"),
            ("v=0", "\u{feff}v=0"),
            ("trackID=1\r\n", "trackID=1\r\n\0"),
        ] {
            assert!(PLAIN.contains(from), "{from:?}");
            assert_eq!(SdpLines::read(&PLAIN.replace(from, to)).as_ref(), Ok(&plain), "{from:?} to {to:?}");
        }
    }

    #[test]
    fn a_media_line_may_lack_anything_and_none_at_all_is_no_description() {
        let of = |text| SdpLines::read(text).map(|read| read.media);
        assert_eq!(of("m="), Ok(vec![Media::default()]));
        assert_eq!(of("m=audio\na=sendonly").unwrap()[0].attributes.first("sendonly"), Some(""));
        assert_eq!(of("m=audio 0 RTP/AVP 8 0\t").unwrap()[0].formats, ["8", "0"]);
        for text in ["", "v=0\r\na=control:*\r\n", "RTSP/1.0 200 OK\r\n", "<html>m =x</html>"] {
            assert_eq!(of(text), Err(NoMedia), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "([mavo]=[ -~]{0,12}[\r\n]{1,2}|.{0,8})*") {
            let read = SdpLines::read(&text);
            prop_assert!(read.is_err() || read.is_ok_and(|read| !read.media.is_empty()));
        }
    }
}
