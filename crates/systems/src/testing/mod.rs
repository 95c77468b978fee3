//! Two machines joined by a simple pipe, for tests of the machines alone.

#[cfg(test)]
mod opened;
pub mod opener;

use std::collections::{BTreeMap, VecDeque};

use streamgauge_base::{Chunk, Duration, Event, Instant};

use crate::app::{App, ChannelError, ChannelId, CloseReason, Envelope, Input, Io};
use crate::carrier::{Carrier, RTP_PORTS};
use crate::machines::Channel;

/// The path between the two.
#[derive(Clone)]
pub struct Pipe {
    /// One-way delay of a datagram.
    pub delay: Duration,
    /// Which of the server's datagrams, counted from 0, are lost.
    pub drop: fn(u64) -> bool,
    /// The player's host answers every datagram with itself.
    pub echo: bool,
    /// Rate of each stream in either direction, if there are streams.
    pub stream_bytes_per_s: Option<u64>,
    /// The flow begins with a stream, open from the start.
    pub begins_with_stream: bool,
    /// The stream moves nothing between these times.
    pub outage: (Duration, Duration),
    /// Connections to such a port get no answer.
    pub silent: fn(u16) -> bool,
}

impl Default for Pipe {
    fn default() -> Self {
        let never = (Duration::ZERO, Duration::ZERO);
        Pipe {
            delay: Duration::from_millis(10),
            drop: |_| false,
            echo: false,
            stream_bytes_per_s: None,
            begins_with_stream: true,
            outage: never,
            silent: |_| false,
        }
    }
}

/// A datagram on its way.
#[derive(Clone, Debug)]
pub struct Sent {
    pub at: Instant,
    pub channel: ChannelId,
    pub datagram: Chunk,
}

const SEND_BUFFER: usize = 64 * 1024;
const STEP: Duration = Duration::from_millis(1);

/// One end of a stream, as its machine sees it.
#[derive(Default)]
struct Half {
    outgoing: VecDeque<Chunk>,
    /// Bytes in `outgoing`.
    buffered: usize,
    incoming: VecDeque<Chunk>,
    short_write: bool,
    closing: bool,
    closed: bool,
    aborted: bool,
    read: u64,
}

impl Half {
    /// Returns whether there is nothing to do until its machine does something.
    fn rests(&self) -> bool {
        self.outgoing.is_empty() && !self.short_write && !self.aborted && (self.closed || !self.closing)
    }
}

/// A stream, with its number at the server and at the player.
struct Joint {
    channels: [Option<ChannelId>; 2],
    halves: [Half; 2],
    /// The end that opens it, and the port there.
    opening: Option<(usize, u16)>,
}

/// An end's channels beside its streams.
#[derive(Default)]
struct End {
    next: u32,
    /// Our port, and where its datagrams go.
    udp: BTreeMap<ChannelId, (u16, u16)>,
    /// Ports.
    listeners: BTreeMap<ChannelId, u16>,
    refused: VecDeque<(ChannelId, ChannelError)>,
}

impl End {
    fn number(&mut self) -> ChannelId {
        self.next += 1;
        ChannelId(self.next - 1)
    }
}

/// Everything that both ends have opened.
#[derive(Default)]
struct World {
    ends: [End; 2],
    joints: Vec<Joint>,
}

impl World {
    fn half(&mut self, end: usize, channel: ChannelId) -> Option<&mut Half> {
        let joint = self.joints.iter_mut().find(|joint| joint.channels[end] == Some(channel))?;
        Some(&mut joint.halves[end])
    }

    /// Returns the other end's channel for data that `end` sends on `channel`: by its ports, or the same
    /// where it has none.
    fn receiver(&self, end: usize, channel: ChannelId) -> ChannelId {
        let Some(&(_, to)) = self.ends[end].udp.get(&channel) else { return channel };
        let mut theirs = self.ends[1 - end].udp.iter();
        theirs.find(|(_, (own, _))| *own == to).map_or(channel, |(&channel, _)| channel)
    }
}

struct PipeIo<'a> {
    now: Instant,
    end: usize,
    sent: &'a mut Vec<Sent>,
    world: &'a mut World,
}

