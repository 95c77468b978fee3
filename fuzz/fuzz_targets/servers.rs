//! Any sequence of requests, datagrams and pauses leaves each server machine alive and in bounds: it sends nothing to a
//! channel that is gone, it never wakes without end, and a minute without a word ends its work or leaves it idle.
//!
//! A byte picks the system. Each step is a byte for its kind, two for a length or a time, and the bytes that arrive.
#![no_main]

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_systems::media::{Asset, Library, NamedFile, OpenError, StoredFile, mp4};
use streamgauge_systems::standalone::Served;
use streamgauge_systems::{Carrier, ChannelId, CloseReason, Envelope, Input, Io};

/// The client's connection, or its datagrams.
const FIRST: ChannelId = ChannelId(0);
/// Bytes that a stream's send buffer takes before the client reads.
const SEND_BUFFER: usize = 64 << 10;
/// Steps of one sequence: more of them show nothing new.
const MOST_STEPS: usize = 64;
/// Timeouts of one instant: a machine that wants more never rests.
const MOST_WAKES: usize = 1_000;
/// Timeouts of one pause. A second of media is some hundreds of packets.
const MOST_WAKES_A_PAUSE: usize = 200_000;

struct Bytes(&'static [u8]);

impl StoredFile for Bytes {
    fn length(&self) -> u64 {
        self.0.len() as u64
    }
    fn version(&self) -> &str {
        "1"
    }
    fn read(&self, first: u64, most: u64) -> Result<Vec<u8>, String> {
        let rest = self.0.get(usize::try_from(first).unwrap_or(usize::MAX)..).unwrap_or_default();
        Ok(rest[..rest.len().min(most as usize)].to_vec())
    }
}

const LADDER: &[u8] = br#"{"schema": "streamgauge.content/1", "tracks": [{"kind": "video", "encodings":
    [{"name": "a", "bit_rate_bps": 100000, "file": "h264.mp4", "frames": {}}]}]}"#;

/// A folder with a file of each kind, and a ladder.
const FILES: [(&str, &[u8]); 6] = [
    ("h264.mp4", include_bytes!("../corpus/mp4/h264.mp4")),
    ("mpeg4.mov", include_bytes!("../corpus/mp4/mpeg4.mov")),
    ("two.wmv", include_bytes!("../corpus/asf/two.asf")),
    ("two.rm", include_bytes!("../corpus/rm/ffmpeg.rm")),
    ("content.json", LADDER),
    ("b/content.json", LADDER),
];

static FILM: LazyLock<Arc<Asset>> = LazyLock::new(|| {
    Arc::new(mp4::read("h264.mp4", Arc::new(FILES[0].1.to_vec())).expect("a seed that is a film"))
});

struct Folder;

impl Library for Folder {
    fn open(&self, path: &str) -> Result<Arc<Asset>, OpenError> {
        if path.ends_with("h264.mp4") { Ok(FILM.clone()) } else { Err(OpenError::NotFound) }
    }
    fn file(&self, path: &str) -> Result<Arc<dyn StoredFile>, OpenError> {
        self.plain(path)
    }
    fn plain(&self, path: &str) -> Result<Arc<dyn StoredFile>, OpenError> {
        let name = path.trim_start_matches('/');
        let (_, bytes) = FILES.iter().find(|(one, _)| *one == name).ok_or(OpenError::NotFound)?;
        Ok(Arc::new(Bytes(bytes)))
    }
    fn alone(&self) -> Result<Option<NamedFile>, OpenError> {
        Ok(None)
    }
    fn names(&self, _path: &str) -> Result<Vec<String>, OpenError> {
        Ok(FILES.iter().map(|(name, _)| (*name).to_owned()).collect())
    }
}

/// The host of one client.
#[derive(Default)]
struct World {
    next: u32,
    /// Channels that the machine has opened, each with our port.
    open: BTreeMap<ChannelId, u16>,
    /// Bytes that have arrived on the client's connection.
    incoming: VecDeque<u8>,
    /// Bytes that wait to be sent on it.
    outgoing: usize,
    finished: bool,
    /// It took fewer bytes than it was offered.
    short: bool,
    refused: Vec<ChannelId>,
}

impl World {
    fn add(&mut self) -> ChannelId {
        self.next += 1;
        let id = ChannelId(self.next);
        self.open.insert(id, 6_970 + (self.next % 20_000) as u16);
        id
    }
}

