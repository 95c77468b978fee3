//! Frames of a capture, one at a time: pcap and pcapng in both byte orders (draft-ietf-opsawg-pcap,
//! draft-ietf-opsawg-pcapng). Memory is bounded by the largest block.

use std::io::Read;

use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{Block, InterfaceDescriptionBlock, PcapBlockOwned, PcapError, create_reader};

use crate::error::CaptureError;
use crate::link::LinkType;

/// The buffer at first, in bytes.
const BUFFER: usize = 1 << 18;
/// The largest block that is read. A longer one is damage: no interface has frames of that size.
const LARGEST_BLOCK: usize = 1 << 24;
/// Interfaces that are kept, over all sections. Packets of further ones are counted as not read.
const MOST_INTERFACES: usize = 1 << 16;
/// The interface of a frame with an interface that is not in the file.
const UNKNOWN_INTERFACE: u32 = u32::MAX;
const NANOSECONDS: u64 = 1_000_000_000;

/// An interface of a capture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Its name in the file; empty without one.
    pub name: String,
    /// The number of its link type; [`LinkType::of`] names the ones that are read.
    pub link_type: i32,
    /// Units of a second in its stamps.
    units: u64,
    /// Seconds to add to its stamps.
    offset_s: i64,
    /// Bytes of a frame that are captured at most.
    snaplen: u32,
    /// The file's section, from 0: interfaces of one section have one clock.
    pub section: u32,
    /// Frames that the capture itself dropped, where the file has that number.
    pub dropped: Option<u64>,
}

/// A frame as the file has it.
#[derive(Clone, Copy, Debug)]
pub struct CapturedFrame<'a> {
    /// Index in [`CaptureReader::interfaces`].
    pub interface: u32,
    /// Its interface's link layer, if that is read.
    pub link: Option<LinkType>,
    /// ns since 1970 UTC; `None` for simple packet blocks, which have no time.
    pub at_ns: Option<i64>,
    /// Bytes on the wire.
    pub original: u32,
    /// The captured bytes, which may be fewer.
    pub data: &'a [u8],
}

/// How a capture ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CaptureEnding {
    /// At the end of the file.
    Whole,
    /// Before it, after so many bytes of it, for this reason.
    Damaged {
        /// Position in the decompressed file.
        at: u64,
        /// The reason.
        what: String,
    },
}

/// The layout of packets, once the file's or the section's header was read.
#[derive(Clone, Copy, Debug)]
enum Layout {
    /// pcap's record header of 16 bytes, in this byte order.
    Record { big: bool },
    /// pcapng's enhanced packet block.
    Block { big: bool },
}

/// Where in the buffer a frame is, and the rest of it. The block itself borrows the buffer, so it cannot be kept.
#[derive(Clone, Copy)]
struct Place {
    interface: u32,
    at_ns: Option<i64>,
    original: u32,
    from: usize,
    length: usize,
}

/// Reads a capture frame by frame.
pub struct CaptureReader {
    reader: Box<dyn PcapReaderIterator + Send>,
    interfaces: Vec<Interface>,
    /// The link layer of each.
    links: Vec<Option<LinkType>>,
    /// Index of the section's first interface.
    section_from: usize,
    sections: u32,
    /// The buffer's size.
    capacity: usize,
    /// For pcap: whether stamps are in ns.
    legacy_ns: bool,
    layout: Option<Layout>,
    position: u64,
    /// Bytes of the buffer whose blocks were returned. They are consumed together: each time may move the rest.
    pending: usize,
    ending: Option<CaptureEnding>,
    /// The program that wrote the file, if it is named.
    pub application: String,
}

enum Step {
    Packet(Place),
    Other,
    End(CaptureEnding),
    More(usize),
}

