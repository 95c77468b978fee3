//! A record that is measured and not kept: what measuring reads of it, without the files.

use std::cell::Cell;
use std::path::Path;

use streamgauge_base::{Direction, Event, Fate, Item, PacketInfo, StageId};
use streamgauge_plan::Legend;

use crate::balance::Balance;
use crate::columns::{Columns, Version};
use crate::error::RecordError;
use crate::events::event_columns;
use crate::file::{EVENTS_FILE, PACKETS_FILE, digest_text};
use crate::packets::{PacketsSummary, digest_begun, unknown_code};
use crate::tables::{PacketTable, Told, told_of};

thread_local! {
    /// A batch without rows, which a thread's trials hand on: the kernel clears memory that is asked for anew, and for a
    /// short trial that takes longer than its rows do.
    static SPARE: Cell<Option<Box<Columns>>> = const { Cell::new(None) };
}

/// Takes rows as [`PacketWriter`](crate::PacketWriter) does and comes to the same summary; what
/// [`read_packet_table`](crate::read_packet_table) would read of its file is held in memory instead.
pub struct PacketsInMemory {
    batch: Box<Columns>,
    hasher: blake3::Hasher,
    balance: Balance,
    table: PacketTable,
}

impl PacketsInMemory {
    /// Without rows.
    pub fn new(legend: &Legend) -> Self {
        PacketsInMemory {
            batch: SPARE.take().unwrap_or_else(|| Box::new(Columns::new())),
            hasher: digest_begun(&legend.to_json()),
            balance: Balance::new(legend),
            table: PacketTable::default(),
        }
    }

    /// Takes one row. An error is final.
    #[inline]
    pub fn row(&mut self, fate: &Fate, info: &PacketInfo, direction: Direction) -> Result<(), RecordError> {
        if !self.balance.count(fate) {
            return Err(unknown_code(Path::new(PACKETS_FILE), fate));
        }
        self.batch.push(fate, info, direction);
        if self.batch.is_full() {
            self.take_batch();
        }
        Ok(())
    }

    /// As [`PacketWriter::made`](crate::PacketWriter::made).
    #[inline]
    pub fn made(&mut self, stage: StageId, from: &Item, made: &Item) {
        self.balance.made(stage, from, made);
    }

    #[cold]
    fn take_batch(&mut self) {
        // The digest goes by batches, as that of the file.
        self.batch.digest(Version::NEWEST, &mut self.hasher);
        self.table.take(&self.batch);
        self.batch.clear();
    }

    /// The summary of all rows, and the rows.
    pub fn finish(mut self) -> (PacketsSummary, PacketTable) {
        if self.batch.rows() > 0 {
            self.take_batch();
        }
        let summary = PacketsSummary {
            rows: self.table.pkt.len() as u64,
            digest: digest_text(&self.hasher),
            balance: self.balance,
        };
        SPARE.set(Some(self.batch));
        (summary, self.table)
    }
}

/// The digest that [`write_events`](crate::write_events) would return of these events, and what
/// [`read_told`](crate::read_told) would read of its file. Refuses the same.
pub fn events_in_memory(events: &[Event], legend: &Legend) -> Result<(String, Vec<Told>), RecordError> {
    let columns = event_columns(Path::new(EVENTS_FILE), events, legend)?;
    Ok((columns.digest(), told_of(&columns)))
}
