//! The reader reads the origin's manifests back, and every byte is in its listed place.

mod live;
mod made;

use super::*;
use crate::dash::manifest::{
    Address, Manifest, MediaKind, MediaSegment, Representation, Segments, read_index, read_playlist,
};
use crate::http::Library;
use crate::media::ClipSpec;

const HOST: &str = "http://server/films";

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// A level of 25 frames a second with a key frame each second, in passes of `pass` frames.
fn pictures(rate_bps: u64, pass: u32, duration: Duration) -> LevelSpec {
    let bytes = (rate_bps / 200) as u32;
    let clip = ClipSpec {
        name: "clip".into(),
        duration,
        frame_interval: ms(40),
        frame_bytes: (0..pass)
            .map(|n| if n % 25 == 0 { bytes * 3 } else { bytes - n % 7 })
            .collect::<Vec<_>>()
            .into(),
        key_frames: (0..pass).step_by(25).collect::<Vec<_>>().into(),
        ..ClipSpec::default()
    };
    LevelSpec { bit_rate_bps: rate_bps, size: (640, 360), clip }
}

/// Blocks of 1024 samples at 48 kHz.
fn sound(duration: Duration) -> LevelSpec {
    let clip = ClipSpec {
        name: "clip".into(),
        duration,
        frame_interval: Duration::from_nanos(21_333_333),
        frame_bytes: vec![170, 171, 169].into(),
        key_frames: vec![0, 1, 2].into(),
        ..ClipSpec::default()
    };
    LevelSpec { bit_rate_bps: 64_000, size: (0, 0), clip }
}

fn ladder(rates: &[u64], segment: Duration, duration: Duration, has_sound: bool) -> LadderSpec {
    LadderSpec {
        name: "ladder".into(),
        segment,
        video: rates.iter().map(|rate| pictures(*rate, 250, duration)).collect(),
        audio: has_sound.then(|| sound(duration)),
    }
}

fn usual() -> Presentation {
    let ladder = ladder(&[300_000, 1_000_000, 3_000_000], ms(4_000), ms(22_000), true);
    Presentation::of_ladder(&ladder, &OriginSettings::default()).unwrap()
}

/// A resource's bytes, filler as zeros, in pieces of `piece`.
fn fetched_in(presentation: &Presentation, path: &str, now: Instant, piece: u64) -> Option<Vec<u8>> {
    let resource = presentation.find(path, now).unwrap()?;
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < resource.length() {
        let at = bytes.len() as u64;
        let chunk = resource.read(at, piece.min(resource.length() - at)).unwrap();
        assert!(!chunk.is_empty() && chunk.len() as u64 <= piece, "{path} at {at}");
        bytes.extend(chunk.head());
        bytes.resize(at as usize + chunk.len(), 0);
    }
    assert_eq!(bytes.len() as u64, resource.length(), "{path}");
    Some(bytes)
}

fn fetched(presentation: &Presentation, address: &Address, now: Instant) -> Option<Vec<u8>> {
    let path = address.url.strip_prefix(HOST).unwrap();
    let whole = fetched_in(presentation, path, now, 1 << 20)?;
    Some(match address.range {
        None => whole,
        Some((first, last)) => whole[first as usize..=last as usize].to_vec(),
    })
}

/// The manifest at `path`.
fn manifest(presentation: &Presentation, path: &str, now: Instant) -> Manifest {
    let bytes = fetched_in(presentation, path, now, 1000).unwrap();
    let manifest = Manifest::read(&bytes, &format!("{HOST}{path}"));
    manifest.unwrap_or_else(|error| panic!("{error}\n{}", String::from_utf8_lossy(&bytes)))
}

/// A representation's initialization and segments, in any form of list.
fn told(presentation: &Presentation, one: &Representation, now: Instant) -> (Address, Vec<MediaSegment>) {
    let init = || one.init.clone().unwrap();
    match &one.segments {
        Segments::Listed(segments) => (init(), segments.clone()),
        Segments::Numbered(template) => (init(), template.from(0).take(10_000).collect()),
        Segments::Indexed { address, window } => {
            let index = fetched(presentation, address, now).unwrap();
            let (first, _) = address.range.unwrap();
            (init(), read_index(&index, first, &address.url, window).unwrap())
        }
        Segments::Playlist(address) => {
            let playlist =
                read_playlist(&fetched(presentation, address, now).unwrap(), &address.url, &[]).unwrap();
            (playlist.init.as_deref().cloned().unwrap(), playlist.segments)
        }
    }
}
