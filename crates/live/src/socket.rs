//! The socket's two threads, and the driver's end of them.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use streamgauge_path::Change;
use streamgauge_path::spec::PathSpec;

use crate::asked::{Applied, Asked, Room, Steering};
use crate::counts::Aggregates;
use crate::lines::{Moment, Words};

/// Samples that wait to be written. While all wait, counts go on adding up.
const WAITING: usize = 4;
/// Requests that wait for the driver.
const ASKED: usize = 64;
const LONGEST_LINE: u64 = 65_536;

/// Options of a socket's threads.
pub struct Options {
    /// Names of flows and relays by code.
    pub flows: Vec<String>,
    /// Addresses of stages by code, such as `path.down.bottleneck`.
    pub stages: Vec<String>,
    /// The path that changes are held against.
    pub path: PathSpec,
    /// Where memory for packets is bounded.
    pub room: Option<Room>,
    /// Called, from another thread, when something is asked.
    pub wake: Box<dyn Fn() + Send>,
}

enum Out {
    Sample(Box<Aggregates>, Moment),
    Done(u64, u64),
    Refused(u64, String),
}

/// The driver's end. Nothing in it waits, but [`Watched::wait`].
pub struct Watched {
    counts: Box<Aggregates>,
    given_back: Receiver<Box<Aggregates>>,
    spare: Option<Box<Aggregates>>,
    out: SyncSender<Out>,
    asked: Receiver<Applied>,
    writer: std::thread::JoinHandle<()>,
    /// When the last sample was taken, ns of the trial.
    sampled_ns: u64,
    /// When the next is due.
    due_ns: u64,
    /// The record's own list, for a replay.
    applied: Vec<(u64, usize, usize, Change)>,
    /// Data that could not be handed over yet.
    kept: Vec<Out>,
}

impl Watched {
    /// Starts the threads. They end with the socket; the trial does not.
    pub fn start(socket: UnixStream, options: Options) -> std::io::Result<Watched> {
        let Options { flows, stages, path, room, wake } = options;
        let counts = Aggregates::new(flows.len(), &path);
        let (out, to_write) = sync_channel(WAITING);
        let (give_back, given_back) = sync_channel(WAITING + 1);
        for _ in 0..2 {
            let _ = give_back.try_send(Box::new(counts.clone()));
        }
        let (ask, asked) = sync_channel(ASKED);
        let writing = Arc::new(Mutex::new(socket.try_clone()?));
        let answers = Arc::clone(&writing);
        let named = |name: &str| std::thread::Builder::new().name(name.into());
        let words = Words::new(flows, stages);
        let writer =
            named("live-samples").spawn(move || write_all(&to_write, &give_back, words, &writing))?;
        let steering = Steering::new(path, room);
        named("live-changes").spawn(move || read_all(socket, steering, &ask, &answers, &wake))?;
        let counts = Box::new(counts);
        let (applied, kept) = (Vec::with_capacity(256), Vec::with_capacity(ASKED));
        let (sampled_ns, due_ns) = (0, crate::EVERY_NS);
        Ok(Watched { counts, given_back, spare: None, out, asked, writer, sampled_ns, due_ns, applied, kept })
    }

    /// Returns the current counts.
    #[inline]
    pub fn counts(&mut self) -> &mut Aggregates {
        &mut self.counts
    }

