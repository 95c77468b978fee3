//! The loop of a trial.

use std::collections::VecDeque;

use streamgauge_base::{Direction, Duration, Ecn, FlowId, Instant, Stream};
use streamgauge_systems::plan::{Action, Entry, Role, TrialPlan};
use streamgauge_systems::{Input, MEDIA_END, machines};

use crate::MODEL_VERSION;
use crate::error::SimError;
use crate::host::{Endpoint, Opening};
use crate::network::{Arrived, Line, Network};
use crate::recorder::Recorder;
use crate::sampler::{self, Sampler};
use crate::summary::{EndedBy, FlowSummary, Hosts, Summary};
use crate::timers::Timers;

/// Runs `plan` to its end and hands rows and events to `recorder`, which comes back with the summary. The
/// summary's record fields are empty: they are for whoever closes the record.
///
/// Same plan and seed, same rows and events in the same order, on every machine.
pub fn run<R: Recorder>(plan: &TrialPlan, recorder: R) -> Result<(Summary, R), SimError> {
    let mut trial = Trial::new(plan, recorder)?;
    let (end, ended_by) = trial.run();
    trial.sample(end);
    for (_, unseen) in trial.inboxes.iter_mut().flat_map(|inbox| inbox.drain(..)) {
        trial.network.fates.store.release(unseen.body);
    }
    trial.network.finish(end);
    Ok(trial.into_summary(plan, end, ended_by))
}

/// What the plan does to a flow at a time.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Start,
    Act(Action),
}

struct Flow {
    /// Delays of this flow's hosts.
    jitter: Stream,
    /// Until it starts.
    start: Option<Box<Start>>,
}

/// What a flow's start takes.
struct Start {
    openings: Vec<Opening>,
    sequences: Stream,
    /// Begins the random streams of its congestion controllers.
    control_seed: u64,
}

struct Trial<R> {
    network: Network<R>,
    flows: Vec<Flow>,
    /// Server and player of flow 0, of flow 1, ...
    endpoints: Vec<Endpoint>,
    timers: Timers,
    /// Ascending in time; those before `next_deed` are done.
    agenda: Vec<(Instant, FlowId, Deed)>,
    next_deed: usize,
    /// Packets that have left the path of a direction and that the host has yet to look at.
    inboxes: [VecDeque<(Instant, Arrived)>; 2],
    /// When the host looked, or will look, at the last packet of a direction.
    last_look: [Instant; 2],
    host_jitter: Duration,
    sampler: Sampler,
    end: Instant,
    idle: Option<Duration>,
    media_flow: Option<FlowId>,
    media_ended: bool,
}

/// What happens next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    Path(Direction),
    Inbox(Direction),
    Timer,
    Deed,
}

impl<R: Recorder> Trial<R> {
    fn new(plan: &TrialPlan, recorder: R) -> Result<Self, SimError> {
        check(plan)?;
        let subjects: Vec<bool> = plan.flows.iter().map(|f| f.role == Role::Subject).collect();
        let network = Network::new(&plan.path, plan.seed, &subjects, recorder)?;
        let mut flows = Vec::with_capacity(plan.flows.len());
        let mut endpoints = Vec::with_capacity(2 * plan.flows.len());
        let mut agenda = Vec::new();
        let mut config = None;
        let at = |d: Duration| Instant::ZERO + d;
        for (index, spec) in plan.flows.iter().enumerate() {
            let made = machines(spec, plan.seed)?;
            let openings = made.channels.iter().map(|channel| Opening::new(channel, &mut config));
            let openings = openings.collect::<Result<_, _>>().map_err(|e| in_flow(&spec.name, e))?;
            let flow = FlowId(index as u16);
            let mut jitter = Stream::named(plan.seed, &spec.name, "host_jitter");
            let at_router = spec.entry == Entry::Router;
            let down = Line { flow, direction: Direction::Down, at_router, ecn: Ecn::NotEct };
            let up = Line { flow, direction: Direction::Up, at_router: false, ecn: Ecn::NotEct };
            for (app, line) in [(made.server, down), (made.player, up)] {
                let mut endpoint = Endpoint::new(app, line);
                endpoint.timer_jitter = draw(&mut jitter, plan.host_jitter);
                endpoints.push(endpoint);
            }
            let sequences = Stream::named(plan.seed, &spec.name, "tcp_initial_sequence");
            let control_seed = Stream::named(plan.seed, &spec.name, "tcp_congestion_control").bits();
            let start = Some(Box::new(Start { openings, sequences, control_seed }));
            flows.push(Flow { jitter, start });
            agenda.push((at(spec.start), flow, Deed::Start));
            agenda.extend(spec.actions.iter().map(|&(time, action)| (at(time), flow, Deed::Act(action))));
        }
        // Stable: what the plan does to a flow at one time it does in the plan's order.
        agenda.sort_by_key(|&(time, flow, _)| (time, flow));
        Ok(Trial {
            network,
            timers: Timers::new(endpoints.len()),
            flows,
            endpoints,
            agenda,
            next_deed: 0,
            inboxes: Default::default(),
            last_look: [Instant::ZERO; 2],
            host_jitter: plan.host_jitter,
            sampler: Sampler::new(plan),
            end: at(plan.duration),
            idle: plan.until_idle,
            media_flow: flow_of(plan, plan.until_media_end.as_deref()),
            media_ended: false,
        })
    }

