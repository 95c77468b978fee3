//! Writes `capture.pcapng` (draft-ietf-opsawg-pcapng): whole packets, for Wireshark and its kin.
//!
//! Four kinds of block are enough. The `pcap-file` crate could write them too, but as a release candidate that asks for
//! a newer compiler than ours, and with a vector of options made for every packet.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::RecordError;
use crate::file::Partial;

/// An interface of the capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterfaceId(u32);

/// Which way a packet crossed its interface, seen from the emulator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketDirection {
    /// The interface received it.
    Inbound = 1,
    /// The interface sent it.
    Outbound = 2,
}

/// Writes Ethernet frames with nanosecond stamps, one interface per tap. The file appears under its name when it is
/// finished.
pub struct PcapngWriter<W: Write = File> {
    name: PathBuf,
    sink: BufWriter<W>,
    /// Frames of each interface.
    frames: Vec<u64>,
    partial: Option<Partial>,
}

mod block {
    pub const SECTION_HEADER: u32 = 0x0a0d_0d0a;
    pub const INTERFACE_DESCRIPTION: u32 = 1;
    pub const INTERFACE_STATISTICS: u32 = 5;
    pub const ENHANCED_PACKET: u32 = 6;
}

mod option {
    pub const END: u16 = 0;
    pub const SHB_USERAPPL: u16 = 4;
    pub const IF_NAME: u16 = 2;
    pub const IF_TSRESOL: u16 = 9;
    pub const EPB_FLAGS: u16 = 2;
    pub const ISB_STARTTIME: u16 = 2;
    pub const ISB_ENDTIME: u16 = 3;
    pub const ISB_IFRECV: u16 = 4;
    pub const ISB_IFDROP: u16 = 5;
}

const LINKTYPE_ETHERNET: u16 = 1;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// Stamps count units of 10^-9 s.
const NANOSECONDS: u8 = 9;

impl PcapngWriter<File> {
    /// Starts `path`, and replaces an existing file when it is finished.
    pub fn create(path: &Path) -> Result<Self, RecordError> {
        let partial = Partial::new(path);
        let file = File::create(&partial.path).map_err(|e| RecordError::io(path, "creating", e))?;
        let mut writer = PcapngWriter::new(file, path)?;
        writer.partial = Some(partial);
        Ok(writer)
    }
}

impl<W: Write> PcapngWriter<W> {
    /// Writes to `sink`; `name` is the name in errors.
    pub fn new(sink: W, name: &Path) -> Result<Self, RecordError> {
        let sink = BufWriter::with_capacity(1 << 16, sink);
        let mut writer = PcapngWriter { name: name.to_owned(), sink, frames: Vec::new(), partial: None };
        let mut body = Vec::new();
        body.extend(BYTE_ORDER_MAGIC.to_le_bytes());
        body.extend([1u16.to_le_bytes(), 0u16.to_le_bytes()].concat()); // version 1.0
        body.extend((-1i64).to_le_bytes()); // section length: unknown
        put_option(&mut body, option::SHB_USERAPPL, b"streamgauge");
        put_option(&mut body, option::END, &[]);
        writer.block(block::SECTION_HEADER, &[&body])?;
        Ok(writer)
    }

    /// Adds an Ethernet interface. Names longer than 65,535 bytes are cut.
    pub fn interface(&mut self, name: &str) -> Result<InterfaceId, RecordError> {
        let id = u32::try_from(self.frames.len())
            .map_err(|_| RecordError::invalid(&self.name, "more than 2^32 interfaces"))?;
        let mut body = Vec::new();
        body.extend(LINKTYPE_ETHERNET.to_le_bytes());
        body.extend(0u16.to_le_bytes()); // reserved
        body.extend(0u32.to_le_bytes()); // snapshot length: no limit
        let name = name.as_bytes();
        put_option(&mut body, option::IF_NAME, &name[..name.len().min(usize::from(u16::MAX))]);
        put_option(&mut body, option::IF_TSRESOL, &[NANOSECONDS]);
        put_option(&mut body, option::END, &[]);
        self.block(block::INTERFACE_DESCRIPTION, &[&body])?;
        self.frames.push(0);
        Ok(InterfaceId(id))
    }

