//! Objects of the header that describe the file and its streams.

use super::fault::Problem;
use super::fields::{Fields, RawObject};
use super::guid::Guid;

/// Bit of a file's flags: it is being sent, and neither its length nor its duration is known.
pub const FLAG_BROADCAST: u32 = 1;
/// Bit of a file's flags: a player can go to any place.
pub const FLAG_SEEKABLE: u32 = 2;

/// File Properties Object (section 3.2). The declared values need not hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FileProperties {
    /// Its own name, which its Data Object has as well.
    pub id: Guid,
    /// Bytes of the whole file.
    pub file_bytes: u64,
    /// When it was made, in units of 100 ns since 1601.
    pub created_100ns: u64,
    /// Data packets.
    pub packets: u64,
    /// How long it plays, in units of 100 ns, the preroll included.
    pub play_100ns: u64,
    /// How long it is sent, in units of 100 ns, without the preroll.
    pub send_100ns: u64,
    /// How long a player should buffer before it begins, in ms. Presentation times are later by it.
    pub preroll_ms: u64,
    /// [`FLAG_BROADCAST`] and [`FLAG_SEEKABLE`].
    pub flags: u32,
    /// Bytes of the smallest packet; in a file, of every packet.
    pub min_packet_bytes: u32,
    /// Bytes of the largest packet.
    pub max_packet_bytes: u32,
    /// Bits per second of all streams together.
    pub max_bit_rate_bps: u32,
}

impl FileProperties {
    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, Problem> {
        Ok(FileProperties {
            id: fields.guid("file name")?,
            file_bytes: fields.u64("file size")?,
            created_100ns: fields.u64("creation date")?,
            packets: fields.u64("number of packets")?,
            play_100ns: fields.u64("play duration")?,
            send_100ns: fields.u64("send duration")?,
            preroll_ms: fields.u64("preroll")?,
            flags: fields.u32("flags")?,
            min_packet_bytes: fields.u32("minimum packet size")?,
            max_packet_bytes: fields.u32("maximum packet size")?,
            max_bit_rate_bps: fields.u32("maximum bit rate")?,
        })
    }
}

/// Stream Properties Object (section 3.3): one stream.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StreamProperties {
    /// Its number, 1 to 127, which its payloads carry.
    pub number: u8,
    /// Its kind: [`Guid::VIDEO`], [`Guid::AUDIO`] or another.
    pub kind: Guid,
    /// The method that recovers its lost data.
    pub error_correction: Guid,
    /// Offset to add to its presentation times, in units of 100 ns.
    pub time_offset_100ns: u64,
    /// Whether it is encrypted.
    pub is_encrypted: bool,
    /// Data that its decoder requires.
    pub type_specific: Vec<u8>,
    /// Data that its error correction requires.
    pub correction_data: Vec<u8>,
}

impl StreamProperties {
    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, Problem> {
        let (kind, error_correction) = (fields.guid("stream type")?, fields.guid("error correction type")?);
        let time_offset_100ns = fields.u64("time offset")?;
        let (type_bytes, correction_bytes) =
            (fields.u32("length of type-specific data")?, fields.u32("length of error correction data")?);
        let (number, flags) = fields.stream()?;
        fields.u32("reserved field")?;
        Ok(StreamProperties {
            number,
            kind,
            error_correction,
            time_offset_100ns,
            is_encrypted: flags & 0x8000 != 0,
            type_specific: fields.bytes("type-specific data", type_bytes as usize)?.to_vec(),
            correction_data: fields.bytes("error correction data", correction_bytes as usize)?.to_vec(),
        })
    }

    /// Returns the picture format in the type-specific data; `None` for anything but video.
    pub fn video_format(&self) -> Option<VideoFormat> {
        (self.kind == Guid::VIDEO).then(|| VideoFormat::read(&self.type_specific))?
    }

    /// Returns the sound format in the type-specific data; `None` for anything but audio.
    pub fn audio_format(&self) -> Option<AudioFormat> {
        (self.kind == Guid::AUDIO).then(|| AudioFormat::read(&self.type_specific))?
    }
}

