//! The process between the launcher and pid 1: makes the namespaces and passes on signals and the exit code.

use std::ffi::OsString;
use std::os::fd::{IntoRawFd, RawFd};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, sigprocmask};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getegid, geteuid};

use super::{InitArgs, exit_code, init};
use crate::error::{EngineError, Result};
use crate::sys;

/// Arguments of `sandbox`.
#[derive(clap::Args)]
pub struct SandboxArgs {
    /// With the caller's privileges, or with those of a user namespace of its own.
    #[arg(long, value_enum)]
    way: Way,
    /// The launcher's pid.
    #[arg(long)]
    parent: i32,
    /// The read end of a pipe; only the launcher holds its write end.
    #[arg(long)]
    lifeline: RawFd,
    /// The command to run inside.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// The user with the sandbox's privileges.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Way {
    /// The caller is root.
    Root,
    /// An ordinary user, root inside a user namespace.
    User,
}

/// Runs `args.command` under pid 1 of fresh namespaces and returns its exit code.
pub fn sandbox(args: &SandboxArgs) -> Result<u8> {
    sys::die_with_parent(args.parent)?;
    // Blocked before there is a child, so that no signal falls between fork and the wait below.
    let mut forwarded = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGCHLD] {
        forwarded.add(signal);
    }
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&forwarded), None)
        .map_err(|e| EngineError::io("block signals", &e.into()))?;
    enter_namespaces(args.way)?;
    // A lifeline of our own: in a new pid namespace getppid() reads 0, and pid 1 could not otherwise detect
    // that this process died before PDEATHSIG took hold.
    let (own_read, own_write) =
        nix::unistd::pipe2(OFlag::O_CLOEXEC).map_err(|e| EngineError::io("make a pipe", &e.into()))?;
    // SAFETY: this process has one thread.
    match unsafe { fork() }.map_err(|e| EngineError::io("fork pid 1 of the sandbox", &e.into()))? {
        ForkResult::Child => {
            drop(own_write);
            let lifelines = vec![args.lifeline, own_read.into_raw_fd()];
            let args = InitArgs { lifelines, command: args.command.clone() };
            let code = match sys::die_with_parent(0).and_then(|()| init(&args)) {
                Ok(code) => code,
                Err(error) => {
                    crate::lines::complain(&format!("streamgauge-engine init: {error}"));
                    error.code
                }
            };
            std::process::exit(code.into())
        }
        ForkResult::Parent { child } => {
            // Held until pid 1 has ended.
            let _own_write = own_write;
            wait_for(child, &forwarded)
        }
    }
}

fn wait_for(init: Pid, signals: &SigSet) -> Result<u8> {
    loop {
        if let Some(code) = waitpid(init, Some(WaitPidFlag::WNOHANG)).ok().and_then(exit_code) {
            return Ok(code);
        }
        match signals.wait() {
            Ok(Signal::SIGCHLD) | Err(Errno::EINTR) => {}
            Ok(signal) => {
                let _ = kill(init, signal);
            }
            Err(e) => return Err(EngineError::io("wait for signals", &e.into())),
        }
    }
}

fn enter_namespaces(way: Way) -> Result<()> {
    let (uid, gid) = (geteuid(), getegid());
    let inner = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNET;
    match way {
        Way::Root => unshare(inner).map_err(|e| {
            EngineError::io("make namespaces", &e.into())
                .remedy("run as root, or use the ordinary user's way")
                .code(4)
        }),
        Way::User => {
            unshare(inner | CloneFlags::CLONE_NEWUSER).map_err(|e| {
                EngineError::io("make a user namespace", &e.into()).remedy(user_namespace_remedy()).code(4)
            })?;
            map_ids(0, uid.as_raw(), 0, gid.as_raw())
        }
    }
}

/// Writes this process's id maps: one uid and one gid, with setgroups off as the kernel demands.
pub fn map_ids(inside_uid: u32, outside_uid: u32, inside_gid: u32, outside_gid: u32) -> Result<()> {
    let write = |file: &str, text: String| {
        let path = Path::new("/proc/self").join(file);
        std::fs::write(&path, text).map_err(|e| {
            EngineError::io("map user ids", &e).at(&path).remedy(user_namespace_remedy()).code(4)
        })
    };
    write("setgroups", "deny".into())?;
    write("uid_map", format!("{inside_uid} {outside_uid} 1"))?;
    write("gid_map", format!("{inside_gid} {outside_gid} 1"))
}

/// Returns which of the kernel's switches forbids user namespaces here.
fn user_namespace_remedy() -> String {
    let is = |path: &str, value: &str| std::fs::read_to_string(path).is_ok_and(|text| text.trim() == value);
    if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        "as root: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0".into()
    } else if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        "as root: sysctl -w kernel.unprivileged_userns_clone=1".into()
    } else if is("/proc/sys/user/max_user_namespaces", "0") {
        "as root: sysctl -w user.max_user_namespaces=10000".into()
    } else {
        "this system refuses user namespaces (a container's seccomp profile may); run as root".into()
    }
}
