//! One trial, whole.

use serde::{Deserialize, Serialize};
use streamgauge_base::{Direction, Duration, Event, FlowId, Instant};
use streamgauge_path::spec::PathSpec;

use crate::app::AppSpec;
use crate::limits::TrialLimits;
use crate::protocols::Protocols;
use crate::relay::RelaySpec;
use crate::tcp::FlowTcp;

/// One trial.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialPlan {
    /// The scenario's id.
    pub scenario: String,
    /// The seed of every random stream.
    pub seed: u64,
    /// The trial ends here at the latest.
    pub duration: Duration,
    /// End when this flow's media has been sent and played.
    #[serde(default)]
    pub until_media_end: Option<String>,
    /// End when no packet of a subject has crossed the path for this time; of any flow where there is no subject.
    #[serde(default)]
    pub until_idle: Option<Duration>,
    /// The path.
    pub path: PathSpec,
    /// The flows; a flow's index here is its `FlowId`.
    pub flows: Vec<FlowSpec>,
    /// Machines that flows share; see [`TrialPlan::relay_id`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relays: Vec<RelaySpec>,
    /// Upper bound of the uniform, order-preserving delay that a simulated host adds to its actions.
    #[serde(default)]
    pub host_jitter: Duration,
    /// How much is kept.
    #[serde(default)]
    pub keep: Keep,
    /// Time between samples of the state of each flow's TCP; `None` records none.
    #[serde(default)]
    pub tcp_sample: Option<Duration>,
    /// Most that it may cost in virtual time.
    #[serde(default)]
    pub limits: TrialLimits,
    /// Words in the record at their times (ns), for its readers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<(Duration, String)>,
}

/// Makes the event of a word in the record at a time.
pub fn mark_event(at: Instant, mark: &str) -> Event {
    // With a space in front no word reads as the number of a stage.
    Event {
        at,
        flow: None,
        name: "mark".into(),
        value: None,
        unit: "".into(),
        reason: format!(" {mark}").into(),
    }
}

impl TrialPlan {
    /// Returns the code of the relay at that place among `relays`: relays count on where flows end.
    pub fn relay_id(&self, nth: usize) -> FlowId {
        FlowId((self.flows.len() + nth) as u16)
    }

    /// Returns the flows that pass through `relay`, with their codes, in the plan's order.
    pub fn users<'a>(&'a self, relay: &'a RelaySpec) -> impl Iterator<Item = (FlowId, &'a FlowSpec)> {
        (0u16..).map(FlowId).zip(&self.flows).filter(|(_, flow)| flow.via.as_ref() == Some(&relay.name))
    }

    /// Returns the place among `relays` of the one that `flow` passes through.
    pub fn relay_of(&self, flow: &FlowSpec) -> Option<usize> {
        let name = flow.via.as_ref()?;
        self.relays.iter().position(|relay| relay.name == *name)
    }

    /// Returns when the plan last acts on a flow, from the trial's start on: until then a silence is no end.
    pub fn last_scheduled(&self) -> Duration {
        let times = |flow: &FlowSpec| {
            std::iter::once(flow.start).chain(flow.actions.iter().map(|&(time, _)| time)).max()
        };
        self.flows.iter().filter_map(times).max().unwrap_or(Duration::ZERO)
    }

    /// Returns the marks before `end`, as events.
    pub fn marks_until(&self, end: Instant) -> impl Iterator<Item = Event> {
        let at = |time: &Duration| Instant::ZERO + *time;
        self.marks
            .iter()
            .filter(move |(time, _)| at(time) < end)
            .map(move |(time, mark)| mark_event(at(time), mark))
    }

    /// Returns for each flow and then for each relay, in the plan's order, that it is no subject, while another is.
    /// Empty where all count alike.
    pub fn is_cross_traffic(&self) -> Box<[bool]> {
        let flows = self.flows.iter().map(|flow| flow.role);
        let roles = flows.chain(self.relays.iter().map(|relay| self.role_of(relay)));
        let beside: Vec<bool> = roles.map(|role| role != Role::Subject).collect();
        let all_alike = beside.iter().all(|one| *one == beside[0]);
        if all_alike { Box::default() } else { beside.into() }
    }

    /// Returns the role of a relay: a subject's, if one passes through it.
    pub fn role_of(&self, relay: &RelaySpec) -> Role {
        let of_subject = self.users(relay).any(|(_, flow)| flow.role == Role::Subject);
        if of_subject { Role::Subject } else { Role::Rival }
    }
}

/// How much of the record is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// Nothing but the summary that `run` returns.
    Metrics,
    /// Events.
    Events,
    /// Packets and events.
    #[default]
    Packets,
}

/// One flow.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowSpec {
    /// Its name in the scenario.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// Where its packets enter the path.
    #[serde(default)]
    pub entry: Entry,
    /// Direction of its media: its server is at the source of that.
    #[serde(default, skip_serializing_if = "MediaWay::is_down")]
    pub direction: MediaWay,
    /// Time when it starts.
    pub start: Duration,
    /// Later actions on it, ascending in time.
    #[serde(default)]
    pub actions: Vec<(Duration, Action)>,
    /// Its application.
    pub app: AppSpec,
    /// The protocols of third-party programs, which do not declare them; see `streamgauge_systems::protocols`.
    #[serde(default, skip_serializing_if = "Protocols::is_empty")]
    pub protocols: Protocols,
    /// Their TCP settings; a machine of ours has them in its settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<FlowTcp>,
    /// The relay that it passes through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// The digest of the content that third-party programs play, where the plan is to name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

/// Role of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The question is about this flow.
    Subject,
    /// It competes with the subject.
    Rival,
}

/// Where a flow's packets enter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// At the server's end of the path.
    #[default]
    Server,
    /// At the bottleneck, past the stages before it (mgen on the router in Hessler and Welzl, section 2.1).
    Router,
}

/// Direction of a flow's media.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MediaWay {
    /// To the client's end of the path, as a viewer's video.
    #[default]
    Down,
    /// From there, as a camera's or an upload: the flow's server is at the client's end.
    Up,
}

impl MediaWay {
    /// Returns the direction that its server's packets cross the path in.
    pub fn direction(self) -> Direction {
        match self {
            MediaWay::Down => Direction::Down,
            MediaWay::Up => Direction::Up,
        }
    }

    /// Returns whether it is the usual one, which a plan leaves out.
    pub fn is_down(&self) -> bool {
        *self == MediaWay::Down
    }
}

/// An action on a running flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Stop sending for now.
    Pause,
    /// Continue.
    Resume,
    /// End.
    Stop,
}
