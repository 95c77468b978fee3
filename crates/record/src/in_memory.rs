//! A record that is measured and not kept: the parts that measuring reads, without the files.

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
use crate::tables::{EventSeries, PacketTable, event_series_of};

thread_local! {
    /// A batch without rows, which a thread's trials hand on: the kernel clears new memory, and for a short trial that
    /// lasts longer than its rows do.
    static SPARE: Cell<Option<Box<Columns>>> = const { Cell::new(None) };
}

/// Accepts rows as [`PacketWriter`](crate::PacketWriter) does and returns the same summary; the columns that
/// [`read_packet_table`](crate::read_packet_table) would read from its file are held in memory instead.
pub struct PacketsInMemory {
    batch: Box<Columns>,
    hasher: blake3::Hasher,
    balance: Balance,
    table: PacketTable,
}

impl PacketsInMemory {
    /// Makes a record without rows.
    pub fn new(legend: &Legend) -> Self {
        PacketsInMemory {
            batch: SPARE.take().unwrap_or_else(|| Box::new(Columns::new())),
            hasher: digest_begun(&legend.to_json()),
            balance: Balance::new(legend),
            table: PacketTable::default(),
        }
    }

    /// Adds one row. An error is final.
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

    /// Counts as [`PacketWriter::made`](crate::PacketWriter::made).
    #[inline]
    pub fn made(&mut self, stage: StageId, from: &Item, made: &Item) {
        self.balance.made(stage, from, made);
    }

    #[cold]
    fn take_batch(&mut self) {
        // The digest is computed by batches, as that of the file.
        self.batch.digest(Version::NEWEST, &mut self.hasher);
        self.table.take(&self.batch);
        self.batch.clear();
    }

    /// Returns the summary of all rows, and the rows.
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

/// Returns the digest that [`write_events`](crate::write_events) would return of these events, and the series that
/// [`read_event_series`](crate::read_event_series) would read from its file. Refuses the same.
pub fn events_in_memory(
    events: &[Event],
    legend: &Legend,
) -> Result<(String, Vec<EventSeries>), RecordError> {
    let columns = event_columns(Path::new(EVENTS_FILE), events, legend)?;
    Ok((columns.digest(), event_series_of(&columns)))
}
