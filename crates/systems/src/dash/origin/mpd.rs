//! The presentation as MPDs (ISO/IEC 23009-1).

use std::fmt::Write;
use std::ops::Range;

use streamgauge_base::{Duration, Instant};

use super::Presentation;
use super::level::Level;
use super::written::{date, seconds};

/// The way in which an MPD lists segments.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `$Number$`, with one length for all where they have one.
    Number,
    /// `$Time$` with a SegmentTimeline.
    Timeline,
    /// Ranges of one file by its index.
    Ranges,
}

/// The MPD of this form at `now`.
pub fn write(presentation: &Presentation, form: Form, now: Instant) -> String {
    let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    let profile = if form == Form::Ranges { "isoff-on-demand" } else { "isoff-live" };
    let _ = write!(
        text,
        "<MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\" profiles=\"urn:mpeg:dash:profile:{profile}:2011\" \
         minBufferTime=\"PT{}S\"",
        seconds(presentation.segment)
    );
    let moves = presentation.moves(form);
    if let Some(clock) = &presentation.clock {
        let _ = write!(text, " type=\"dynamic\" availabilityStartTime=\"{}\"", date(clock.starts));
        let published = if moves { clock.unix(now).max(clock.starts) } else { clock.starts };
        let _ = write!(text, " publishTime=\"{}\"", date(published));
        let settings = &presentation.settings;
        let _ = write!(text, " timeShiftBufferDepth=\"PT{}S\"", seconds(settings.live_window));
        if let Some(delay) = settings.delay {
            let _ = write!(text, " suggestedPresentationDelay=\"PT{}S\"", seconds(delay));
        }
        if moves && !clock.is_over(now) {
            let _ = write!(text, " minimumUpdatePeriod=\"PT{}S\"", seconds(settings.update));
        }
    } else {
        text.push_str(" type=\"static\"");
    }
    // A pattern that never changes has an end that is known from the start.
    if presentation.clock.as_ref().is_none_or(|clock| !moves || clock.is_over(now)) {
        let _ = write!(text, " mediaPresentationDuration=\"PT{}S\"", seconds(presentation.duration));
    }
    text.push_str(">\n<Period id=\"0\" start=\"PT0S\">\n");
    let window = presentation.window(now);
    for (number, is_video) in [true, false].into_iter().enumerate() {
        let levels: Vec<&Level> = presentation.levels().filter(|level| level.is_video == is_video).collect();
        if !levels.is_empty() {
            set(&mut text, presentation, form, number, &levels, &window);
        }
    }
    text.push_str("</Period>\n</MPD>\n");
    text
}

fn set(
    text: &mut String,
    presentation: &Presentation,
    form: Form,
    number: usize,
    levels: &[&Level],
    window: &Range<usize>,
) {
    let kind = if levels[0].is_video { "video" } else { "audio" };
    let _ = writeln!(
        text,
        "<AdaptationSet id=\"{number}\" contentType=\"{kind}\" mimeType=\"{kind}/mp4\" segmentAlignment=\"true\" \
         startWithSAP=\"1\">"
    );
    let mut told: Vec<String> =
        levels.iter().map(|level| segments(presentation, form, level, window)).collect();
    // Equal data is written once.
    if form != Form::Ranges && told.iter().all(|one| *one == told[0]) {
        text.push_str(&told[0]);
        told.fill(String::new());
    }
    for (level, told) in levels.iter().zip(&told) {
        let _ = write!(text, "<Representation id=\"{}\" bandwidth=\"{}\"", level.id, level.rate_bps);
        let (width, height) = level.size;
        if width > 0 && height > 0 {
            let _ = write!(text, " width=\"{width}\" height=\"{height}\"");
        }
        let _ = write!(text, " codecs=\"{}\"", level.codecs);
        match told.as_str() {
            "" => text.push_str("/>\n"),
            told => _ = writeln!(text, ">\n{told}</Representation>"),
        }
    }
    text.push_str("</AdaptationSet>\n");
}

