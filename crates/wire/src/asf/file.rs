//! A file: its header, its packets and the media objects in them.

use super::fault::{Fault, Problem};
use super::fields::{OBJECT_HEADER_BYTES, RawObject};
use super::guid::Guid;
use super::header::Header;
use super::headers::FLAG_BROADCAST;
use super::object::{MediaObject, ObjectAssembler};
use super::packet::{DataPacket, MOST_PACKET_BYTES};

/// Bytes of the smallest packets that are read: nothing smaller has anything in it.
pub const LEAST_PACKET_BYTES: u32 = 16;
/// Bytes of the Data Object in front of its packets: its header, the file's name, their number, reserved fields.
const DATA_HEADER_BYTES: usize = OBJECT_HEADER_BYTES + 26;

/// A file: its header is copied and its packets are found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asf {
    /// The part before the media.
    pub header: Header,
    /// Where the first packet begins in the file.
    pub packets_at: u64,
    /// Packets that are whole.
    pub packet_count: u64,
    /// Bytes of each.
    pub packet_bytes: u32,
    /// Place and kind of the cut if the file ends before its declared media do.
    pub cut: Option<Problem>,
}

/// A header of the HTTP protocol's `$E`, 8 B, with 4 B of a reason.
const END_OF_STREAM: [u8; 12] = *b"$E\x08\0\0\0\0\0\0\0\x08\0";

impl Asf {
    /// Reads `file` up to its packets. Indexes and other objects behind these are skipped.
    ///
    /// A file that is cut short within its media is read up to the last whole packet; `cut` has the fault.
    /// Media that count neither their packets nor their bytes, as of a broadcast, go on to the end.
    ///
    /// # Errors
    ///
    /// If the header is cut short or broken, its packets are not of one size from [`LEAST_PACKET_BYTES`] to
    /// [`MOST_PACKET_BYTES`], or no Data Object follows it.
    pub fn read(file: &[u8]) -> Result<Self, Problem> {
        let (header, mut at) = Header::read(file)?;
        let (min, max) = (header.file.min_packet_bytes, header.file.max_packet_bytes);
        if min != max || !(LEAST_PACKET_BYTES..=MOST_PACKET_BYTES).contains(&max) {
            let (least, most) = (LEAST_PACKET_BYTES, MOST_PACKET_BYTES);
            return Err(Fault::PacketSizes { min, max, least, most }.at(0));
        }
        loop {
            if at == file.len() {
                return Err(Fault::Missing(Guid::DATA).at(at));
            }
            let object = RawObject::read(&file[at..], at)?;
            if object.id == Guid::DATA {
                return Self::media(header, file, &object);
            }
            at += object.whole()?.bytes as usize;
        }
    }

    fn media(header: Header, file: &[u8], object: &RawObject<'_>) -> Result<Self, Problem> {
        if (1..DATA_HEADER_BYTES as u64).contains(&object.bytes) {
            return Err(Fault::ObjectLength { object: object.id, bytes: object.bytes }.at(object.at));
        }
        let Some(&front) = file[object.at..].first_chunk::<DATA_HEADER_BYTES>() else {
            let missing = (object.at + DATA_HEADER_BYTES - file.len()) as u64;
            return Err(Fault::Truncated { what: "the Data Object's header", missing }.at(object.at));
        };
        let packets_at = object.at + DATA_HEADER_BYTES;
        let [.., a, b, c, d, e, f, g, h, _, _] = front;
        let count = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        // The length of a broadcast is unknown: ffmpeg, into a pipe, counts no packets, others no bytes
        // either.
        let is_open = object.bytes == 0 || count == 0 && header.file.flags & FLAG_BROADCAST != 0;
        let length = file.len() as u64;
        let end = if is_open { length } else { object.bytes.saturating_add(object.at as u64) };
        let packet_bytes = header.file.max_packet_bytes;
        let media_bytes = end.min(length) - packets_at as u64;
        let (whole, more) = (media_bytes / u64::from(packet_bytes), media_bytes % u64::from(packet_bytes));
        let has_all = count > 0 && count <= whole;
        let cut = if has_all {
            None
        } else if end > length {
            Some(Fault::Truncated { what: "the media", missing: end - length }.at(file.len()))
        } else if count > 0 {
            Some(Fault::FewerPackets { count, taken: whole }.at(file.len()))
        } else {
            let missing = u64::from(packet_bytes) - more;
            // Behind the last packet ffmpeg writes an end mark into a pipe ([MS-WMSP] section 2.2.3).
            let is_ended = file.ends_with(&END_OF_STREAM) && more == END_OF_STREAM.len() as u64;
            let is_cut = is_open && more > 0 && !is_ended;
            is_cut.then(|| Fault::Truncated { what: "a data packet", missing }.at(file.len()))
        };
        let packet_count = if has_all { count } else { whole };
        Ok(Asf { header, packets_at: packets_at as u64, packet_count, packet_bytes, cut })
    }

    /// Returns the part in front of the packets in `file`, which it was read from: the Header Object and the
    /// beginning of the Data Object, which servers send as one.
    pub fn head<'a>(&self, file: &'a [u8]) -> &'a [u8] {
        let end = usize::try_from(self.packets_at).unwrap_or(usize::MAX);
        file.get(..end).unwrap_or_default()
    }

    /// Returns the bytes of each packet in `file`, which it was read from, with the packet's padding.
    pub fn packets<'a>(&self, file: &'a [u8]) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let media = &file[self.head(file).len()..];
        let count = usize::try_from(self.packet_count).unwrap_or(usize::MAX);
        media.chunks_exact(self.packet_bytes as usize).take(count)
    }

    /// Returns the media objects in `file`, which it was read from, in the order in which they are complete.
    ///
    /// # Errors
    ///
    /// If a packet contradicts itself.
    pub fn objects<'a>(&self, file: &'a [u8]) -> Result<MediaObjects<'a>, Problem> {
        let (mut objects, mut assembler) = (Vec::new(), ObjectAssembler::default());
        for (number, packet) in self.packets(file).enumerate() {
            let at = self.packets_at + number as u64 * u64::from(self.packet_bytes);
            let packet = DataPacket::read(packet)
                .map_err(|problem| Problem { at: at + problem.at, fault: problem.fault })?;
            objects.extend(packet.payloads.iter().filter_map(|payload| assembler.push(payload)));
        }
        Ok(MediaObjects { objects, incomplete: assembler.given_up() + assembler.open() as u64 })
    }
}

/// The media objects of a file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MediaObjects<'a> {
    /// Those that are whole.
    pub objects: Vec<MediaObject<'a>>,
    /// Number of those that lack a part.
    pub incomplete: u64,
}
