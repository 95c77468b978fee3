//! A player without a window: a machine that sim runs, on real sockets, with a report of the received media.

mod report;
mod url;
mod viewer;

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use streamgauge_base::{Duration, Instant};
use streamgauge_systems::standalone::{PlayerFacts, Playing, Seen};
use streamgauge_systems::{ChannelError, ChannelId, Input};

use crate::error::{EngineError, Result};
use crate::lines::{say, say_text, told};
use crate::net::host::NOBODY;
use crate::net::ports::PortRange;
use crate::reactor::{Arrival, Channels, Reactor, Ready, Room, SharedPorts};
use crate::settings::{seconds, with_overrides};
use crate::sys::{columns, monotonic_ns};
use report::{Progress, Report};
use url::Target;
use viewer::Viewer;

/// Below the ports that Linux gives out by itself (32768 and up).
const UDP_PORTS: PortRange = PortRange::new(16_384, 32_767);

/// How long the server may take to answer TEARDOWN and close.
const FAREWELL: Duration = Duration::from_secs(1);

/// Media that ends so near to its described length has been played to the end; of short media an eighth is near.
const END_WITHIN: Duration = Duration::from_secs(1);

/// Between two lines of progress.
const PROGRESS_EACH: Duration = Duration::from_secs(1);

/// Inputs of one channel before the others get their turn.
const TURN: usize = 256;

/// Where the one machine is.
const PLACE: u32 = 0;

/// Target and options of a player.
#[derive(clap::Args)]
pub struct PlayArgs {
    /// SCHEME://HOST[:PORT]/PATH
    url: Target,
    /// The player, where a protocol has several. For RTSP: quicktime asks for Reliable UDP, vlc for plain RTP. realplayer8
    /// and realplayer10 ask for RDT, the default of .rm and .rmvb. wmp9 and wmp9-helix ask for ASF in RTP, the default of
    /// .asf, .wmv and .wma.
    #[arg(long, value_name = "NAME")]
    player: Option<String>,
    /// Transport of the media, where there is a choice: udp or tcp.
    #[arg(long, value_name = "NAME")]
    transport: Option<String>,
    /// Stop after this many seconds. Default: at the media's end.
    #[arg(long, value_name = "S", value_parser = seconds)]
    duration: Option<Duration>,
    /// One of the player's constants, by its field's name; times take a unit (2 s). Repeatable.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// A further host that redirections and manifests may lead to; `*` for all. Repeatable.
    #[arg(long = "allow-host", value_name = "HOST")]
    allowed_hosts: Vec<String>,
    /// Write the shown media: for RTP the pictures present at their due times, as an elementary stream.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Write the player's events (frames, stalls, buffer) as JSON lines.
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// Ports of RTP and RTCP, a pair for each track.
    #[arg(long, value_name = "FIRST-LAST", default_value_t = UDP_PORTS)]
    udp_ports: PortRange,
    /// A line a second on stderr, also where that is no terminal.
    #[arg(long)]
    progress: bool,
    /// The report as one JSON object on stdout.
    #[arg(long)]
    json: bool,
}

