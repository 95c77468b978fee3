//! `capture.pcapng` of a simulated trial: whole frames where packets enter the path and where they leave it, for
//! Wireshark and for `streamgauge analyze`. Times count from 1970 on, so that a trial repeats bit by bit.

use std::collections::HashMap;
use std::path::Path;

use streamgauge_base::{Direction, Event, Fate, Instant, Item, PacketInfo, StageId};
use streamgauge_plan::{Entry, TrialPlan};
use streamgauge_record::{InterfaceId, PacketDirection, PcapngWriter, RecordError};

use crate::frame::{Envelope, frame};
use crate::peers::PeerLink;
use crate::recorder::Recorder;
use crate::store::Body;

/// The file's name, as the link emulator has it.
const CAPTURE_FILE: &str = "capture.pcapng";
/// Addresses of an end that nothing was sent to yet.
const NOWHERE: [[u8; 4]; 2] = [[0; 4]; 2];

/// Flow, relay's user and direction of a packet.
type Way = (u16, u16, Direction);
/// Addresses of sender and receiver, and whether it entered at the router.
type Ends = ([[u8; 4]; 2], bool);

/// A recorder that also writes all frames.
pub struct Captured<R> {
    pub inner: R,
    writer: PcapngWriter,
    server: InterfaceId,
    client: InterfaceId,
    /// Where flows enter at the router.
    cross: Option<InterfaceId>,
    ways: HashMap<Way, Ends>,
    last: Instant,
    error: Option<RecordError>,
}

impl<R: Recorder> Captured<R> {
    /// Starts the file in `directory`.
    pub fn create(directory: &Path, plan: &TrialPlan, inner: R) -> Result<Self, RecordError> {
        let mut writer = PcapngWriter::create(&directory.join(CAPTURE_FILE))?;
        let (server, client) = (writer.interface("server")?, writer.interface("client")?);
        let enters = plan.flows.iter().any(|flow| flow.entry == Entry::Router);
        let cross = enters.then(|| writer.interface("cross")).transpose()?;
        let (ways, last, error) = (HashMap::new(), Instant::ZERO, None);
        Ok(Captured { inner, writer, server, client, cross, ways, last, error })
    }

    /// Gives the file its name, and the other recorder back.
    pub fn finish(mut self) -> Result<R, RecordError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        for interface in [Some(self.server), Some(self.client), self.cross].into_iter().flatten() {
            self.writer.statistics(interface, 0, self.last.as_nanos(), 0)?;
        }
        self.writer.finish()?;
        Ok(self.inner)
    }

    fn write(&mut self, at: Instant, interface: InterfaceId, way: PacketDirection, frame: &[u8]) {
        self.last = self.last.max(at);
        if self.error.is_none() {
            self.error = self.writer.packet(interface, at.as_nanos(), way, frame).err();
        }
    }
}

impl<R: Recorder> Recorder for Captured<R> {
    const PACKETS: bool = R::PACKETS;
    const MESSAGES: bool = R::MESSAGES;
    const FRAMES: bool = true;

    fn row(&mut self, fate: &Fate, info: &PacketInfo, direction: Direction) {
        self.inner.row(fate, info, direction);
    }
    fn made(&mut self, stage: StageId, from: &Item, made: &Item) {
        self.inner.made(stage, from, made);
    }
    fn entered(&mut self, stage: StageId, flow: streamgauge_base::FlowId, bytes: u32) {
        self.inner.entered(stage, flow, bytes);
    }
    fn left(&mut self, direction: Direction, flow: streamgauge_base::FlowId, bytes: u32) {
        self.inner.left(direction, flow, bytes);
    }
    fn event(&mut self, event: Event) {
        self.inner.event(event);
    }
    fn memory_bytes(&self) -> u64 {
        self.inner.memory_bytes()
    }

    fn sent(&mut self, at: Instant, link: &PeerLink, item: &Item, body: &Body) {
        let direction = link.line.direction;
        let way = (link.addresses, link.line.at_router);
        self.ways.insert((item.flow.0, body.user(), direction), way);
        let end = if direction == Direction::Down { self.server } else { self.client };
        let interface = self.cross.filter(|_| link.line.at_router).unwrap_or(end);
        let frame = frame(item, body, &Envelope { addresses: link.addresses, direction });
        self.write(at, interface, PacketDirection::Inbound, &frame);
    }

    fn arrived(&mut self, at: Instant, direction: Direction, item: &Item, body: &Body) {
        let key = (item.flow.0, body.user(), direction);
        let addresses = self.ways.get(&key).map_or(NOWHERE, |way| way.0);
        // Packets for a source at the router leave there.
        let back = self.ways.get(&(key.0, key.1, direction.opposite()));
        let to_router = back.is_some_and(|way| way.1);
        let end = if direction == Direction::Down { self.client } else { self.server };
        let interface = self.cross.filter(|_| to_router).unwrap_or(end);
        let frame = frame(item, body, &Envelope { addresses, direction });
        self.write(at, interface, PacketDirection::Outbound, &frame);
    }
}
