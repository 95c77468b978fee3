//! Packet rows from a thread that has deadlines.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use streamgauge_base::{Direction, Fate, Item, PacketInfo, StageId};
use streamgauge_plan::Legend;

use crate::balance::Balance;
use crate::columns::Columns;
use crate::error::RecordError;
use crate::packets::{Encoder, PacketsSummary, unknown_code};

// A batch is a handful of boxes; there is no point in boxing it once more.
#[allow(clippy::large_enum_variant)]
enum Message {
    Batch(Columns),
    Finish,
}

/// Batches allocated ahead, so that the sending thread need not.
const SPARE: usize = 2;

/// As [`PacketWriter`](crate::PacketWriter), with the same file as result, but a thread of its own encodes and
/// writes: [`row`](Self::row) never waits for a disk. Batches queue up in memory if the disk cannot follow.
///
/// The thread inherits the scheduling class of the one that calls [`create`](Self::create): call it before that
/// one becomes a real-time thread.
pub struct PacketSender {
    path: PathBuf,
    batch: Columns,
    balance: Balance,
    full: Sender<Message>,
    empty: Receiver<Columns>,
    thread: JoinHandle<Result<Option<(u64, String)>, RecordError>>,
}

impl PacketSender {
    /// Starts `path` and its thread.
    pub fn create(path: &Path, legend: &Legend) -> Result<Self, RecordError> {
        let mut encoder: Encoder<File> = Encoder::create(path, legend)?;
        let (full, batches) = channel::<Message>();
        let (done, empty) = channel();
        for _ in 0..SPARE {
            let _ = done.send(Columns::new());
        }
        let work = move || {
            for message in batches {
                let Message::Batch(mut batch) = message else { return encoder.finish().map(Some) };
                encoder.write(&batch)?;
                batch.clear();
                // The receiver may have ended once the last batch is on its way.
                let _ = done.send(batch);
            }
            // The sender was dropped: so is the file.
            Ok(None)
        };
        let thread = thread::Builder::new()
            .name("record".into())
            .spawn(work)
            .map_err(|e| RecordError::io(path, "starting its thread", e))?;
        let (batch, balance) = (Columns::new(), Balance::new(legend));
        Ok(PacketSender { path: path.to_owned(), batch, balance, full, empty, thread })
    }

    /// Adds one row. An error may concern earlier rows and stays until [`finish`](Self::finish), which returns it.
    #[inline]
    pub fn row(&mut self, fate: &Fate, info: &PacketInfo, direction: Direction) -> Result<(), RecordError> {
        if !self.balance.count(fate) {
            return Err(unknown_code(&self.path, fate));
        }
        self.batch.push(fate, info, direction);
        if self.batch.is_full() {
            self.hand_over()?;
        }
        Ok(())
    }

    /// Counts as [`PacketWriter::made`](crate::PacketWriter::made).
    #[inline]
    pub fn made(&mut self, stage: StageId, from: &Item, made: &Item) {
        self.balance.made(stage, from, made);
    }

    #[cold]
    fn hand_over(&mut self) -> Result<(), RecordError> {
        let next = self.empty.try_recv().unwrap_or_else(|_| Columns::new());
        let batch = std::mem::replace(&mut self.batch, next);
        self.full.send(Message::Batch(batch)).map_err(|_| {
            let what = "its thread has ended; finish() says why";
            RecordError::invalid(&self.path, what)
        })
    }

    /// Returns the account so far.
    pub fn balance(&self) -> &Balance {
        &self.balance
    }

    /// Waits until everything is written and the file has its name.
    pub fn finish(self) -> Result<PacketsSummary, RecordError> {
        let PacketSender { path, batch, balance, full, empty: _empty, thread } = self;
        if batch.rows() > 0 {
            // If the thread has ended its own error is more precise than this one.
            let _ = full.send(Message::Batch(batch));
        }
        let _ = full.send(Message::Finish);
        match thread.join() {
            Ok(written) => match written? {
                Some((rows, digest)) => Ok(PacketsSummary { rows, digest, balance }),
                None => unreachable!("it was told to finish"),
            },
            Err(_) => Err(RecordError::invalid(path, "its thread panicked")),
        }
    }
}