impl CaptureReader {
    /// Reads from `bytes`, which are decompressed; `name` is the file's, for errors.
    ///
    /// # Errors
    /// If the first bytes are no capture's.
    pub fn new(bytes: impl Read + Send + 'static, name: &str) -> Result<Self, CaptureError> {
        let refused = |what: &str| CaptureError::NoCapture { file: name.into(), what: what.into() };
        let reader = create_reader(BUFFER, bytes).map_err(|error| match error {
            PcapError::Eof => refused("the file is empty"),
            PcapError::ReadError => refused("its compressed data are damaged; fetch the file anew"),
            PcapError::Incomplete(_) => refused("the file ends within its header"),
            _ => refused("it begins neither as pcap nor as pcapng, plain or compressed with gzip or zstd"),
        })?;
        Ok(CaptureReader {
            reader,
            interfaces: Vec::new(),
            links: Vec::new(),
            section_from: 0,
            sections: 0,
            capacity: BUFFER,
            legacy_ns: false,
            layout: None,
            position: 0,
            pending: 0,
            ending: None,
            application: String::new(),
        })
    }

    /// The interfaces so far.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// How the capture ended; `None` before [`next`](Self::next) has returned `None`.
    pub fn ending(&self) -> Option<&CaptureEnding> {
        self.ending.as_ref()
    }

    /// Whether all sections so far are of pcapng.
    pub fn is_pcapng(&self) -> bool {
        self.sections > 0
    }

