//! Chunks that describe the file, its streams and its author.

use super::fault::Problem;
use super::fields::Fields;

/// PROP: the file as a whole. The declared values need not hold; ffmpeg writes 0 for unknown ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FileProperties {
    /// Most bits per second that all streams take together.
    pub max_bit_rate_bps: u32,
    /// Bits per second on average.
    pub avg_bit_rate_bps: u32,
    /// Bytes of the largest packet.
    pub max_packet_bytes: u32,
    /// Bytes of a packet on average.
    pub avg_packet_bytes: u32,
    /// Packets.
    pub packets: u32,
    /// How long it plays, in ms.
    pub duration_ms: u32,
    /// How long a player should buffer before it begins, in ms.
    pub preroll_ms: u32,
    /// Where the first INDX begins; 0 if there is none.
    pub index_offset: u32,
    /// Where the first DATA begins.
    pub data_offset: u32,
    /// Streams.
    pub streams: u16,
    /// Bit 0: may be saved; bit 1: may be buffered beyond its preroll; bit 2: a live broadcast.
    pub flags: u16,
}

impl FileProperties {
    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, Problem> {
        Ok(FileProperties {
            max_bit_rate_bps: fields.u32("maximum bit rate")?,
            avg_bit_rate_bps: fields.u32("average bit rate")?,
            max_packet_bytes: fields.u32("maximum packet size")?,
            avg_packet_bytes: fields.u32("average packet size")?,
            packets: fields.u32("number of packets")?,
            duration_ms: fields.u32("duration")?,
            preroll_ms: fields.u32("preroll")?,
            index_offset: fields.u32("index offset")?,
            data_offset: fields.u32("data offset")?,
            streams: fields.u16("number of streams")?,
            flags: fields.u16("flags")?,
        })
    }
}

/// MDPR: one stream.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StreamProperties {
    /// Its number, which its packets carry.
    pub number: u16,
    /// Most bits per second that it takes.
    pub max_bit_rate_bps: u32,
    /// Bits per second on average.
    pub avg_bit_rate_bps: u32,
    /// Bytes of its largest packet.
    pub max_packet_bytes: u32,
    /// Bytes of its packets on average.
    pub avg_packet_bytes: u32,
    /// Offset to add to its packets' times, in ms.
    pub start_time_ms: u32,
    /// How long a player should buffer of it before it begins, in ms.
    pub preroll_ms: u32,
    /// How long it plays, in ms.
    pub duration_ms: u32,
    /// How it is called; at most 255 characters.
    pub name: String,
    /// Its type, as `video/x-pn-realvideo`; at most 255 characters.
    pub mime_type: String,
    /// Data that its decoder requires.
    pub type_specific: Vec<u8>,
}

impl StreamProperties {
    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, Problem> {
        let text = |fields: &mut Fields<'_>, field| {
            let length = fields.u8(field)?;
            fields.text(field, length.into())
        };
        Ok(StreamProperties {
            number: fields.u16("stream number")?,
            max_bit_rate_bps: fields.u32("maximum bit rate")?,
            avg_bit_rate_bps: fields.u32("average bit rate")?,
            max_packet_bytes: fields.u32("maximum packet size")?,
            avg_packet_bytes: fields.u32("average packet size")?,
            start_time_ms: fields.u32("start time")?,
            preroll_ms: fields.u32("preroll")?,
            duration_ms: fields.u32("duration")?,
            name: text(fields, "stream name")?,
            mime_type: text(fields, "MIME type")?,
            type_specific: {
                let length = fields.u32("type-specific data")?;
                fields.bytes("type-specific data", length as usize)?.to_vec()
            },
        })
    }

    /// Returns true of a stream that groups others, as several encodings of one thing, and has no packets of
    /// its own: its type begins with `logical-`.
    pub fn is_logical(&self) -> bool {
        self.mime_type.starts_with("logical-")
    }

    /// Returns the picture format in the type-specific data; `None` for anything but video.
    pub fn video_format(&self) -> Option<VideoFormat> {
        VideoFormat::read(&self.type_specific)
    }
}

/// Type-specific data of video: `VIDO`, as ffmpeg writes and reads them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VideoFormat {
    /// The codec, as `RV20`.
    pub codec: [u8; 4],
    /// Pixels of a line.
    pub width: u16,
    /// Lines.
    pub height: u16,
    /// Frames per second times 65536.
    pub frame_rate_65536: u32,
}

impl VideoFormat {
    fn read(data: &[u8]) -> Option<VideoFormat> {
        // Length, VIDO, codec, width, height, bits per pixel, padding of both, frame rate.
        let rest = data.get(4..)?.strip_prefix(b"VIDO")?;
        let number = |at: usize| Some(u16::from_be_bytes(*rest.get(at..)?.first_chunk()?));
        Some(VideoFormat {
            codec: *rest.first_chunk()?,
            width: number(4)?,
            height: number(6)?,
            frame_rate_65536: u32::from(number(14)?) << 16 | u32::from(number(16)?),
        })
    }
}

/// CONT: four texts, which may be empty.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ContentDescription {
    /// Title.
    pub title: String,
    /// Author.
    pub author: String,
    /// Copyright.
    pub copyright: String,
    /// Comment.
    pub comment: String,
}

impl ContentDescription {
    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, Problem> {
        let text = |fields: &mut Fields<'_>, field| {
            let length = fields.u16(field)?;
            fields.text(field, length.into())
        };
        Ok(ContentDescription {
            title: text(fields, "title")?,
            author: text(fields, "author")?,
            copyright: text(fields, "copyright")?,
            comment: text(fields, "comment")?,
        })
    }
}
