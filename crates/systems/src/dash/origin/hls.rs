//! The presentation as playlists of HLS (RFC 8216).

use std::fmt::Write;

use streamgauge_base::{Duration, Instant};

use super::Presentation;
use super::level::Level;
use super::written::{date, seconds};

/// All levels of pictures, each with the sound, in playlists that are named `ID` and `suffix`.
pub fn master(presentation: &Presentation, suffix: &str) -> String {
    let mut text = "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-INDEPENDENT-SEGMENTS\n".to_owned();
    let sound = presentation.levels().find(|level| !level.is_video);
    if let Some(Level { id, .. }) = sound {
        let _ = writeln!(
            text,
            "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"audio\",NAME=\"{id}\",DEFAULT=YES,AUTOSELECT=YES,URI=\"{id}{suffix}\""
        );
    }
    for level in presentation.levels().filter(|level| level.is_video) {
        // Media that is played together counts together (section 4.3.4.2).
        let of_both = |of: fn(&Level) -> u64| of(level) + sound.map_or(0, of);
        let codecs = [Some(level), sound].into_iter().flatten().map(|level| level.codecs.as_str());
        let _ = write!(
            text,
            "#EXT-X-STREAM-INF:BANDWIDTH={},AVERAGE-BANDWIDTH={},CODECS=\"{}\"",
            of_both(|level| level.rate_bps),
            of_both(Level::mean_bps),
            codecs.collect::<Vec<_>>().join(",")
        );
        let (width, height) = level.size;
        if width > 0 && height > 0 {
            let _ = write!(text, ",RESOLUTION={width}x{height}");
        }
        let group = if sound.is_some() { ",AUDIO=\"audio\"" } else { "" };
        let _ = writeln!(text, "{group}\n{}{suffix}", level.id);
    }
    text
}

/// A level's segments at `now`: files, or ranges of one file.
pub fn media(presentation: &Presentation, level: &Level, by_ranges: bool, now: Instant) -> String {
    // The longest, to the nearest second (section 4.3.3.1); the same at all times.
    let longest = (0..level.segments()).map(|segment| level.duration(segment)).max().unwrap_or_default();
    let target = ((longest + Duration::from_millis(500)).as_nanos() / 1_000_000_000).max(1);
    let window = presentation.window(now);
    let window = window.start.min(level.segments())..window.end.min(level.segments());
    let mut text = format!(
        "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:{target}\n#EXT-X-MEDIA-SEQUENCE:{}\n",
        window.start + 1
    );
    let id = &level.id;
    if presentation.clock.is_none() {
        text.push_str("#EXT-X-PLAYLIST-TYPE:VOD\n");
    } else if let Some(delay) = presentation.settings.delay {
        let least = Duration::from_secs(target * 3);
        let _ = writeln!(text, "#EXT-X-SERVER-CONTROL:HOLD-BACK={}", seconds(delay.max(least)));
    }
    match by_ranges {
        true => _ = writeln!(text, "#EXT-X-MAP:URI=\"{id}.mp4\",BYTERANGE=\"{}@0\"", level.init.len()),
        false => _ = writeln!(text, "#EXT-X-MAP:URI=\"{id}/init.mp4\""),
    }
    if let Some(clock) = presentation.clock.as_ref().filter(|_| !window.is_empty()) {
        let _ = writeln!(text, "#EXT-X-PROGRAM-DATE-TIME:{}", date(clock.starts + level.start(window.start)));
    }
    for segment in window.clone() {
        let _ = writeln!(text, "#EXTINF:{},", seconds(level.duration(segment)));
        if by_ranges {
            let bytes = level.bytes(segment);
            // The others go on where the one before ended.
            let at =
                if segment == window.start { format!("@{}", level.offset(segment)) } else { String::new() };
            let _ = writeln!(text, "#EXT-X-BYTERANGE:{bytes}{at}\n{id}.mp4");
        } else {
            let _ = writeln!(text, "{id}/{}.m4s", segment + 1);
        }
    }
    if presentation.clock.as_ref().is_none_or(|clock| clock.is_over(now)) {
        text.push_str("#EXT-X-ENDLIST\n");
    }
    text
}
