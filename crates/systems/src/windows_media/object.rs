//! An object of Windows Media: sound, and pictures at several rates, each a stream of ASF with a number of its own.

use streamgauge_wire::asf::StreamProperties;

use crate::media::object;
pub use crate::media::object::{AUDIO, CodedFrames, OneObject, Shelf, VIDEO};

/// An object has at most this many video streams (the thesis, section 2.3.2).
pub const MOST_ENCODINGS: usize = 10;

/// Something to stream.
pub type Object = object::Object<StreamProperties>;

/// Pictures or sound.
pub type Stream = object::Stream<StreamProperties>;

/// A stream at one rate.
pub type Encoding = object::Encoding<StreamProperties>;

/// One encoding of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// [`VIDEO`] or [`AUDIO`].
    pub stream: usize,
    /// Which encoding of it.
    pub encoding: usize,
}

/// Returns the encodings of an object with their numbers, sound before pictures, each from the lowest rate on. The
/// numbers are those of the file, or where there is none count from 1 in this order.
pub fn places(object: &Object) -> impl Iterator<Item = (u8, Place)> + '_ {
    let of = |stream: usize| {
        let encodings = object.streams.get(stream).map_or(0, |stream| stream.encodings.len());
        (0..encodings).map(move |encoding| Place { stream, encoding })
    };
    let counted = (1..).zip(of(AUDIO).chain(of(VIDEO)));
    counted.map(|(count, place)| {
        let said = encoding_at(object, place).properties.as_ref();
        (said.map_or(count, |said| said.number), place)
    })
}

/// Returns the place of the encoding of that number.
pub fn place_of(object: &Object, number: u8) -> Option<Place> {
    places(object).find(|(known, _)| *known == number).map(|(_, place)| place)
}

/// Returns the encoding at `place`, which exists.
pub fn encoding_at(object: &Object, place: Place) -> &Encoding {
    &object.streams[place.stream].encodings[place.encoding]
}