/// How it ended.
enum End {
    /// All of it was played, or as much as was asked.
    Played(&'static str),
    /// Something ended it early.
    Early(String),
}

/// Plays, reports, and returns the result as a status.
pub fn run(args: &PlayArgs) -> Result<u8> {
    let target = args.url.played_by(args.player.as_deref());
    let facts = target.player.facts;
    let player = choice("player", args.player.as_deref(), &facts, facts.players)?;
    let transport = choice("transport", args.transport.as_deref(), &facts, facts.transports)?;
    let preset = target.player.preset(player, transport).unwrap_or_default();
    let settings = with_overrides(preset, &args.settings, |settings| target.player.read(settings))?;
    let url = target.url.as_str();
    let seed = monotonic_ns().cast_unsigned();
    let app = target.player.open(settings, url, args.save.is_some(), seed);
    let mut app = app.map_err(|(name, why)| EngineError::new(format!("read --set {name}"), why).code(3))?;
    app.allow_hosts(&args.allowed_hosts);
    let mut play = Play::connect(args, facts, transport, app)?;
    let end = play.run(args)?;
    let now = play.now();
    let seen = play.app.seen(now);
    let status = play.status(args, &end, &seen)?;
    let report = play.report(args, (player, transport), &end, &seen);
    let lines = report.lines(facts.asks, play.app.carried_by(), |rate| play.app.in_words(now, rate));
    play.leave()?;
    if args.json {
        say(&report);
    } else {
        say_text(&lines);
    }
    Ok(status)
}

/// Returns the chosen one of the player's options, or the default.
fn choice<'a>(
    option: &str,
    given: Option<&'a str>,
    facts: &PlayerFacts,
    known: &[&'static str],
) -> Result<&'a str> {
    match given {
        None => Ok(known.first().copied().unwrap_or_default()),
        Some(given) if known.contains(&given) => Ok(given),
        Some(given) => {
            let why = match known {
                [] => format!("there is nothing to choose for {}:// URLs; leave it out", facts.scheme),
                known => format!("{}:// URLs have {}", facts.scheme, known.join(", ")),
            };
            Err(EngineError::new(format!("read --{option} {given}"), why).code(3))
        }
    }
}

struct Play {
    app: Box<dyn Playing>,
    channels: Channels,
    /// It speaks by datagrams alone.
    is_unconnected: bool,
    /// Why none of them can arrive.
    unreachable: Option<String>,
    reactor: Reactor,
    room: Room,
    ready: Vec<Ready>,
    viewer: Viewer,
    save: Option<File>,
    events: Option<File>,
    /// The first and the last arrival of media.
    media: Option<(Instant, Instant)>,
    /// Bytes of media so far.
    bytes: u64,
    zero_ns: i64,
    connect_s: f64,
}

impl Play {
    fn connect(args: &PlayArgs, facts: PlayerFacts, transport: &str, app: Box<dyn Playing>) -> Result<Play> {
        let events = args.events.as_ref().map(|path| {
            let file = File::options().append(true).create(true).open(path);
            file.map_err(|e| EngineError::io("write the events", &e).at(path).code(3))
        });
        let events = events.transpose()?;
        let save = args.save.as_deref().map(create).transpose()?;
        let ports = SharedPorts::new(args.udp_ports, std::process::id());
        let mut reactor = Reactor::new()?;
        let zero_ns = monotonic_ns();
        let signals = reactor.heed_signals()?;
        let is_unconnected = facts.without_connection.contains(&transport);
        let channels = if is_unconnected {
            let (own, peer) = args.url.host.look()?;
            Channels::to_stranger(own, peer, &ports)
        } else {
            let stream = args.url.host.reach(signals)?;
            let own = stream.own_address().map_err(|e| EngineError::io("learn the own address", &e))?;
            Channels::with_stranger(stream, own, &ports, facts.is_connected)
        };
        let connect_s = (monotonic_ns() - zero_ns) as f64 / 1e9;
        Ok(Play {
            app,
            channels,
            is_unconnected,
            unreachable: None,
            reactor,
            room: Room::new(),
            ready: Vec::new(),
            viewer: Viewer::default(),
            save,
            events,
            media: None,
            bytes: 0,
            zero_ns,
            connect_s,
        })
    }

    fn now(&self) -> Instant {
        Instant::from_nanos((monotonic_ns() - self.zero_ns).max(0) as u64)
    }