impl Io for PipeIo<'_> {
    fn open(&mut self, carrier: &Carrier) -> ChannelId {
        let end = &mut self.world.ends[self.end];
        let id = end.number();
        match carrier {
            Carrier::Tcp { port, .. } => {
                let mut channels = [None; 2];
                channels[self.end] = Some(id);
                let opening = Some((self.end, *port));
                self.world.joints.push(Joint { channels, halves: Default::default(), opening });
            }
            Carrier::Listener { port, .. } if end.listeners.values().any(|taken| taken == port) => {
                end.refused.push_back((id, ChannelError::PortTaken { port: *port }));
            }
            Carrier::Listener { port, .. } => {
                end.listeners.insert(id, *port);
            }
            Carrier::Udp { port, .. } => {
                end.udp.insert(id, (*port, *port));
            }
            Carrier::RtpPair => {
                let taken = |port| end.udp.values().any(|(own, _)| *own == port);
                let (first, last) = RTP_PORTS;
                let port = (first..last).step_by(2).find(|&port| !taken(port)).expect("few are opened");
                let rtcp = end.number();
                end.udp.extend([(id, (port, 0)), (rtcp, (port + 1, 0))]);
            }
            Carrier::UdpListener { .. } => unreachable!("neither end is a relay"),
            Carrier::IcmpEcho => {}
        }
        id
    }

    fn send_as(&mut self, channel: ChannelId, datagram: Chunk, _: Envelope) {
        self.sent.push(Sent { at: self.now, channel, datagram });
    }

    fn write(&mut self, channel: ChannelId, mut chunk: Chunk) -> usize {
        let Some(half) = self.world.half(self.end, channel) else { return 0 };
        assert!(!half.closing, "written after close");
        let taken = chunk.len().min(SEND_BUFFER - half.buffered);
        half.short_write = taken < chunk.len();
        let _ = chunk.split_off(taken);
        if taken > 0 {
            half.buffered += taken;
            half.outgoing.push_back(chunk);
        }
        taken
    }

    fn read(&mut self, channel: ChannelId, max: usize) -> Option<Chunk> {
        let half = self.world.half(self.end, channel)?;
        let mut chunk = half.incoming.pop_front()?;
        let rest = chunk.split_off(max);
        if !rest.is_empty() {
            half.incoming.push_front(rest);
        }
        half.read += chunk.len() as u64;
        Some(chunk)
    }

    fn close(&mut self, channel: ChannelId) {
        if let Some(half) = self.world.half(self.end, channel) {
            half.closing = true;
        }
        let end = &mut self.world.ends[self.end];
        end.listeners.remove(&channel);
        end.udp.remove(&channel);
    }

    fn abort(&mut self, channel: ChannelId) {
        if let Some(half) = self.world.half(self.end, channel) {
            half.aborted = true;
        }
    }

    fn port(&self, channel: ChannelId) -> Option<u16> {
        let end = &self.world.ends[self.end];
        end.udp.get(&channel).map(|(own, _)| *own).or_else(|| end.listeners.get(&channel).copied())
    }

    fn direct(&mut self, channel: ChannelId, port: u16) {
        if let Some((_, to)) = self.world.ends[self.end].udp.get_mut(&channel) {
            *to = port;
        }
    }
}

/// Runs a server and a player against each other.
pub struct Pair {
    server: Box<dyn App + Send>,
    player: Box<dyn App + Send>,
    pipe: Pipe,
    world: World,
    actions: VecDeque<(Instant, Input<'static>)>,
    /// Every datagram that the server sent.
    pub sent: Vec<Sent>,
    /// Every datagram that the player sent.
    pub sent_by_player: Vec<Sent>,
    taken: [usize; 2],
    /// Events of both, in order.
    pub events: Vec<Event>,
    now: Instant,
}

impl Pair {
    pub fn new(server: Box<dyn App + Send>, player: Box<dyn App + Send>, pipe: Pipe) -> Self {
        let mut world = World::default();
        let has_stream = pipe.begins_with_stream && pipe.stream_bytes_per_s.is_some();
        if has_stream {
            let channels = [Some(ChannelId(0)); 2];
            world.joints.push(Joint { channels, halves: Default::default(), opening: None });
        }
        for end in &mut world.ends {
            // Two channels of datagrams are the most that a machine begins with.
            end.next = if has_stream { 1 } else { 2 };
        }
        Pair {
            server,
            player,
            pipe,
            world,
            actions: VecDeque::new(),
            sent: Vec::new(),
            sent_by_player: Vec::new(),
            taken: [0, 0],
            events: Vec::new(),
            now: Instant::ZERO,
        }
    }

