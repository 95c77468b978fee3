//! Multivariant playlists of HLS (RFC 8216 section 4.3.4): which variants are levels of one thing, and which copies.

use std::collections::BTreeSet;

use streamgauge_base::{BitRate, Duration};

use super::attributes;
use super::fault::{ManifestError, broken, encrypted, unsupported};
use super::left_out::{LeftOut, shown};
use super::lines::{Line, lines};
use super::place::Place;
use super::renditions::{self, Rendition};
use super::sets::{is_codec_of_sound, is_sound};
use super::time::rate;
use super::{AdaptationSet, Address, Manifest, MediaKind, Period, Representation, Segments};

/// Variants and renditions of one manifest.
const MOST_VARIANTS: usize = 1_000;

/// A variant stream (`EXT-X-STREAM-INF`).
struct Variant<'a> {
    line: u32,
    list: Vec<(&'a str, &'a str)>,
    url: String,
    rate: Option<u64>,
}

impl<'a> Variant<'a> {
    fn get(&self, name: &str) -> Option<&'a str> {
        attributes::get(&self.list, name)
    }

    /// Its codec of pictures, as far as other levels must have it as well.
    fn family(&self) -> Option<String> {
        let codecs = self.get("CODECS")?.split(',').map(str::trim);
        let picture = codecs.into_iter().find(|codec| !is_codec_of_sound(codec))?;
        let family = picture.split('.').next().unwrap_or_default().to_ascii_lowercase();
        // Two names of one codec each (ISO/IEC 14496-15).
        Some(match family.as_str() {
            "avc3" => "avc1".into(),
            "hev1" => "hvc1".into(),
            _ => family,
        })
    }

    fn range(&self) -> &'a str {
        self.get("VIDEO-RANGE").unwrap_or("SDR")
    }

    fn is_sound_alone(&self) -> bool {
        self.get("RESOLUTION").is_none() && self.get("CODECS").is_some_and(is_sound)
    }

    /// A copy of the other: it is the same at another address (section 6.2.4), or for another pathway.
    fn is_copy_of(&self, other: &Variant<'_>) -> bool {
        let names = ["RESOLUTION", "CODECS", "FRAME-RATE", "VIDEO"];
        self.rate.is_some()
            && self.rate == other.rate
            && names.iter().all(|name| self.get(name) == other.get(name))
            && (self.get("AUDIO") == other.get("AUDIO") || self.get("PATHWAY-ID") != other.get("PATHWAY-ID"))
    }

    fn named(&self) -> String {
        let rate = self.rate.map_or("unknown rate".into(), |rate| format!("{} kbit/s", rate / 1000));
        format!("variant of line {} ({rate})", self.line)
    }
}

/// The entries of a multivariant playlist.
#[derive(Default)]
struct Listed<'a> {
    variants: Vec<Variant<'a>>,
    renditions: Vec<Rendition<'a>>,
    /// Lines of playlists of key frames or of images.
    stills: Vec<u32>,
    left: LeftOut,
}

/// Reads the one at `url`. If there are copies, it names the first that has not failed.
pub fn multivariant(text: &str, url: &str, failed: &BTreeSet<String>) -> Result<Manifest, ManifestError> {
    let Listed { variants, renditions, stills, mut left } = listed(text, &Place::of(url)?)?;
    let (kind, levels) = levels(variants, &mut left)?;
    let groups: Vec<&str> = levels.iter().flatten().filter_map(|variant| variant.get("AUDIO")).collect();
    let sound = renditions::choose(&renditions, &groups, &mut left);
    if let [first, .., last] = &stills[..] {
        let what = format!("{} playlists of key frames or images, lines {first} to {last}", stills.len());
        left.add(what, "for looking for a place");
    } else if let [only] = &stills[..] {
        left.add(format!("playlist of key frames or images of line {only}"), "for looking for a place");
    }
    let mut main: Vec<Representation> = levels.iter().map(|copies| level(copies, failed)).collect();
    main.sort_by_key(|one| one.rate);
    let mut sets = vec![AdaptationSet { kind, representations: main }];
    if kind == MediaKind::Video
        && let Some(sound) = sound
    {
        let (url, copy) = standing(sound.iter().map(|one| one.url.as_deref().unwrap_or_default()), failed);
        let id = sound[0].name.to_owned();
        sets.push(AdaptationSet {
            kind: MediaKind::Audio,
            representations: vec![playlist(id, 0, url, copy)],
        });
    }
    let period = Period { id: String::new(), start: Duration::ZERO, end: None, sets };
    let left_out = left.into_list();
    Ok(Manifest { duration: None, live: None, periods: vec![period], left_out, variables: Vec::new() })
}

