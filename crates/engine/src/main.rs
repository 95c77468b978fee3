//! `streamgauge-engine`: the link emulator, our machines on real sockets, and pid 1 of a sandbox.
//!
//! Its callers rely on `PROTOCOL.md` beside this crate's `Cargo.toml`, and on nothing else.

#[cfg(target_os = "linux")]
mod bpf_cc;
#[cfg(target_os = "linux")]
mod cli;
#[cfg(target_os = "linux")]
mod error;
#[cfg(target_os = "linux")]
mod gauge;
#[cfg(target_os = "linux")]
mod lines;
#[cfg(target_os = "linux")]
mod link;
#[cfg(target_os = "linux")]
mod net;
#[cfg(target_os = "linux")]
mod node;
#[cfg(target_os = "linux")]
mod packet;
#[cfg(target_os = "linux")]
mod play;
#[cfg(target_os = "linux")]
mod preflight;
#[cfg(target_os = "linux")]
mod proxy;
#[cfg(target_os = "linux")]
mod reactor;
#[cfg(target_os = "linux")]
mod sandbox;
#[cfg(target_os = "linux")]
mod serve;
#[cfg(target_os = "linux")]
mod settings;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(target_os = "linux")]
mod witness;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    cli::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> std::process::ExitCode {
    eprintln!(
        "streamgauge-engine: this system has no packet sockets and network namespaces; \
         emulation needs Linux, simulation (--mode sim) runs here"
    );
    std::process::ExitCode::from(4)
}