    /// Returns the next frame; `None` at the end. The reason of the end is then in [`ending`](Self::ending).
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<CapturedFrame<'_>> {
        if self.ending.is_some() {
            return None;
        }
        if let Some((place, size)) = self.whole_packet() {
            self.pending += size;
            return Some(self.frame(place));
        }
        loop {
            if self.pending > 0 {
                self.reader.consume(self.pending);
                self.position += self.pending as u64;
                self.pending = 0;
            }
            match self.step() {
                Step::Packet(place) => return Some(self.frame(place)),
                Step::Other => {}
                Step::End(ending) => {
                    self.ending = Some(ending);
                    return None;
                }
                Step::More(needed) => {
                    if let Some(ending) = self.fill(needed) {
                        self.ending = Some(ending);
                        return None;
                    }
                }
            }
        }
    }

    #[inline]
    fn frame(&self, place: Place) -> CapturedFrame<'_> {
        let Place { interface, at_ns, original, from, length } = place;
        let link = self.links.get(interface as usize).copied().flatten();
        let data = self.reader.data().get(from..from + length).unwrap_or_default();
        CapturedFrame { interface, link, at_ns, original, data }
    }

    /// The next block, if it is a packet and the buffer has all of it: nearly all blocks are. Anything else, and any doubt
    /// about lengths, is left to the parser of all blocks.
    #[inline]
    fn whole_packet(&self) -> Option<(Place, usize)> {
        let layout = self.layout?;
        let before = self.pending;
        let data = self.reader.data().get(before..)?;
        match layout {
            Layout::Record { big } => {
                let head: &[u8; 16] = data.first_chunk()?;
                let field = |at: usize| number(head, at, big);
                let (captured, size) = (field(8) as usize, 16 + field(8) as usize);
                if captured > LARGEST_BLOCK || data.len() < size {
                    return None;
                }
                let unit = if self.legacy_ns { 1 } else { 1000 };
                let at_ns = i64::from(field(0)) * NANOSECONDS as i64 + i64::from(field(4)) * unit;
                let original = field(12).max(captured as u32);
                let from = before + 16;
                Some((Place { interface: 0, at_ns: Some(at_ns), original, from, length: captured }, size))
            }
            Layout::Block { big } => {
                const ENHANCED_PACKET: u32 = 6;
                let head: &[u8; 28] = data.first_chunk()?;
                let field = |at: usize| number(head, at, big);
                let (size, captured) = (field(4) as usize, field(20) as usize);
                if field(0) != ENHANCED_PACKET
                    || size > LARGEST_BLOCK
                    || !size.is_multiple_of(4)
                    || captured > LARGEST_BLOCK
                    || size < captured.next_multiple_of(4) + 32
                    || data.len() < size
                    || number(data, size - 4, big) as usize != size
                {
                    return None;
                }
                let index = self.section_from.checked_add(field(8) as usize)?;
                let stamp = u64::from(field(12)) << 32 | u64::from(field(16));
                let at_ns = self.interfaces.get(index)?.time(stamp);
                let original = field(24).max(captured as u32);
                let interface = index as u32;
                let from = before + 28;
                Some((Place { interface, at_ns: Some(at_ns), original, from, length: captured }, size))
            }
        }
    }

    fn damaged(&self, what: &str) -> Step {
        Step::End(CaptureEnding::Damaged { at: self.position, what: what.into() })
    }

    /// Makes room for a block that needs `needed` more bytes, and reads.
    fn fill(&mut self, needed: usize) -> Option<CaptureEnding> {
        let at = self.position;
        let wanted = self.reader.data().len().saturating_add(needed);
        if wanted > LARGEST_BLOCK {
            let what = "a block claims more than 16 MiB".into();
            return Some(CaptureEnding::Damaged { at, what });
        }
        // A read into a full buffer would return nothing, which looks like the end of the file.
        if wanted.saturating_add(4) >= self.capacity {
            self.capacity = (wanted + 4).next_power_of_two() * 2;
            self.reader.grow(self.capacity);
        }
        match self.reader.refill() {
            Ok(()) => None,
            Err(_) => Some(CaptureEnding::Damaged {
                at,
                what: "its compressed data end early or are damaged".into(),
            }),
        }
    }

    /// Reads a block and keeps its data if it is no packet.
    fn step(&mut self) -> Step {
        let base = self.reader.data().as_ptr() as usize;
        let found = match self.reader.next() {
            Ok((size, block)) => {
                self.pending = size;
                match block {
                    PcapBlockOwned::Legacy(block) => {
                        let unit = if self.legacy_ns { 1 } else { 1000 };
                        let at_ns =
                            i64::from(block.ts_sec) * NANOSECONDS as i64 + i64::from(block.ts_usec) * unit;
                        let length = block.data.len().min(block.caplen as usize);
                        let place = Place {
                            interface: 0,
                            at_ns: Some(at_ns),
                            original: block.origlen.max(length as u32),
                            from: block.data.as_ptr() as usize - base,
                            length,
                        };
                        return Step::Packet(place);
                    }
                    PcapBlockOwned::LegacyHeader(header) => {
                        self.legacy_ns = header.is_nanosecond_precision();
                        let is_plain = !header.is_modified_format();
                        self.layout = is_plain.then(|| Layout::Record { big: header.is_bigendian() });
                        self.links.push(LinkType::of(header.network.0 & 0xffff));
                        self.interfaces.push(Interface {
                            name: String::new(),
                            link_type: header.network.0 & 0xffff,
                            units: if self.legacy_ns { NANOSECONDS } else { 1_000_000 },
                            offset_s: 0,
                            snaplen: u32::MAX,
                            section: 0,
                            dropped: None,
                        });
                        return Step::Other;
                    }
                    PcapBlockOwned::NG(Block::EnhancedPacket(block)) => {
                        let index = self.section_from.saturating_add(block.if_id as usize);
                        let stamp = u64::from(block.ts_high) << 32 | u64::from(block.ts_low);
                        let at_ns = self.interfaces.get(index).map(|interface| interface.time(stamp));
                        let length = block.data.len().min(block.caplen as usize);
                        let place = Place {
                            interface: if at_ns.is_some() { index as u32 } else { UNKNOWN_INTERFACE },
                            at_ns,
                            original: block.origlen.max(length as u32),
                            from: block.data.as_ptr() as usize - base,
                            length,
                        };
                        return Step::Packet(place);
                    }
                    PcapBlockOwned::NG(Block::SimplePacket(block)) => {
                        let interface = self.interfaces.get(self.section_from);
                        let most = interface.map_or(u32::MAX, |interface| interface.snaplen);
                        let length = block.data.len().min(block.origlen.min(most) as usize);
                        let place = Place {
                            interface: interface.map_or(UNKNOWN_INTERFACE, |_| self.section_from as u32),
                            at_ns: None,
                            original: block.origlen.max(length as u32),
                            from: block.data.as_ptr() as usize - base,
                            length,
                        };
                        return Step::Packet(place);
                    }
                    PcapBlockOwned::NG(Block::SectionHeader(header)) => {
                        if let Some(Ok(name)) = header.shb_userappl() {
                            self.application = name.chars().take(256).collect();
                        }
                        self.layout = Some(Layout::Block { big: header.big_endian() });
                        self.section_from = self.interfaces.len();
                        self.sections += 1;
                        return Step::Other;
                    }
                    PcapBlockOwned::NG(Block::InterfaceDescription(block)) => {
                        if self.interfaces.len() < MOST_INTERFACES {
                            let interface = interface_of(&block, self.sections.saturating_sub(1));
                            self.links.push(LinkType::of(interface.link_type));
                            self.interfaces.push(interface);
                        }
                        return Step::Other;
                    }
                    PcapBlockOwned::NG(Block::InterfaceStatistics(block)) => {
                        let index = self.section_from.saturating_add(block.if_id as usize);
                        let dropped = dropped_of(&block);
                        if let (Some(interface), Some(dropped)) = (self.interfaces.get_mut(index), dropped) {
                            interface.dropped = Some(dropped);
                        }
                        return Step::Other;
                    }
                    PcapBlockOwned::NG(_) => return Step::Other,
                }
            }
            Err(error) => match error {
                PcapError::Eof => return Step::End(CaptureEnding::Whole),
                PcapError::Incomplete(needed) => Ok(needed),
                PcapError::BufferTooSmall => Ok(self.capacity),
                PcapError::UnexpectedEof => Err("the file is cut off within a block"),
                PcapError::ReadError => Err("reading failed"),
                _ => Err("a block is damaged"),
            },
        };
        match found {
            Ok(needed) => Step::More(needed),
            Err(what) => self.damaged(what),
        }
    }
}

