//! The loop of a trial.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use streamgauge_base::{Direction, Duration, FlowId, Instant, RandomStream};
use streamgauge_plan::{Action, FlowSpec, RelaySpec, TrialPlan};
use streamgauge_record::Classifier;
use streamgauge_systems::media::Contents;
use streamgauge_systems::{
    App, Channel, Input, MEDIA_END, Machines, RelayMachine, machines, protocols, relay_machine,
    relay_protocols,
};

use crate::MODEL_VERSION;
use crate::budget::Budget;
use crate::channels::{Opening, Roots, Start};
use crate::error::SimError;
use crate::host::Endpoint;
use crate::network::{Arrived, Network};
use crate::peers::PeerLinks;
use crate::recorder::{Recorder, Steer};
use crate::relays::{self, Receivers};
use crate::sampler::{self, Sampler};
use crate::settings::Settings;
use crate::summary::{EndedBy, FlowSummary, Hosts, RelaySummary, Summary};
use crate::timers::Timers;

/// Runs `plan` to its end and hands rows and events to `recorder`, which is returned with the summary. The summary's
/// record fields are empty: the caller that closes the record fills them.
///
/// Same plan and seed, same rows and events in the same order, on every machine.
pub fn run<R: Recorder>(plan: &TrialPlan, recorder: R) -> Result<(Summary, R), SimError> {
    run_with(plan, &Contents::NONE, recorder)
}

/// Runs as [`run`], for a plan that names `contents`.
pub fn run_with<R: Recorder>(
    plan: &TrialPlan,
    contents: &Contents,
    recorder: R,
) -> Result<(Summary, R), SimError> {
    run_machines(plan, |spec| Ok(machines(spec, plan.seed, contents)?), recorder)
}

/// Runs as [`run`], with machines of the caller's making for each flow, in place of the plan's.
pub fn run_machines<R: Recorder>(
    plan: &TrialPlan,
    machines: impl FnMut(&FlowSpec) -> Result<Machines, SimError>,
    recorder: R,
) -> Result<(Summary, R), SimError> {
    run_made(plan, machines, |spec| Ok(relay_machine(spec, plan.seed)?), recorder)
}

/// Runs as [`run_machines`], with relays of the caller's making too.
pub fn run_made<R: Recorder>(
    plan: &TrialPlan,
    machines: impl FnMut(&FlowSpec) -> Result<Machines, SimError>,
    relays: impl FnMut(&RelaySpec) -> Result<RelayMachine, SimError>,
    recorder: R,
) -> Result<(Summary, R), SimError> {
    let mut trial = Trial::new(plan, machines, relays, recorder)?;
    let (end, ended_by) = trial.run(plan)?;
    trial.sample(end);
    for (_, unseen) in trial.inboxes.iter_mut().flat_map(|inbox| inbox.drain(..)) {
        trial.network.fates.store.release(unseen.body);
    }
    trial.network.finish(end);
    plan.marks_until(end).for_each(|mark| trial.network.fates.recorder.event(mark));
    Ok(trial.into_summary(plan, end, ended_by))
}

/// A planned action on a flow at a time.
#[derive(Clone, Copy, Debug)]
enum Scheduled {
    Start,
    Act(Action),
}

/// A flow, or a relay.
struct Flow {
    /// Delays of its hosts.
    jitter: RandomStream,
    /// Packets of its server have this direction.
    media: Direction,
    /// Until it starts; flows that begin alike share them.
    openings: Option<Arc<Vec<Opening>>>,
}

impl Flow {
    /// Makes a flow with the channels that it begins with. Its ends are behind the other `endpoints`.
    fn new<const N: usize>(
        plan: &TrialPlan,
        name: &str,
        channels: &[Channel],
        media: Direction,
        last: &mut Last,
        ends: [(Box<dyn App + Send>, PeerLinks); N],
        endpoints: &mut Vec<Endpoint>,
    ) -> Result<Self, SimError> {
        let openings = last.openings(channels)?;
        let mut jitter = RandomStream::named(plan.seed, name, "host_jitter");
        for (app, links) in ends {
            let mut endpoint = Endpoint::new(app, links);
            endpoint.timer_jitter = draw(&mut jitter, plan.host_jitter);
            endpoints.push(endpoint);
        }
        Ok(Flow { jitter, media, openings: Some(openings) })
    }
}

