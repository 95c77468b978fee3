//! One end of one of our systems or traffic sources on real sockets: the machines that sim runs, unchanged.

mod echo;

use std::net::Ipv4Addr;
use std::os::fd::RawFd;

use nix::libc;
use serde::Deserialize;
use serde_json::{Value, json};
use streamgauge_base::{Chunk, Event, Instant};
use streamgauge_systems::plan::{Action, TrialPlan};
use streamgauge_systems::{App, Carrier, ChannelId, CloseReason, Input, Io, machines};

use crate::error::{EngineError, Result};
use crate::lines::{Command, Commands, bad_field, say, told};
use crate::net::Addresses;
use crate::net::datagram::{MAX_DATAGRAM, Udp};
use crate::net::stream::{News, Stream};
use crate::sys::{RealTime, monotonic_ns};
use echo::Echo;

/// The configuration file; see PROTOCOL.md.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    plan: TrialPlan,
    flow: String,
    side: Side,
    server_ip: Ipv4Addr,
    player_ip: Ipv4Addr,
    #[serde(default)]
    fifo_priority: Option<i32>,
}

/// Which end this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Where `down` comes from.
    Server,
    /// Where it goes.
    Player,
}

/// Runs the machine until its flow's or the trial's end.
pub fn run(config: Config) -> Result<()> {
    let mut node = Node::open(&config)?;
    let commands = Commands::from_stdin()?;
    let _ = RealTime::enter(config.fifo_priority);
    say(&json!({"event": "ready"}));
    node.drive(&commands)?;
    say(&json!({"event": "stopped", "stats": node.channels.stats()}));
    Ok(())
}

/// What is done to the flow at a time.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Start,
    Act(Action),
    End,
}

struct Node {
    flow: String,
    app: Box<dyn App + Send>,
    channels: Channels,
    /// By time, ns of the trial.
    agenda: Vec<(u64, Deed)>,
    /// CLOCK_MONOTONIC, once known.
    t0: Option<i64>,
}

/// A channel on its socket.
enum Channel {
    Udp(Udp),
    Echo(Echo),
    /// The player's host answers echo requests by itself.
    Silent,
    Stream(Stream),
}

/// What the machine may do to the world.
struct Channels {
    list: Vec<Channel>,
    /// Where datagrams are read.
    room: Box<[u8]>,
    counts: Counts,
}

/// What passed this end.
#[derive(Clone, Copy, Default, Debug)]
struct Counts {
    sent_packets: u64,
    sent_bytes: u64,
    send_errors: u64,
    received_packets: u64,
    received_bytes: u64,
}

impl Node {
    fn open(config: &Config) -> Result<Node> {
        let spec = config.plan.flows.iter().find(|flow| flow.name == config.flow);
        let spec =
            spec.ok_or_else(|| bad_field("flow", &format!("the plan has no flow {:?}", config.flow)))?;
        let made =
            machines(spec, config.plan.seed).map_err(|e| EngineError::new("read the plan", e).code(2))?;
        let serves = config.side == Side::Server;
        let (own, peer) =
            if serves { (config.server_ip, config.player_ip) } else { (config.player_ip, config.server_ip) };
        let addresses = Addresses { own, peer };
        let list = made.channels.iter().map(|channel| {
            Ok(match &channel.carrier {
                Carrier::Udp { port, ecn } => Channel::Udp(Udp::open(own.into(), peer.into(), *port, *ecn)?),
                Carrier::IcmpEcho if serves => Channel::Echo(Echo::open(addresses)?),
                Carrier::IcmpEcho => Channel::Silent,
                Carrier::Tcp { port, settings } if serves => {
                    Channel::Stream(Stream::listen(addresses, *port, settings)?)
                }
                Carrier::Tcp { port, settings } => {
                    Channel::Stream(Stream::unconnected(addresses, *port, settings)?)
                }
            })
        });
        let channels = Channels {
            list: list.collect::<Result<_>>()?,
            room: vec![0; MAX_DATAGRAM].into(),
            counts: Counts::default(),
        };
        let mut agenda = vec![(spec.start.as_nanos(), Deed::Start)];
        agenda.extend(spec.actions.iter().map(|&(at, action)| (at.as_nanos(), Deed::Act(action))));
        agenda.push((config.plan.duration.as_nanos(), Deed::End));
        agenda.sort_by_key(|&(at, _)| at);
        agenda.reverse();
        let app = if serves { made.server } else { made.player };
        Ok(Node { flow: spec.name.clone(), app, channels, agenda, t0: None })
    }