fn segments(presentation: &Presentation, form: Form, level: &Level, window: &Range<usize>) -> String {
    let Level { id, timescale, init, index, .. } = level;
    if form == Form::Ranges {
        let (init, index) = (init.len(), index.len());
        return format!(
            "<BaseURL>{id}.mp4</BaseURL>\n<SegmentBase timescale=\"{timescale}\" indexRange=\"{init}-{}\">\
             <Initialization range=\"0-{}\"/></SegmentBase>\n",
            init + index - 1,
            init - 1,
        );
    }
    let (name, early) = match form {
        Form::Timeline => ("t$Time$", String::new()),
        _ => ("$Number$", presentation.early()),
    };
    let addresses = format!(
        "initialization=\"$RepresentationID$/init.mp4\" media=\"$RepresentationID$/{name}.m4s\"{early}"
    );
    if let Some((timescale, length)) = presentation.pattern(level).filter(|_| form == Form::Number) {
        return format!(
            "<SegmentTemplate timescale=\"{timescale}\" duration=\"{length}\" startNumber=\"1\" {addresses}/>\n"
        );
    }
    let window = window.start.min(level.segments())..window.end.min(level.segments());
    // 1 is the default. ffmpeg's player (5.1) needs it with numbers. With times it misses the first segments if it is
    // there.
    let first = match presentation.clock {
        None if form == Form::Timeline => String::new(),
        _ => format!("startNumber=\"{}\" ", window.start + 1),
    };
    let mut text =
        format!("<SegmentTemplate timescale=\"{timescale}\" {first}{addresses}>\n<SegmentTimeline>\n");
    let mut run: Option<(u64, u64, u64)> = None;
    let tell = |text: &mut String, run: Option<(u64, u64, u64)>| match run {
        Some((start, length, 1)) => _ = writeln!(text, "<S t=\"{start}\" d=\"{length}\"/>"),
        Some((start, length, count)) => {
            _ = writeln!(text, "<S t=\"{start}\" d=\"{length}\" r=\"{}\"/>", count - 1);
        }
        None => {}
    };
    for segment in window {
        let (start, end) = (level.ticks(segment), level.ticks(segment + 1));
        run = match run {
            Some((first, length, count)) if length == end - start => Some((first, length, count + 1)),
            before => {
                tell(&mut text, before);
                Some((start, end - start, 1))
            }
        };
    }
    tell(&mut text, run);
    text.push_str("</SegmentTimeline>\n</SegmentTemplate>\n");
    text
}

impl Presentation {
    /// Ticks of a second and of each segment, where one length describes a level's segments. Sound is cut at the first
    /// block behind the pictures' cut, so live it has their length by and large, as DASH-IF's guidelines allow.
    fn pattern(&self, level: &Level) -> Option<(u64, u64)> {
        let fits = |level: &Level| {
            let length = level.steady()?;
            let whole = self.duration.saturating_sub(Duration::from_millis(1));
            let ticks = u128::from(whole.as_nanos()) * u128::from(level.timescale);
            let count = ticks.div_ceil(u128::from(length) * 1_000_000_000).max(1);
            (count == level.segments() as u128).then_some((level.timescale, length))
        };
        let pictures = || self.levels().next().filter(|_| self.clock.is_some() && !level.is_video);
        fits(level).or_else(|| pictures().and_then(fits))
    }

    /// Returns whether the MPD of this form changes with time.
    pub fn moves(&self, form: Form) -> bool {
        self.clock.is_some()
            && (form == Form::Timeline || self.levels().any(|level| self.pattern(level).is_none()))
    }

    fn early(&self) -> String {
        match &self.clock {
            Some(_) if self.settings.early > Duration::ZERO => {
                format!(" availabilityTimeOffset=\"{}\"", seconds(self.settings.early))
            }
            _ => String::new(),
        }
    }
}