    /// Makes the server begin with a listener.
    pub fn listens(&mut self, channel: ChannelId, port: u16) {
        self.world.ends[0].listeners.insert(channel, port);
    }

    /// Makes the flow begin with these, which are listeners and UDP.
    pub fn begins_with(&mut self, channels: &[Channel]) {
        for Channel { id, carrier } in channels {
            match carrier {
                Carrier::Listener { port, .. } => self.listens(*id, *port),
                Carrier::Udp { port, .. } => {
                    self.world.ends.iter_mut().for_each(|end| {
                        end.udp.insert(*id, (*port, *port));
                    });
                }
                other => unreachable!("{other:?} is told otherwise"),
            }
        }
    }

    /// Channels that machines open have numbers from this one on.
    pub fn reserve(&mut self, channels: usize) {
        self.world.ends.iter_mut().for_each(|end| end.next = end.next.max(channels as u32));
    }

    /// Does `input` to both machines at a time; call in order of time.
    pub fn at(&mut self, time: Duration, input: Input<'static>) {
        self.actions.push_back((Instant::ZERO + time, input));
    }

    /// Returns the bytes read from the stream that both began with.
    pub fn stream_bytes_read(&self) -> u64 {
        self.world.joints[0].halves[1].read
    }

    fn input(&mut self, end: usize, input: Input<'_>) {
        let sent = if end == 0 { &mut self.sent } else { &mut self.sent_by_player };
        let app = if end == 0 { &mut self.server } else { &mut self.player };
        app.handle(self.now, input, &mut PipeIo { now: self.now, end, sent, world: &mut self.world });
        while let Some(event) = app.poll_event() {
            self.events.push(event);
        }
        while let Some((channel, error)) = self.world.ends[end].refused.pop_front() {
            self.input(end, Input::Refused(channel, &error));
        }
    }

    /// Returns whether a step of the streams would do nothing. Most of a test's time they rest.
    fn streams_rest(&self) -> bool {
        self.world.joints.iter().all(|joint| match joint.opening {
            Some((_, port)) => (self.pipe.silent)(port),
            None => joint.halves.iter().all(Half::rests),
        })
    }

    fn stream_step(&mut self) {
        let (from, to) = self.pipe.outage;
        let out = Instant::ZERO + from <= self.now && self.now < Instant::ZERO + to;
        for index in 0..self.world.joints.len() {
            match self.world.joints[index].opening {
                Some((_, port)) if out || (self.pipe.silent)(port) => {}
                Some((by, port)) => self.join(index, by, port),
                None => self.move_stream(index, out),
            }
        }
    }

    /// Makes the other end accept the stream, or refuse it without a listener.
    fn join(&mut self, index: usize, by: usize, port: u16) {
        let other = &mut self.world.ends[1 - by];
        let listener = other.listeners.iter().find(|(_, at)| **at == port).map(|(&on, _)| on);
        let accepted = listener.map(|on| (on, other.number()));
        let joint = &mut self.world.joints[index];
        joint.opening = None;
        if joint.halves[by].aborted {
            joint.channels = [None; 2];
            return;
        }
        let opened = joint.channels[by].expect("it has opened it");
        let Some((on, channel)) = accepted else {
            joint.channels = [None; 2];
            return self.input(by, Input::Refused(opened, &ChannelError::NoListener { port }));
        };
        joint.channels[1 - by] = Some(channel);
        self.input(1 - by, Input::Accepted { channel, on });
        self.input(by, Input::Opened(opened));
    }

    /// Notifies `end` of a stream that it still has.
    fn tell(&mut self, index: usize, end: usize, input: fn(ChannelId) -> Input<'static>) {
        if let Some(channel) = self.world.joints[index].channels[end] {
            self.input(end, input(channel));
        }
    }