    fn run(&mut self) -> (Instant, EndedBy) {
        loop {
            let (now, next) = self.next();
            if let Some(idle) = self.idle {
                // Flows that are yet to start, or to be resumed, are no idleness.
                let last_deed = self.agenda.last().map_or(Instant::ZERO, |deed| deed.0);
                let idle_at = self.network.last_crossing.max(last_deed) + idle;
                if idle_at < now && idle_at < self.end {
                    return (idle_at, EndedBy::Idle);
                }
            }
            if now >= self.end {
                return (self.end, EndedBy::Duration);
            }
            self.sample(now);
            match next {
                Next::Path(direction) => self.path(now, direction),
                Next::Inbox(direction) => {
                    let (_, arrived) = self.inboxes[direction as usize].pop_front().expect("it shows a time");
                    self.deliver(now, direction, arrived);
                }
                Next::Timer => {
                    if let Some(index) = self.timers.pop() {
                        self.endpoints[index].timeout(now, &mut self.network);
                        let jitter = draw(&mut self.flows[index / 2].jitter, self.host_jitter);
                        self.endpoints[index].timer_jitter = jitter;
                        self.after(now, index);
                    }
                }
                Next::Deed => self.deed(now),
            }
            if self.media_ended {
                return (now, EndedBy::MediaEnd);
            }
        }
    }

