//! Greedy TCP as iperf3 has it: the ends exchange settings on a TCP connection for that alone, and then open the one that
//! carries data.
//!
//! The player names the test, the server asks for its options, receives them and asks for the connection of
//! the data, on which the player names the test again. With `iperf3 --reverse` the server then writes at
//! once. Messages after the data are left out.

use streamgauge_base::{Chunk, Duration, Event, Instant, RandomStream};
use streamgauge_plan::TcpSpec;

use super::{BulkPlayer, BulkServer, DATA, PORT};
use crate::app::{App, ChannelId, Input, Io};
use crate::carrier::Carrier;
use crate::machines::{Channel, Machines};

/// The test's name. Sizes here are in bytes, and those of packets of iperf3 3.12.
const COOKIE: u32 = 37;
/// A state.
const STATE: u32 = 1;
/// The player's options: a length, then a text, of this length where few options are set.
const WANTED: [u32; 2] = [4, 139];
/// iperf3 has one client, and connects twice.
const BACKLOG: u32 = 2;
/// Least and greatest time that iperf3 3.12 took, over 12 runs on a loopback interface, from the name on the data's
/// connection to the two states that start the test.
const START_TAKES: [Duration; 2] = [Duration::from_micros(1_300), Duration::from_micros(8_400)];
/// From those to the first data.
const DATA_TAKES: [Duration; 2] = [Duration::from_micros(10), Duration::from_micros(400)];

/// Returns both ends. The times that the server's program takes are drawn from `seed` and `flow`: they decide
/// how full a token bucket is when data begin, and so which of several lasting states TCP falls into.
pub fn machines(bytes: Option<u64>, tcp: &TcpSpec, flow: &str, seed: u64) -> Machines {
    let listener = Carrier::Listener { port: PORT, settings: tcp.clone(), backlog: BACKLOG };
    Machines {
        channels: vec![Channel { id: DATA, carrier: listener }],
        server: Box::new(Server {
            control: None,
            data: None,
            told: 0,
            start: Start::Awaited,
            draws: RandomStream::named(seed, flow, "bulk_control"),
            inner: BulkServer::new(bytes),
        }),
        player: Box::new(Player {
            to_server: Carrier::Tcp { port: PORT, settings: tcp.clone() },
            control: None,
            states: 0,
            inner: BulkPlayer::default(),
        }),
    }
}

struct Server {
    control: Option<ChannelId>,
    data: Option<ChannelId>,
    /// Bytes that the player has sent on the control connection.
    told: u32,
    start: Start,
    draws: RandomStream,
    inner: BulkServer,
}

/// How far the server is towards the first data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Start {
    /// The data's connection has no name yet.
    Awaited,
    /// The program prepares the test.
    Prepares { until: Instant },
    /// It has announced the test on the control connection.
    Announced { until: Instant },
    /// Data flow, or never will.
    Over,
}

impl Server {
    fn hear(&mut self, control: ChannelId, io: &mut dyn Io) {
        let wanted = COOKIE + WANTED.iter().sum::<u32>();
        let before = self.told;
        while let Some(chunk) = io.read(control, usize::MAX) {
            self.told += chunk.len() as u32;
        }
        for enough in [COOKIE, wanted] {
            if (before + 1..=self.told).contains(&enough) {
                io.write(control, Chunk::filler(STATE));
            }
        }
    }

    /// Prepares the test, which the player has named on the data's connection.
    fn prepare(&mut self, now: Instant, data: ChannelId, io: &mut dyn Io) {
        while io.read(data, usize::MAX).is_some() {}
        if self.start == Start::Awaited {
            self.start = Start::Prepares { until: now + self.takes(START_TAKES) };
        }
    }

    /// Starts and runs the test, when the program is ready.
    fn go_on(&mut self, now: Instant, io: &mut dyn Io) {
        let (Some(control), Some(data)) = (self.control, self.data) else { return };
        if let Start::Prepares { until } = self.start
            && until <= now
        {
            io.write(control, Chunk::filler(STATE));
            io.write(control, Chunk::filler(STATE));
            self.start = Start::Announced { until: now + self.takes(DATA_TAKES) };
        }
        if let Start::Announced { until } = self.start
            && until <= now
        {
            self.start = Start::Over;
            self.inner.begin(data, io);
        }
    }

