//! One stream of a session: its place in the media, the part of it that is sent, and its packets.

use std::sync::Arc;

use streamgauge_base::Duration;
use streamgauge_wire::asf::{self, DataPacket, MediaObject, PacketSize};
use streamgauge_wire::mms::ThinningLevel;

use super::super::object::{Object, Place, encoding_at};

/// A media object's bytes where only its size is known.
static NOTHING: [u8; 1 << 18] = [0; 1 << 18];

/// A packet of ASF, as RTP carries it.
pub struct Packed {
    /// Time when its first media object is presented, in ms.
    pub at_ms: u32,
    /// Whether it is of key frames.
    pub is_key: bool,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// An encoding on its way.
pub struct Stream {
    object: Arc<Object>,
    /// Its number in the description, and in packets.
    pub number: u8,
    pub place: Place,
    /// The part of it that is sent.
    pub level: ThinningLevel,
    /// The next frame.
    frame: u64,
    /// Media objects so far.
    objects: u32,
    /// Whether nothing is sent before a key frame.
    waits: bool,
}

impl Stream {
    /// Makes a stream with all of it sent, from the beginning until `seek` sets another place, and nothing before a key
    /// frame.
    pub fn new(object: Arc<Object>, number: u8, place: Place) -> Self {
        Stream { object, number, place, level: ThinningLevel::All, frame: 0, objects: 0, waits: true }
    }

    /// Continues from `at`.
    pub fn seek(&mut self, at: Duration) {
        self.frame = encoding_at(&self.object, self.place).first_at(at);
        self.waits = true;
    }

    /// Switches to another encoding, from its next key frame on; or to as much of it from now on.
    pub fn switch(&mut self, number: u8, place: Place, level: ThinningLevel, position: Duration) {
        if place != self.place || level < self.level {
            // A reduction applies at once, and frames that depend on left-out ones return with the next key frame.
            self.waits = true;
        }
        if place != self.place {
            (self.number, self.place) = (number, place);
            self.seek(position);
        }
        self.level = level;
    }

    /// Returns the rate of the sent part, in bit/s.
    pub fn sent_bps(&self) -> u64 {
        let encoding = encoding_at(&self.object, self.place);
        match self.level {
            ThinningLevel::All => encoding.bit_rate_bps,
            ThinningLevel::KeyFrames => encoding.key_rate_bps,
            ThinningLevel::Nothing => 0,
        }
    }

    /// Returns the media objects up to `to`, in packets of at most `packet_bytes`, that are presented `preroll` later
    /// than they are shown in the media.
    pub fn take(&mut self, to: Duration, packet_bytes: u32, preroll_ms: u32) -> Vec<Packed> {
        let object = self.object.clone();
        let encoding = encoding_at(&object, self.place);
        let mut found = Vec::new();
        let first = self.objects;
        while let Some(frame) = encoding.frame(self.frame).filter(|frame| frame.at < to) {
            self.waits &= !frame.is_key;
            let goes = match self.level {
                ThinningLevel::All => !self.waits,
                ThinningLevel::KeyFrames => frame.is_key,
                ThinningLevel::Nothing => false,
            };
            if goes {
                let media = encoding.media(self.frame, frame);
                let data = match (media.head(), NOTHING.get(..frame.bytes as usize)) {
                    ([], Some(nothing)) => nothing.into(),
                    ([], None) => vec![0; frame.bytes as usize].into(),
                    (head, _) => head.to_vec().into(),
                };
                let presentation_ms = millis(frame.at).saturating_add(preroll_ms);
                let (stream, is_key) = (self.number, frame.is_key);
                found.push(MediaObject { stream, number: self.objects, presentation_ms, is_key, data });
                self.objects = self.objects.wrapping_add(1);
            }
            self.frame += 1;
        }
        let packets = asf::pack(&found, first, self.number, packet_bytes as usize);
        packets.into_iter().map(|packet| packed(packet, preroll_ms)).collect()
    }
}

fn packed(packet: DataPacket<'_>, preroll_ms: u32) -> Packed {
    let presented =
        packet.payloads.iter().filter_map(|payload| payload.of).map(|of| of.presentation_ms).min();
    let at_ms = presented.unwrap_or(0).saturating_sub(preroll_ms);
    let packet = DataPacket { send_ms: at_ms, ..packet };
    let bytes = asf::write_packet(&packet, PacketSize::Stripped).expect("what was packed fits");
    Packed { at_ms, is_key: packet.is_key(), bytes }
}

fn millis(time: Duration) -> u32 {
    (time.as_nanos() / 1_000_000) as u32
}