fn listed<'a>(text: &'a str, place: &Place) -> Result<Listed<'a>, ManifestError> {
    let mut listed = Listed::default();
    let mut next: Option<(Vec<(&str, &str)>, u32)> = None;
    for line in lines(text) {
        if listed.variants.len() + listed.renditions.len() > MOST_VARIANTS {
            return Err(unsupported(line.number, "more than 1000 variants and renditions"));
        }
        match (line.tag, line.uri) {
            ("-X-STREAM-INF", _) => next = Some((line.attributes()?, line.number)),
            ("", Some(uri)) => {
                let missing = || broken(line.number, "a URI without #EXT-X-STREAM-INF before it");
                let (list, number) = next.take().ok_or_else(missing)?;
                let url = place.resolve(uri, line.number)?.url().to_owned();
                let told = |name| attributes::get(&list, name).and_then(rate);
                let rate = told("BANDWIDTH").or_else(|| told("AVERAGE-BANDWIDTH"));
                listed.variants.push(Variant { line: number, url, rate, list });
            }
            ("-X-MEDIA", _) => match rendition(&line, place) {
                Ok(rendition) => listed.renditions.push(rendition),
                Err(error) => {
                    listed.left.add(format!("rendition of line {}", line.number), &error.to_string())
                }
            },
            ("-X-I-FRAME-STREAM-INF" | "-X-IMAGE-STREAM-INF", _) => listed.stills.push(line.number),
            ("-X-SESSION-KEY", _) => {
                let list = line.attributes()?;
                let method = shown(attributes::get(&list, "METHOD").unwrap_or("without METHOD"));
                if !method.eq_ignore_ascii_case("NONE") {
                    let what = format!("the variants are encrypted with {method} (#EXT-X-SESSION-KEY)");
                    return Err(encrypted(line.number, what));
                }
            }
            ("-X-START", _) => listed.left.add(
                format!("#EXT-X-START of line {} ({})", line.number, shown(line.value)),
                "play begins at the first segment, or live behind the edge",
            ),
            _ => {}
        }
    }
    if let Some((_, number)) = next {
        return Err(broken(number, "#EXT-X-STREAM-INF without a URI behind it"));
    }
    if listed.variants.is_empty() {
        return Err(broken(1, "a playlist with neither #EXT-X-STREAM-INF nor #EXTINF"));
    }
    Ok(listed)
}

fn rendition<'a>(line: &Line<'a>, place: &Place) -> Result<Rendition<'a>, ManifestError> {
    let list = line.attributes()?;
    let get = |name| attributes::get(&list, name);
    let url = get("URI").map(|uri| place.resolve(uri, line.number)).transpose()?;
    Ok(Rendition {
        line: line.number,
        kind: get("TYPE").unwrap_or_default(),
        group: get("GROUP-ID").unwrap_or_default(),
        name: get("NAME").unwrap_or_default(),
        language: get("LANGUAGE"),
        is_default: get("DEFAULT") == Some("YES"),
        is_chosen_freely: get("AUTOSELECT") == Some("YES"),
        url: url.map(|url| url.url().to_owned()),
    })
}

/// The common data of the levels and the first listed variant. A player starts with that variant, and changes to levels
/// that continue it seamlessly.
struct Common<'a> {
    family: Option<String>,
    range: &'a str,
    audio: Option<&'a str>,
    pathway: Option<&'a str>,
}

