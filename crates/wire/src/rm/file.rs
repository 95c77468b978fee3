//! A file's chunks, and the packets in its media chunk.

use super::fault::{ChunkName, Fault, Problem};
use super::fields::Fields;
use super::headers::{ContentDescription, FileProperties, StreamProperties};

/// More streams than this are refused. Eight audiences of four streams each and their groups are fewer than
/// half.
pub const MOST_STREAMS: usize = 128;

/// Bit of a packet's flags: it must arrive, despite any loss.
pub const FLAG_RELIABLE: u8 = 1;
/// Bit of a packet's flags: of a key frame.
pub const FLAG_KEY: u8 = 2;

const FILE: ChunkName = ChunkName(*b".RMF");
const PROPERTIES: ChunkName = ChunkName(*b"PROP");
const STREAM: ChunkName = ChunkName(*b"MDPR");
const DESCRIPTION: ChunkName = ChunkName(*b"CONT");
const DATA: ChunkName = ChunkName(*b"DATA");

/// Name, length and version, which all chunks begin with.
const CHUNK_HEADER_BYTES: usize = 10;
/// DATA's, with the number of packets and where the next DATA is.
const DATA_HEADER_BYTES: usize = CHUNK_HEADER_BYTES + 8;

/// A media packet: its place, and its header's fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Where its payload begins in the file.
    pub offset: u64,
    /// Bytes of its payload, at most 65523.
    pub bytes: u16,
    /// Its stream's number.
    pub stream: u16,
    /// Presentation time, in ms, without its stream's start time.
    pub timestamp_ms: u32,
    /// The rule of its stream's rule book, in packets of version 1.
    pub rule: Option<u16>,
    /// The group that it belongs to, in packets of version 0.
    pub group: u8,
    /// [`FLAG_RELIABLE`] and [`FLAG_KEY`], in packets of version 0; the flags of the rule in those of version 1.
    pub flags: u8,
}

impl Packet {
    /// Returns true if it is marked as part of a key frame.
    pub fn is_key(&self) -> bool {
        self.rule.is_none() && self.flags & FLAG_KEY != 0
    }

    /// Its payload in `file`, which it was read from; nothing of one that ends before.
    pub fn payload<'a>(&self, file: &'a [u8]) -> &'a [u8] {
        let from = usize::try_from(self.offset).unwrap_or(usize::MAX);
        file.get(from..).and_then(|rest| rest.get(..self.bytes.into())).unwrap_or_default()
    }
}

/// A RealMedia file: everything is copied except the packets' payloads.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RealMedia {
    /// Its properties.
    pub properties: FileProperties,
    /// Its description for people.
    pub description: ContentDescription,
    /// Its streams in the file's order, each with another number.
    pub streams: Vec<StreamProperties>,
    /// Its media packets in the file's order, each of one of the streams.
    pub packets: Vec<Packet>,
    /// Place and kind of the cut if the file ends before its declared media do: then `packets` has the whole
    /// ones.
    pub cut: Option<Problem>,
}

