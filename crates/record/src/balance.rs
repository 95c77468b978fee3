//! Conservation: all packets that entered a stage, per flow, must have left it, been dropped, or still be there.
//!
//! A path that checks its own log proves nothing, so the driver keeps the other side of the account: a [`Ledger`]
//! counts the packets it gave to the path and those it removed from it, and [`Balance::check`] compares the two along
//! every chain of stages. A fate that was never recorded, a packet that vanished inside a stage and a row under the
//! wrong flow all show.

use std::collections::BTreeMap;

use serde::Serialize;
use streamgauge_base::{Cause, Direction, Fate, FlowId, Item, Outcome, StageId};
use streamgauge_plan::{CAUSES, DIRECTIONS, Legend, OTHER, cause_name, direction_name};

/// Packets and Ethernet bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Ethernet bytes (IP bytes + 14).
    pub bytes: u64,
}

impl Count {
    #[inline]
    fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }
}

impl std::ops::Add for Count {
    type Output = Count;
    fn add(self, other: Count) -> Count {
        Count { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

/// The fates of one flow's packets in one stage, except for those that left it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Cell {
    held: Count,
    dropped: [Count; CAUSES.len()],
    /// Copies and fragments that the stage made, and the bytes by which it made the traffic grow.
    made: Count,
}

impl Cell {
    /// Returns all that have a fate here: entered and made. `delivered` left the stage.
    fn settled(&self, delivered: Count) -> Count {
        self.dropped.iter().fold(delivered + self.held, |sum, &c| sum + c)
    }

    fn entered(&self, delivered: Count) -> Count {
        let (settled, made) = (self.settled(delivered), self.made);
        Count {
            packets: settled.packets.saturating_sub(made.packets),
            bytes: settled.bytes.saturating_sub(made.bytes),
        }
    }
}

/// Returns the row of a flow in the tables below: its code, or past the last one for [`FlowId::OTHER`].
fn row_of(flow: FlowId, flows: usize) -> Option<usize> {
    let row = usize::from(flow.0);
    if row < flows {
        Some(row)
    } else if flow == FlowId::OTHER {
        Some(flows)
    } else {
        None
    }
}

/// The account of every stage and flow, kept while rows are written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Balance {
    legend: Legend,
    /// `flow * stages + stage`, the last flow being "other". Departures are kept apart: nearly every row counts there,
    /// and with thousands of flows 16 bytes of each stay in a near cache where whole cells do not.
    delivered: Vec<Count>,
    cells: Vec<Cell>,
}

impl Balance {
    /// Makes an empty account.
    pub fn new(legend: &Legend) -> Self {
        let places = legend.stages.len() * (legend.flows.len() + 1);
        let (delivered, cells) = (vec![Count::default(); places], vec![Cell::default(); places]);
        Balance { legend: legend.clone(), delivered, cells }
    }

    /// Counts one fate; false if the legend has no such stage or flow.
    #[inline]
    pub(crate) fn count(&mut self, fate: &Fate) -> bool {
        let Some(place) = self.place(fate.stage, fate.item.flow) else { return false };
        let count = match fate.outcome {
            Outcome::Delivered => &mut self.delivered[place],
            Outcome::Dropped => &mut self.cells[place].dropped[fate.cause as usize],
            Outcome::Held => &mut self.cells[place].held,
        };
        count.add(fate.item.bytes);
        true
    }

    /// Counts a copy or fragment that `stage` made of `from`.
    pub(crate) fn made(&mut self, stage: StageId, from: &Item, made: &Item) {
        if let Some(place) = self.place(stage, made.flow) {
            self.cells[place].made.add(from.bytes_added_by(made));
        }
    }

    /// Returns the packets of `flow` that entered `stage`. Zero where the legend has no such stage or flow, as in all
    /// of these.
    pub fn entered(&self, stage: StageId, flow: FlowId) -> Count {
        self.look(stage, flow).map_or(Count::default(), |(delivered, cell)| cell.entered(delivered))
    }

