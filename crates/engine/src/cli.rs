//! The command line.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use serde::de::DeserializeOwned;

use crate::error::{EngineError, Result};
use crate::{bpf_cc, gauge, link, node, play, preflight, proxy, sandbox, serve, witness};

/// StreamGauge's helper on Linux: link emulator, real-socket machines, sandbox. See PROTOCOL.md.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs a command in namespaces of its own that vanish with the launcher.
    Sandbox(sandbox::SandboxArgs),
    /// Pid 1 of a sandbox; `sandbox` starts it.
    Init(sandbox::InitArgs),
    /// Runs a command in a network namespace without privileges.
    RunAs(sandbox::RunAsArgs),
    /// Makes the worlds of the flows' sides in a sandbox and holds them.
    Sides(ConfigArgs),
    /// Makes network namespaces in a sandbox and hands them to the launcher.
    Netns(sandbox::NetnsArgs),
    /// Runs the caller's own command in a sandbox's network.
    Enter(sandbox::EnterArgs),
    /// The link emulator.
    Link(ConfigArgs),
    /// Measures the link from its two ends.
    Preflight(ConfigArgs),
    /// Offers a load at one end and stamps it at the other.
    Gauge(ConfigArgs),
    /// One end of one of our systems or traffic sources on real sockets.
    Node(ConfigArgs),
    /// Counts a flow's packets at an end, independently of the link.
    Witness(ConfigArgs),
    /// Plays an RTSP URL without a window and reports the received media.
    Play(play::PlayArgs),
    /// Serves the files of a folder by RTSP until it is stopped.
    Serve(serve::ServeArgs),
    /// Answers players of HTTP with data from another server until it is stopped.
    Proxy(proxy::ProxyArgs),
    /// Loads a congestion control into the kernel, until stdin closes or this process ends.
    BpfCc(bpf_cc::BpfCcArgs),
}

/// Where the configuration is.
#[derive(clap::Args)]
struct ConfigArgs {
    /// A JSON file; see PROTOCOL.md.
    #[arg(long)]
    config: PathBuf,
}

impl ConfigArgs {
    fn read<T: DeserializeOwned>(&self) -> Result<T> {
        read_json(&self.config)
    }
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text =
        std::fs::read(path).map_err(|e| EngineError::io("read the configuration", &e).at(path).code(2))?;
    serde_json::from_slice(&text).map_err(|e| EngineError::config(path, e).remedy("see PROTOCOL.md"))
}

/// Runs the subcommand and turns its outcome into an exit code.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let (name, outcome) = match cli.command {
        Command::Sandbox(args) => ("sandbox", sandbox::sandbox(&args)),
        Command::Init(args) => ("init", sandbox::init(&args)),
        Command::RunAs(args) => ("run-as", sandbox::run_as(&args)),
        Command::Sides(args) => ("sides", done(args.read().and_then(|config| sandbox::sides(&config)))),
        Command::Netns(args) => ("netns", sandbox::netns(&args)),
        Command::Enter(args) => ("enter", sandbox::enter(&args)),
        Command::Link(args) => ("link", done(args.read().and_then(link::run))),
        Command::Preflight(args) => ("preflight", done(args.read().and_then(preflight::run))),
        Command::Gauge(args) => ("gauge", done(args.read().and_then(gauge::run))),
        Command::Node(args) => ("node", done(args.read().and_then(node::run))),
        Command::Witness(args) => ("witness", done(args.read().and_then(witness::run))),
        Command::Play(args) => ("play", play::run(&args)),
        Command::Serve(args) => ("serve", done(serve::run(&args))),
        Command::Proxy(args) => ("proxy", done(proxy::run(&args))),
        Command::BpfCc(args) => ("bpf-cc", done(bpf_cc::run(&args))),
    };
    match outcome.and_then(|code| crate::lines::check_output().map(|()| code)) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            if called_by_the_public_name() {
                crate::lines::say_wrong(&format!("streamgauge: {error}"));
            } else {
                crate::lines::complain(&format!("streamgauge-engine {name}: {error}"));
            }
            if matches!(name, "bpf-cc" | "gauge" | "link" | "node" | "preflight" | "sides" | "witness") {
                crate::lines::say_error(&error);
            }
            ExitCode::from(error.code)
        }
    }
}

/// Returns whether this program runs as `streamgauge serve`, `play` or `proxy`, with their exit codes.
fn called_by_the_public_name() -> bool {
    std::env::args().next().is_some_and(|name| name.starts_with("streamgauge ") || name == "streamgauge")
}

/// Prints help, or the fault in the arguments.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() || !called_by_the_public_name() {
        let written = error.print();
        let lost = written.is_err_and(|e| e.kind() != std::io::ErrorKind::BrokenPipe);
        return ExitCode::from(if lost && !error.use_stderr() { 4 } else { error.exit_code() as u8 });
    }
    // The fault, and the missing arguments on lines of their own; usage and hints follow a blank line.
    let text = error.to_string();
    let wrong: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    crate::lines::say_wrong(&format!("streamgauge: {}", wrong.join(" ").trim_start_matches("error: ")));
    ExitCode::from(3)
}

fn done(outcome: Result<()>) -> Result<u8> {
    outcome.map(|()| 0)
}
