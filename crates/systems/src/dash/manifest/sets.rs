//! Which sets of a period are played: one of pictures and one of sound. All others are named.

use super::left_out::{LeftOut, shown};
use super::xml::Element;
use super::{MediaKind, protection};

/// Trick modes: pictures that are shown while one looks for a place (DASH-IF IOP part 5).
const TRICK_MODE: &str = "http://dashif.org/guidelines/trickmode";

/// Sets between which a player may change as between levels (DASH-IF IOP version 4, section 3.8).
const SWITCHING: &str = "urn:mpeg:dash:adaptation-set-switching:2016";

/// Parts of a picture by their places in it (ISO/IEC 23009-1 annex H).
const PLACES: &str = "urn:mpeg:dash:srd:2014";

/// The rank of a set by its Role: the lowest is played.
const ROLES: [(&str, u32); 3] = [("main", 0), ("alternate", 2), ("dub", 2)];

/// A set without a Role ranks after the main one, and before others.
const NO_ROLE: u32 = 1;
/// Commentary, descriptions, signs and other additions to the main content.
const OTHER_ROLE: u32 = 3;

/// The played set of one kind.
pub struct Chosen<'a> {
    pub kind: MediaKind,
    /// Each with its set.
    pub representations: Vec<[Element<'a>; 2]>,
}

/// A set that could be played.
struct Offer<'a> {
    set: Element<'a>,
    kind: MediaKind,
    representations: Vec<Element<'a>>,
    rank: (bool, u32, std::cmp::Reverse<i64>),
}

/// The played sets of `period`, which is in `outer`: pictures before sound.
pub fn choose<'a>(outer: Element<'a>, period: Element<'a>, left: &mut LeftOut) -> Vec<Chosen<'a>> {
    let mut offers = Vec::new();
    for set in period.all("AdaptationSet") {
        offers.extend(offer(outer, period, set, left));
    }
    let mut chosen = Vec::new();
    for kind in [MediaKind::Video, MediaKind::Audio] {
        let of_kind = || offers.iter().filter(|offer| offer.kind == kind);
        // The first among equals.
        let Some(best) = of_kind().min_by_key(|offer| offer.rank) else { continue };
        let partners = partners(best, of_kind());
        let why = match kind {
            MediaKind::Video => "other pictures are played",
            MediaKind::Audio => "other sound is played",
        };
        for offer in of_kind().filter(|offer| !partners.iter().any(|one| one.set.line() == offer.set.line()))
        {
            left.add(named(offer.set, noun(Some(kind), offer.set)), why);
        }
        let representations =
            partners.iter().flat_map(|offer| offer.representations.iter().map(|one| [offer.set, *one]));
        chosen.push(Chosen { kind, representations: representations.collect() });
    }
    chosen
}

/// The chosen set, and those that it names as further levels of the same.
fn partners<'o, 'a>(best: &'o Offer<'a>, all: impl Iterator<Item = &'o Offer<'a>>) -> Vec<&'o Offer<'a>> {
    let ids: Vec<&str> = properties(best.set, "SupplementalProperty")
        .filter(|(scheme, _)| *scheme == SWITCHING)
        .flat_map(|(_, value)| value.split(',').map(str::trim))
        .collect();
    let family = |offer: &Offer<'a>| {
        let codecs = offer.representations.first().and_then(|one| one.get("codecs"));
        codecs.or(offer.set.get("codecs")).and_then(|codecs| codecs.split('.').next())
    };
    let belongs = |offer: &&Offer<'a>| {
        offer.set.line() == best.set.line() && offer.set.get("id") == best.set.get("id")
            || offer.set.get("id").is_some_and(|id| ids.contains(&id)) && family(offer) == family(best)
    };
    all.filter(belongs).collect()
}

