//! One end of one of our systems or traffic sources, or a relay, on real sockets: the machines that sim runs, unchanged.

mod function_rule;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::os::fd::BorrowedFd;

use serde::{Deserialize, Serialize};
use serde_json::json;
use streamgauge_base::{Event, Instant};
use streamgauge_plan::{Action, TrialPlan, addresses, relay_address};
use streamgauge_systems::media::{Content, Contents};
use streamgauge_systems::{App, ChannelError, ChannelId, Input, machines, relay_machine};

use self::function_rule::Caller;
use crate::error::{EngineError, Result};
use crate::lines::{Command, Commands, bad_field, say, told};
use crate::net::AddressPair;
use crate::reactor::{Arrival, Channels, Ends, Reactor, Ready, Room};
use crate::sys::{RealTime, monotonic_ns, raise_descriptors};

/// The configuration file; see PROTOCOL.md.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    plan: TrialPlan,
    /// Those that the flow's settings name, by their digests.
    #[serde(default)]
    contents: BTreeMap<String, Content>,
    /// Its name in the plan, or the relay's.
    flow: String,
    side: Side,
    /// For a flow through a relay, one of the two is the relay's. A relay's are in the plan.
    #[serde(default)]
    server_ip: Option<Ipv4Addr>,
    #[serde(default)]
    player_ip: Option<Ipv4Addr>,
    #[serde(default)]
    fifo_priority: Option<i32>,
    /// Calls the functions of Python that the flow's settings name.
    #[serde(default)]
    caller: Option<Caller>,
}

/// The role of this machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The source of `down`.
    Server,
    /// The destination of `down`.
    Player,
    /// Between the two, of several flows: a machine of the plan's `relays`.
    Relay,
}

/// Runs the machine until its flow's or the trial's end.
pub fn run(mut config: Config) -> Result<()> {
    // A machine may open as many connections as there are ports.
    raise_descriptors(u64::MAX);
    function_rule::call_by(config.caller.take());
    let contents = std::mem::take(&mut config.contents).into_iter().collect();
    let mut node = Node::open(&config, &contents)?;
    let commands = Commands::from_stdin()?;
    // SAFETY: `commands` holds it open as long as the node runs.
    node.reactor.watch(unsafe { BorrowedFd::borrow_raw(commands.fd()) }, COMMANDS)?;
    let _ = RealTime::enter(config.fifo_priority);
    say(&json!({"event": "ready"}));
    node.drive(&commands)?;
    say(&json!({"event": "stopped", "stats": node.channels.stats(), "left": node.left}));
    Ok(())
}

/// The descriptor of commands, and where the one machine is.
const COMMANDS: u32 = 0;
const PLACE: u32 = 0;

/// An action on the flow at a time.
#[derive(Clone, Copy, Debug)]
enum Scheduled {
    Start,
    Act(Action),
    End,
}

struct Node {
    flow: String,
    app: Box<dyn App + Send>,
    channels: Channels,
    reactor: Reactor,
    room: Room,
    ready: Vec<Ready>,
    /// By time, ns of the trial.
    agenda: Vec<(u64, Scheduled)>,
    /// CLOCK_MONOTONIC, once known.
    t0: Option<i64>,
    /// The flow has.
    started: bool,
    /// The machine has, before the trial's end.
    left: Option<Left>,
}

/// A machine left: it had received all earlier data except the unread bytes; later data are unknown.
#[derive(Clone, Copy, Debug, Serialize)]
struct Left {
    t_monotonic_ns: i64,
    /// Unread bytes of its streams.
    unread_bytes: u64,
}

