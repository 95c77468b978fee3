//! A real server: the machine that sim runs, one for each connection, over the files of a folder.

mod client;
mod library;
mod patience;
mod server;
pub mod tell;

use std::net::SocketAddr;
use std::path::PathBuf;

use streamgauge_base::Duration;
use streamgauge_systems::{server_of, standalone_servers};

use crate::error::{EngineError, Result};
use crate::net::ports::PortRange;
use crate::settings::{seconds, with_overrides};
use crate::sys::raise_descriptors;

/// UDP ports as Apple's server has them, and room for a thousand sessions with sound.
const UDP_PORTS: PortRange = PortRange::new(6970, 14_999);

/// Descriptors that are no session's: our own, and those of clients that are turned away.
const OWN_DESCRIPTORS: u64 = 24 + server::TURNED_AWAY as u64;

/// Descriptors of a session with picture and sound over UDP: the connection and two pairs.
const SESSION_DESCRIPTORS: u64 = 5;

/// Content and options of a server.
#[derive(clap::Args)]
pub struct ServeArgs {
    /// Which server it behaves as.
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(standalone_servers().map(|(name, _)| name)))]
    system: String,
    /// One file, or the folder with .mp4, .m4v and .mov files, or .rm, or .wmv. URLs are paths beneath it.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Where clients are taken; port 0 lets the kernel choose. Default: 0.0.0.0 and, as root, the protocol's port.
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<SocketAddr>,
    /// The set of constants, where a system has several: of the real server, of a paper, or fitted.
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    /// One constant, by its field's name; times take a unit (250 ms). Repeatable.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// Clients at once; further ones get status 503.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    max_sessions: u32,
    /// Clients at once of one address; further ones get 503.
    #[arg(long, value_name = "N", default_value_t = 250, value_parser = clap::value_parser!(u32).range(1..))]
    max_per_address: u32,
    /// Seconds for a whole request, from the connection or from its first byte.
    #[arg(long, value_name = "S", default_value = "30", value_parser = seconds)]
    request_within: Duration,
    /// Idle timeout of a client, in seconds. Default: the preset's.
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

/// Serves until it is stopped.
pub fn run(args: &ServeArgs) -> Result<()> {
    let wrong = |what: String, why: String| EngineError::new(what, why).code(3);
    let server = server_of(&args.system).ok_or_else(|| {
        wrong("read --system".into(), format!("{:?} has no server of its own", args.system))
    })?;
    let name = args.preset.as_deref().or(server.facts.presets.first().copied()).unwrap_or_default();
    if args.preset.is_some() && !server.facts.presets.contains(&name) {
        let why = match server.facts.presets {
            [] => format!("{} has one set of constants; leave it out", args.system),
            presets => format!("{} has {}", args.system, presets.join(", ")),
        };
        return Err(wrong(format!("read --preset {name}"), why));
    }
    let preset = server.preset(name).unwrap_or_default();
    let settings = with_overrides(preset, &args.settings, |settings| server.read(settings))?;
    let clients = server.open(settings, args.timeout).map_err(|(field, why)| match field {
        Some(field) => wrong(format!("read --set {field}"), why),
        None => wrong("read --timeout".into(), why),
    })?;
    let sessions = u64::from(args.max_sessions).min(room_for_sessions(args.max_sessions));
    server::Server::open(args, server.facts, clients, sessions as usize)?.run()
}

fn listen_address(args: &ServeArgs, ports: [u16; 2]) -> SocketAddr {
    let port = if nix::unistd::geteuid().is_root() { ports[0] } else { ports[1] };
    args.listen.unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], port)))
}

/// Returns the number of sessions for which this process may have descriptors, having asked for enough.
fn room_for_sessions(wanted: u32) -> u64 {
    let needed = OWN_DESCRIPTORS + SESSION_DESCRIPTORS * u64::from(wanted);
    let Some(limit) = raise_descriptors(needed) else { return u64::from(wanted) };
    (limit.saturating_sub(OWN_DESCRIPTORS) / SESSION_DESCRIPTORS).max(1)
}