    fn run(&mut self, args: &PlayArgs) -> Result<End> {
        self.give(Input::Start)?;
        let until = args.duration.map_or(Instant::FAR_FUTURE, |duration| self.now() + duration);
        let terminal = std::io::stderr().is_terminal();
        let width = columns(std::io::stderr().as_fd()).unwrap_or(80);
        let mut progress = Progress::default();
        let mut next_line =
            if args.progress || terminal { self.now() + PROGRESS_EACH } else { Instant::FAR_FUTURE };
        let end = loop {
            if let Some(end) = self.turn(until.min(next_line))? {
                break end;
            }
            let now = self.now();
            if now >= next_line {
                next_line = now + PROGRESS_EACH;
                let line = progress.line(now.as_secs_f64(), &self.viewer, &self.app.seen(now));
                // A line that a terminal wrapped could not be overwritten.
                let line = if terminal { format!("{CLEAR}{line:.width$}") } else { format!("{line}\n") };
                show(&line);
            }
            if now >= until {
                break End::Played("stopped as asked");
            }
        };
        if terminal && next_line < Instant::FAR_FUTURE {
            show(CLEAR);
        }
        Ok(end)
    }

    /// Leaves, if the server still is there.
    fn leave(&mut self) -> Result<()> {
        self.give(Input::Stop)?;
        let until = self.now() + FAREWELL;
        while !self.app.is_gone() && self.channels.open_streams() > 0 && self.now() < until {
            self.turn(until)?;
        }
        Ok(())
    }

    /// Waits for something, at most until `latest`, and gives it to the machine.
    fn turn(&mut self, latest: Instant) -> Result<Option<End>> {
        self.channels.settle(&self.reactor, PLACE)?;
        let wakes = self.app.poll_timeout().unwrap_or(Instant::FAR_FUTURE).min(latest);
        let wakes = if self.channels.has_news() { Instant::ZERO } else { wakes };
        let until = self.zero_ns.saturating_add_unsigned(wakes.as_nanos());
        self.reactor.wait(Some(until), &mut self.ready)?;
        self.channels.renew();
        for (channel, error) in self.channels.take_refused() {
            self.refused(channel, &error)?;
        }
        for channel in self.channels.take_ready() {
            self.arrivals(channel)?;
        }
        for at in 0..self.ready.len() {
            match self.ready[at] {
                Ready::Signal => return Ok(Some(End::Played("interrupted"))),
                Ready::Channel { channel, .. } => self.arrivals(channel)?,
                Ready::Own(_) => {}
            }
        }
        if self.app.poll_timeout().is_some_and(|at| at <= self.now()) {
            self.give(Input::Timeout)?;
        }
        Ok(self.ended())
    }

    /// Returns how it has ended, if the player is done with it.
    fn ended(&mut self) -> Option<End> {
        let why = match self.viewer.ended.as_ref().or(self.unreachable.as_ref()) {
            Some(why) => why.clone(),
            None if self.app.is_gone() => "the player gave up".into(),
            None => return None,
        };
        let report = self.app.seen(self.now());
        let near = |length: Duration| END_WITHIN.min(length.div(8));
        let whole = report.duration.is_none_or(|length| report.position + near(length) >= length);
        Some(if whole && report.has_played() { End::Played("played to the end") } else { End::Early(why) })
    }

    fn arrivals(&mut self, channel: ChannelId) -> Result<()> {
        for _ in 0..TURN {
            match self.channels.arrival(channel, &mut self.room) {
                None => break,
                Some(Arrival::Input(input)) => self.give(input)?,
                Some(Arrival::Datagram(on, came)) => {
                    let at = came.at(self.now());
                    self.give(Input::Datagram { on, bytes: &came.bytes, ecn: came.ecn, at })?
                }
                Some(Arrival::Refused(error)) => self.refused(channel, &error)?,
            }
        }
        Ok(())
    }

    fn refused(&mut self, channel: ChannelId, error: &ChannelError) -> Result<()> {
        if self.is_unconnected {
            self.unreachable = Some(match error {
                ChannelError::NoListener { port } => format!("no program has UDP port {port} there"),
                error => error.to_string(),
            });
        }
        self.give(Input::Refused(channel, error))
    }