    fn move_stream(&mut self, index: usize, out: bool) {
        let rate = self.pipe.stream_bytes_per_s.expect("only called where there is a stream");
        let halves = &mut self.world.joints[index].halves;
        if halves.iter().any(|half| half.aborted) {
            for end in 0..2 {
                let half = &mut self.world.joints[index].halves[end];
                let told = !half.aborted && !half.closed;
                *half = Half { closing: true, closed: true, read: half.read, ..Half::default() };
                if told {
                    self.tell(index, end, |channel| Input::Closed(channel, CloseReason::Reset));
                }
            }
        }
        let step_bytes = (rate * STEP.as_nanos() / 1_000_000_000) as usize;
        for end in 0..2 {
            let mut budget = if out { 0 } else { step_bytes };
            let mut moved = false;
            let halves = &mut self.world.joints[index].halves;
            while budget > 0 {
                let Some(mut chunk) = halves[end].outgoing.pop_front() else { break };
                let rest = chunk.split_off(budget);
                budget -= chunk.len();
                halves[end].buffered -= chunk.len();
                if !rest.is_empty() {
                    halves[end].outgoing.push_front(rest);
                }
                halves[1 - end].incoming.push_back(chunk);
                moved = true;
            }
            if moved {
                self.tell(index, 1 - end, Input::Readable);
            }
            let half = &mut self.world.joints[index].halves[end];
            if half.short_write && half.buffered < SEND_BUFFER {
                half.short_write = false;
                self.tell(index, end, Input::Writable);
            }
            let half = &mut self.world.joints[index].halves[end];
            if half.closing && half.outgoing.is_empty() && !half.closed {
                half.closed = true;
                self.tell(index, 1 - end, |channel| Input::Closed(channel, CloseReason::Finished));
            }
        }
    }

    /// Runs from the start until `end`.
    pub fn run(&mut self, end: Instant) {
        self.input(0, Input::Start);
        self.input(1, Input::Start);
        // The next of the streams' steps, if there are any; those at which all rest are left out.
        let mut step = None;
        if self.pipe.stream_bytes_per_s.is_some() {
            if self.pipe.begins_with_stream {
                self.input(0, Input::Opened(ChannelId(0)));
                self.input(1, Input::Opened(ChannelId(0)));
            }
            step = Some(Instant::ZERO + STEP);
        }
        loop {
            if let Some(step) = step.as_mut().filter(|step| **step < self.now) {
                *step =
                    Instant::ZERO + STEP * (self.now - Instant::ZERO).as_nanos().div_ceil(STEP.as_nanos());
            }
            while self.sent.get(self.taken[0]).is_some() && (self.pipe.drop)(self.taken[0] as u64) {
                self.taken[0] += 1;
            }
            let down = self.sent.get(self.taken[0]).map(|s| s.at + self.pipe.delay);
            let up = self.sent_by_player.get(self.taken[1]).map(|s| s.at + self.pipe.delay);
            let action = self.actions.front().map(|a| a.0);
            let timers =
                [self.server.poll_timeout(), self.player.poll_timeout()].map(|t| t.map(|t| t.max(self.now)));
            let due = step.filter(|_| !self.streams_rest());
            let candidates = [down, up, action, timers[0], timers[1], due];
            let next = candidates
                .into_iter()
                .enumerate()
                .filter_map(|(i, at)| Some((i, at?)))
                .min_by_key(|(_, at)| *at);
            let Some((which, at)) = next else { return };
            if at > end {
                return;
            }
            assert!(at >= self.now);
            self.now = at;
            match which {
                0 => {
                    let sent = self.sent[self.taken[0]].clone();
                    self.taken[0] += 1;
                    if self.pipe.echo {
                        self.sent_by_player.push(Sent { at, ..sent });
                    } else {
                        let channel = self.world.receiver(0, sent.channel);
                        self.input(1, Input::datagram(channel, &sent.datagram, self.now));
                    }
                }
                1 => {
                    let sent = self.sent_by_player[self.taken[1]].clone();
                    self.taken[1] += 1;
                    let channel = self.world.receiver(1, sent.channel);
                    self.input(0, Input::datagram(channel, &sent.datagram, self.now));
                }
                2 => {
                    let (_, input) = self.actions.pop_front().expect("its time was just looked at");
                    self.input(0, input);
                    self.input(1, input);
                }
                3 => self.input(0, Input::Timeout),
                4 => self.input(1, Input::Timeout),
                _ => {
                    step = Some(at + STEP);
                    self.stream_step();
                }
            }
        }
    }
}