/// Type-specific data of video (section 9.2): a size and a BITMAPINFOHEADER.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct VideoFormat {
    /// Pixels of a line.
    pub width: u32,
    /// Lines.
    pub height: u32,
    /// Bits of a pixel.
    pub pixel_bits: u16,
    /// The codec, as `WMV2`.
    pub codec: [u8; 4],
    /// Data that its decoder requires.
    pub codec_data: Vec<u8>,
}

impl VideoFormat {
    fn read(data: &[u8]) -> Option<Self> {
        // Width, height, flags, length, then BITMAPINFOHEADER: length, width, height, planes, bits, codec, 5 numbers.
        let of_32 = |at: usize| Some(u32::from_le_bytes(*data.get(at..)?.first_chunk()?));
        let of_16 = |at: usize| Some(u16::from_le_bytes(*data.get(at..)?.first_chunk()?));
        let header = data.get(11..)?.get(..of_16(9)?.into())?;
        Some(VideoFormat {
            width: of_32(0)?,
            height: of_32(4)?,
            pixel_bits: of_16(25)?,
            codec: *data.get(27..)?.first_chunk()?,
            codec_data: header.get(40..)?.to_vec(),
        })
    }

    /// Returns the type-specific data of it.
    pub fn write(&self) -> Vec<u8> {
        let length = 40 + self.codec_data.len();
        let mut data = [self.width.to_le_bytes(), self.height.to_le_bytes()].concat();
        data.push(2);
        data.extend((length as u16).to_le_bytes());
        data.extend([length as u32, self.width, self.height].map(u32::to_le_bytes).concat());
        data.extend([1, self.pixel_bits].map(u16::to_le_bytes).concat());
        data.extend(self.codec);
        let line_bytes = self.width.saturating_mul(self.pixel_bits.into()).div_ceil(32).saturating_mul(4);
        let image_bytes = line_bytes.saturating_mul(self.height);
        data.extend([image_bytes, 0, 0, 0, 0].map(u32::to_le_bytes).concat());
        data.extend(&self.codec_data);
        data
    }
}

/// Type-specific data of audio (section 9.1): WAVEFORMATEX.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AudioFormat {
    /// The codec, as 0x161 of Windows Media Audio 2 and later.
    pub codec: u16,
    /// Channels.
    pub channels: u16,
    /// Samples per second.
    pub sample_rate_hz: u32,
    /// Bytes per second on average.
    pub byte_rate: u32,
    /// Bytes of a block, which a decoder takes as one.
    pub block_bytes: u16,
    /// Bits of a sample.
    pub sample_bits: u16,
    /// Data that its decoder requires.
    pub codec_data: Vec<u8>,
}

impl AudioFormat {
    fn read(data: &[u8]) -> Option<Self> {
        let of_32 = |at: usize| Some(u32::from_le_bytes(*data.get(at..)?.first_chunk()?));
        let of_16 = |at: usize| Some(u16::from_le_bytes(*data.get(at..)?.first_chunk()?));
        Some(AudioFormat {
            codec: of_16(0)?,
            channels: of_16(2)?,
            sample_rate_hz: of_32(4)?,
            byte_rate: of_32(8)?,
            block_bytes: of_16(12)?,
            sample_bits: of_16(14)?,
            codec_data: data.get(18..)?.get(..of_16(16)?.into())?.to_vec(),
        })
    }

    /// Returns the type-specific data of it.
    pub fn write(&self) -> Vec<u8> {
        let mut data = [self.codec, self.channels].map(u16::to_le_bytes).concat();
        data.extend([self.sample_rate_hz, self.byte_rate].map(u32::to_le_bytes).concat());
        let last = [self.block_bytes, self.sample_bits, self.codec_data.len() as u16];
        data.extend(last.map(u16::to_le_bytes).concat());
        data.extend(&self.codec_data);
        data
    }
}

/// A leaky bucket: the rate of a link and the size of a buffer that a stream requires.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LeakyBucket {
    /// Rate at which it drains, in bits per second of media, without packet overhead.
    pub rate_bps: u32,
    /// Its capacity, in ms at that rate.
    pub buffer_ms: u32,
    /// Its level at the beginning, in ms at that rate.
    pub initial_ms: u32,
}