    fn give(&mut self, input: Input<'_>) -> Result<()> {
        let now = self.now();
        self.app.handle(now, input, &mut self.channels);
        let bytes = self.app.seen(now).bytes;
        if std::mem::replace(&mut self.bytes, bytes) < bytes {
            self.media = Some((self.media.map_or(now, |(first, _)| first), now));
        }
        while let Some(event) = self.app.poll_event() {
            self.viewer.event(&event);
            if let Some(file) = &mut self.events {
                // A full disk must not stop the play.
                let _ = file.write_all(format!("{}\n", told(&event, self.zero_ns)).as_bytes());
            }
        }
        if let Some(file) = &mut self.save {
            while let Some(bytes) = self.app.take_kept() {
                file.write_all(&bytes).map_err(|e| EngineError::io("save the shown media", &e))?;
            }
        }
        Ok(())
    }

    /// Returns 0 for played, 1 for ended early; an error where nothing could be played at all.
    fn status(&self, args: &PlayArgs, end: &End, seen: &Seen) -> Result<u8> {
        match (end, self.app.refused()) {
            (End::Early(_), _) if self.is_unconnected && self.channels.counts().datagrams_received == 0 => {
                let why = self.unreachable.as_deref().unwrap_or("no answer over UDP");
                let error = EngineError::new(format!("play {}", args.url.url), why);
                Err(error.remedy(NOBODY).code(4))
            }
            (End::Early(why), Some(status)) if seen.bytes == 0 => {
                let error = EngineError::new(format!("play {}", args.url.url), why);
                Err(if (300..400).contains(&status) {
                    error.code(3)
                } else if status < 500 {
                    error.remedy("name a file that the server has and can send").code(3)
                } else {
                    error.remedy("try again later").code(4)
                })
            }
            (End::Early(why), _) if self.app.is_unplayable() => {
                Err(EngineError::new(format!("play {}", args.url.url), why).code(3))
            }
            (End::Early(_), _) => Ok(1),
            (End::Played(_), _) if !seen.has_played() => Ok(1),
            (End::Played(_), _) => Ok(0),
        }
    }

    fn report(
        &mut self,
        args: &PlayArgs,
        (player, transport): (&str, &str),
        end: &End,
        seen: &Seen,
    ) -> Report {
        let throughput = self.media.filter(|(first, last)| last > first);
        let mut report = Report {
            schema: "streamgauge.play/1",
            url: args.url.url.to_string(),
            player: player.into(),
            transport: transport.into(),
            played: matches!(end, End::Played(_)),
            outcome: match end {
                End::Played(how) => (*how).to_owned(),
                End::Early(why) => format!("ended early ({why})"),
            },
            duration_s: self.now().as_secs_f64(),
            connect_s: self.connect_s,
            startup_delay_s: seen.startup.map(Duration::as_secs_f64),
            position_s: seen.position.as_secs_f64(),
            shows: "",
            uncounted: None,
            left_out: self.app.left_out(),
            frames_shown: None,
            frames_late: None,
            frames_incomplete: None,
            stalls: seen.frames.stalls,
            stalled_s: seen.frames.stalled.as_secs_f64(),
            freezes: None,
            frozen_s: None,
            bytes_received: seen.bytes,
            throughput_bps: throughput
                .map(|(first, last)| seen.bytes as f64 * 8.0 / (last - first).as_secs_f64()),
            own: self.app.figures(self.now()),
        };
        report.shows(seen, &self.viewer);
        report
    }
}

/// Returns a new file for `--save`.
fn create(path: &Path) -> Result<File> {
    File::create(path)
        .map_err(|e| EngineError::io("save to", &e).at(path).remedy("name a file that you may write").code(3))
}

/// Back to the beginning of a terminal's line, which is empty then.
const CLEAR: &str = "\r\x1b[K";

/// Writes to stderr. A reader that has left does not stop the play.
fn show(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