/// The 32 bits at this place, which is within `bytes`.
#[inline]
fn number(bytes: &[u8], at: usize, big: bool) -> u32 {
    let word = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    if big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
}

impl Interface {
    /// A stamp in ns since 1970 UTC. Stamps that do not fit are the nearest that do.
    fn time(&self, stamp: u64) -> i64 {
        // Nearly all: units that divide a second, times of this century.
        if NANOSECONDS.is_multiple_of(self.units)
            && self.offset_s == 0
            && let Some(ns) = stamp.checked_mul(NANOSECONDS / self.units)
            && ns < i64::MAX as u64 / 4
        {
            return ns as i64;
        }
        let whole = i128::from(stamp / self.units) + i128::from(self.offset_s);
        let part = u128::from(stamp % self.units) * u128::from(NANOSECONDS) / u128::from(self.units);
        let ns = whole * i128::from(NANOSECONDS) + part as i128;
        ns.clamp(i128::from(i64::MIN / 4), i128::from(i64::MAX / 4)) as i64
    }
}

fn interface_of(block: &InterfaceDescriptionBlock<'_>, section: u32) -> Interface {
    let name = block.if_name().and_then(Result::ok).unwrap_or_default();
    let is_big = block.block_type != pcap_parser::IDB_MAGIC;
    Interface {
        name: name.chars().take(256).collect(),
        link_type: block.linktype.0 & 0xffff,
        units: block.ts_resolution().filter(|&units| units > 0).unwrap_or(1_000_000),
        // The crate reads it as little-endian in both orders (0.17).
        offset_s: if is_big { block.ts_offset().swap_bytes() } else { block.ts_offset() },
        snaplen: if block.snaplen == 0 { u32::MAX } else { block.snaplen },
        section,
        dropped: None,
    }
}

/// `isb_ifdrop` and `isb_osdrop` together.
fn dropped_of(block: &pcap_parser::InterfaceStatisticsBlock<'_>) -> Option<u64> {
    const IF_DROP: u16 = 5;
    const OS_DROP: u16 = 7;
    let is_big = block.block_type != pcap_parser::ISB_MAGIC;
    let values = block.options.iter().filter(|option| [IF_DROP, OS_DROP].contains(&option.code.0));
    let numbers = values
        .filter_map(|option| option.value().first_chunk::<8>())
        .map(|bytes| if is_big { u64::from_be_bytes(*bytes) } else { u64::from_le_bytes(*bytes) });
    numbers.fold(None, |sum: Option<u64>, number| Some(sum.unwrap_or(0).saturating_add(number)))
}