/// The played levels, each with its copies, in the order of the list.
fn levels<'a>(
    variants: Vec<Variant<'a>>,
    left: &mut LeftOut,
) -> Result<(MediaKind, Vec<Vec<Variant<'a>>>), ManifestError> {
    let has_pictures = variants.iter().any(|variant| !variant.is_sound_alone());
    let kind = if has_pictures { MediaKind::Video } else { MediaKind::Audio };
    let mut levels: Vec<Vec<Variant<'a>>> = Vec::new();
    let mut of_all: Option<Common<'_>> = None;
    let several = variants.iter().map(|variant| &variant.url).collect::<BTreeSet<_>>().len() > 1;
    for variant in variants {
        let mut pass = |why: &str| left.add(variant.named(), why);
        if has_pictures && variant.is_sound_alone() {
            pass("sound alone");
            continue;
        }
        if several && variant.rate.is_none() {
            pass("no BANDWIDTH tells its place among the levels");
            continue;
        }
        let (family, audio) = (variant.family(), variant.get("AUDIO"));
        let common = of_all.get_or_insert_with(|| Common {
            family: family.clone(),
            range: variant.range(),
            audio,
            pathway: variant.get("PATHWAY-ID"),
        });
        if family.as_ref().zip(common.family.as_ref()).is_some_and(|(own, first)| own != first) {
            pass("another codec than that of the first variant");
            continue;
        }
        if variant.range() != common.range {
            pass("another VIDEO-RANGE than that of the first variant");
            continue;
        }
        common.family = common.family.take().or(family);
        // The same pictures with other sound beside them: the first variant's is played.
        if let Some(copies) = levels.iter_mut().find(|copies| copies.iter().any(|one| one.url == variant.url))
        {
            let is_better = copies[0].get("AUDIO") != common.audio && audio == common.audio;
            if is_better {
                copies[0] = variant;
            }
            continue;
        }
        if let Some(copies) = levels.iter_mut().find(|copies| variant.is_copy_of(&copies[0])) {
            copies.push(variant);
        } else if variant.get("PATHWAY-ID") != common.pathway {
            pass("another PATHWAY-ID, without an equal of the first one's");
        } else if audio != common.audio && levels.iter().any(|copies| copies[0].rate == variant.rate) {
            pass("the same rate with other sound");
        } else {
            levels.push(vec![variant]);
        }
    }
    if levels.is_empty() {
        let list = std::mem::take(left).into_list().join("; ");
        return Err(broken(1, format!("no variant can be played: {list}")));
    }
    Ok((kind, levels))
}

fn level(copies: &[Variant<'_>], failed: &BTreeSet<String>) -> Representation {
    let first = &copies[0];
    let (url, copy) = standing(copies.iter().map(|one| one.url.as_str()), failed);
    let rate = first.rate.unwrap_or(0);
    let size = first.get("RESOLUTION").and_then(|size| {
        let (width, height) = size.split_once(['x', 'X'])?;
        Some((width.trim().parse().ok()?, height.trim().parse().ok()?))
    });
    let id = first.get("NAME").map_or_else(|| rate.to_string(), str::to_owned);
    let codecs = first.get("CODECS").map(str::to_owned);
    Representation { size, codecs, ..playlist(id, rate, url, copy) }
}

fn playlist(id: String, rate: u64, url: String, copy: Option<String>) -> Representation {
    let segments = Segments::Playlist(Address { url, range: None });
    Representation { id, rate: BitRate::from_bps(rate), size: None, codecs: None, init: None, segments, copy }
}

/// The first copy that has not failed, and its name if there is another one to try.
fn standing<'a>(
    copies: impl Iterator<Item = &'a str> + Clone,
    failed: &BTreeSet<String>,
) -> (String, Option<String>) {
    let first = copies.clone().next().unwrap_or_default();
    let mut standing = copies.filter(|url| !failed.contains(*url));
    let Some(chosen) = standing.next() else { return (first.to_owned(), None) };
    (chosen.to_owned(), standing.next().map(|_| chosen.to_owned()))
}