    /// Returns the packets that left `stage`.
    pub fn delivered(&self, stage: StageId, flow: FlowId) -> Count {
        self.look(stage, flow).map_or(Count::default(), |(delivered, _)| delivered)
    }

    /// Returns the packets that `stage` dropped for `cause`.
    pub fn dropped(&self, stage: StageId, flow: FlowId, cause: Cause) -> Count {
        self.look(stage, flow).map_or(Count::default(), |(_, cell)| cell.dropped[cause as usize])
    }

    /// Returns the packets inside `stage` at the end.
    pub fn held(&self, stage: StageId, flow: FlowId) -> Count {
        self.look(stage, flow).map_or(Count::default(), |(_, cell)| cell.held)
    }

    /// Copies and fragments that `stage` made, with the bytes that they added.
    pub fn made_in(&self, stage: StageId, flow: FlowId) -> Count {
        self.look(stage, flow).map_or(Count::default(), |(_, cell)| cell.made)
    }

    /// Returns the place of a stage and flow in the tables; `None` where the legend has none.
    #[inline]
    fn place(&self, stage: StageId, flow: FlowId) -> Option<usize> {
        self.place_of(stage, row_of(flow, self.legend.flows.len())?)
    }

    #[inline]
    fn place_of(&self, stage: StageId, row: usize) -> Option<usize> {
        let (stage, stages) = (usize::from(stage.0), self.legend.stages.len());
        (stage < stages).then_some(row * stages + stage)
    }

    fn look(&self, stage: StageId, flow: FlowId) -> Option<(Count, &Cell)> {
        self.place(stage, flow).map(|place| (self.delivered[place], &self.cells[place]))
    }

    /// Returns the cell of a stage that the legend has and a row of its flows.
    fn cell(&self, stage: StageId, row: usize) -> (Count, &Cell) {
        let place = self.place_of(stage, row).expect("the caller goes through the legend's stages");
        (self.delivered[place], &self.cells[place])
    }

    /// Returns every stage and flow that saw a packet, in order of their codes.
    pub fn rows(&self) -> Vec<BalanceRow> {
        let mut rows = Vec::new();
        for (stage, entry) in (0u8..=u8::MAX).zip(&self.legend.stages) {
            for row in 0..=self.legend.flows.len() {
                let (delivered, cell) = self.cell(StageId(stage), row);
                let entered = cell.entered(delivered);
                if cell.settled(delivered).packets == 0 {
                    continue;
                }
                let dropped = || CAUSES.iter().zip(&cell.dropped).filter(|(_, count)| count.packets > 0);
                rows.push(BalanceRow {
                    stage: entry.name.clone(),
                    direction: direction_name(entry.direction),
                    flow: self.flow_name(row).to_owned(),
                    in_packets: entered.packets,
                    in_bytes: entered.bytes,
                    made_packets: cell.made.packets,
                    made_bytes: cell.made.bytes,
                    out_packets: delivered.packets,
                    out_bytes: delivered.bytes,
                    dropped_packets: dropped().map(|(&cause, c)| (cause_name(cause), c.packets)).collect(),
                    dropped_bytes: dropped().map(|(&cause, c)| (cause_name(cause), c.bytes)).collect(),
                    held_packets: cell.held.packets,
                    held_bytes: cell.held.bytes,
                });
            }
        }
        rows
    }

    fn flow_name(&self, row: usize) -> &str {
        self.legend.flows.get(row).map_or(OTHER, |flow| flow.name.as_str())
    }