impl Io for World {
    fn open(&mut self, carrier: &Carrier) -> ChannelId {
        let id = self.add();
        match carrier {
            Carrier::RtpPair => drop(self.add()),
            Carrier::Udp { .. } => {}
            // Nobody answers at the client's end.
            _ => self.refused.push(id),
        }
        id
    }
    fn send_as(&mut self, channel: ChannelId, datagram: Chunk, _: Envelope) {
        assert!(channel == FIRST || self.open.contains_key(&channel), "sent on {channel:?}, which is gone");
        assert!(datagram.len() <= 65_507);
    }
    fn write(&mut self, channel: ChannelId, chunk: Chunk) -> usize {
        if channel != FIRST || self.finished {
            return 0;
        }
        let taken = chunk.len().min(SEND_BUFFER - self.outgoing);
        self.outgoing += taken;
        self.short |= taken < chunk.len();
        taken
    }
    fn read(&mut self, channel: ChannelId, max: usize) -> Option<Chunk> {
        if channel != FIRST || self.incoming.is_empty() || max == 0 {
            return None;
        }
        let count = self.incoming.len().min(max);
        Some(Chunk::bytes(self.incoming.drain(..count).collect::<Vec<u8>>()))
    }
    fn close(&mut self, channel: ChannelId) {
        if channel == FIRST {
            self.finished = true;
        }
        self.open.remove(&channel);
    }
    fn port(&self, channel: ChannelId) -> Option<u16> {
        self.open.get(&channel).copied()
    }
    fn direct(&mut self, _: ChannelId, _: u16) {}
}

/// A client's machine, its host and the time.
struct Trial {
    machine: Box<dyn Served>,
    world: World,
    now: Instant,
}

impl Trial {
    fn give(&mut self, input: Input<'_>) {
        self.machine.handle(self.now, input, &mut self.world);
        while self.machine.poll_event().is_some() {}
        for channel in std::mem::take(&mut self.world.refused) {
            self.world.open.remove(&channel);
            let why = streamgauge_systems::ChannelError::NoListener { port: 1 };
            self.machine.handle(self.now, Input::Refused(channel, &why), &mut self.world);
            while self.machine.poll_event().is_some() {}
        }
    }

    /// Lets time pass, with the timeouts in it.
    fn pause(&mut self, length: Duration) {
        let until = self.now + length;
        let (mut wakes, mut at_once) = (0, 0);
        while let Some(at) = self.machine.poll_timeout().filter(|&at| at <= until) {
            at_once = if at <= self.now { at_once + 1 } else { 0 };
            assert!(at_once < MOST_WAKES, "it wakes without end at {:?}", self.now);
            wakes += 1;
            if wakes > MOST_WAKES_A_PAUSE {
                break;
            }
            self.now = self.now.max(at);
            self.give(Input::Timeout);
        }
        self.now = until;
    }

    /// The client reads all that was sent to it.
    fn drain(&mut self) {
        self.world.outgoing = 0;
        if std::mem::take(&mut self.world.short) && !self.world.finished {
            self.give(Input::Writable(FIRST));
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((which, mut rest)) = bytes.split_first() else { return };
    let servers: Vec<_> = streamgauge_systems::standalone_servers().collect();
    let (_, server) = &servers[usize::from(which & 0x7f) % servers.len()];
    let facts = &server.facts;
    // A server without presets has one set of settings, whatever its name.
    let place = usize::from(which & 0x7f) / servers.len() % facts.presets.len().max(1);
    let preset = facts.presets.get(place).copied().unwrap_or_default();
    let settings = server.preset(preset).expect("its own");
    let clients = server.open(settings, None).unwrap_or_else(|(_, why)| panic!("{why}"));
    let by_datagrams = facts.datagrams && which & 0x80 != 0;
    let library: Arc<dyn Library> = Arc::new(Folder);
    let machine = match by_datagrams {
        true => clients.datagram_machine(library, "fuzz", 1),
        false => clients.machine(library, "fuzz", 1),
    };
    let mut trial = Trial { machine, world: World::default(), now: Instant::ZERO };
    trial.give(Input::Start);
    if !by_datagrams {
        trial.give(Input::Opened(FIRST));
    }
    for _ in 0..MOST_STEPS {
        let [kind, low, high, tail @ ..] = rest else { break };
        let number = u16::from_le_bytes([*low, *high]);
        let (piece, after) = tail.split_at(usize::from(number).min(tail.len()));
        match kind % 8 {
            0..=2 if !by_datagrams => {
                trial.world.incoming.extend(piece);
                trial.give(Input::Readable(FIRST));
            }
            0..=3 => {
                let to = trial.world.open.keys().nth(usize::from(kind / 8)).copied();
                let channel = if by_datagrams { FIRST } else { to.unwrap_or(FIRST) };
                if by_datagrams || channel != FIRST {
                    trial.give(Input::datagram(channel, &Chunk::bytes(piece.to_vec()), trial.now));
                }
            }
            4 => trial.drain(),
            _ => {
                trial.pause(Duration::from_millis(u64::from(number)));
                rest = tail;
                continue;
            }
        }
        rest = after;
    }
    trial.pause(Duration::from_secs(70));
    if by_datagrams {
        trial.give(Input::Stop);
        return;
    }
    trial.drain();
    trial.give(Input::Closed(FIRST, CloseReason::Reset));
    trial.pause(Duration::from_secs(70));
    trial.machine.counts();
    trial.machine.in_words();
});
