//! `capture.pcapng`: whole frames at every port, written by a thread of their own.

use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use streamgauge_record::{InterfaceId, PacketDirection, PcapngWriter, RecordError};

use crate::error::{EngineError, Result};

/// The file's name.
pub const CAPTURE_FILE: &str = "capture.pcapng";

/// Bytes of frames that are handed over at once.
const BATCH_BYTES: usize = 256 * 1024;

/// Frames on their way to the writer.
#[derive(Default)]
struct Batch {
    frames: Vec<Entry>,
    bytes: Vec<u8>,
}

struct Entry {
    port: usize,
    direction: PacketDirection,
    at_ns: u64,
    length: usize,
}

/// Final counts of an interface.
#[derive(Clone, Copy, Debug)]
pub struct PortSummary {
    /// Frames lost before they were seen.
    pub dropped: u64,
}

enum Message {
    Frames(Batch),
    Finish { start_ns: u64, end_ns: u64, ports: Vec<PortSummary> },
}

/// A running capture. Never waits for a disk: batches queue up in memory if it cannot follow.
pub struct Capture {
    batch: Batch,
    sender: Sender<Message>,
    thread: JoinHandle<std::result::Result<(), RecordError>>,
    start_ns: u64,
}

impl Capture {
    /// Starts `path` for interfaces of these names, at `start_ns` (CLOCK_REALTIME).
    pub fn create(path: &Path, names: &[&str], start_ns: u64) -> Result<Capture> {
        let mut writer = PcapngWriter::create(path).map_err(|e| EngineError::record(&e))?;
        let interfaces = names.iter().map(|name| writer.interface(name));
        let interfaces: Vec<InterfaceId> =
            interfaces.collect::<std::result::Result<_, _>>().map_err(|e| EngineError::record(&e))?;
        let (sender, messages) = channel();
        let work = move || {
            for message in messages {
                match message {
                    Message::Frames(batch) => {
                        let mut rest = batch.bytes.as_slice();
                        for Entry { port, direction, at_ns, length } in batch.frames {
                            let (frame, after) = rest.split_at(length);
                            writer.packet(interfaces[port], at_ns, direction, frame)?;
                            rest = after;
                        }
                    }
                    Message::Finish { start_ns, end_ns, ports } => {
                        for (&interface, port) in interfaces.iter().zip(ports) {
                            writer.statistics(interface, start_ns, end_ns, port.dropped)?;
                        }
                        return writer.finish().map(drop);
                    }
                }
            }
            Ok(())
        };
        let thread = std::thread::Builder::new()
            .name("capture".into())
            .spawn(work)
            .map_err(|e| EngineError::io("start a thread", &e))?;
        Ok(Capture { batch: Batch::default(), sender, thread, start_ns })
    }

    /// Writes a frame that crossed `port` at `at_ns` (CLOCK_REALTIME).
    pub fn frame(&mut self, port: usize, direction: PacketDirection, at_ns: i64, frame: &[u8]) {
        let at_ns = at_ns.max(0) as u64;
        self.batch.frames.push(Entry { port, direction, at_ns, length: frame.len() });
        self.batch.bytes.extend_from_slice(frame);
        if self.batch.bytes.len() >= BATCH_BYTES {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        let next = Batch { frames: Vec::with_capacity(512), bytes: Vec::with_capacity(BATCH_BYTES + 2048) };
        // If the writer has ended, `finish` reports the cause.
        let _ = self.sender.send(Message::Frames(std::mem::replace(&mut self.batch, next)));
    }

    /// Returns whether the writer has given up.
    pub fn has_failed(&self) -> bool {
        self.thread.is_finished()
    }

    /// Completes the file at `end_ns` (CLOCK_REALTIME).
    pub fn finish(mut self, end_ns: u64, ports: Vec<PortSummary>) -> Result<()> {
        self.hand_over();
        let _ = self.sender.send(Message::Finish { start_ns: self.start_ns, end_ns, ports });
        match self.thread.join() {
            Ok(done) => done.map_err(|e| EngineError::record(&e)),
            Err(_) => Err(EngineError::new("write the capture", "its thread panicked")),
        }
    }
}