    /// Compares with the driver's own account. Each returned sentence names a stage, a flow and two numbers;
    /// none means that everything is accounted for, in packets and in bytes.
    ///
    /// Checks for every stage and flow: packets that left it, were dropped in it or are held = packets that the driver
    /// put there + packets that left the stage before + packets that it made itself. For every direction and flow:
    /// packets that left the last stage = packets that the driver removed.
    pub fn check(&self, ledger: &Ledger) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut compare = |what: String, found: Count, expected: Count| {
            for (unit, found, expected) in
                [("packets", found.packets, expected.packets), ("bytes", found.bytes, expected.bytes)]
            {
                if found != expected {
                    wrong.push(format!("{what}: {found} {unit} recorded, {expected} expected"));
                }
            }
        };
        for direction in DIRECTIONS {
            for row in 0..=self.legend.flows.len() {
                let flow = self.flow_name(row);
                let mut from_before = Count::default();
                for (stage, entry) in self.legend.stages_of(direction) {
                    let (delivered, cell) = self.cell(stage, row);
                    let what =
                        format!("flow {flow}, into stage {} ({})", entry.name, direction_name(direction));
                    compare(what, cell.settled(delivered), from_before + ledger.put(stage, row) + cell.made);
                    from_before = delivered;
                }
                let what = format!("flow {flow}, out of the path ({})", direction_name(direction));
                compare(what, from_before, ledger.taken(direction, row));
            }
        }
        wrong
    }
}

/// One stage and flow of the balance as `trial.json` has it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct BalanceRow {
    /// The stage's name.
    pub stage: String,
    /// Its direction, "down" or "up".
    pub direction: &'static str,
    /// The flow's name.
    pub flow: String,
    /// Packets that entered.
    pub in_packets: u64,
    /// Ethernet bytes that entered.
    pub in_bytes: u64,
    /// Copies and fragments that it made.
    pub made_packets: u64,
    /// Ethernet bytes by which they made the traffic grow: whole copies, the headers of fragments.
    pub made_bytes: u64,
    /// Packets that left.
    pub out_packets: u64,
    /// Ethernet bytes that left.
    pub out_bytes: u64,
    /// Packets dropped, by cause.
    pub dropped_packets: BTreeMap<&'static str, u64>,
    /// Ethernet bytes dropped, by cause.
    pub dropped_bytes: BTreeMap<&'static str, u64>,
    /// Packets inside at the end.
    pub held_packets: u64,
    /// Ethernet bytes inside at the end.
    pub held_bytes: u64,
}

/// The driver's own account of the packets it put into a path and removed from it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ledger {
    flows: usize,
    put: Vec<Count>,
    taken: Vec<Count>,
}

impl Ledger {
    /// Makes an empty account.
    pub fn new(legend: &Legend) -> Self {
        let rows = legend.flows.len() + 1;
        Ledger {
            flows: legend.flows.len(),
            put: vec![Count::default(); legend.stages.len() * rows],
            taken: vec![Count::default(); DIRECTIONS.len() * rows],
        }
    }

    /// Counts a packet of `bytes` Ethernet bytes put into `stage`: the first of its direction, or the bottleneck for
    /// traffic that enters at the router. Flows and stages that the legend has not are not counted.
    #[inline]
    pub fn entered(&mut self, stage: StageId, flow: FlowId, bytes: u32) {
        if let Some(row) = row_of(flow, self.flows)
            && let Some(count) = self.put.get_mut(usize::from(stage.0) * (self.flows + 1) + row)
        {
            count.add(bytes);
        }
    }

    /// Counts a packet that left the last stage of `direction`.
    #[inline]
    pub fn left(&mut self, direction: Direction, flow: FlowId, bytes: u32) {
        if let Some(row) = row_of(flow, self.flows) {
            self.taken[direction as usize * (self.flows + 1) + row].add(bytes);
        }
    }

    fn put(&self, stage: StageId, row: usize) -> Count {
        self.put[usize::from(stage.0) * (self.flows + 1) + row]
    }

    fn taken(&self, direction: Direction, row: usize) -> Count {
        self.taken[direction as usize * (self.flows + 1) + row]
    }
}