    /// Returns a time between the two, drawn by whole nanoseconds.
    fn takes(&mut self, [least, most]: [Duration; 2]) -> Duration {
        least + Duration::from_nanos(self.draws.below(most.as_nanos() - least.as_nanos() + 1))
    }
}

impl App for Server {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Accepted { channel, .. } if self.control.is_none() => self.control = Some(channel),
            Input::Accepted { channel, .. } => self.data = Some(channel),
            Input::Readable(channel) if Some(channel) == self.control => self.hear(channel, io),
            Input::Readable(channel) if Some(channel) == self.data => self.prepare(now, channel, io),
            Input::Timeout => self.go_on(now, io),
            // The data's connection starts nothing any more.
            Input::Closed(channel, _) if Some(channel) == self.control => {
                self.start = Start::Over;
                io.close(channel);
            }
            other => {
                if matches!(other, Input::Closed(..) | Input::Stop) {
                    self.start = Start::Over;
                }
                self.inner.handle(now, other, io);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self.start {
            Start::Prepares { until } | Start::Announced { until } => Some(until),
            Start::Awaited | Start::Over => None,
        }
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.inner.poll_event()
    }
}

struct Player {
    to_server: Carrier,
    control: Option<ChannelId>,
    /// Bytes that the server has sent on the control connection, each a state.
    states: u32,
    /// Machine of the data's connection; of the control connection until that is opened.
    inner: BulkPlayer,
}

impl Player {
    fn hear(&mut self, control: ChannelId, io: &mut dyn Io) {
        while let Some(chunk) = io.read(control, usize::MAX) {
            for _ in 0..chunk.len() {
                self.states += 1;
                match self.states {
                    1 => WANTED.iter().for_each(|&bytes| {
                        io.write(control, Chunk::filler(bytes));
                    }),
                    2 => self.inner = BulkPlayer::on(io.open(&self.to_server)),
                    _ => {}
                }
            }
        }
    }

    fn is_control(&self, channel: ChannelId) -> bool {
        self.control == Some(channel)
    }
}

impl App for Player {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Start => {
                let control = io.open(&self.to_server);
                self.control = Some(control);
                self.inner = BulkPlayer::on(control);
            }
            // This few bytes fit any send buffer.
            Input::Opened(channel) => {
                io.write(channel, Chunk::filler(COOKIE));
            }
            Input::Readable(channel) if self.is_control(channel) => self.hear(channel, io),
            Input::Closed(channel, _) | Input::Refused(channel, _) => {
                self.inner.handle(now, input, io);
                if !self.is_control(channel)
                    && let Some(control) = self.control
                {
                    io.close(control);
                }
            }
            Input::Stop => {
                self.inner.handle(now, input, io);
                if let Some(control) = self.control {
                    io.abort(control);
                }
            }
            other => self.inner.handle(now, other, io),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.inner.poll_event()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bulk::BulkSpec;
    use crate::describe::System as _;
    use crate::testing::{Pair, Pipe};

    fn pair(bytes: Option<u64>) -> Pair {
        let pipe = Pipe { stream_bytes_per_s: Some(1_000_000), begins_with_stream: false, ..Pipe::default() };
        let machines = machines(bytes, &BulkSpec::usual().tcp, "d", 1);
        let mut pair = Pair::new(machines.server, machines.player, pipe);
        pair.listens(DATA, PORT);
        pair
    }

    #[test]
    fn the_data_comes_after_what_is_agreed() {
        let mut pair = pair(Some(1_000_000));
        pair.run(Instant::from_nanos(5_000_000_000));
        let ends: Vec<_> = pair.events.iter().filter(|e| e.name == crate::MEDIA_END).collect();
        assert_eq!((ends.len(), ends[0].value), (1, Some(1_000_000.0)));
    }

    #[test]
    fn stopped_it_gives_up_what_waits_on_either_connection() {
        for at in [Duration::ZERO, Duration::from_millis(1), Duration::from_secs(1)] {
            let mut pair = pair(None);
            pair.at(at, Input::Stop);
            pair.run(Instant::from_nanos(5_000_000_000));
            let ends: Vec<_> = pair.events.iter().filter(|e| e.name == crate::MEDIA_END).collect();
            assert_eq!((ends.len(), ends[0].reason.as_ref()), (1, "stopped"), "at {at:?}");
            // 1 MB/s for that long, and nothing of the send buffer (64 kB).
            assert!(ends[0].value.is_some_and(|bytes| bytes <= 1e6 * at.as_secs_f64()), "{ends:?}");
        }
    }
}
