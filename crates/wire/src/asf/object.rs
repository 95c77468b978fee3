//! Media objects, put together from the payloads of packets.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::packet::{DataPayload, ObjectFields};

/// The unit that a decoder decodes at once: a frame of pictures, a block of sound.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MediaObject<'a> {
    /// Its stream's number.
    pub stream: u8,
    /// Its own number, which wraps.
    pub number: u32,
    /// When it is presented, in ms, the preroll included.
    pub presentation_ms: u32,
    /// True if it is marked as a key frame.
    pub is_key: bool,
    /// Its bytes; for one received in one piece, in their original place.
    pub data: Cow<'a, [u8]>,
}

/// Puts media objects together, of each stream one at a time. It holds received data, never announced data.
#[derive(Clone, Debug, Default)]
pub struct ObjectAssembler {
    latest: BTreeMap<u8, Latest>,
    given_up: u64,
}

/// The latest media object of a stream, if it is not complete.
#[derive(Clone, Debug)]
enum Latest {
    /// Its first part is there, and all behind it so far.
    Open(Open),
    /// A part of the one of this number is missing.
    GivenUp(u32),
}

/// A media object received in part.
#[derive(Clone, Debug)]
struct Open {
    number: u32,
    is_key: bool,
    of: ObjectFields,
    data: Vec<u8>,
}

impl Open {
    /// Returns whether `payload` is the next one.
    fn takes(&self, payload: &DataPayload<'_>) -> bool {
        self.number == payload.object
            && self.data.len() == payload.offset as usize
            && payload.of.is_none_or(|of| of == self.of)
            && payload.data.len() <= self.of.bytes as usize - self.data.len()
    }
}

impl ObjectAssembler {
    /// Takes the next payload, and gives the media object that is complete with it. An incomplete one is
    /// given up when another arrives.
    pub fn push<'a>(&mut self, payload: &DataPayload<'a>) -> Option<MediaObject<'a>> {
        let DataPayload { stream, is_key, object: number, data, .. } = *payload;
        let open = match (self.latest.remove(&stream), payload.of) {
            (Some(Latest::Open(mut open)), _) if open.takes(payload) => {
                open.data.extend(data);
                open
            }
            (before, of) => {
                let before = match before {
                    Some(Latest::Open(open)) => {
                        self.given_up += 1;
                        Some(open.number)
                    }
                    Some(Latest::GivenUp(number)) => Some(number),
                    None => None,
                };
                let Some(of) = of.filter(|_| payload.offset == 0) else {
                    // Its first part is missing, which is reported once.
                    self.given_up += u64::from(before != Some(number));
                    self.latest.insert(stream, Latest::GivenUp(number));
                    return None;
                };
                if data.len() == of.bytes as usize {
                    let data = Cow::Borrowed(data);
                    return Some(MediaObject {
                        stream,
                        number,
                        presentation_ms: of.presentation_ms,
                        is_key,
                        data,
                    });
                }
                Open { number, is_key, of, data: data.to_vec() }
            }
        };
        if open.data.len() < open.of.bytes as usize {
            self.latest.insert(stream, Latest::Open(open));
            return None;
        }
        let Open { number, is_key, of: ObjectFields { presentation_ms, .. }, data } = open;
        Some(MediaObject { stream, number, presentation_ms, is_key, data: data.into() })
    }

    fn all_open(&self) -> impl Iterator<Item = &Open> {
        self.latest.values().filter_map(|latest| match latest {
            Latest::Open(open) => Some(open),
            Latest::GivenUp(_) => None,
        })
    }

    /// Returns the bytes that it holds.
    pub fn bytes(&self) -> usize {
        self.all_open().map(|open| open.data.len()).sum()
    }

    /// Returns the number of incomplete media objects.
    pub fn open(&self) -> usize {
        self.all_open().count()
    }

    /// Returns the number of media objects that were received in part and lack another part.
    pub fn given_up(&self) -> u64 {
        self.given_up
    }
}
