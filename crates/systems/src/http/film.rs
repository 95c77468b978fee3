//! A file that is shown while it is received: its tables from the moov box, then the units that are whole.

use streamgauge_base::{Chunk, Duration, Instant};

use crate::media::mp4::{self, MediaError};
use crate::media::{Asset, Track};
use crate::outbox::Outbox;
use crate::playout::{End, Manner, Playout, Timeline};
use crate::reception::Place;

/// More than this before the media is no moov box: that of [`mp4::MOST_UNITS`] units has 50 MB.
const MOST_HEAD: u64 = 64 << 20;

/// The received bytes of a file, from its first on.
#[derive(Default)]
pub struct Film {
    /// As long as the moov box is not whole.
    head: Vec<u8>,
    came: u64,
    asset: Option<Asset>,
    /// Where each unit ends in the file, its track and its number there; in order.
    units: Vec<(u64, u32, u32)>,
    /// Number of whole ones.
    whole: usize,
}

impl Film {
    /// Returns the tables, once they have come.
    pub fn asset(&self) -> Option<&Asset> {
        self.asset.as_ref()
    }

    /// Units that have not come.
    pub fn missing(&self) -> usize {
        self.units.len() - self.whole
    }

    /// Takes the next bytes of a file of `length`, if that is known. True when its tables have just come.
    pub fn take(&mut self, bytes: &Chunk, length: Option<u64>) -> Result<bool, MediaError> {
        self.came += bytes.len() as u64;
        if self.asset.is_some() {
            return Ok(false);
        }
        self.head.extend(bytes.head());
        self.head.resize(self.came as usize, 0);
        let end = match mp4::movie_end(&self.head)? {
            Some(end) if end > MOST_HEAD => {
                return Err(MediaError::Broken(format!("a moov box that ends at byte {end}")));
            }
            Some(end) if end <= self.came => end,
            None if self.came > MOST_HEAD => return Err(MediaError::NoMovie),
            Some(_) | None => return Ok(false),
        };
        let head = std::mem::take(&mut self.head);
        let asset = mp4::read_head("", &head[..end as usize], length.unwrap_or(u64::MAX))?;
        for (track, number) in asset.tracks.iter().zip(0..) {
            let ends = track.units.iter().map(|unit| unit.offset + u64::from(unit.bytes));
            self.units.extend(ends.zip(0..).map(|(end, unit)| (end, number, unit)));
        }
        self.units.sort_unstable();
        self.asset = Some(asset);
        Ok(true)
    }

    /// Returns a playout for its tracks, asked for at `asked`. `None` before the tables have come.
    pub fn playout(&self, manner: Manner, asked: Instant) -> Option<Playout> {
        let asset = self.asset.as_ref()?;
        let pictures = asset.tracks.iter().position(Track::is_video);
        let main = pictures.unwrap_or(0);
        let intervals: Vec<_> = asset.tracks.iter().map(interval).collect();
        let end = asset.tracks[main].end().map(|at| End { at, of_pictures: true });
        let mut playout = Playout::new(manner, &intervals, main, asked, Duration::ZERO, end);
        if pictures.is_none() {
            playout.play_sound_alone();
        }
        for (index, track) in asset.tracks.iter().enumerate() {
            playout.anchor(index, Timeline::new(track.clock_rate, 0, Duration::ZERO));
        }
        Some(playout)
    }

    /// Notifies `playout` of the units that have become whole.
    pub fn tell(&mut self, now: Instant, playout: &mut Playout, events: &mut Outbox) {
        let Some(asset) = &self.asset else { return };
        while let Some(&(_, track, number)) = self.units.get(self.whole).filter(|(end, ..)| *end <= self.came)
        {
            self.whole += 1;
            let described = &asset.tracks[track as usize];
            let timestamp = described.ticks(described.units[number as usize].shown) as u32;
            let place = Place { sequence: number, timestamp, first: true, last: true };
            playout.arrived(now, track as usize, place, None, events);
        }
    }
}

/// Returns the time between units, if it is the same between all and they begin with the media; half a tick
/// either way is a rounding.
fn interval(track: &Track) -> Option<Duration> {
    let mut shown: Vec<u64> = track.units.iter().map(|unit| unit.shown.as_nanos()).collect();
    shown.sort_unstable();
    let (first, last) = shown.first().zip(shown.last())?;
    let steps = shown.len() as u64 - 1;
    let step = (last - first).checked_div(steps).filter(|step| *step > 0)?;
    let is_near = |(at, number): (&u64, u64)| {
        let expected = u128::from(last - first) * u128::from(number) / u128::from(steps);
        u128::from(*at).abs_diff(expected) < u128::from(step / 4)
    };
    shown.iter().zip(0..).all(is_near).then(|| Duration::from_nanos(((last - first) + steps / 2) / steps))
}