    fn drive(&mut self, commands: &Commands) -> Result<()> {
        let mut started = false;
        let mut fds = Vec::new();
        loop {
            while let Some(command) = commands.next()? {
                match command {
                    Command::Start { t0_monotonic_ns } => {
                        self.t0 = Some(t0_monotonic_ns as i64);
                        say(&json!({"event": "started", "t0_monotonic_ns": t0_monotonic_ns}));
                    }
                    Command::Stop => {
                        if started {
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
            while let Some(&(_, deed)) = self.agenda.last().filter(|&&(at, _)| self.is_past(at)) {
                self.agenda.pop();
                match deed {
                    Deed::Start => {
                        started = true;
                        self.channels.connect()?;
                        self.give(Input::Start);
                    }
                    Deed::Act(Action::Pause) => self.give(Input::Pause),
                    Deed::Act(Action::Resume) => self.give(Input::Resume),
                    Deed::Act(Action::Stop) => self.give(Input::Stop),
                    Deed::End => return Ok(()),
                }
            }
            if started {
                self.take_arrivals();
                if self.app.poll_timeout().is_some_and(|at| at <= self.now()) {
                    self.give(Input::Timeout);
                }
            }
            self.wait(commands.fd(), started, &mut fds);
        }
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.t0.map_or(0, |t0| (monotonic_ns() - t0).max(0) as u64))
    }

    fn is_past(&self, at: u64) -> bool {
        self.t0.is_some_and(|t0| monotonic_ns() - t0 >= at as i64)
    }

    /// Gives the machine an input and passes on what it has to say.
    fn give(&mut self, input: Input<'_>) {
        let now = self.now();
        self.app.handle(now, input, &mut self.channels);
        while let Some(event) = self.app.poll_event() {
            self.tell(&event);
        }
    }

    fn tell(&self, event: &Event) {
        let mut line = told(event, self.t0.unwrap_or(0));
        line["flow"] = json!(self.flow);
        say(&line);
    }

    /// Gives the machine what its sockets have for it.
    fn take_arrivals(&mut self) {
        for index in 0..self.channels.list.len() {
            let id = ChannelId(index as u8);
            while let Some(datagram) = self.channels.next_datagram(index) {
                self.give(Input::Datagram(id, &datagram));
            }
            while let Some(news) = self.channels.next_news(index) {
                self.give(match news {
                    News::Opened => Input::Opened(id),
                    News::Readable => Input::Readable(id),
                    News::Writable => Input::Writable(id),
                    News::Finished => Input::Closed(id, CloseReason::Finished),
                    News::Failed => Input::Closed(id, CloseReason::Failed),
                });
            }
        }
    }

    /// Waits for a command, a socket, the machine's timer or the agenda.
    fn wait(&self, commands: RawFd, started: bool, fds: &mut Vec<libc::pollfd>) {
        fds.clear();
        fds.push(libc::pollfd { fd: commands, events: libc::POLLIN, revents: 0 });
        if started {
            fds.extend(self.channels.list.iter().filter_map(Channel::interest));
        }
        let deed = self.t0.and(self.agenda.last()).map(|&(at, _)| at);
        let timer = if started { self.app.poll_timeout().map(Instant::as_nanos) } else { None };
        let timeout = deed.into_iter().chain(timer).min().map(|at| {
            let left = (self.t0.unwrap_or(0).saturating_add_unsigned(at) - monotonic_ns()).max(0);
            libc::timespec { tv_sec: left / 1_000_000_000, tv_nsec: left % 1_000_000_000 }
        });
        let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: `fds` is valid for its length, `timeout` is null or points to a live value. A failed call only makes
        // the caller look again.
        unsafe { libc::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout, std::ptr::null()) };
    }
}

impl Channel {
    /// What to poll for.
    fn interest(&self) -> Option<libc::pollfd> {
        let (fd, events) = match self {
            Channel::Udp(udp) => (udp.fd(), libc::POLLIN),
            Channel::Echo(echo) => (echo.fd(), libc::POLLIN),
            Channel::Silent => return None,
            Channel::Stream(stream) => stream.interest()?,
        };
        Some(libc::pollfd { fd, events, revents: 0 })
    }
}

impl Channels {
    /// The flow has started: players connect.
    fn connect(&mut self) -> Result<()> {
        for channel in &mut self.list {
            if let Channel::Stream(stream) = channel {
                stream.connect()?;
            }
        }
        Ok(())
    }

    fn next_datagram(&mut self, index: usize) -> Option<Chunk> {
        let datagram = match &mut self.list[index] {
            Channel::Udp(udp) => udp.receive(&mut self.room),
            Channel::Echo(echo) => echo.receive(),
            Channel::Silent | Channel::Stream(_) => None,
        }?;
        self.counts.received_packets += 1;
        self.counts.received_bytes += datagram.len() as u64;
        Some(datagram)
    }

    fn next_news(&mut self, index: usize) -> Option<News> {
        match &mut self.list[index] {
            Channel::Stream(stream) => stream.news(),
            _ => None,
        }
    }

    fn stream(&mut self, channel: ChannelId) -> Option<&mut Stream> {
        match self.list.get_mut(usize::from(channel.0)) {
            Some(Channel::Stream(stream)) => Some(stream),
            _ => None,
        }
    }

    fn stats(&self) -> Value {
        let Counts { sent_packets, sent_bytes, send_errors, received_packets, received_bytes } = self.counts;
        let mut stats = json!({
            "sent_packets": sent_packets, "sent_bytes": sent_bytes, "send_errors": send_errors,
            "received_packets": received_packets, "received_bytes": received_bytes,
        });
        let stream = self.list.iter().find_map(|channel| match channel {
            Channel::Stream(stream) => Some(stream.settings()),
            _ => None,
        });
        if let (Value::Object(stats), Some(Value::Object(stream))) = (&mut stats, stream) {
            stats.extend(stream);
        }
        stats
    }
}

impl Io for Channels {
    fn send(&mut self, channel: ChannelId, datagram: Chunk) {
        let sent = match self.list.get_mut(usize::from(channel.0)) {
            Some(Channel::Udp(udp)) => udp.send(&datagram),
            Some(Channel::Echo(echo)) => echo.send(&datagram),
            _ => return,
        };
        if sent {
            self.counts.sent_packets += 1;
            self.counts.sent_bytes += datagram.len() as u64;
        } else {
            self.counts.send_errors += 1;
        }
    }

    fn write(&mut self, channel: ChannelId, chunk: Chunk) -> usize {
        let taken = self.stream(channel).map_or(0, |stream| stream.write(chunk));
        self.counts.sent_bytes += taken as u64;
        taken
    }

    fn read(&mut self, channel: ChannelId, max: usize) -> Option<Chunk> {
        let chunk = self.stream(channel)?.read(max)?;
        self.counts.received_bytes += chunk.len() as u64;
        Some(chunk)
    }

    fn close(&mut self, channel: ChannelId) {
        if let Some(stream) = self.stream(channel) {
            stream.close();
        }
    }

    fn abort(&mut self, channel: ChannelId) {
        if let Some(stream) = self.stream(channel) {
            stream.abort();
        }
    }

    fn bind_pair(&mut self, rtp: ChannelId) -> Option<u16> {
        match self.list.get(usize::from(rtp.0))? {
            Channel::Udp(udp) => Some(udp.port()),
            _ => None,
        }
    }

    // Both ends of a trial use the same port.
    fn direct(&mut self, _: ChannelId, _: u16) {}
}
