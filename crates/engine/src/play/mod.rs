//! A player without a window: the Darwin player that sim runs, on real sockets, with a report of what came.

mod answers;
mod keeper;
mod report;
mod url;
mod viewer;

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;

use clap::ValueEnum;
use nix::libc;
use nix::sys::epoll::{EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::signalfd::SignalFd;
use streamgauge_base::{Duration, Instant};
use streamgauge_systems::darwin::{DarwinPlayer, PlayerKind, PlayerReport, PlayerSettings, RTSP, Transport};
use streamgauge_systems::{App, ChannelId, CloseReason, Input};

use crate::error::{EngineError, Result};
use crate::lines::{say, say_text, told};
use crate::net::connection::{Connection, Face, Host, addresses};
use crate::net::ports::{PortRange, Ports};
use crate::net::stream::{News, Stream};
use crate::net::wake::{Alarm, stop_signals};
use crate::settings::{seconds, with_overrides};
use crate::sys::monotonic_ns;
use answers::Answers;
use keeper::Keeper;
use report::{Progress, Report};
use url::Target;
use viewer::Viewer;

/// Below the ports that Linux gives out by itself (32768 and up).
const UDP_PORTS: PortRange = PortRange::new(16_384, 32_767);

/// How long a server may take to accept, ns.
const CONNECT_WITHIN_NS: i64 = 10_000_000_000;

/// How long the server may take to answer TEARDOWN and close.
const FAREWELL: Duration = Duration::from_secs(1);

/// Media that ends so near to its described length has been played to the end.
const END_WITHIN: Duration = Duration::from_secs(1);

/// Between two lines of progress.
const PROGRESS_EACH: Duration = Duration::from_secs(1);

/// Datagrams of one channel before the others get their turn.
const TURN: usize = 256;

/// Tokens that are no channel's.
const SIGNALS: u64 = u64::MAX;
const ALARM: u64 = u64::MAX - 1;

/// What is played and how.
#[derive(clap::Args)]
pub struct PlayArgs {
    /// rtsp://HOST[:PORT]/PATH
    url: Target,
    /// Which player: QuickTime's headers and Reliable UDP, or plain RTP.
    #[arg(long, value_enum, default_value = "quicktime")]
    player: PlayerName,
    /// What carries the media.
    #[arg(long, value_enum, default_value = "udp")]
    transport: TransportName,
    /// Stop after so many seconds. Default: at the media's end.
    #[arg(long, value_name = "S", value_parser = seconds)]
    duration: Option<Duration>,
    /// One of the player's constants, by its field's name; times take a unit (2 s). Repeatable.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// Write the pictures that were there when they were due, as an elementary stream.
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

#[derive(Clone, Copy, ValueEnum)]
enum PlayerName {
    Quicktime,
    Vlc,
}

#[derive(Clone, Copy, ValueEnum)]
enum TransportName {
    Udp,
    Tcp,
}

/// How it ended.
enum End {
    /// All of it was played, or as much as was asked.
    Played(&'static str),
    /// Something ended it early.
    Early(String),
}

/// Plays, reports, and says by the status how it went.
pub fn run(args: &PlayArgs) -> Result<u8> {
    let kind = match args.player {
        PlayerName::Quicktime => PlayerKind::Quicktime,
        PlayerName::Vlc => PlayerKind::Vlc,
    };
    let transport = match args.transport {
        TransportName::Udp => Transport::Udp,
        TransportName::Tcp => Transport::Tcp,
    };
    let settings = with_overrides(&PlayerSettings { transport, ..PlayerSettings::of(kind) }, &args.settings)?;
    settings.check().map_err(|(name, why)| EngineError::new(format!("read --set {name}"), why).code(3))?;
    let mut play = Play::connect(args, settings)?;
    let end = play.run(args)?;
    let seen = play.app.report_at(play.now());
    let status = play.status(args, &end, &seen)?;
    let report = play.report(args, &end, &seen);
    play.leave()?;
    if args.json {
        say(&report);
    } else {
        say_text(&report.lines());
    }
    Ok(status)
}

struct Play {
    app: DarwinPlayer,
    connection: Connection,
    host: Host,
    alarm: Alarm,
    signals: SignalFd,
    answers: Answers,
    viewer: Viewer,
    keeper: Option<Keeper>,
    events: Option<File>,
    /// When RTP first came and last.
    media: Option<(Instant, Instant)>,
    zero_ns: i64,
    connect_s: f64,
}

impl Play {
    fn connect(args: &PlayArgs, settings: PlayerSettings) -> Result<Play> {
        let events = args.events.as_ref().map(|path| {
            let file = File::options().append(true).create(true).open(path);
            file.map_err(|e| EngineError::io("write the events", &e).at(path).code(3))
        });
        let events = events.transpose()?;
        let keeper = args.save.as_deref().map(Keeper::create).transpose()?;
        let internal = |e: nix::Error| EngineError::io("wait for the server", &e.into());
        let signals = stop_signals().map_err(internal)?;
        let alarm = Alarm::new().map_err(internal)?;
        let ports = Ports::new(args.udp_ports, std::process::id());
        let host = Host::new(ports).map_err(|e| EngineError::io("make an epoll", &e))?;
        for (fd, token) in [(signals.as_fd(), SIGNALS), (alarm.as_fd(), ALARM)] {
            host.epoll.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, token)).map_err(internal)?;
        }
        let zero_ns = monotonic_ns();
        let (stream, peer) = reach(&args.url, &signals)?;
        let own = stream.own_address().map_err(|e| EngineError::io("learn the own address", &e))?;
        let (own, peer) = addresses(own, peer);
        let mut connection = Connection::new(stream, own, peer, 0);
        connection.listen_in();
        let mut app = DarwinPlayer::new(settings, args.url.url.as_str(), "play", zero_ns as u64);
        app.keep_units(keeper.is_some());
        let connect_s = (monotonic_ns() - zero_ns) as f64 / 1e9;
        Ok(Play {
            app,
            connection,
            host,
            alarm,
            signals,
            answers: Answers::default(),
            viewer: Viewer::default(),
            keeper,
            events,
            media: None,
            zero_ns,
            connect_s,
        })
    }

    fn now(&self) -> Instant {
        Instant::from_nanos((monotonic_ns() - self.zero_ns).max(0) as u64)
    }

    fn run(&mut self, args: &PlayArgs) -> Result<End> {
        self.give(Input::Start)?;
        self.give(Input::Opened(RTSP))?;
        let until = args.duration.map_or(Instant::FAR_FUTURE, |duration| self.now() + duration);
        let terminal = std::io::stderr().is_terminal();
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
                let line = progress.line(now.as_secs_f64(), &self.viewer, &self.app.report_at(now));
                show(&if terminal { format!("{CLEAR}{line}") } else { format!("{line}\n") });
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
        while !self.app.is_gone() && !self.connection.is_closed() && self.now() < until {
            self.turn(until)?;
        }
        Ok(())
    }

    /// Waits for something, at most until `latest`, and gives it to the machine.
    fn turn(&mut self, latest: Instant) -> Result<Option<End>> {
        let failed = |e: nix::Error| EngineError::io("wait for the server", &e.into());
        self.connection.watch(&self.host).map_err(failed)?;
        let wakes = self.app.poll_timeout().unwrap_or(Instant::FAR_FUTURE).min(latest);
        let wakes = Some(wakes.as_nanos()).filter(|&at| at < i64::MAX as u64 / 2);
        self.alarm.set(wakes.map(|at| self.zero_ns + at as i64));
        let mut events = [EpollEvent::empty(); 16];
        let ready = match self.host.epoll.wait(&mut events, EpollTimeout::NONE) {
            Ok(ready) => ready,
            Err(nix::Error::EINTR) => 0,
            Err(e) => return Err(failed(e)),
        };
        self.connection.renew();
        for event in &events[..ready] {
            match event.data() {
                SIGNALS => {
                    let _ = self.signals.read_signal();
                    return Ok(Some(End::Played("interrupted")));
                }
                ALARM => self.alarm.rang(),
                token if token == u64::from(RTSP.0) => {
                    while let Some(news) = self.connection.news() {
                        self.give(match news {
                            News::Opened => continue,
                            News::Readable => Input::Readable(RTSP),
                            News::Writable => Input::Writable(RTSP),
                            News::Finished => Input::Closed(RTSP, CloseReason::Finished),
                            News::Failed => Input::Closed(RTSP, CloseReason::Failed),
                        })?;
                    }
                }
                token => self.datagrams(ChannelId(token as u8))?,
            }
        }
        if self.app.poll_timeout().is_some_and(|at| at <= self.now()) {
            self.give(Input::Timeout)?;
        }
        Ok(self.ended())
    }

    /// How it has ended, if the player is done with it.
    fn ended(&mut self) -> Option<End> {
        let why = match &self.viewer.ended {
            Some(why) => why.clone(),
            None if self.app.is_gone() => "the player gave up".into(),
            None => return None,
        };
        let report = self.app.report_at(self.now());
        let whole = report.duration.is_none_or(|length| report.position + END_WITHIN >= length);
        Some(if whole && report.frames.shown > 0 {
            End::Played("played to the end")
        } else {
            End::Early(why)
        })
    }

    fn datagrams(&mut self, channel: ChannelId) -> Result<()> {
        for _ in 0..TURN {
            let Some(datagram) = self.connection.datagram(&mut self.host, channel) else { break };
            self.give(Input::Datagram(channel, &datagram))?;
        }
        Ok(())
    }

    fn give(&mut self, input: Input<'_>) -> Result<()> {
        let now = self.now();
        let packets = self.app.report_at(now).packets;
        self.app.handle(now, input, &mut Face { connection: &mut self.connection, host: &mut self.host });
        if self.app.report_at(now).packets > packets {
            self.media = Some((self.media.map_or(now, |(first, _)| first), now));
        }
        for chunk in self.connection.overheard() {
            self.answers.read(chunk);
        }
        while let Some(event) = self.app.poll_event() {
            self.viewer.event(&event);
            if let Some(file) = &mut self.events {
                // A full disk must not stop the play.
                let _ = file.write_all(format!("{}\n", told(&event, self.zero_ns)).as_bytes());
            }
        }
        if let Some(keeper) = &mut self.keeper {
            while let Some(unit) = self.app.take_unit() {
                let track = self.app.main_track().filter(|(number, _)| *number == unit.track);
                if let Some(codec) = track.and_then(|(_, track)| track.codec.as_ref()) {
                    keeper.take(&unit, codec)?;
                }
            }
        }
        Ok(())
    }

    /// 0 played, 1 ended early; an error where nothing could be played at all.
    fn status(&self, args: &PlayArgs, end: &End, report: &PlayerReport) -> Result<u8> {
        match (end, self.answers.refused) {
            (End::Early(why), Some(status)) if report.packets == 0 => {
                let error = EngineError::new(format!("play {}", args.url.url), why);
                Err(if status < 500 {
                    error.remedy("name a file that the server has and can send").code(3)
                } else {
                    error.remedy("try again later").code(4)
                })
            }
            (End::Early(_), _) => Ok(1),
            (End::Played(_), _) if report.frames.shown == 0 => Ok(1),
            (End::Played(_), _) => Ok(0),
        }
    }

    fn report(&self, args: &PlayArgs, end: &End, seen: &PlayerReport) -> Report {
        let throughput = self.media.filter(|(first, last)| last > first);
        Report {
            schema: "streamgauge.play/1",
            url: args.url.url.to_string(),
            player: match args.player {
                PlayerName::Quicktime => "quicktime",
                PlayerName::Vlc => "vlc",
            },
            transport: match args.transport {
                TransportName::Udp => "udp",
                TransportName::Tcp => "tcp",
            },
            reliable_udp: seen.reliable_udp,
            played: matches!(end, End::Played(_)),
            outcome: match end {
                End::Played(how) => (*how).to_owned(),
                End::Early(why) => format!("ended early ({why})"),
            },
            duration_s: self.now().as_secs_f64(),
            connect_s: self.connect_s,
            startup_delay_s: seen.startup.map(Duration::as_secs_f64),
            position_s: seen.position.as_secs_f64(),
            frames_shown: seen.frames.shown,
            frames_late: seen.frames.late,
            frames_incomplete: seen.frames.incomplete,
            stalls: seen.frames.stalls,
            stalled_s: seen.frames.stalled.as_secs_f64(),
            freezes: self.viewer.freezes,
            frozen_s: self.viewer.frozen.as_secs_f64(),
            packets_received: seen.packets,
            bytes_received: seen.bytes,
            packets_lost: seen.lost,
            packets_duplicated: seen.duplicates,
            packets_retransmitted: seen.retransmitted,
            jitter_s: seen.jitter.as_secs_f64(),
            throughput_bps: throughput
                .map(|(first, last)| seen.bytes as f64 * 8.0 / (last - first).as_secs_f64()),
            rtcp_packets_sent: self.connection.counts.rtcp_packets_sent,
        }
    }
}

/// Back to the beginning of a terminal's line, which is empty then.
const CLEAR: &str = "\r\x1b[K";

/// Writes to stderr. A reader who has gone does not stop the play.
fn show(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// A connection to the first of the target's addresses that takes one.
fn reach(target: &Target, signals: &SignalFd) -> Result<(Stream, SocketAddr)> {
    let mut why = EngineError::new("connect", "no address");
    for address in target.resolve()? {
        match connect(address, signals) {
            Ok(stream) => return Ok((stream, address)),
            Err(error) => why = error,
        }
    }
    Err(why.remedy("is a server there? streamgauge serve starts one").code(4))
}

fn connect(address: SocketAddr, signals: &SignalFd) -> Result<Stream> {
    let mut stream = Stream::connecting(address)?;
    let until = monotonic_ns() + CONNECT_WITHIN_NS;
    let failed = |why: &str| EngineError::new(format!("connect to {address}"), why);
    loop {
        match stream.news() {
            Some(News::Opened) => return Ok(stream),
            Some(_) => return Err(failed("refused or out of reach")),
            None => {}
        }
        let left_ms = (until - monotonic_ns()) / 1_000_000;
        let Some((fd, events)) = stream.interest().filter(|_| left_ms > 0) else {
            return Err(failed("no answer"));
        };
        let mut fds = [
            libc::pollfd { fd, events, revents: 0 },
            libc::pollfd { fd: signals.as_raw_fd(), events: libc::POLLIN, revents: 0 },
        ];
        // SAFETY: two valid entries. A failed call only makes the loop look again.
        unsafe { libc::poll(fds.as_mut_ptr(), 2, left_ms as i32) };
        if fds[1].revents != 0 {
            return Err(failed("interrupted"));
        }
    }
}
