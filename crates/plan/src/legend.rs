//! The meaning of the small integers of a record.

use serde::{Deserialize, Serialize};
use streamgauge_base::{Cause, Direction, FlowId, Outcome, PacketKind, StageId, packet_flags};
use streamgauge_path::spec::StageSpec;

use crate::trial::{Role, TrialPlan};

/// A flow of the trial, or a relay; its index is its code in the `flow` column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowEntry {
    /// Its name in the scenario.
    pub name: String,
    /// Whether it is a subject; otherwise it is cross traffic.
    pub subject: bool,
}

/// A stage of the trial; its index is its code in the `stage` column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StageEntry {
    /// Its name, unique within its direction.
    pub name: String,
    /// The direction of the packets that cross it.
    pub direction: Direction,
}

/// The names behind the codes of one trial: stages of `down` first, in the order packets cross them, then `up`'s.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Legend {
    /// The flows, by code. [`FlowId::OTHER`] is always there too, as "other".
    pub flows: Vec<FlowEntry>,
    /// The stages, by code.
    pub stages: Vec<StageEntry>,
}

/// The name of the flow for packets that belong to no flow of the scenario.
pub const OTHER: &str = "other";

/// Every direction, by code.
pub const DIRECTIONS: [Direction; 2] = [Direction::Down, Direction::Up];
const KINDS: [PacketKind; 7] = [
    PacketKind::Media,
    PacketKind::Ack,
    PacketKind::Rtcp,
    PacketKind::Signalling,
    PacketKind::Probe,
    PacketKind::Cross,
    PacketKind::Other,
];
const OUTCOMES: [Outcome; 3] = [Outcome::Delivered, Outcome::Dropped, Outcome::Held];
/// Every cause, by code.
pub const CAUSES: [Cause; 6] =
    [Cause::None, Cause::QueueFull, Cause::RandomLoss, Cause::Aqm, Cause::Blocked, Cause::TooBig];
const FLAGS: [(&str, u16); 8] = [
    ("retransmit", packet_flags::RETRANSMIT),
    ("ecn_in", packet_flags::ECN_IN),
    ("ce_marked", packet_flags::CE_MARKED),
    ("corrupted", packet_flags::CORRUPTED),
    ("more_fragments", packet_flags::MORE_FRAGMENTS),
    ("ect1_arrived", packet_flags::ECT1_ARRIVED),
    ("ce_arrived", packet_flags::CE_ARRIVED),
    ("dont_fragment", packet_flags::DONT_FRAGMENT),
];

/// Returns "down" or "up".
pub fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Down => "down",
        Direction::Up => "up",
    }
}

/// Returns the record's word for a kind.
pub fn kind_name(kind: PacketKind) -> &'static str {
    match kind {
        PacketKind::Media => "media",
        PacketKind::Ack => "ack",
        PacketKind::Rtcp => "rtcp",
        PacketKind::Signalling => "signalling",
        PacketKind::Probe => "probe",
        PacketKind::Cross => "cross",
        PacketKind::Other => "other",
    }
}

/// Returns the record's word for an outcome.
pub fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Delivered => "delivered",
        Outcome::Dropped => "dropped",
        Outcome::Held => "held",
    }
}

/// Returns the record's word for a cause.
pub fn cause_name(cause: Cause) -> &'static str {
    match cause {
        Cause::None => "none",
        Cause::QueueFull => "queue_full",
        Cause::RandomLoss => "random_loss",
        Cause::Aqm => "aqm",
        Cause::Blocked => "blocked",
        Cause::TooBig => "too_big",
    }
}

impl Legend {
    /// Makes the legend of a plan's record.
    pub fn of(plan: &TrialPlan) -> Self {
        let entry = |name: &String, role| FlowEntry { name: name.clone(), subject: role == Role::Subject };
        let flows = plan.flows.iter().map(|flow| entry(&flow.name, flow.role));
        let relays = plan.relays.iter().map(|relay| entry(&relay.name, plan.role_of(relay)));
        let down = plan.path.down.iter().map(|stage| (stage, Direction::Down));
        let up = plan.path.up.iter().map(|stage| (stage, Direction::Up));
        let stage =
            |(stage, direction): (&StageSpec, Direction)| StageEntry { name: stage.name.clone(), direction };
        Legend { flows: flows.chain(relays).collect(), stages: down.chain(up).map(stage).collect() }
    }

    /// Returns a flow's name; `None` if the legend does not have it.
    pub fn flow_name(&self, flow: FlowId) -> Option<&str> {
        if flow == FlowId::OTHER {
            return Some(OTHER);
        }
        self.flows.get(usize::from(flow.0)).map(|f| f.name.as_str())
    }

