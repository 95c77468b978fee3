//! A real RTSP server: the Darwin machine that sim runs, one for each connection, over the files of a folder.

mod library;
mod server;
mod session;
mod tell;
mod turn_away;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::ValueEnum;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use streamgauge_base::Duration;
use streamgauge_systems::darwin::{Preset, ServerSettings};

use crate::error::{EngineError, Result};
use crate::net::ports::PortRange;
use crate::settings::{seconds, with_overrides};

/// RTSP's port (RFC 2326 section 3.2), and the customary one for who may not use it.
const PORTS: [u16; 2] = [554, 8554];

/// UDP ports as Darwin has them, and room for a thousand sessions with sound.
const UDP_PORTS: PortRange = PortRange::new(6970, 14_999);

/// Descriptors that are no session's: our own, and those of clients that are turned away.
const OWN_DESCRIPTORS: u64 = 24 + server::TURNED_AWAY as u64;

/// Descriptors of a session with picture and sound over UDP: the connection and two pairs.
const SESSION_DESCRIPTORS: u64 = 5;

/// What is served and how.
#[derive(clap::Args)]
pub struct ServeArgs {
    /// Which server it behaves as.
    #[arg(long, value_enum)]
    system: System,
    /// The folder with .mp4, .m4v and .mov files; URLs are paths beneath it.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Where RTSP is taken; port 0 lets the kernel choose. Default: 0.0.0.0, port 554 as root, else 8554.
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<SocketAddr>,
    /// The constants: what De Cicco et al. state of Darwin, what its public source does, or what fits their
    /// tables.
    #[arg(long, value_enum, default_value = "source")]
    preset: PresetName,
    /// One constant, by its field's name; times take a unit (250 ms). Repeatable.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// Clients at once; who comes then is told 503.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    max_sessions: u32,
    /// Clients at once of one address. Default: no limit but --max-sessions.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_per_address: Option<u32>,
    /// A client that is silent so long has vanished, s. Default: 120 with a session, as the preset has it.
    #[arg(long, value_name = "S", value_parser = seconds)]
    timeout: Option<Duration>,
    /// Ports of RTP and RTCP, a pair for each track.
    #[arg(long, value_name = "FIRST-LAST", default_value_t = UDP_PORTS)]
    udp_ports: PortRange,
    /// Most MiB of files in memory.
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    cache: u64,
    /// Also write the machines' events (windows, cuts, retransmissions) as JSON lines; "-" is stdout.
    #[arg(long, value_name = "FILE|-")]
    log: Option<PathBuf>,
    /// One JSON object a line on stdout.
    #[arg(long)]
    json: bool,
}

/// Systems that can serve.
#[derive(Clone, Copy, ValueEnum)]
enum System {
    Darwin,
}

#[derive(Clone, Copy, ValueEnum)]
enum PresetName {
    Paper,
    Source,
    Fitted,
}

/// Serves until it is told to stop.
pub fn run(args: &ServeArgs) -> Result<()> {
    let System::Darwin = args.system;
    let preset = match args.preset {
        PresetName::Paper => Preset::Paper,
        PresetName::Source => Preset::Source,
        PresetName::Fitted => Preset::Fitted,
    };
    let mut settings = with_overrides(&ServerSettings::of(preset), &args.settings)?;
    settings.check().map_err(|(name, why)| EngineError::new(format!("read --set {name}"), why).code(3))?;
    if let Some(timeout) = args.timeout {
        (settings.rtp_timeout, settings.rtsp_timeout) = (timeout, timeout);
        settings.check().map_err(|(_, why)| EngineError::new("read --timeout", why).code(3))?;
    }
    let sessions = u64::from(args.max_sessions).min(room_for_sessions(args.max_sessions));
    server::Server::open(args, settings, sessions as usize)?.run()
}

fn listen_address(args: &ServeArgs) -> SocketAddr {
    let port = if nix::unistd::geteuid().is_root() { PORTS[0] } else { PORTS[1] };
    args.listen.unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], port)))
}

/// As many sessions as this process may have descriptors for, having asked for enough.
fn room_for_sessions(wanted: u32) -> u64 {
    let needed = OWN_DESCRIPTORS + SESSION_DESCRIPTORS * u64::from(wanted);
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return u64::from(wanted) };
    if soft < needed {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, needed.min(hard), hard);
    }
    let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(soft, |(soft, _)| soft);
    (limit.saturating_sub(OWN_DESCRIPTORS) / SESSION_DESCRIPTORS).max(1)
}
