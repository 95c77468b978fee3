//! Which streams of an object a session sends, and how much of each.

use streamgauge_wire::mms::{StreamSwitch, ThinningLevel};

use super::super::object::{AUDIO, Place, VIDEO, place_of, places};
use super::session::{Track, Way, WmSession};
use super::stream::Stream;

impl WmSession {
    /// Selects each stream in the place of another, or beside those that are sent. Returns whether all could be; does
    /// none if one of them cannot be as streams are now.
    pub fn select(&mut self, switches: &[StreamSwitch], way: Way) -> bool {
        let number = |stream: Option<u16>| stream.and_then(|number| u8::try_from(number).ok());
        let has = |tracks: &[Track], from: u8| tracks.iter().any(|track| track.stream.number == from);
        let fits = |switch: &StreamSwitch| match (number(switch.from), number(switch.to)) {
            (None, Some(to)) => switch.from.is_none() && place_of(&self.object, to).is_some(),
            (Some(from), None) => switch.to.is_none() && has(&self.tracks, from),
            (Some(from), Some(to)) => self.can_switch(from, to).is_some(),
            (None, None) => false,
        };
        if !switches.iter().all(fits) {
            return false;
        }
        for switch in switches {
            match (number(switch.from), number(switch.to)) {
                (Some(from), Some(to)) => {
                    self.switch(from, to, switch.level);
                }
                (Some(from), None) => {
                    self.switch(from, from, ThinningLevel::Nothing);
                }
                (None, Some(to)) if has(&self.tracks, to) => {
                    self.switch(to, to, switch.level);
                }
                (None, Some(to)) if switch.level < ThinningLevel::Nothing => self.add(to, switch.level, way),
                (None, _) => {}
            }
        }
        true
    }

    /// Selects sound, and the pictures of the highest rate: the default for a client that selects no streams.
    pub fn select_usual(&mut self, way: Way) {
        let of = |stream| places(&self.object).filter(move |(_, place)| place.stream == stream).last();
        let usual: Vec<u8> = [of(AUDIO), of(VIDEO)].into_iter().flatten().map(|(number, _)| number).collect();
        usual.into_iter().for_each(|number| self.add(number, ThinningLevel::All, way));
    }

    fn add(&mut self, number: u8, level: ThinningLevel, way: Way) {
        let Some(place) = place_of(&self.object, number) else { return };
        let mut stream = Stream::new(self.object.clone(), number, place);
        stream.seek(self.position());
        stream.level = level;
        self.tracks.push(Track { number: number.into(), way, stream });
    }

    /// Returns where `to` is, if a track has `from` and the two are of one kind.
    fn can_switch(&self, from: u8, to: u8) -> Option<Place> {
        let place = place_of(&self.object, to)?;
        let track = self.tracks.iter().find(|track| track.stream.number == from)?;
        (track.stream.place.stream == place.stream).then_some(place)
    }

    /// Sends `level` of the stream `to`, where `from` was. Returns whether that can be.
    pub fn switch(&mut self, from: u8, to: u8, level: ThinningLevel) -> bool {
        let Some(place) = self.can_switch(from, to) else { return false };
        let position = self.position();
        let mut tracks = self.tracks.iter_mut();
        if let Some(track) = tracks.find(|track| track.stream.number == from) {
            track.stream.switch(to, place, level, position);
        }
        true
    }
}