impl Node {
    fn open(config: &Config, contents: &Contents) -> Result<Node> {
        if config.side == Side::Relay {
            return Node::relay(config);
        }
        let spec = config.plan.flows.iter().find(|flow| flow.name == config.flow);
        let spec =
            spec.ok_or_else(|| bad_field("flow", &format!("the plan has no flow {:?}", config.flow)))?;
        let made = machines(spec, config.plan.seed, contents);
        let made = made.map_err(|e| EngineError::new("read the plan", e).code(2))?;
        let given = |key, ip: Option<Ipv4Addr>| ip.ok_or_else(|| bad_field(key, "give the end's address"));
        let server = given("server_ip", config.server_ip)?;
        let player = given("player_ip", config.player_ip)?;
        let serves = config.side == Side::Server;
        let (own, peer) = if serves { (server, player) } else { (player, server) };
        let channels = Channels::open(AddressPair { own, peer }, serves, &made.channels)?;
        let mut agenda = vec![(spec.start.as_nanos(), Scheduled::Start)];
        agenda.extend(spec.actions.iter().map(|&(at, action)| (at.as_nanos(), Scheduled::Act(action))));
        agenda.push((config.plan.duration.as_nanos(), Scheduled::End));
        agenda.sort_by_key(|&(at, _)| at);
        agenda.reverse();
        let app = if serves { made.server } else { made.player };
        Node::of(spec.name.clone(), app, channels, agenda, None)
    }

    /// Returns a relay's node, which is there from the trial's start to its end.
    fn relay(config: &Config) -> Result<Node> {
        let plan = &config.plan;
        let nth = plan.relays.iter().position(|relay| relay.name == config.flow);
        let nth =
            nth.ok_or_else(|| bad_field("flow", &format!("the plan has no relay {:?}", config.flow)))?;
        let spec = &plan.relays[nth];
        let made = relay_machine(spec, plan.seed);
        let made = made.map_err(|e| EngineError::new("read the plan", e).code(2))?;
        let users = plan.users(spec).map(|(id, flow)| {
            let own = addresses(id.0, flow.entry, flow.direction);
            Ends { server: own.server, player: own.player }
        });
        let own = relay_address(plan.relay_id(nth).0, spec.at);
        let channels = Channels::of_relay(own, &users.collect::<Vec<_>>(), &made.channels)?;
        let agenda = vec![(plan.duration.as_nanos(), Scheduled::End), (0, Scheduled::Start)];
        Node::of(spec.name.clone(), made.app, channels, agenda, None)
    }

    fn of(
        flow: String,
        app: Box<dyn App + Send>,
        channels: Channels,
        agenda: Vec<(u64, Scheduled)>,
        t0: Option<i64>,
    ) -> Result<Node> {
        let (reactor, room, ready) = (Reactor::new()?, Room::new(), Vec::new());
        Ok(Node { flow, app, channels, reactor, room, ready, agenda, t0, started: false, left: None })
    }

    fn drive(&mut self, commands: &Commands) -> Result<()> {
        loop {
            while let Some(command) = commands.next()? {
                match command {
                    Command::Start { t0_monotonic_ns } => {
                        self.t0 = Some(t0_monotonic_ns as i64);
                        self.channels.count_from(t0_monotonic_ns as i64);
                        say(&json!({"event": "started", "t0_monotonic_ns": t0_monotonic_ns}));
                    }
                    Command::Stop => {
                        if self.started {
                            self.give(Input::Stop);
                        }
                        return Ok(());
                    }
                    Command::Status => say(&json!({"event": "status", "stats": self.channels.stats()})),
                    Command::Preflight | Command::Reset => {
                        return Err(
                            EngineError::new("read a command", "a node has no path to prepare").code(2)
                        );
                    }
                }
            }
            if self.turn()? {
                return Ok(());
            }
        }
    }

    /// Performs actions that are due, reads arrivals and waits for more. True at the trial's end.
    fn turn(&mut self) -> Result<bool> {
        if self.keep_agenda()? {
            return Ok(true);
        }
        if self.started {
            if self.take_arrivals()? {
                return Ok(true);
            }
            if self.app.poll_timeout().is_some_and(|at| at <= self.now()) {
                self.give(Input::Timeout);
            }
        }
        self.wait()?;
        Ok(false)
    }

