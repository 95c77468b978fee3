//! Encryption of media: where a manifest or an initialization names it.

use super::xml::Element;
use crate::media::mp4::{contents, find};

/// Systems that protect content, by their identifiers (DASH-IF, "Content Protection").
const SYSTEMS: [(&str, &str); 7] = [
    ("edef8ba9-79d6-4ace-a3c8-27dcd51d21ed", "Widevine"),
    ("9a04f079-9840-4286-ab92-e65be0885f95", "PlayReady"),
    ("94ce86fb-07ff-4f43-adb8-93d2fa968ca2", "FairPlay"),
    ("e2719d58-a985-b3c9-781a-b030af78d30e", "Clear Key"),
    ("1077efec-c0b2-4d02-ace3-3c1e52e2fb4b", "Clear Key"),
    ("5e629af5-38da-4063-8977-97ffbd9902d4", "Marlin"),
    ("f239e769-efa3-4850-9c16-a903c6932efb", "Adobe Primetime"),
];

/// The scheme with a value that names the encryption itself (ISO/IEC 23009-1 section 5.8.4.1).
const COMMON: &str = "urn:mpeg:dash:mp4protection:2011";

/// Returns the protection in words and its line, if one of `elements` is protected. An outer element protects its
/// content.
pub fn of_elements<'a>(elements: impl IntoIterator<Item = Element<'a>>) -> Option<String> {
    let all: Vec<Element<'a>> =
        elements.into_iter().flat_map(|element| element.all("ContentProtection")).collect();
    let first = all.first()?;
    let scheme = |one: &Element<'a>| one.get("schemeIdUri").unwrap_or_default().trim().to_ascii_lowercase();
    let common = all.iter().find(|one| scheme(one) == COMMON).and_then(|one| one.get("value"));
    let system = all.iter().find_map(|one| {
        let scheme = scheme(one);
        SYSTEMS.iter().find(|(id, _)| scheme.ends_with(id)).map(|(_, name)| (*name).to_owned())
    });
    let named = [common.map(super::left_out::shown), system].into_iter().flatten().collect::<Vec<_>>();
    let how = match &named[..] {
        [] => format!("scheme {}", super::left_out::shown(&scheme(first))),
        named => named.join(", "),
    };
    Some(format!("encrypted with {how} (ContentProtection, line {})", first.line()))
}

/// The four letters of the scheme that encrypts the media of this initialization (ISO/IEC 23001-7).
pub fn encryption_of_init(bytes: &[u8]) -> Option<String> {
    let (movie, _) = find(bytes, b"moov")?;
    contents(movie).filter(|(kind, _)| kind == b"trak").find_map(|(_, track)| {
        let path: [&[u8; 4]; 4] = [b"mdia", b"minf", b"stbl", b"stsd"];
        let table = path.into_iter().try_fold(track, |within, kind| Some(find(within, kind)?.0))?;
        // Version, flags and the number of entries.
        contents(table.get(8..)?).find_map(|(kind, entry)| {
            // Boxes stand behind the fields of a sample entry, of pictures or of sound.
            let fields = match &kind {
                b"encv" => 78,
                b"enca" => 28,
                _ => return None,
            };
            let scheme = || {
                let (protection, _) = find(entry.get(fields..)?, b"sinf")?;
                let (scheme, _) = find(protection, b"schm")?;
                Some(String::from_utf8_lossy(scheme.get(4..8)?).into_owned())
            };
            Some(scheme().unwrap_or_else(|| "an unnamed scheme".into()))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boxed(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
        [&(content.len() as u32 + 8).to_be_bytes()[..], kind, content].concat()
    }

    /// An initialization with this sample entry in its track.
    fn init(kind: &[u8; 4], fields: usize, rest: &[u8]) -> Vec<u8> {
        let entry = boxed(kind, &[&vec![0; fields][..], rest].concat());
        let table = boxed(b"stsd", &[&[0, 0, 0, 0, 0, 0, 0, 1][..], &entry].concat());
        let media = boxed(b"mdia", &boxed(b"minf", &boxed(b"stbl", &table)));
        let movie = [boxed(b"mvhd", &[0; 100]), boxed(b"trak", &media)].concat();
        [boxed(b"ftyp", b"iso5"), boxed(b"moov", &movie)].concat()
    }

    #[test]
    fn encrypted_sample_entries_are_seen() {
        let scheme =
            boxed(b"sinf", &[boxed(b"frma", b"avc1"), boxed(b"schm", b"\0\0\0\0cbcs\0\x01\0\0")].concat());
        assert_eq!(encryption_of_init(&init(b"encv", 78, &scheme)).as_deref(), Some("cbcs"));
        assert_eq!(encryption_of_init(&init(b"enca", 28, &scheme)).as_deref(), Some("cbcs"));
        assert_eq!(encryption_of_init(&init(b"encv", 78, &[])).as_deref(), Some("an unnamed scheme"));
        assert_eq!(encryption_of_init(&init(b"avc1", 78, &scheme)), None);
        let whole = init(b"encv", 78, &scheme);
        (0..whole.len()).for_each(|end| drop(encryption_of_init(&whole[..end])));
    }
}