    /// Adds a frame, without its FCS, that crossed `interface` at `at_ns` nanoseconds since 1970 UTC.
    pub fn packet(
        &mut self,
        interface: InterfaceId,
        at_ns: u64,
        direction: PacketDirection,
        frame: &[u8],
    ) -> Result<(), RecordError> {
        let length = u32::try_from(frame.len())
            .ok()
            .filter(|&length| length <= u32::MAX / 2)
            .ok_or_else(|| RecordError::invalid(&self.name, "a frame of more than 2 GiB"))?;
        self.check(interface)?;
        let mut head = [0; 20];
        let fields = [interface.0, (at_ns >> 32) as u32, at_ns as u32, length, length];
        for (to, field) in head.chunks_exact_mut(4).zip(fields) {
            to.copy_from_slice(&field.to_le_bytes());
        }
        // One option and the end of options.
        let mut tail = [0; 12];
        tail[..2].copy_from_slice(&option::EPB_FLAGS.to_le_bytes());
        tail[2..4].copy_from_slice(&4u16.to_le_bytes());
        tail[4..8].copy_from_slice(&(direction as u32).to_le_bytes());
        self.block(block::ENHANCED_PACKET, &[&head, frame, padding(frame.len()), &tail])?;
        self.frames[interface.0 as usize] += 1;
        Ok(())
    }

    /// Writes the statistics of the capture on `interface`: from when to when (ns since 1970 UTC), and how many frames
    /// the kernel dropped before we saw them. A capture with drops is not to be trusted.
    pub fn statistics(
        &mut self,
        interface: InterfaceId,
        start_ns: u64,
        end_ns: u64,
        dropped: u64,
    ) -> Result<(), RecordError> {
        self.check(interface)?;
        let stamp = |ns: u64| [((ns >> 32) as u32).to_le_bytes(), (ns as u32).to_le_bytes()].concat();
        let mut body = Vec::new();
        body.extend(interface.0.to_le_bytes());
        body.extend(stamp(end_ns));
        put_option(&mut body, option::ISB_STARTTIME, &stamp(start_ns));
        put_option(&mut body, option::ISB_ENDTIME, &stamp(end_ns));
        let received = self.frames[interface.0 as usize] + dropped;
        put_option(&mut body, option::ISB_IFRECV, &received.to_le_bytes());
        put_option(&mut body, option::ISB_IFDROP, &dropped.to_le_bytes());
        put_option(&mut body, option::END, &[]);
        self.block(block::INTERFACE_STATISTICS, &[&body])
    }

    /// Writes the rest and gives the file its name. Returns the number of frames.
    pub fn finish(mut self) -> Result<u64, RecordError> {
        self.sink.flush().map_err(|e| RecordError::io(&self.name, "writing", e))?;
        if let Some(partial) = self.partial {
            partial.rename()?;
        }
        Ok(self.frames.iter().sum())
    }

    fn check(&self, interface: InterfaceId) -> Result<(), RecordError> {
        if (interface.0 as usize) < self.frames.len() {
            return Ok(());
        }
        let what = format!("interface {} belongs to another capture", interface.0);
        Err(RecordError::invalid(&self.name, what))
    }

    /// Writes a block of `parts`, which together are a multiple of four bytes long.
    fn block(&mut self, kind: u32, parts: &[&[u8]]) -> Result<(), RecordError> {
        let length = 12 + parts.iter().map(|p| p.len()).sum::<usize>() as u32;
        let mut write = || {
            self.sink.write_all(&kind.to_le_bytes())?;
            self.sink.write_all(&length.to_le_bytes())?;
            for part in parts {
                self.sink.write_all(part)?;
            }
            self.sink.write_all(&length.to_le_bytes())
        };
        write().map_err(|e| RecordError::io(&self.name, "writing", e))
    }
}

/// Zeros up to the next multiple of four.
fn padding(length: usize) -> &'static [u8] {
    &[0; 3][..length.wrapping_neg() % 4]
}

fn put_option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    body.extend(padding(value.len()));
}