    /// The earliest thing to happen. At one time the path comes first, then hosts, then timers and the plan.
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
            (self.timers.next(), Next::Timer),
            (self.agenda.get(self.next_deed).map_or(Instant::FAR_FUTURE, |deed| deed.0), Next::Deed),
        ] {
            if at < earliest.0 {
                earliest = (at, next);
            }
        }
        earliest
    }

    /// A path has something to do at `now`, perhaps to give a packet out.
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
            self.sample(look);
            self.deliver(look, direction, arrived);
        } else {
            if self.endpoints.len() > NEAR_ENDPOINTS {
                self.endpoints[receiver(&arrived, direction)].prefetch();
                self.network.fates.store.prefetch(arrived.body);
            }
            self.inboxes[direction as usize].push_back((look, arrived));
        }
    }

    /// Takes the samples of TCP that lie before `now`.
    #[inline]
    fn sample(&mut self, now: Instant) {
        while let Some(at) = self.sampler.due(now) {
            for &(flow, controller) in self.sampler.flows() {
                let Some(stats) = self.endpoints[2 * flow].open_tcp() else { continue };
                let recorder = &mut self.network.fates.recorder;
                sampler::events(at, flow, controller, &stats).for_each(|event| recorder.event(event));
            }
        }
    }

    #[inline]
    fn deliver(&mut self, now: Instant, direction: Direction, arrived: Arrived) {
        let index = receiver(&arrived, direction);
        let body = self.network.fates.store.take(arrived.body);
        self.endpoints[index].receive(now, body, arrived.ecn, &mut self.network);
        self.after(now, index);
    }

    /// An endpoint has done something: takes its events and its timer.
    #[inline]
    fn after(&mut self, now: Instant, index: usize) {
        let endpoint = &mut self.endpoints[index];
        while let Some(event) = endpoint.poll_event() {
            self.media_ended |=
                self.media_flow.is_some() && event.flow == self.media_flow && event.name == MEDIA_END;
            self.network.fates.recorder.event(event);
        }
        let at = endpoint.poll_timeout();
        let at = if at < Instant::FAR_FUTURE { (at + endpoint.timer_jitter).max(now) } else { at };
        self.timers.set(index, at);
    }

    #[cold]
    fn deed(&mut self, now: Instant) {
        let (_, FlowId(index), deed) = self.agenda[self.next_deed];
        let index = usize::from(index);
        self.next_deed += 1;
        let flow = &mut self.flows[index];
        let input = match deed {
            Deed::Start => {
                let Some(mut start) = flow.start.take() else { return };
                for endpoint in &mut self.endpoints[2 * index..2 * index + 2] {
                    endpoint.open(now, &start.openings, &mut start.sequences, start.control_seed);
                }
                Input::Start
            }
            Deed::Act(Action::Pause) => Input::Pause,
            Deed::Act(Action::Resume) => Input::Resume,
            Deed::Act(Action::Stop) => Input::Stop,
        };
        for index in [2 * index, 2 * index + 1] {
            self.endpoints[index].handle(now, input, &mut self.network);
            self.after(now, index);
        }
    }

    fn into_summary(self, plan: &TrialPlan, end: Instant, ended_by: EndedBy) -> (Summary, R) {
        let flows = plan.flows.iter().zip(self.endpoints.chunks(2)).map(|(spec, ends)| FlowSummary {
            name: spec.name.clone(),
            server_sent_bytes: ends[0].counts.sent_bytes,
            server_received_bytes: ends[0].counts.received_bytes,
            player_sent_bytes: ends[1].counts.sent_bytes,
            player_received_bytes: ends[1].counts.received_bytes,
            tcp: ends[0].tcp_stats().map(Into::into),
        });
        let summary = Summary {
            model_version: MODEL_VERSION,
            duration_s: end.as_secs_f64(),
            duration_ns: end.as_nanos(),
            ended_by,
            flows: flows.collect(),
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

/// So many endpoints stay in the near caches by themselves: prefetching made 40 dearer by 3 %, and 4,000 cheaper by
/// 4 % and more (docs/performance.md).
const NEAR_ENDPOINTS: usize = 256;

/// Which endpoint a packet of this direction is for.
#[inline]
fn receiver(arrived: &Arrived, direction: Direction) -> usize {
    2 * usize::from(arrived.flow.0) + usize::from(direction == Direction::Down)
}

/// A delay of 0 to `bound`.
#[inline]
fn draw(stream: &mut Stream, bound: Duration) -> Duration {
    if bound == Duration::ZERO {
        return Duration::ZERO;
    }
    Duration::from_nanos(stream.below(bound.as_nanos() + 1))
}

fn flow_of(plan: &TrialPlan, name: Option<&str>) -> Option<FlowId> {
    let index = plan.flows.iter().position(|f| Some(f.name.as_str()) == name)?;
    Some(FlowId(index as u16))
}

fn in_flow(flow: &str, error: SimError) -> SimError {
    match error {
        SimError::Plan { key, what } => SimError::Plan { key: format!("flows.{flow}.{key}"), what },
        other => other,
    }
}

/// The longest trial: what an `i64` of nanoseconds in the record holds, with room.
const MAX_DURATION: Duration = Duration::from_secs(100 * 365 * 86_400);

fn check(plan: &TrialPlan) -> Result<(), SimError> {
    if plan.duration == Duration::ZERO || plan.duration > MAX_DURATION {
        return Err(SimError::plan("duration", "give more than 0 and at most 100 years"));
    }
    if plan.tcp_sample == Some(Duration::ZERO) {
        return Err(SimError::plan("tcp_sample", "give more than 0, or leave it out"));
    }
    if plan.flows.len() >= usize::from(u16::MAX) {
        let what = format!("{} flows; give fewer than {}", plan.flows.len(), u16::MAX);
        return Err(SimError::plan("flows", what));
    }
    let mut names: Vec<&str> = plan.flows.iter().map(|f| f.name.as_str()).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(SimError::plan(
            "flows",
            format!("two flows are called {:?}; give each its own name", twice[0]),
        ));
    }
    if let Some(name) = &plan.until_media_end
        && flow_of(plan, Some(name)).is_none()
    {
        return Err(SimError::plan("until_media_end", format!("there is no flow {name:?}")));
    }
    Ok(())
}
