//! One trial, whole.

use serde::{Deserialize, Serialize};
use streamgauge_base::{Direction, Duration, FlowId};
use streamgauge_path::spec::PathSpec;

use crate::app::AppSpec;
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
    /// End when no packet of a subject has crossed the path for so long; of any flow where there is no subject.
    #[serde(default)]
    pub until_idle: Option<Duration>,
    /// The path.
    pub path: PathSpec,
    /// The flows; a flow's index here is its `FlowId`.
    pub flows: Vec<FlowSpec>,
    /// Machines that flows share; see [`TrialPlan::relay_id`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relays: Vec<RelaySpec>,
    /// Upper bound of the uniform, order-preserving delay that a simulated host adds to what it does.
    #[serde(default)]
    pub host_jitter: Duration,
    /// How much is kept.
    #[serde(default)]
    pub keep: Keep,
    /// Time between samples of the state of each flow's TCP; `None` takes none.
    #[serde(default)]
    pub tcp_sample: Option<Duration>,
}

impl TrialPlan {
    /// The code of the relay at that place among `relays`: relays count on where flows end.
    pub fn relay_id(&self, nth: usize) -> FlowId {
        FlowId((self.flows.len() + nth) as u16)
    }

    /// The flows that go through `relay`, with their codes, in the plan's order.
    pub fn users<'a>(&'a self, relay: &'a RelaySpec) -> impl Iterator<Item = (FlowId, &'a FlowSpec)> {
        (0u16..).map(FlowId).zip(&self.flows).filter(|(_, flow)| flow.via.as_ref() == Some(&relay.name))
    }

    /// The place among `relays` of the one that `flow` goes through.
    pub fn relay_of(&self, flow: &FlowSpec) -> Option<usize> {
        let name = flow.via.as_ref()?;
        self.relays.iter().position(|relay| relay.name == *name)
    }

    /// When the plan last does something to a flow, from the trial's start on: until then a silence is no end.
    pub fn last_scheduled(&self) -> Duration {
        let times = |flow: &FlowSpec| {
            std::iter::once(flow.start).chain(flow.actions.iter().map(|&(time, _)| time)).max()
        };
        self.flows.iter().filter_map(times).max().unwrap_or(Duration::ZERO)
    }

    /// By flow and then by relay, in the plan's order: it is no subject, while another is. Empty where all count alike.
    pub fn beside_the_subjects(&self) -> Box<[bool]> {
        let flows = self.flows.iter().map(|flow| flow.role);
        let roles = flows.chain(self.relays.iter().map(|relay| self.role_of(relay)));
        let beside: Vec<bool> = roles.map(|role| role != Role::Subject).collect();
        let all_alike = beside.iter().all(|one| *one == beside[0]);
        if all_alike { Box::default() } else { beside.into() }
    }

    /// What a relay is there for: a subject's, if one goes through it.
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
    /// Subject or rival.
    pub role: Role,
    /// Where its packets enter the path.
    #[serde(default)]
    pub entry: Entry,
    /// Which way its media goes: its server stands where that comes from.
    #[serde(default, skip_serializing_if = "MediaWay::is_down")]
    pub direction: MediaWay,
    /// When it starts.
    pub start: Duration,
    /// What is done to it later, ascending in time.
    #[serde(default)]
    pub actions: Vec<(Duration, Action)>,
    /// What it is.
    pub app: AppSpec,
    /// What third-party programs speak, who do not say it themselves; see
    /// `streamgauge_systems::protocols`.
    #[serde(default, skip_serializing_if = "Protocols::is_empty")]
    pub protocols: Protocols,
    /// What their TCP uses; of a machine of ours its settings say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<FlowTcp>,
    /// The relay that it goes through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// The digest of what third-party programs are given to play, where the plan is to name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

/// What a flow is there for.
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

/// Which way a flow's media goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MediaWay {
    /// To the client's end of the path, as video does that somebody watches.
    #[default]
    Down,
    /// From there, as a camera's or an upload: the flow's server stands at the client's end.
    Up,
}

impl MediaWay {
    /// The direction that its server's packets cross the path in.
    pub fn direction(self) -> Direction {
        match self {
            MediaWay::Down => Direction::Down,
            MediaWay::Up => Direction::Up,
        }
    }

    /// Whether it is the usual one, which a plan leaves out.
    pub fn is_down(&self) -> bool {
        *self == MediaWay::Down
    }
}

/// What is done to a running flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Stop sending for now.
    Pause,
    /// Go on.
    Resume,
    /// End.
    Stop,
}
