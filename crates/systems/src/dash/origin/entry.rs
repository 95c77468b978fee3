//! Sample entries and codecs: the data that a decoder needs before the first frame.

use crate::media::Codec;
use crate::media::mp4::{full, made, words};

/// A track's sample entry, and how manifests call its codec (RFC 6381).
pub struct Entry {
    pub bytes: Vec<u8>,
    pub codecs: String,
}

/// A picture's sides where they are unknown.
const USUAL_SIZE: (u32, u32) = (640, 360);

/// AudioSpecificConfig of AAC LC at 48 kHz in stereo (ISO/IEC 14496-3 section 1.6.2.1).
const USUAL_SOUND: [u8; 2] = [0x11, 0x90];

impl Entry {
    /// For pictures with known sizes alone: H.264's baseline profile, with matching parameter sets.
    pub fn of_made_pictures(size: (u32, u32)) -> Entry {
        let (width, height) = if size.0 > 0 && size.1 > 0 { size } else { USUAL_SIZE };
        Entry::h264(&[parameter_set(width, height)], &[PICTURE_SET.to_vec()], 4, (width, height))
    }

    /// For sound with known sizes alone: AAC.
    pub fn of_made_sound(timescale: u32) -> Entry {
        Entry::aac(&USUAL_SOUND, 2, timescale)
    }

    /// For a track of a file.
    pub fn of_codec(codec: &Codec, size: (u32, u32), clock_rate: u32) -> Entry {
        match codec {
            Codec::Sizes => Entry::of_made_pictures(size),
            Codec::H264 { sps, pps, length_bytes } => Entry::h264(sps, pps, *length_bytes, size),
            Codec::Mpeg4Visual { config } => {
                // profile_and_level_indication is behind the visual object sequence's start code.
                let at = config.windows(4).position(|bytes| bytes == [0, 0, 1, 0xb0]);
                let profile = at.and_then(|at| config.get(at + 4)).copied().unwrap_or(1);
                let bytes = pictures(b"mp4v", size, esds(0x20, 0x11, config));
                Entry { bytes, codecs: format!("mp4v.20.{profile}") }
            }
            Codec::Aac { config, channels } => Entry::aac(config, *channels, clock_rate),
        }
    }

    /// AVCDecoderConfigurationRecord (ISO/IEC 14496-15 section 5.3.3.1).
    fn h264(sps: &[Vec<u8>], pps: &[Vec<u8>], length_bytes: u8, size: (u32, u32)) -> Entry {
        let profile: [u8; 3] = match sps.first().map(Vec::as_slice) {
            Some([_, profile, constraints, level, ..]) => [*profile, *constraints, *level],
            _ => [66, 0xc0, 30],
        };
        let mut record = vec![1, profile[0], profile[1], profile[2], 0xfc | (length_bytes.clamp(1, 4) - 1)];
        for (sets, reserved) in [(sps, 0xe0), (pps, 0)] {
            let sets = &sets[..sets.len().min(31)];
            record.push(reserved | sets.len() as u8);
            for set in sets {
                record.extend((set.len() as u16).to_be_bytes());
                record.extend(set);
            }
        }
        let bytes = pictures(b"avc1", size, made(b"avcC", record));
        Entry { bytes, codecs: format!("avc1.{:02x}{:02x}{:02x}", profile[0], profile[1], profile[2]) }
    }

    fn aac(config: &[u8], channels: u8, rate: u32) -> Entry {
        let head = [vec![0, 0, 0, 0, 0, 0, 0, 1], vec![0; 8], vec![0, channels, 0, 16, 0, 0, 0, 0]].concat();
        let rate = words([u32::from(u16::try_from(rate).unwrap_or(0)) << 16]);
        let bytes = made(b"mp4a", [head, rate, esds(0x40, 0x15, config)].concat());
        // The object type: 5 bits, or 32 and 6 more where these are all ones.
        let kind = match config {
            [first, second, ..] if first >> 3 == 31 => 32 + ((first & 7) << 3 | second >> 5),
            [first, ..] => first >> 3,
            [] => 2,
        };
        Entry { bytes, codecs: format!("mp4a.40.{kind}") }
    }
}