/// The inputs of the last flow, which the next mostly shares.
#[derive(Default)]
struct Last {
    settings: Option<Settings>,
    openings: Option<Arc<Vec<Opening>>>,
}

impl Last {
    fn openings(&mut self, channels: &[Channel]) -> Result<Arc<Vec<Opening>>, SimError> {
        let made = channels.iter().map(|channel| Opening::new(channel, &mut self.settings));
        let made = made.collect::<Result<Vec<_>, _>>()?;
        let openings = match self.openings.take() {
            Some(last) if *last == made => last,
            _ => Arc::new(made),
        };
        self.openings = Some(openings.clone());
        Ok(openings)
    }
}

struct Trial<R> {
    network: Network<R>,
    flows: Vec<Flow>,
    /// Server and player of flow 0, of flow 1, ...; then the relays.
    endpoints: Vec<Endpoint>,
    /// How many of `flows` are no relays.
    real_flows: usize,
    /// Where there are relays.
    receivers: Option<Receivers>,
    timers: Timers,
    /// Ascending in time; those before `next_scheduled` are done.
    agenda: Vec<(Instant, FlowId, Scheduled)>,
    next_scheduled: usize,
    /// Packets that have left the path of a direction and that the host has yet to look at.
    inboxes: [VecDeque<(Instant, Arrived)>; 2],
    /// Time when the host looked, or will look, at the last packet of a direction.
    last_look: [Instant; 2],
    host_jitter: Duration,
    sampler: Sampler,
    budget: Budget,
    end: Instant,
    /// Where the trial keeps to a pace: when the last thing happened.
    done: Instant,
    idle: Option<Duration>,
    media_flow: Option<FlowId>,
    media_ended: bool,
}

/// The next event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    Path(Direction),
    Inbox(Direction),
    Local,
    Timer,
    Scheduled,
}

impl<R: Recorder> Trial<R> {
    fn new(
        plan: &TrialPlan,
        mut machines: impl FnMut(&FlowSpec) -> Result<Machines, SimError>,
        mut relay_machines: impl FnMut(&RelaySpec) -> Result<RelayMachine, SimError>,
        recorder: R,
    ) -> Result<Self, SimError> {
        check(plan)?;
        let told = plan.flows.iter().map(|flow| (flow.role, protocols(flow)));
        let relays = plan.relays.iter().map(|relay| (plan.role_of(relay), relay_protocols(&relay.app)));
        // Where nothing reads the packets' content, flows do not pay for it.
        let reads = R::PACKETS || R::MESSAGES;
        let classifier = Classifier::new(told.chain(relays).take(if reads { usize::MAX } else { 0 }));
        let mut network = Network::new(&plan.path, plan.seed, classifier, recorder)?;
        if plan.until_idle.is_some() {
            network.leave_out(plan.is_cross_traffic());
        }
        let mut flows = Vec::with_capacity(plan.flows.len() + plan.relays.len());
        let mut endpoints = Vec::with_capacity(2 * plan.flows.len() + plan.relays.len());
        let mut agenda = Vec::new();
        let mut last = Last::default();
        let at = |d: Duration| Instant::ZERO + d;
        for (index, spec) in plan.flows.iter().enumerate() {
            let made = machines(spec)?;
            let flow = FlowId(index as u16);
            let media = spec.direction.direction();
            let [server, player] = relays::links(plan, flow, spec);
            let ends = [(made.server, server), (made.player, player)];
            let begun = Flow::new(plan, &spec.name, &made.channels, media, &mut last, ends, &mut endpoints);
            flows.push(begun.map_err(|e| at_key("flows", &spec.name, e))?);
            agenda.push((at(spec.start), flow, Scheduled::Start));
            agenda
                .extend(spec.actions.iter().map(|&(time, action)| (at(time), flow, Scheduled::Act(action))));
        }
        for (nth, spec) in plan.relays.iter().enumerate() {
            let made = relay_machines(spec)?;
            let ends = [(made.app, relays::relay_links(plan, nth, spec))];
            // Media of flows that pass through relays has the direction down.
            let media = Direction::Down;
            let begun = Flow::new(plan, &spec.name, &made.channels, media, &mut last, ends, &mut endpoints);
            flows.push(begun.map_err(|e| at_key("relays", &spec.name, e))?);
            agenda.push((Instant::ZERO, plan.relay_id(nth), Scheduled::Start));
        }
        // Stable: the plan's actions on a flow at one time keep the plan's order.
        agenda.sort_by_key(|&(time, flow, _)| (time, flow));
        Ok(Trial {
            network,
            timers: Timers::new(endpoints.len()),
            flows,
            endpoints,
            real_flows: plan.flows.len(),
            receivers: Receivers::of(plan),
            agenda,
            next_scheduled: 0,
            inboxes: Default::default(),
            last_look: [Instant::ZERO; 2],
            host_jitter: plan.host_jitter,
            sampler: Sampler::new(plan),
            budget: Budget::new(plan.limits),
            end: at(plan.duration),
            done: Instant::ZERO,
            idle: plan.until_idle,
            media_flow: flow_of(plan, plan.until_media_end.as_deref()),
            media_ended: false,
        })
    }