impl RealMedia {
    /// Reads `file`. Chunks that are unknown, or are behind the media, as indexes are, are passed over. Memory is in
    /// proportion to the file: a packet takes 24 B of it here, and at least 12 B there.
    ///
    /// A file that is cut short within its media is read up to the last whole packet; `cut` has the fault. A
    /// media chunk that counts neither its packets nor its bytes, as in a broadcast, extends to the end.
    ///
    /// # Errors
    ///
    /// If a chunk is cut short or broken that is in front of the media, there are no streams, more than
    /// [`MOST_STREAMS`], or two of one number, or a packet contradicts itself.
    pub fn read(file: &[u8]) -> Result<Self, Problem> {
        match file {
            [b'.', b'R', b'M', b'F', ..] => {}
            [b'.', b'r', b'a', 0xfd, ..] => return Err(Fault::RealAudio.at(0)),
            _ => return Err(Fault::NotRealMedia.at(0)),
        }
        let mut read = RealMedia::default();
        let (mut has_properties, mut has_data) = (false, false);
        let mut at = 0;
        while let Some(chunk) = RawChunk::read(file, at, has_data)? {
            let repeated = || Err(Fault::Repeated(chunk.name).at(at));
            match chunk.name {
                FILE if at > 0 => return repeated(),
                PROPERTIES if has_properties => return repeated(),
                PROPERTIES => {
                    read.properties = FileProperties::read(&mut chunk.fields()?)?;
                    has_properties = true;
                }
                DESCRIPTION if !has_data => {
                    read.description = ContentDescription::read(&mut chunk.fields()?)?
                }
                STREAM if !has_data => read.add(at, StreamProperties::read(&mut chunk.fields()?)?)?,
                DATA => {
                    let missing = if has_properties { STREAM } else { PROPERTIES };
                    if !has_properties || read.streams.is_empty() {
                        return Err(Fault::Missing(missing).at(at));
                    }
                    has_data = true;
                    let stops = read.media(file, &chunk)?;
                    if stops || read.cut.is_some() {
                        return Ok(read);
                    }
                }
                _ => {}
            }
            at = chunk.end;
        }
        if has_data { Ok(read) } else { Err(Fault::Missing(DATA).at(file.len())) }
    }

    /// Returns the stream of this number.
    pub fn stream(&self, number: u16) -> Option<&StreamProperties> {
        self.streams.iter().find(|stream| stream.number == number)
    }

    fn add(&mut self, at: usize, stream: StreamProperties) -> Result<(), Problem> {
        if self.stream(stream.number).is_some() {
            return Err(Fault::SameStream(stream.number).at(at));
        }
        if self.streams.len() == MOST_STREAMS {
            return Err(Fault::TooManyStreams { limit: MOST_STREAMS }.at(at));
        }
        self.streams.push(stream);
        Ok(())
    }

    /// Takes the packets of a DATA chunk. True if no chunk can be behind it.
    fn media(&mut self, file: &[u8], chunk: &RawChunk<'_>) -> Result<bool, Problem> {
        let number = |at: usize| Some(u32::from_be_bytes(*chunk.content.get(at..)?.first_chunk()?));
        let Some((count, _next)) = number(0).zip(number(4)) else {
            let missing = (DATA_HEADER_BYTES - CHUNK_HEADER_BYTES - chunk.content.len()) as u64;
            if !chunk.is_cut {
                return Err(Fault::Field { chunk: DATA, field: "number of packets and next chunk", missing }
                    .at(chunk.at));
            }
            self.cut = Some(Fault::Truncated { what: "the media chunk's header", missing }.at(file.len()));
            return Ok(true);
        };
        let mut at = chunk.at + DATA_HEADER_BYTES;
        // An unfinished recording, as ffmpeg writes to a pipe: neither packets nor their bytes are counted. A
        // packet begins with its version's 0, a chunk with a letter.
        let is_open = count == 0 && chunk.end == at && file.get(at) == Some(&0);
        let numbers: Vec<u16> = self.streams.iter().map(|stream| stream.number).collect();
        let mut taken = 0;
        // The chunk's declared length may be some bytes too long, as in ffmpeg's files: then the packets are
        // counted.
        while (is_open && at < file.len()) || (at < chunk.end && (count == 0 || taken < count)) {
            if is_open && file[at..].starts_with(&[0; 4]) {
                break;
            }
            match packet(file, at)? {
                Ok(packet) if !numbers.contains(&packet.stream) => {
                    return Err(Fault::UnknownStream(packet.stream).at(at));
                }
                Ok(packet) => {
                    at = packet.offset as usize + usize::from(packet.bytes);
                    self.packets.push(packet);
                }
                Err(missing) => {
                    self.cut = Some(Fault::Truncated { what: "a media packet", missing }.at(at));
                    return Ok(true);
                }
            }
            taken += 1;
        }
        if taken < count {
            self.cut = Some(Fault::FewerPackets { count, taken }.at(at));
        }
        Ok(is_open || chunk.is_cut || at > chunk.end)
    }
}

