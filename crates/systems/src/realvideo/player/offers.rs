//! The offers of the rule books: sets of rules of all streams, and the rate of each.

use streamgauge_wire::asm::AsmRuleBook;

use super::super::sdp::Presentation;
use super::settings::PlayerSettings;

/// Sets that are looked at; a book has one an encoding and two besides.
const MOST_OFFERS: usize = 64;

/// Rules that are selected together.
#[derive(Clone, PartialEq, Debug)]
pub struct Offer {
    /// Their rate, in bit/s.
    pub needs_bps: f64,
    /// For each stream of the description, in its order, the numbers of its rules, ascending.
    pub rules: Vec<Vec<u16>>,
    /// Whether it has pictures, and all of a level's.
    pub is_whole: bool,
}

/// Returns the offers of a presentation to such a player, the lowest first. One at least: all that holds where no rate
/// is named.
///
/// # Errors
///
/// The book that cannot be read, and why.
pub fn offers(presentation: &Presentation, settings: &PlayerSettings) -> Result<Vec<Offer>, String> {
    let read = |of: &str, text: &str| -> Result<AsmRuleBook, String> {
        text.parse().map_err(|problem| format!("the rule book of {of} cannot be read: {problem}"))
    };
    let all = read("the whole", &presentation.book)?;
    let books =
        presentation.streams.iter().map(|stream| read(&format!("stream {}", stream.number), &stream.book));
    let books: Vec<AsmRuleBook> = books.collect::<Result<_, _>>()?;
    let mut found: Vec<Offer> = Vec::new();
    for bandwidth in std::iter::once(0.0).chain(all.bandwidths()).take(MOST_OFFERS) {
        let set = all.holding(bandwidth).next().map(|rule| &all.rules[rule]);
        let mut offer = Offer { needs_bps: 0.0, rules: Vec::new(), is_whole: false };
        for (stream, book) in presentation.streams.iter().zip(&books) {
            let name = format!("Stream{}Bandwidth", stream.number);
            let own = set.and_then(|rule| rule.property(&name)?.trim().parse::<f64>().ok());
            let own = own.unwrap_or(if set.is_some() { 0.0 } else { bandwidth });
            let rules: Vec<u16> = book.holding(own).filter_map(|rule| u16::try_from(rule).ok()).collect();
            offer.needs_bps += own;
            offer.is_whole |= stream.is_video && rules.len() > 1;
            offer.rules.push(rules);
        }
        if found.last().is_none_or(|last| last.rules != offer.rules) {
            found.push(offer);
        }
    }
    let mut offers = found.clone();
    let is_video = |place: usize| presentation.streams[place].is_video;
    let pictures = |offer: &Offer| -> usize {
        offer
            .rules
            .iter()
            .enumerate()
            .filter(|(place, _)| is_video(*place))
            .map(|(_, rules)| rules.len())
            .sum()
    };
    offers.retain(|offer| match pictures(offer) {
        0 => settings.audio_only,
        1 => settings.key_frames_only,
        _ => true,
    });
    offers.retain(|offer| offer.rules.iter().any(|rules| !rules.is_empty()));
    if offers.is_empty() {
        // A book in another form: the offer that holds at the highest rate.
        offers.extend(found.pop().filter(|offer| offer.rules.iter().any(|rules| !rules.is_empty())));
    }
    if offers.is_empty() {
        return Err("its rule books offer nothing at any bandwidth".into());
    }
    offers.sort_by(|one, other| one.needs_bps.total_cmp(&other.needs_bps));
    Ok(offers)
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use streamgauge_base::Duration;

    use super::super::super::object::Object;
    use super::super::super::sdp;
    use super::super::settings::PlayerKind;
    use super::*;
    use crate::media::{ClipSpec, LadderSpec, LevelSpec};

    fn presentation(video: &[u64], audio: Option<u64>) -> Presentation {
        let interval = Duration::from_millis(100);
        let level = |rate: u64| {
            let mean = (rate / 80) as u32;
            let frame_bytes = [vec![mean * 4], vec![mean - mean / 3; 9]].concat().into();
            let (name, duration) = (String::new(), Duration::from_secs(20));
            let clip =
                ClipSpec { name, duration, frame_interval: interval, frame_bytes, ..ClipSpec::default() };
            LevelSpec { bit_rate_bps: rate, size: (0, 0), clip }
        };
        let video = video.iter().map(|rate| level(*rate)).collect();
        let ladder = LadderSpec {
            name: "a \"test\"".into(),
            segment: Duration::from_secs(1),
            video,
            audio: audio.map(level),
        };
        let text = sdp::describe(&Object::of_ladder(&ladder), IpAddr::V4(Ipv4Addr::LOCALHOST));
        sdp::read(&text).unwrap()
    }

    #[test]
    fn sound_alone_then_key_frames_then_each_level() {
        let settings = PlayerSettings::of(PlayerKind::RealPlayer8);
        let presentation = presentation(&[20_000, 80_000], Some(8_000));
        assert_eq!(presentation.duration, Some(Duration::from_secs(20)));
        let found = offers(&presentation, &settings).unwrap();
        let rules: Vec<_> = found.iter().map(|offer| offer.rules.clone()).collect();
        assert_eq!(
            rules,
            [
                vec![vec![], vec![0, 1]],
                vec![vec![0], vec![0, 1]],
                vec![vec![0, 1], vec![0, 1]],
                vec![vec![2, 3], vec![0, 1]]
            ]
        );
        assert_eq!(
            (found[0].needs_bps, found[2].needs_bps, found[3].needs_bps),
            (8_000.0, 28_000.0, 88_000.0)
        );
        assert_eq!(found.iter().map(|offer| offer.is_whole).collect::<Vec<_>>(), [false, false, true, true]);
        let without = PlayerSettings { audio_only: false, key_frames_only: false, ..settings };
        assert_eq!(offers(&presentation, &without).unwrap(), found[2..]);
    }

    #[test]
    fn a_clip_of_one_rate_has_itself_alone() {
        let settings = PlayerSettings::of(PlayerKind::RealPlayer8);
        let found = offers(&presentation(&[34_000], Some(8_000)), &settings).unwrap();
        assert_eq!((found.len(), found[0].needs_bps, found[0].is_whole), (1, 42_000.0, true));
        let found = offers(&presentation(&[34_000], None), &settings).unwrap();
        assert_eq!(found[0].rules, [vec![0, 1]]);
    }

    #[test]
    fn books_of_nobody_offer_nothing_and_say_so() {
        let settings = PlayerSettings::of(PlayerKind::RealPlayer8);
        let mut bad = presentation(&[20_000], None);
        bad.streams[0].book = "#($Bandwidth >= (((".into();
        assert!(offers(&bad, &settings).unwrap_err().contains("stream 0"));
        bad.streams[0].book = String::new();
        assert!(offers(&bad, &settings).is_err());
    }
}
