//! One pass over one capture.

use std::path::Path;

use crate::copies::{Copies, Survey};
use crate::error::CaptureError;
use crate::flow::{Flows, Placed};
use crate::input;
use crate::link::LinkType;
use crate::packet::{Packet, parse};
use crate::reader::{CaptureEnding, CaptureReader, CapturedFrame, Interface};
use crate::translation::{Renamed, rename};

/// Frames that are looked at before any is counted.
const SURVEYED: usize = 2048;
const SURVEYED_BYTES: usize = 8 << 20;
/// A longer silence of the whole file is a jump (ns).
const JUMP_NS: i64 = 3600 * 1_000_000_000;
/// Frames that are swapped by less are in order (ns).
const SWAPPED_NS: i64 = 1_000_000;
const MOST_JUMPS: usize = 100;

/// Numbers of a whole capture.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Frames in the file, copies included.
    pub frames: u64,
    /// Their bytes on the wire.
    pub frame_bytes: u64,
    /// Frames that were copies of others.
    pub copies: u64,
    /// Frames without an IP packet.
    pub not_ip: u64,
    /// Frames of interfaces with a link layer that is not read.
    pub unread: u64,
    /// The first such interface.
    pub unread_interface: Option<u32>,
    /// Frames without a time.
    pub without_time: u64,
    /// Frames that are cut by the snapshot length.
    pub cut: u64,
    /// Frames more than 1 ms earlier than the one before: threads of a capture may swap neighbours.
    pub backwards: u64,
    /// Time of the earliest and the latest frame (ns).
    pub times: Option<(i64, i64)>,
    /// Begin and end of long silences (ns).
    pub jumps: Vec<(i64, i64)>,
    last_ns: Option<i64>,
}

/// A frame kept for the survey.
struct Kept {
    interface: u32,
    link: Option<LinkType>,
    at_ns: Option<i64>,
    original: u32,
    data: Vec<u8>,
}

/// Reads one capture, packet by packet.
pub struct Capture {
    reader: CaptureReader,
    only: Option<u32>,
    copies: Option<Copies>,
    kept: std::collections::VecDeque<Kept>,
    current: Vec<u8>,
    /// Ends that have another name here than in the other capture.
    pub renamed: Vec<Renamed>,
    /// The findings of the first packets.
    pub survey: Survey,
    /// Numbers so far.
    pub totals: Totals,
}

impl Capture {
    /// Opens a capture (`-`: standard input). `only`: read this interface alone.
    ///
    /// # Errors
    /// The file cannot be read, or is no capture.
    pub fn open(path: &Path, only: Option<u32>) -> Result<Self, CaptureError> {
        let name = path.display().to_string();
        Self::new(CaptureReader::new(input::open(path)?, &name)?, only)
    }

    /// Reads the capture from `reader`.
    ///
    /// # Errors
    ///
    /// None at present: damage ends the capture early.
    pub fn new(mut reader: CaptureReader, only: Option<u32>) -> Result<Self, CaptureError> {
        let mut kept = std::collections::VecDeque::new();
        let mut survey = Survey::default();
        let mut copies = Copies::default();
        let mut bytes = 0;
        while kept.len() < SURVEYED && bytes < SURVEYED_BYTES {
            let Some(frame) = reader.next() else { break };
            let CapturedFrame { interface, link, at_ns, original, data } = frame;
            let data = data.to_vec();
            bytes += data.len();
            let wanted = only.is_none_or(|only| only == interface);
            if wanted
                && let Some(link) = link
                && let Some(packet) = parse(link, &data, original, interface, at_ns.unwrap_or(0))
            {
                survey.add(&mut copies, &packet);
            }
            kept.push_back(Kept { interface, link, at_ns, original, data });
        }
        let copies = survey.has_copies().then(Copies::default);
        let (current, totals) = (Vec::new(), Totals::default());
        Ok(Capture { reader, only, copies, kept, current, renamed: Vec::new(), survey, totals })
    }

    /// Gives the next packet that counts to `take`. Returns false at the end.
    #[inline]
    pub fn next_packet(&mut self, mut take: impl FnMut(&Packet<'_>)) -> bool {
        loop {
            let frame = if !self.kept.is_empty()
                && let Some(Kept { interface, link, at_ns, original, data }) = self.kept.pop_front()
            {
                self.current = data;
                CapturedFrame { interface, link, at_ns, original, data: &self.current }
            } else {
                let Some(frame) = self.reader.next() else { return false };
                frame
            };
            let CapturedFrame { interface, link, at_ns, original, data } = frame;
            if self.only.is_some_and(|only| only != interface) {
                continue;
            }
            let totals = &mut self.totals;
            totals.frames += 1;
            totals.frame_bytes += u64::from(original);
            totals.cut += u64::from((data.len() as u32) < original);
            totals.time(at_ns);
            let Some(link) = link else {
                totals.unread += 1;
                totals.unread_interface.get_or_insert(interface);
                continue;
            };
            let mut parsed = parse(link, data, original, interface, at_ns.unwrap_or(0));
            // By reference: a packet is long.
            let Some(packet) = &mut parsed else {
                totals.not_ip += 1;
                continue;
            };
            if !self.renamed.is_empty() {
                rename(&mut packet.source, &self.renamed);
                rename(&mut packet.destination, &self.renamed);
            }
            if let Some(copies) = &mut self.copies
                && copies.before(packet).is_some()
            {
                totals.copies += 1;
                continue;
            }
            take(packet);
            return true;
        }
    }
}

impl Totals {
    fn time(&mut self, at_ns: Option<i64>) {
        let Some(at_ns) = at_ns else {
            self.without_time += 1;
            return;
        };
        self.times = Some(self.times.map_or((at_ns, at_ns), |(from, to)| (from.min(at_ns), to.max(at_ns))));
        if let Some(last_ns) = self.last_ns.replace(at_ns) {
            self.backwards += u64::from(at_ns < last_ns.saturating_sub(SWAPPED_NS));
            if at_ns.saturating_sub(last_ns) > JUMP_NS && self.jumps.len() < MOST_JUMPS {
                self.jumps.push((last_ns, at_ns));
            }
        }
    }
}

impl Capture {
    /// The interfaces so far.
    pub fn interfaces(&self) -> &[Interface] {
        self.reader.interfaces()
    }

    /// How the capture ended, once it has.
    pub fn ending(&self) -> Option<&CaptureEnding> {
        self.reader.ending()
    }

    /// The program that wrote it, if it is named.
    pub fn application(&self) -> &str {
        &self.reader.application
    }

    /// Whether copies are left out.
    pub fn leaves_copies_out(&self) -> bool {
        self.copies.is_some()
    }

    /// Reads the rest into flows, giving each packet and its place to `also`.
    pub fn read(&mut self, flows: &mut Flows, mut also: impl FnMut(&Packet<'_>, Option<Placed>)) {
        while self.next_packet(|packet| {
            let placed = flows.take(packet);
            also(packet, placed);
        }) {}
    }
}