    fn run(&mut self, plan: &TrialPlan) -> Result<(Instant, EndedBy), SimError> {
        loop {
            let (now, next) = self.next();
            if R::PACED {
                match self.network.pace(now.min(self.end), self.done) {
                    Steer::GoOn => {}
                    Steer::Change(at, changes) => {
                        self.network.change(at, &changes);
                        continue;
                    }
                    Steer::Stop(at) => return Ok((at, EndedBy::Stopped)),
                }
                self.done = now;
            }
            if let Some(idle) = self.idle {
                // Flows that are yet to start, or to be resumed, are no idleness.
                let last_scheduled = self.agenda.last().map_or(Instant::ZERO, |scheduled| scheduled.0);
                let idle_at = self.network.last_crossing.max(last_scheduled) + idle;
                if idle_at < now && idle_at < self.end {
                    return Ok((idle_at, EndedBy::Idle));
                }
            }
            if now >= self.end {
                return Ok((self.end, EndedBy::Duration));
            }
            if self.budget.is_due() {
                let fates = &self.network.fates;
                let bytes = fates.recorder.memory_bytes() + fates.store.memory_bytes();
                self.budget.check(now, plan.duration, bytes)?;
            }
            self.sample(now);
            match next {
                Next::Path(direction) => self.path(now, direction),
                Next::Inbox(direction) => {
                    let (_, arrived) = self.inboxes[direction as usize].pop_front().expect("it shows a time");
                    self.deliver(now, direction, arrived);
                }
                Next::Local => {
                    let arrived = self.network.local.pop_front().expect("it shows a time");
                    let index = arrived.to as usize;
                    self.endpoints[index].receive_local(now, arrived.body, &mut self.network);
                    self.after(now, index);
                }
                Next::Timer => {
                    if let Some(index) = self.timers.pop() {
                        self.endpoints[index].timeout(now, &mut self.network);
                        let owner = self.owner(index);
                        let jitter = draw(&mut self.flows[owner].jitter, self.host_jitter);
                        self.endpoints[index].timer_jitter = jitter;
                        self.after(now, index);
                    }
                }
                Next::Scheduled => self.scheduled(now, plan),
            }
            if self.media_ended {
                return Ok((now, EndedBy::MediaEnd));
            }
        }
    }

    /// Returns the place in `flows` of the endpoint's owner.
    #[inline]
    fn owner(&self, endpoint: usize) -> usize {
        if endpoint < 2 * self.real_flows { endpoint / 2 } else { endpoint - self.real_flows }
    }

    /// Returns the endpoints of a flow or relay.
    fn ends(&self, owner: usize) -> std::ops::Range<usize> {
        if owner < self.real_flows {
            return 2 * owner..2 * owner + 2;
        }
        let relay = owner + self.real_flows;
        relay..relay + 1
    }

    /// Returns the endpoint of a packet of this direction.
    #[inline]
    fn receiver(&self, arrived: &Arrived, direction: Direction) -> usize {
        match &self.receivers {
            None => {
                let flow = usize::from(arrived.flow.0);
                2 * flow + usize::from(direction == self.flows[flow].media)
            }
            Some(receivers) => {
                let user = self.network.fates.store.user(arrived.body);
                receivers.endpoint(arrived.flow, direction, user)
            }
        }
    }