fn offer<'a>(
    outer: Element<'a>,
    period: Element<'a>,
    set: Element<'a>,
    left: &mut LeftOut,
) -> Option<Offer<'a>> {
    let Some(first) = set.first("Representation") else {
        if let Some(href) = set.get_any("href") {
            let why = format!("it is in another file (xlink:href {})", shown(href));
            left.add(named(set, "set"), &why);
        }
        return None;
    };
    let kind = kind(set, first);
    let name = || named(set, noun(kind, set));
    let all = || set.all("Representation");
    let is_trick = |element: Element<'a>| {
        let both = ["EssentialProperty", "SupplementalProperty"];
        both.into_iter().any(|name| properties(element, name).any(|(scheme, _)| scheme == TRICK_MODE))
    };
    let Some(kind) = kind else {
        left.add(name(), "only pictures and sound are played");
        return None;
    };
    if is_trick(set) || all().all(is_trick) {
        left.add(name(), "pictures of a trick mode");
        return None;
    }
    if let Some(how) = protection::of_elements([set, period, outer]) {
        left.add(name(), &how);
        return None;
    }
    let mut representations = Vec::new();
    for one in all() {
        let why = protection::of_elements([one])
            .or_else(|| is_trick(one).then(|| "pictures of a trick mode".to_owned()));
        match why {
            Some(why) => left.add(representation(one), &why),
            None => representations.push(one),
        }
    }
    let is_part = properties(set, "EssentialProperty").any(|(scheme, _)| scheme == PLACES);
    let priority = set.hint("selectionPriority", |text| text.parse().ok()).unwrap_or(1);
    let rank = (is_part, role(set), std::cmp::Reverse(priority));
    (!representations.is_empty()).then_some(Offer { set, kind, representations, rank })
}

/// In words: `representation of line 8 (v0)`.
pub fn representation(one: Element<'_>) -> String {
    let id = one.get("id").map_or(String::new(), |id| format!(" ({})", shown(id)));
    format!("representation of line {}{id}", one.line())
}

fn named(set: Element<'_>, noun: &str) -> String {
    let roles = set.all("Role").filter_map(|role| role.get("value"));
    let traits: Vec<String> = set.get("lang").into_iter().chain(roles).map(shown).collect();
    let traits = if traits.is_empty() { String::new() } else { format!(" ({})", traits.join(", ")) };
    format!("{noun} of line {}{traits}", set.line())
}

fn noun(kind: Option<MediaKind>, set: Element<'_>) -> &'static str {
    match kind {
        Some(MediaKind::Video) => "pictures",
        Some(MediaKind::Audio) => "sound",
        None => match media_type(set, set.first("Representation").unwrap_or(set)) {
            Some("image") => "thumbnails",
            Some("text" | "application") => "text",
            _ => "set",
        },
    }
}

/// Scheme and value of each property of that name.
fn properties<'a>(element: Element<'a>, name: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    element
        .all(name)
        .map(|one| (one.get("schemeIdUri").unwrap_or_default().trim(), one.get("value").unwrap_or_default()))
}

fn role(set: Element<'_>) -> u32 {
    let of =
        |value: &str| ROLES.iter().find(|(name, _)| *name == value).map_or(OTHER_ROLE, |(_, rank)| *rank);
    let roles = set.all("Role").filter_map(|role| role.get("value")).map(|value| of(value.trim()));
    let role = roles.min().unwrap_or(NO_ROLE);
    // For who does not see or hear: it is never the first choice.
    if set.first("Accessibility").is_some() && role > 0 { OTHER_ROLE } else { role }
}

fn media_type<'a>(set: Element<'a>, one: Element<'a>) -> Option<&'a str> {
    let component = set.first("ContentComponent").and_then(|component| component.get("contentType"));
    let told = set.get("contentType").or(component).or(set.get("mimeType")).or(one.get("mimeType"));
    told.map(|told| told.trim().split('/').next().unwrap_or_default())
}

/// The kind of a set, by its type or that of its first representation, else by its codecs.
fn kind(set: Element<'_>, one: Element<'_>) -> Option<MediaKind> {
    match media_type(set, one) {
        Some("video") => Some(MediaKind::Video),
        Some("audio") => Some(MediaKind::Audio),
        Some(_) => None,
        None => match one.get("codecs").or(set.get("codecs")) {
            Some(codecs) if !is_sound(codecs) => Some(MediaKind::Video),
            Some(_) => Some(MediaKind::Audio),
            None => one.get("width").or(set.get("width")).map(|_| MediaKind::Video),
        },
    }
}

/// True if all of these codecs are of sound (RFC 6381, the registries that it names).
pub fn is_sound(codecs: &str) -> bool {
    codecs.split(',').all(is_codec_of_sound)
}

/// The same of one codec.
pub fn is_codec_of_sound(codec: &str) -> bool {
    const SOUND: [&str; 11] =
        ["mp4a", "ac-3", "ec-3", "ac-4", "opus", "flac", "vorbis", "alac", "mp3", "dts", "mha1"];
    let codec = codec.trim().to_ascii_lowercase();
    SOUND.iter().any(|sound| codec.starts_with(sound))
}