    /// Returns when the next sample is due, ns of the trial.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.due_ns
    }

    /// Returns whether a sample is due at `at_ns` and the writer has kept up; otherwise counts go on adding
    /// up until the next.
    pub fn is_due(&mut self, at_ns: u64) -> bool {
        if at_ns < self.due_ns {
            return false;
        }
        self.due_ns = at_ns - at_ns % crate::EVERY_NS + crate::EVERY_NS;
        self.has_room()
    }

    fn has_room(&mut self) -> bool {
        self.hand_over();
        self.spare = self.spare.take().or_else(|| self.given_back.try_recv().ok());
        self.spare.is_some() && self.kept.is_empty()
    }

    /// Hands the counts over: after [`Watched::is_due`] returned true, or at the end.
    pub fn offer(&mut self, mut moment: Moment) {
        let Some(spare) = self.spare.take().or_else(|| self.given_back.try_recv().ok()) else { return };
        moment.span_ns = moment.at_ns.saturating_sub(self.sampled_ns);
        self.sampled_ns = moment.at_ns;
        let full = std::mem::replace(&mut self.counts, spare);
        self.kept.push(Out::Sample(full, moment));
        self.hand_over();
    }

    /// Writes the last sample, which is waited for at most a second: the trial is over.
    pub fn finish(mut self, moment: Moment) {
        let until = Instant::now() + Duration::from_secs(1);
        while !self.has_room() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.offer(Moment { ended: true, ..moment });
        while !self.kept.is_empty() && Instant::now() < until {
            self.hand_over();
            std::thread::sleep(Duration::from_millis(2));
        }
        let Watched { out, writer, .. } = self;
        drop(out);
        while !writer.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Returns the next thing asked, if there is one.
    pub fn next_asked(&mut self) -> Option<Applied> {
        self.asked.try_recv().ok()
    }

    /// Returns the same, and waits for it at most this long.
    pub fn wait(&mut self, at_most: Duration) -> Option<Applied> {
        match self.asked.recv_timeout(at_most) {
            Ok(asked) => Some(asked),
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => None,
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => {
                std::thread::sleep(at_most);
                None
            }
        }
    }

    /// Reports that the request takes effect at `at_ns` of the trial.
    pub fn done(&mut self, asked: &Applied, at_ns: u64) {
        self.applied.extend(asked.changes.iter().map(|&(way, place, change)| (at_ns, way, place, change)));
        self.kept.push(Out::Done(asked.id, at_ns));
        self.hand_over();
    }

    /// Reports that the request cannot be fulfilled.
    pub fn refused(&mut self, asked: &Applied, why: &str) {
        self.kept.push(Out::Refused(asked.id, why.into()));
        self.hand_over();
    }

    /// Returns every change that took effect: time (ns), direction, place of the stage in it, change.
    pub fn applied(&self) -> &[(u64, usize, usize, Change)] {
        &self.applied
    }

    fn hand_over(&mut self) {
        while !self.kept.is_empty() {
            match self.out.try_send(self.kept.remove(0)) {
                Ok(()) => {}
                Err(TrySendError::Full(out)) => return self.kept.insert(0, out),
                // There is no listener any more; counts have room again.
                Err(TrySendError::Disconnected(_)) => {}
            }
        }
    }
}

type Writing = Arc<Mutex<UnixStream>>;

fn say(writing: &Writing, line: &Value) -> std::io::Result<()> {
    let mut text = line.to_string();
    text.push('\n');
    writing.lock().unwrap_or_else(PoisonError::into_inner).write_all(text.as_bytes())
}

fn write_all(
    out: &Receiver<Out>,
    give_back: &SyncSender<Box<Aggregates>>,
    mut words: Words,
    writing: &Writing,
) {
    let mut gone = false;
    for one in out {
        let line = match one {
            Out::Sample(mut counts, moment) => {
                let line = words.sample(&counts, &moment);
                counts.clear();
                let _ = give_back.try_send(counts);
                line
            }
            Out::Done(id, at_ns) => json!({"done": {"id": id, "t_ns": at_ns, "t_s": at_ns as f64 / 1e9}}),
            Out::Refused(id, why) => json!({"refused": {"id": id, "why": why}}),
        };
        // A client that has left gets nothing; counts are still taken.
        gone = gone || say(writing, &line).is_err();
    }
}

fn read_all(
    socket: UnixStream,
    mut steering: Steering,
    ask: &SyncSender<Applied>,
    writing: &Writing,
    wake: &(dyn Fn() + Send),
) {
    let mut lines = BufReader::new(socket);
    loop {
        let mut line = Vec::new();
        match (&mut lines).take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) if line.last() != Some(&b'\n') => return,
            Ok(_) => {}
        }
        let id = serde_json::from_slice::<Value>(&line).ok().and_then(|value| value["id"].as_u64());
        let taken = serde_json::from_slice::<Asked>(&line)
            .map_err(|why| format!("the request does not read: {why}"))
            .and_then(|asked| steering.take(asked, Instant::now()))
            .and_then(|applied| {
                ask.try_send(applied).map_err(|_| "too many changes wait; send fewer".to_owned())
            });
        match taken {
            Ok(()) => wake(),
            Err(why) => {
                if say(writing, &json!({"refused": {"id": id, "why": why}})).is_err() {
                    return;
                }
            }
        }
    }
}