    /// Returns the earliest event. At one time the path is first, then hosts, then timers and the plan.
    #[inline]
    fn next(&self) -> (Instant, Next) {
        let inbox = |direction: Direction| {
            self.inboxes[direction as usize].front().map_or(Instant::FAR_FUTURE, |(at, ..)| *at)
        };
        let mut earliest = (self.network.next_event(Direction::Down), Next::Path(Direction::Down));
        for (at, next) in [
            (self.network.next_event(Direction::Up), Next::Path(Direction::Up)),
            (inbox(Direction::Down), Next::Inbox(Direction::Down)),
            (inbox(Direction::Up), Next::Inbox(Direction::Up)),
            (self.network.local.front().map_or(Instant::FAR_FUTURE, |local| local.at), Next::Local),
            (self.timers.next(), Next::Timer),
            (
                self.agenda.get(self.next_scheduled).map_or(Instant::FAR_FUTURE, |scheduled| scheduled.0),
                Next::Scheduled,
            ),
        ] {
            if at < earliest.0 {
                earliest = (at, next);
            }
        }
        earliest
    }

    /// Handles an event of a path at `now`, perhaps a packet that leaves it.
    #[inline]
    fn path(&mut self, now: Instant, direction: Direction) {
        let Some(arrived) = self.network.receive(now, direction) else { return };
        if self.host_jitter == Duration::ZERO {
            return self.deliver(now, direction, arrived);
        }
        // The host looks late, at packets in their order.
        let delay = draw(&mut self.flows[usize::from(arrived.flow.0)].jitter, self.host_jitter);
        let look = &mut self.last_look[direction as usize];
        *look = (arrived.at + delay).max(*look).max(now);
        let look = *look;
        // Mostly nothing else happens before it does: that saves a turn of the loop.
        if look < self.next().0 && look < self.end {
            if R::PACED {
                self.done = look;
            }
            self.sample(look);
            self.deliver(look, direction, arrived);
        } else {
            if self.endpoints.len() > NEAR_ENDPOINTS {
                self.endpoints[self.receiver(&arrived, direction)].prefetch();
                self.network.fates.store.prefetch(arrived.body);
            }
            self.inboxes[direction as usize].push_back((look, arrived));
        }
    }

    /// Records the samples of TCP that lie before `now`.
    #[inline]
    fn sample(&mut self, now: Instant) {
        if self.sampler.is_due(now) {
            self.take_samples(now);
        }
    }

    #[cold]
    fn take_samples(&mut self, now: Instant) {
        while let Some(at) = self.sampler.due(now) {
            let recorder = &mut self.network.fates.recorder;
            for &sampler::Sampled { end, without_first } in self.sampler.servers() {
                for (flow, ports, controller, stats) in self.endpoints[end].open_streams() {
                    // The first stream's samples alone are without ports.
                    if without_first && ports.is_none() {
                        continue;
                    }
                    let connection = sampler::connection(controller, ports);
                    sampler::events(at, flow, connection, &stats).for_each(|event| recorder.event(event));
                }
            }
        }
    }

    #[inline]
    fn deliver(&mut self, now: Instant, direction: Direction, arrived: Arrived) {
        let index = self.receiver(&arrived, direction);
        let body = self.network.fates.store.take(arrived.body);
        self.endpoints[index].receive(now, body, (arrived.ecn, arrived.at), &mut self.network);
        self.after(now, index);
    }

    /// Collects the events and the timer of an endpoint after its step.
    #[inline]
    fn after(&mut self, now: Instant, index: usize) {
        let endpoint = &mut self.endpoints[index];
        if endpoint.has_new_input() {
            while let Some(event) = endpoint.poll_event() {
                self.media_ended |=
                    self.media_flow.is_some() && event.flow == self.media_flow && event.name == MEDIA_END;
                self.network.fates.recorder.event(event);
            }
        }
        let at = endpoint.poll_timeout();
        let at = if at < Instant::FAR_FUTURE { (at + endpoint.timer_jitter).max(now) } else { at };
        let at = at.min(endpoint.next_departure());
        self.timers.set(index, at);
    }

    #[cold]
    fn scheduled(&mut self, now: Instant, plan: &TrialPlan) {
        let (_, FlowId(index), scheduled) = self.agenda[self.next_scheduled];
        let index = usize::from(index);
        self.next_scheduled += 1;
        let ends = self.ends(index);
        let flow = &mut self.flows[index];
        let input = match scheduled {
            Scheduled::Start => {
                let Some(openings) = flow.openings.take() else { return };
                let name = match plan.flows.get(index) {
                    Some(flow) => &flow.name,
                    None => &plan.relays[index - self.real_flows].name,
                };
                let start = Start { openings, roots: Arc::new(Roots::named(plan.seed, name)) };
                for endpoint in &mut self.endpoints[ends.clone()] {
                    endpoint.open(now, &start);
                }
                Input::Start
            }
            Scheduled::Act(Action::Pause) => Input::Pause,
            Scheduled::Act(Action::Resume) => Input::Resume,
            Scheduled::Act(Action::Stop) => Input::Stop,
        };
        for index in ends {
            self.endpoints[index].handle(now, input, &mut self.network);
            self.after(now, index);
        }
    }