/// Returns the packet at `at`, or how many bytes of it the file does not have.
fn packet(file: &[u8], at: usize) -> Result<Result<Packet, u64>, Problem> {
    let rest = file.get(at..).unwrap_or_default();
    let Some(&[version_high, version_low, length_high, length_low]) = rest.first_chunk() else {
        return Ok(Err(4 - rest.len() as u64));
    };
    let version = u16::from_be_bytes([version_high, version_low]);
    let length = u16::from_be_bytes([length_high, length_low]);
    let header = match version {
        0 => 12,
        1 => 13,
        _ => return Err(Fault::PacketVersion(version).at(at)),
    };
    let Some(bytes) = length.checked_sub(header) else {
        return Err(Fault::PacketLength(length).at(at));
    };
    let Some(&[_, _, _, _, s, t, a, b, c, d, x, y, ..]) = rest.get(..length.into()) else {
        return Ok(Err(u64::from(length) - rest.len() as u64));
    };
    let (rule, group, flags) = match version {
        0 => (None, x, y),
        _ => (Some(u16::from_be_bytes([x, y])), 0, rest[12]),
    };
    Ok(Ok(Packet {
        offset: (at + usize::from(header)) as u64,
        bytes,
        stream: u16::from_be_bytes([s, t]),
        timestamp_ms: u32::from_be_bytes([a, b, c, d]),
        rule,
        group,
        flags,
    }))
}

/// A chunk before its content is parsed.
struct RawChunk<'a> {
    name: ChunkName,
    /// Where it begins in the file.
    at: usize,
    version: u16,
    /// Behind its header, as far as the file has it.
    content: &'a [u8],
    /// Its declared end.
    end: usize,
    /// The file ends before.
    is_cut: bool,
}

impl<'a> RawChunk<'a> {
    /// Returns the chunk at `at`; `None` at the end of the file. Behind the media, bytes that are no chunk
    /// are the end as well: ffmpeg writes 8 zeros there.
    fn read(file: &'a [u8], at: usize, is_behind: bool) -> Result<Option<Self>, Problem> {
        let rest = file.get(at..).unwrap_or_default();
        if rest.is_empty() {
            return Ok(None);
        }
        let cut = |what, missing| match is_behind {
            true => Ok(None),
            false => Err(Fault::Truncated { what, missing }.at(at)),
        };
        let Some(&[n, a, m, e, b, c, d, l, v, w]) = rest.first_chunk() else {
            return cut("a chunk's header", (CHUNK_HEADER_BYTES - rest.len()) as u64);
        };
        let (name, length) = (ChunkName([n, a, m, e]), u32::from_be_bytes([b, c, d, l]));
        let whole = length as usize;
        if whole < CHUNK_HEADER_BYTES {
            return match is_behind {
                true => Ok(None),
                false => Err(Fault::ChunkLength { chunk: name, bytes: length }.at(at)),
            };
        }
        let is_cut = whole > rest.len();
        if is_cut && name != DATA {
            return cut("a chunk", (whole - rest.len()) as u64);
        }
        let content = &rest[CHUNK_HEADER_BYTES..whole.min(rest.len())];
        let end = at.saturating_add(whole);
        Ok(Some(RawChunk { name, at, version: u16::from_be_bytes([v, w]), content, end, is_cut }))
    }

    /// Returns its content, if it is of the version in the draft.
    fn fields(&self) -> Result<Fields<'a>, Problem> {
        match self.version {
            0 => Ok(Fields::of(self.name, self.at + CHUNK_HEADER_BYTES, self.content)),
            version => Err(Fault::Version { chunk: self.name, version }.at(self.at)),
        }
    }
}