/// VisualSampleEntry (ISO/IEC 14496-12 section 12.1.3).
fn pictures(name: &[u8; 4], size: (u32, u32), configuration: Vec<u8>) -> Vec<u8> {
    let sides = [size.0, size.1].map(|side| (side.min(65_535) as u16).to_be_bytes()).concat();
    let resolution = 72 << 16;
    let fixed = [
        vec![0, 0, 0, 0, 0, 0, 0, 1],
        vec![0; 16],
        sides,
        words([resolution, resolution, 0]),
        vec![0, 1],
        vec![0; 32],
        // Depth and the end of the entry.
        vec![0, 24, 0xff, 0xff],
    ];
    made(name, [fixed.concat(), configuration].concat())
}

/// A descriptor's length: as many bytes as it needs, of 7 bits each (ISO/IEC 14496-1 section 8.3.3).
fn descriptor(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len() as u32;
    let mut bytes = vec![tag];
    for shift in [21, 14, 7].into_iter().filter(|shift| length >> shift > 0) {
        bytes.push(0x80 | (length >> shift) as u8 & 0x7f);
    }
    bytes.push(length as u8 & 0x7f);
    [&bytes, content].concat()
}

/// `esds` of these types of object and stream (ISO/IEC 14496-1 section 7.2.6.6).
fn esds(object: u8, stream: u8, config: &[u8]) -> Vec<u8> {
    let decoder = [&[object, stream][..], &[0; 11], &descriptor(5, config)].concat();
    let stream = [&[0, 1, 0][..], &descriptor(4, &decoder), &descriptor(6, &[2])].concat();
    full(b"esds", 0, 0, descriptor(3, &stream))
}

/// A picture parameter set of H.264 with nothing in it but defaults (ITU-T H.264 section 7.3.2.2).
const PICTURE_SET: [u8; 4] = [0x68, 0xce, 0x38, 0x80];

/// A sequence parameter set of the baseline profile for pictures of this size (ITU-T H.264 section 7.3.2.1.1).
fn parameter_set(width: u32, height: u32) -> Vec<u8> {
    let blocks = [width, height].map(|side| side.clamp(1, 16_384).div_ceil(16));
    // Table A-1: the lowest level that allows frames of this many macroblocks.
    let levels = [(396, 13), (1620, 30), (3600, 31), (8192, 40), (36_864, 51)];
    let level =
        levels.iter().find(|(most, _)| blocks[0] * blocks[1] <= *most).map_or(62, |(_, level)| *level);
    let mut bits = Bits::default();
    // The set's number, frame numbers of 4 bits, pictures shown as decoded, one reference.
    [0, 0, 2, 1].into_iter().for_each(|number| bits.golomb(number));
    bits.push(0, 1);
    bits.golomb(blocks[0] - 1);
    bits.golomb(blocks[1] - 1);
    // Frames alone; direct_8x8_inference.
    bits.push(0b11, 2);
    let crop = [width.clamp(1, 16_384), height.clamp(1, 16_384)];
    let crop = [0, 1].map(|side| (blocks[side] * 16 - crop[side]) / 2);
    let is_cropped = crop != [0, 0];
    bits.push(u32::from(is_cropped), 1);
    if is_cropped {
        [0, crop[0], 0, crop[1]].into_iter().for_each(|number| bits.golomb(number));
    }
    // No usability information; the end.
    bits.push(0b01, 2);
    let mut set = vec![0x67, 66, 0xc0, level];
    let mut zeros = 0;
    for byte in bits.bytes {
        // Three bytes that look like a start code do not stand in a NAL unit (section 7.4.1).
        if zeros == 2 && byte <= 3 {
            set.push(3);
            zeros = 0;
        }
        zeros = if byte == 0 { zeros + 1 } else { 0 };
        set.push(byte);
    }
    set
}

#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    used: u32,
}

impl Bits {
    fn push(&mut self, value: u32, bits: u32) {
        for at in (0..bits).rev() {
            if self.used.is_multiple_of(8) {
                self.bytes.push(0);
            }
            if let Some(last) = self.bytes.last_mut() {
                *last |= ((value >> at & 1) << (7 - self.used % 8)) as u8;
            }
            self.used += 1;
        }
    }

    /// ue(v) (section 9.1).
    fn golomb(&mut self, number: u32) {
        let bits = (number + 1).ilog2();
        self.push(0, bits);
        self.push(number + 1, bits + 1);
    }
}