    /// Performs actions that are due. True at the trial's end.
    fn keep_agenda(&mut self) -> Result<bool> {
        while let Some(&(_, scheduled)) = self.agenda.last().filter(|&&(at, _)| self.is_past(at)) {
            self.agenda.pop();
            match scheduled {
                Scheduled::Start => {
                    self.started = true;
                    self.channels.connect()?;
                    self.give(Input::Start);
                }
                Scheduled::Act(Action::Pause) => self.give(Input::Pause),
                Scheduled::Act(Action::Resume) => self.give(Input::Resume),
                Scheduled::Act(Action::Stop) => self.give(Input::Stop),
                Scheduled::End => return Ok(true),
            }
        }
        Ok(false)
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.t0.map_or(0, |t0| (monotonic_ns() - t0).max(0) as u64))
    }

    fn is_past(&self, at: u64) -> bool {
        self.t0.is_some_and(|t0| monotonic_ns() - t0 >= at as i64)
    }

    /// Gives the machine an input and delivers its output.
    fn give(&mut self, input: Input<'_>) {
        let now = self.now();
        self.app.handle(now, input, &mut self.channels);
        while let Some(event) = self.app.poll_event() {
            self.tell(&event);
        }
        if self.left.is_none() && self.app.is_gone() {
            let at = self.t0.unwrap_or(0).saturating_add_unsigned(now.as_nanos());
            self.left = Some(Left { t_monotonic_ns: at, unread_bytes: self.channels.unread_bytes() });
        }
    }

    fn tell(&self, event: &Event) {
        let mut line = told(event, self.t0.unwrap_or(0));
        line["flow"] = json!(self.flow);
        say(&line);
    }

    /// Gives the machine the events of its sockets. True at the trial's end.
    fn take_arrivals(&mut self) -> Result<bool> {
        for (channel, error) in self.channels.take_refused() {
            if self.refused(channel, &error)? {
                return Ok(true);
            }
        }
        let told = std::mem::take(&mut self.ready).into_iter().filter_map(|ready| match ready {
            Ready::Channel { channel, .. } => Some(channel),
            Ready::Own(_) | Ready::Signal => None,
        });
        for id in told.chain(self.channels.take_ready()) {
            while let Some(arrival) = self.channels.arrival(id, &mut self.room) {
                let ended = match arrival {
                    Arrival::Input(input) => self.arrived(input)?,
                    Arrival::Datagram(on, came) => {
                        let at = came.at(self.now());
                        self.arrived(Input::Datagram { on, bytes: &came.bytes, ecn: came.ecn, at })?
                    }
                    Arrival::Refused(error) => self.refused(id, &error)?,
                };
                if ended {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Handles a channel that could not be opened. True at the trial's end.
    fn refused(&mut self, channel: ChannelId, error: &ChannelError) -> Result<bool> {
        self.tell(&Event {
            at: self.now(),
            flow: None,
            name: "connection_refused".into(),
            value: None,
            unit: "".into(),
            reason: error.to_string().into(),
        });
        self.arrived(Input::Refused(channel, error))
    }

    /// Gives the machine the arrival, after actions that are due: an action of the other end at a time is
    /// performed at this end at that time too, before its news arrive. True at the trial's end.
    fn arrived(&mut self, input: Input<'_>) -> Result<bool> {
        let ended = self.keep_agenda()?;
        if !ended {
            self.give(input);
        }
        Ok(ended)
    }

    /// Waits for a command, a socket, the machine's timer or the agenda.
    fn wait(&mut self) -> Result<()> {
        let (mut timer, mut listens) = (None, None);
        if self.started {
            self.channels.settle(&self.reactor, PLACE)?;
            listens = self.channels.settles_again_ns();
            timer = if self.channels.has_news() {
                Some(0)
            } else {
                self.app.poll_timeout().map(Instant::as_nanos)
            };
        }
        let scheduled = self.t0.and(self.agenda.last()).map(|&(at, _)| at);
        let until = scheduled.into_iter().chain(timer).min();
        let until = until.map(|at| self.t0.unwrap_or(0).saturating_add_unsigned(at));
        self.reactor.wait(until.into_iter().chain(listens).min(), &mut self.ready)
    }
}