    /// Returns the flow of that name.
    pub fn flow(&self, name: &str) -> Option<FlowId> {
        if name == OTHER {
            return Some(FlowId::OTHER);
        }
        self.flows.iter().position(|f| f.name == name).and_then(|i| u16::try_from(i).ok()).map(FlowId)
    }

    /// Returns the stages that packets of `direction` cross, in that order.
    pub fn stages_of(&self, direction: Direction) -> impl Iterator<Item = (StageId, &StageEntry)> {
        (0u8..=u8::MAX)
            .zip(&self.stages)
            .filter(move |(_, s)| s.direction == direction)
            .map(|(i, s)| (StageId(i), s))
    }

    /// Returns for each flow whether its role is subject.
    fn subjects(&self) -> Vec<bool> {
        self.flows.iter().map(|f| f.subject).collect()
    }

    /// Returns the JSON that the files carry.
    pub fn to_json(&self) -> String {
        let file = FileLegend {
            flow: self.flows.iter().map(|f| f.name.clone()).collect(),
            subject: self.subjects(),
            stage: self
                .stages
                .iter()
                .map(|s| FileStage { name: s.name.clone(), direction: direction_name(s.direction).into() })
                .collect(),
            dir: DIRECTIONS.iter().map(|&d| direction_name(d).into()).collect(),
            kind: KINDS.iter().map(|&k| kind_name(k).into()).collect(),
            fate: OUTCOMES.iter().map(|&o| outcome_name(o).into()).collect(),
            cause: CAUSES.iter().map(|&c| cause_name(c).into()).collect(),
            flags: FLAGS.iter().map(|&(name, bit)| (name.into(), bit)).collect(),
        };
        serde_json::to_string(&file).expect("a legend holds nothing but strings and small integers")
    }

    /// Reads the output of [`Legend::to_json`]. Only `flow`, `subject` and `stage` are looked at.
    pub fn from_json(text: &str) -> Result<Legend, String> {
        #[derive(Deserialize)]
        struct Wanted {
            flow: Vec<String>,
            #[serde(default)]
            subject: Vec<bool>,
            stage: Vec<FileStage>,
        }
        let wanted: Wanted = serde_json::from_str(text).map_err(|e| format!("not a legend: {e}"))?;
        let stages = wanted.stage.into_iter().map(|s| {
            let direction = DIRECTIONS
                .into_iter()
                .find(|&d| direction_name(d) == s.direction)
                .ok_or_else(|| format!("not a legend: direction {:?}", s.direction))?;
            Ok(StageEntry { name: s.name, direction })
        });
        let subjects = wanted.subject.into_iter().chain(std::iter::repeat(false));
        let flows = wanted.flow.into_iter().zip(subjects).map(|(name, subject)| FlowEntry { name, subject });
        Ok(Legend { flows: flows.collect(), stages: stages.collect::<Result<_, String>>()? })
    }
}

#[derive(Serialize)]
struct FileLegend {
    flow: Vec<String>,
    subject: Vec<bool>,
    stage: Vec<FileStage>,
    dir: Vec<String>,
    kind: Vec<String>,
    fate: Vec<String>,
    cause: Vec<String>,
    flags: std::collections::BTreeMap<String, u16>,
}

#[derive(Serialize, Deserialize)]
struct FileStage {
    name: String,
    direction: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A code must be at its own place in the legend's lists, or readers would see another name.
    #[test]
    fn lists_are_in_order_of_code() {
        assert!(DIRECTIONS.iter().enumerate().all(|(i, &v)| v as usize == i));
        assert!(KINDS.iter().enumerate().all(|(i, &v)| v as usize == i));
        assert!(OUTCOMES.iter().enumerate().all(|(i, &v)| v as usize == i));
        assert!(CAUSES.iter().enumerate().all(|(i, &v)| v as usize == i));
    }

    #[test]
    fn json_round_trip() {
        let legend = Legend {
            flows: vec![
                FlowEntry { name: "video".into(), subject: true },
                FlowEntry { name: "ftp \"1\"".into(), subject: false },
            ],
            stages: vec![
                StageEntry { name: "bottleneck".into(), direction: Direction::Down },
                StageEntry { name: "wire".into(), direction: Direction::Up },
            ],
        };
        assert_eq!(Legend::from_json(&legend.to_json()), Ok(legend.clone()));
        assert_eq!(legend.flow("ftp \"1\""), Some(FlowId(1)));
        assert_eq!(legend.flow_name(FlowId::OTHER), Some("other"));
        assert_eq!(legend.flow_name(FlowId(2)), None);
    }
}
