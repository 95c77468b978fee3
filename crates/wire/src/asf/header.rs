//! The Header Object: everything that is in front of the media.

use super::fault::{Fault, Problem};
use super::fields::{Fields, RawObject};
use super::guid::Guid;
use super::headers::{ExtendedStreamProperties, FileProperties, StreamProperties};

/// Bits per second of a stream on average, packet overhead included (Stream Bitrate Properties Object,
/// section 3.12).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamBitRate {
    /// The stream's number.
    pub stream: u8,
    /// Bits per second.
    pub average_bps: u32,
}

/// Streams that exclude each other: a player selects one (Bitrate Mutual Exclusion Object, section 3.8;
/// Advanced Mutual Exclusion Object, section 4.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MutualExclusion {
    /// The property they differ in, as [`Guid::EXCLUSIVE_BY_BIT_RATE`].
    pub kind: Guid,
    /// Whether it is the advanced object, in the header's extension.
    pub is_advanced: bool,
    /// Their numbers.
    pub streams: Vec<u8>,
}

/// An object that is kept as it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpaqueObject {
    /// Its kind.
    pub id: Guid,
    /// Whether it is in the header's extension.
    pub is_extension: bool,
    /// The content behind its header.
    pub content: Vec<u8>,
}

/// The Header Object (section 3.1), kept whole: unknown objects stay as they are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// Properties of the file.
    pub file: FileProperties,
    /// Its streams in the file's order, but for those that only their extended properties describe.
    pub streams: Vec<StreamProperties>,
    /// Extended properties of streams, one for each stream at most.
    pub extended: Vec<ExtendedStreamProperties>,
    /// Bit rates of streams.
    pub bit_rates: Vec<StreamBitRate>,
    /// Which streams exclude each other.
    pub exclusions: Vec<MutualExclusion>,
    /// All other objects, as the description of the content and the list of codecs.
    pub others: Vec<OpaqueObject>,
}

impl Header {
    /// Reads the Header Object that `file` begins with, and returns the offset of its end.
    ///
    /// # Errors
    ///
    /// If it is cut short or broken, has not one File Properties Object, no stream, or two of one number.
    pub fn read(file: &[u8]) -> Result<(Self, usize), Problem> {
        if !file.starts_with(&Guid::HEADER.0) {
            return Err(Fault::NotAsf.at(0));
        }
        let object = RawObject::read(file, 0)?.whole()?;
        let mut fields = object.fields();
        fields.u32("number of objects")?;
        fields.u16("reserved fields")?;
        let mut header = Header::default();
        let mut has_properties = false;
        header.objects(&mut fields, false, &mut has_properties)?;
        let end = fields.at();
        if !has_properties {
            return Err(Fault::Missing(Guid::FILE_PROPERTIES).at(end));
        }
        if header.all_streams().next().is_none() {
            return Err(Fault::Missing(Guid::STREAM_PROPERTIES).at(end));
        }
        Ok((header, end))
    }

    /// Returns all streams, with those that only their extended properties describe.
    pub fn all_streams(&self) -> impl Iterator<Item = &StreamProperties> {
        let hidden = self.extended.iter().filter_map(|extended| extended.properties.as_ref());
        self.streams.iter().chain(hidden)
    }

    /// Returns the stream of this number.
    pub fn stream(&self, number: u8) -> Option<&StreamProperties> {
        self.all_streams().find(|stream| stream.number == number)
    }

    /// Bits per second of a stream on average, as its Stream Bitrate Properties have it.
    pub fn bit_rate_bps(&self, stream: u8) -> Option<u32> {
        self.bit_rates.iter().find(|rate| rate.stream == stream).map(|rate| rate.average_bps)
    }

    /// Takes all objects that are left of `fields`.
    fn objects(
        &mut self,
        fields: &mut Fields<'_>,
        is_extension: bool,
        has_properties: &mut bool,
    ) -> Result<(), Problem> {
        while !fields.rest().is_empty() {
            let object = RawObject::read(fields.rest(), fields.at())?.whole()?;
            fields.bytes("object", object.bytes as usize)?;
            let mut inner = object.fields();
            match (object.id, is_extension) {
                (Guid::FILE_PROPERTIES, false) if *has_properties => {
                    return Err(Fault::Repeated(object.id).at(object.at));
                }
                (Guid::FILE_PROPERTIES, false) => {
                    self.file = FileProperties::read(&mut inner)?;
                    *has_properties = true;
                }
                (Guid::STREAM_PROPERTIES, false) => {
                    let stream = StreamProperties::read(&mut inner)?;
                    self.is_new(&stream, object.at)?;
                    self.streams.push(stream);
                }
                (Guid::EXTENDED_STREAM, true) => {
                    let extended = ExtendedStreamProperties::read(&mut inner)?;
                    if self.extended.iter().any(|other| other.number == extended.number) {
                        return Err(Fault::Repeated(object.id).at(object.at));
                    }
                    if let Some(stream) = &extended.properties {
                        self.is_new(stream, object.at)?;
                    }
                    self.extended.push(extended);
                }
                (Guid::STREAM_BIT_RATES, false) => {
                    for _ in 0..inner.u16("number of bit rates")? {
                        let (stream, _) = inner.stream()?;
                        let average_bps = inner.u32("average bit rate")?;
                        self.bit_rates.push(StreamBitRate { stream, average_bps });
                    }
                }
                (Guid::BIT_RATE_EXCLUSION, false) | (Guid::ADVANCED_EXCLUSION, true) => {
                    let kind = inner.guid("exclusion type")?;
                    let count = inner.u16("number of streams")?;
                    let streams = (0..count).map(|_| Ok(inner.stream()?.0)).collect::<Result<_, _>>()?;
                    self.exclusions.push(MutualExclusion { kind, is_advanced: is_extension, streams });
                }
                // There is one, and none in itself.
                (Guid::HEADER_EXTENSION, false) => {
                    inner.guid("reserved field")?;
                    inner.u16("reserved field")?;
                    let (at, length) = (inner.at() + 4, inner.u32("length of the extension")?);
                    let content = inner.bytes("extension", length as usize)?;
                    self.objects(&mut Fields::of(object.id, at, content), true, has_properties)?;
                }
                (id, _) => {
                    self.others.push(OpaqueObject { id, is_extension, content: object.content.to_vec() });
                }
            }
        }
        Ok(())
    }

    fn is_new(&self, stream: &StreamProperties, at: usize) -> Result<(), Problem> {
        match self.stream(stream.number) {
            Some(_) => Err(Fault::SameStream(stream.number).at(at)),
            None => Ok(()),
        }
    }
}