/// Extended Stream Properties Object (section 4.1).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ExtendedStreamProperties {
    /// The stream's number.
    pub number: u8,
    /// Its begin, in ms; 0 if not declared.
    pub start_ms: u64,
    /// Its end, in ms; 0 if not declared.
    pub end_ms: u64,
    /// On average.
    pub average: LeakyBucket,
    /// At its peak; of a constant rate it is the average.
    pub peak: LeakyBucket,
    /// Bytes of its longest media object; 0 if not declared.
    pub max_object_bytes: u32,
    /// Bit 0: is to be sent reliably; 1: can be sought in; 2: no key frames; 3: key frames are repeated for
    /// late clients.
    pub flags: u32,
    /// Its language: a place in the file's list of languages.
    pub language: u16,
    /// Average duration of a media object, in units of 100 ns; 0 if not declared.
    pub frame_100ns: u64,
    /// Its names in several languages.
    pub names: Vec<StreamName>,
    /// The extensions of its payloads' replicated data, behind the first 8 bytes.
    pub extensions: Vec<PayloadExtension>,
    /// Its properties, where they are in here, which hides it from older players.
    pub properties: Option<StreamProperties>,
}

/// The name of a stream in one language.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StreamName {
    /// A place in the file's list of languages.
    pub language: u16,
    /// Its name; files have UTF-16.
    pub name: String,
}

/// An extension of each payload's replicated data.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PayloadExtension {
    /// Its kind.
    pub system: Guid,
    /// Bytes in each payload; 0xffff: each payload has its own length.
    pub bytes: u16,
    /// Its description.
    pub description: Vec<u8>,
}

impl ExtendedStreamProperties {
    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, Problem> {
        let (start_ms, end_ms) = (fields.u64("start time")?, fields.u64("end time")?);
        let bucket = |fields: &mut Fields<'_>| -> Result<LeakyBucket, Problem> {
            Ok(LeakyBucket {
                rate_bps: fields.u32("data bit rate")?,
                buffer_ms: fields.u32("buffer size")?,
                initial_ms: fields.u32("initial buffer fullness")?,
            })
        };
        let (average, peak) = (bucket(fields)?, bucket(fields)?);
        let (max_object_bytes, flags) = (fields.u32("maximum object size")?, fields.u32("flags")?);
        let (number, _) = fields.stream()?;
        let (language, frame_100ns) = (fields.u16("language")?, fields.u64("average time per frame")?);
        let (names, extensions) = (fields.u16("number of names")?, fields.u16("number of extensions")?);
        let names = (0..names).map(|_| StreamName::read(fields)).collect::<Result<_, _>>()?;
        let extensions = (0..extensions).map(|_| PayloadExtension::read(fields)).collect::<Result<_, _>>()?;
        let properties = match fields.rest() {
            [] => None,
            rest => {
                let object = RawObject::read(rest, fields.at())?.whole()?;
                let is_it = object.id == Guid::STREAM_PROPERTIES;
                is_it.then(|| StreamProperties::read(&mut object.fields())).transpose()?
            }
        };
        Ok(ExtendedStreamProperties {
            number,
            start_ms,
            end_ms,
            average,
            peak,
            max_object_bytes,
            flags,
            language,
            frame_100ns,
            names,
            extensions,
            properties,
        })
    }
}

impl StreamName {
    fn read(fields: &mut Fields<'_>) -> Result<Self, Problem> {
        let (language, length) = (fields.u16("language")?, fields.u16("length of a stream's name")?);
        let bytes = fields.bytes("stream name", length.into())?;
        let units = bytes.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
        let name =
            char::decode_utf16(units).map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
        Ok(StreamName { language, name })
    }
}

impl PayloadExtension {
    fn read(fields: &mut Fields<'_>) -> Result<Self, Problem> {
        let (system, bytes) = (fields.guid("payload extension")?, fields.u16("payload extension's size")?);
        let length = fields.u32("length of a payload extension's description")?;
        let description = fields.bytes("payload extension's description", length as usize)?.to_vec();
        Ok(PayloadExtension { system, bytes, description })
    }
}
