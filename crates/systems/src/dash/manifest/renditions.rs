//! Renditions of HLS (`EXT-X-MEDIA`, RFC 8216 section 4.3.4.1): which sound is played.

use super::left_out::{LeftOut, shown};

/// Renditions that can be played beside the variants' own media or in its place.
pub struct Rendition<'a> {
    pub line: u32,
    /// AUDIO, VIDEO, SUBTITLES or CLOSED-CAPTIONS.
    pub kind: &'a str,
    pub group: &'a str,
    pub name: &'a str,
    pub language: Option<&'a str>,
    /// DEFAULT=YES.
    pub is_default: bool,
    /// AUTOSELECT=YES.
    pub is_chosen_freely: bool,
    /// Without one it is in the variants themselves.
    pub url: Option<String>,
}

/// The sound that is played beside the pictures, with its copies; `None` if it is in the variants. Variants name
/// `groups`, the first listed variant's first. The default of a group is played, else one that a player may choose
/// freely, else the first.
pub fn choose<'r, 'a>(
    all: &'r [Rendition<'a>],
    groups: &[&str],
    left: &mut LeftOut,
) -> Option<Vec<&'r Rendition<'a>>> {
    let sound = || all.iter().filter(|one| one.kind == "AUDIO");
    let of = |group: &'r str| sound().filter(move |one| one.group == group);
    let group = sound().map(|one| one.group).find(|group| Some(group) == groups.first());
    let best = group.and_then(|group| {
        // The first of equal ones.
        of(group).min_by_key(|one| (!one.is_default, !one.is_chosen_freely))
    });
    let mut chosen: Vec<&Rendition<'a>> = best.into_iter().collect();
    if let Some(best) = best {
        let is_copy = |one: &&Rendition<'a>| {
            one.group != best.group
                && groups.contains(&one.group)
                && (one.name, one.language) == (best.name, best.language)
        };
        chosen.extend(sound().filter(is_copy).filter(|one| one.url.is_some()));
    }
    for one in all {
        if chosen.iter().any(|chosen| chosen.line == one.line) {
            continue;
        }
        // Media without an own address is part of the variant, or cannot be requested.
        let what = match (one.kind, &one.url) {
            ("AUDIO", _) => "sound",
            ("VIDEO", Some(_)) => "pictures",
            ("SUBTITLES", _) => "subtitles",
            _ => continue,
        };
        let why = match what {
            "sound" if groups.contains(&one.group) => "other sound is played",
            "sound" => "no variant that is played names its group",
            "pictures" => "the variants' own pictures are played",
            _ => "only pictures and sound are played",
        };
        let traits: Vec<String> = one.language.into_iter().chain([one.name]).map(shown).collect();
        left.add(format!("{what} of line {} ({})", one.line, traits.join(", ")), why);
    }
    chosen.retain(|one| one.url.is_some());
    (best?.url.is_some()).then_some(chosen)
}
