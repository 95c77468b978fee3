//! Manifests as people write them, and malformed ones.

mod copies;
mod encryption;
mod hls;
mod index;
mod mpd;
mod periods;
mod renditions;
mod sets;
mod strangers;

use super::*;

const URL: &str = "http://origin.example/films/a/manifest?x=1";

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn read(text: &str) -> Manifest {
    Manifest::read(text.as_bytes(), URL).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn refused(text: &str) -> String {
    match Manifest::read(text.as_bytes(), URL) {
        Ok(read) => panic!("{read:?}\n{text}"),
        Err(error) => error.to_string(),
    }
}

fn listed(representation: &Representation) -> &[MediaSegment] {
    match &representation.segments {
        Segments::Listed(segments) => segments,
        other => panic!("{other:?}"),
    }
}

fn numbered(representation: &Representation) -> &Template {
    match &representation.segments {
        Segments::Numbered(template) => template,
        other => panic!("{other:?}"),
    }
}

/// Start and duration in ms, and the part of the URL after the host.
fn told(segments: &[MediaSegment]) -> Vec<(u64, u64, &str)> {
    let ms = |time: Duration| time.as_nanos() / 1_000_000;
    let path =
        |segment: &'_ MediaSegment| segment.address.url.strip_prefix("http://origin.example").unwrap().len();
    segments
        .iter()
        .map(|one| {
            let url = &one.address.url;
            (ms(one.start), ms(one.duration), &url[url.len() - path(one)..])
        })
        .collect()
}