    fn into_summary(self, plan: &TrialPlan, end: Instant, ended_by: EndedBy) -> (Summary, R) {
        let flows = plan.flows.iter().zip(self.endpoints.chunks(2)).map(|(spec, ends)| FlowSummary {
            name: spec.name.clone(),
            server_sent_bytes: ends[0].counts().sent_bytes,
            server_received_bytes: ends[0].counts().received_bytes,
            player_sent_bytes: ends[1].counts().sent_bytes,
            player_received_bytes: ends[1].counts().received_bytes,
            tcp: ends[0].tcp_stats().map(Into::into),
        });
        let relays = plan.relays.iter().zip(&self.endpoints[2 * plan.flows.len()..]).map(|(spec, end)| {
            let (sent_bytes, received_bytes) = (end.counts().sent_bytes, end.counts().received_bytes);
            RelaySummary { name: spec.name.clone(), sent_bytes, received_bytes }
        });
        let summary = Summary {
            model_version: MODEL_VERSION,
            duration_s: end.as_secs_f64(),
            duration_ns: end.as_nanos(),
            ended_by,
            flows: flows.collect(),
            relays: relays.collect(),
            host: Hosts {
                server: self.network.host_counts(Direction::Up),
                player: self.network.host_counts(Direction::Down),
            },
            bottleneck_packets: self.network.fates.bottleneck_packets,
            rows: None,
            packets_digest: None,
            events_digest: None,
            balance: Vec::new(),
            imbalance: Vec::new(),
        };
        (summary, self.network.fates.recorder)
    }
}

/// Up to this many endpoints stay in the near caches by themselves: prefetching made 40 dearer by 3 %, and 4,000
/// cheaper by 4 % and more (docs/performance.md).
const NEAR_ENDPOINTS: usize = 256;

/// Draws a delay of 0 to `bound`.
#[inline]
fn draw(stream: &mut RandomStream, bound: Duration) -> Duration {
    if bound == Duration::ZERO {
        return Duration::ZERO;
    }
    Duration::from_nanos(stream.below(bound.as_nanos() + 1))
}

fn flow_of(plan: &TrialPlan, name: Option<&str>) -> Option<FlowId> {
    let index = plan.flows.iter().position(|f| Some(f.name.as_str()) == name)?;
    Some(FlowId(index as u16))
}

fn at_key(kind: &str, name: &str, error: SimError) -> SimError {
    match error {
        SimError::Plan { key, what } => SimError::Plan { key: format!("{kind}.{name}.{key}"), what },
        other => other,
    }
}

/// The longest trial: the range of an `i64` of nanoseconds in the record, with room.
const MAX_DURATION: Duration = Duration::from_secs(100 * 365 * 86_400);

fn check(plan: &TrialPlan) -> Result<(), SimError> {
    if plan.duration == Duration::ZERO || plan.duration > MAX_DURATION {
        return Err(SimError::plan("duration", "give more than 0 and at most 100 years"));
    }
    if plan.tcp_sample == Some(Duration::ZERO) {
        return Err(SimError::plan("tcp_sample", "give more than 0, or leave it out"));
    }
    if plan.flows.len() + plan.relays.len() >= usize::from(u16::MAX) {
        let what = format!("{} flows and relays; give fewer than {}", plan.flows.len(), u16::MAX);
        return Err(SimError::plan("flows", what));
    }
    let flows = plan.flows.iter().map(|flow| flow.name.as_str());
    let mut names: Vec<&str> = flows.chain(plan.relays.iter().map(|relay| relay.name.as_str())).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(SimError::plan(
            "flows",
            format!("two flows or relays are called {:?}; give each its own name", twice[0]),
        ));
    }
    if let Some(name) = &plan.until_media_end
        && flow_of(plan, Some(name)).is_none()
    {
        return Err(SimError::plan("until_media_end", format!("there is no flow {name:?}")));
    }
    relays::check(plan)
}
