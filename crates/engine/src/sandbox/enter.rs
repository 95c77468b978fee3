//! A command of the caller's own, with all of the caller's files, in a sandbox's network.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::{BorrowedFd, FromRawFd, RawFd};
use std::path::Path;

use nix::libc;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, signal, sigprocmask};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork};

use super::netns::raise_ambient;
use super::{exec, exit_code};
use crate::error::{EngineError, Result};
use crate::sys;

/// Arguments of `enter`. Descriptors are those that `netns` sends.
#[derive(clap::Args)]
pub struct EnterArgs {
    /// The launcher's pid.
    #[arg(long)]
    parent: i32,
    /// The sandbox's user namespace, if it has one.
    #[arg(long)]
    sandbox_user: Option<RawFd>,
    /// The pid namespace, with which the command ends; the caller's own if left out.
    #[arg(long, required_unless_present = "trusted")]
    pid: Option<RawFd>,
    /// The user namespace that owns the network namespace, if there is one.
    #[arg(long)]
    user: Option<RawFd>,
    /// The network namespace; the caller's own if left out.
    #[arg(long)]
    net: Option<RawFd>,
    /// A tool of ours: it keeps the sandbox's rights, the caller's view of files, and every descriptor.
    #[arg(long, conflicts_with_all = ["user", "show"])]
    trusted: bool,
    /// A file, and the file that the command shall find in its place.
    #[arg(long, num_args = 2, value_names = ["SHOWN", "AT"])]
    show: Vec<OsString>,
    /// The command's process id is written here, as a line.
    #[arg(long)]
    tell: Option<RawFd>,
    /// The command to run.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// CAP_NET_ADMIN, CAP_NET_RAW and CAP_SYS_ADMIN: over the command's own namespaces and nothing else. They let it ping,
/// take captures, and put another link inside this one.
const KEPT: [u32; 3] = [12, 13, 21];

/// Signals that a terminal sends to the whole group: the command's business, not that of its parent.
const FROM_TERMINAL: [Signal; 5] =
    [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTSTP, Signal::SIGTTIN, Signal::SIGTTOU];

/// Runs the command with the caller's files, terminal, session and user id; returns its exit code.
pub fn enter(args: &EnterArgs) -> Result<u8> {
    if let Some(user) = args.sandbox_user {
        join(user, CloneFlags::CLONE_NEWUSER)?;
    }
    if let Some(pid) = args.pid {
        join(pid, CloneFlags::CLONE_NEWPID)?;
    }
    if !args.trusted {
        show_files(args)?;
    }
    // After the last change of credentials here, which would have cleared it.
    sys::die_with_parent(args.parent)?;
    // The terminal's signals while there are two of us are the command's alone.
    let mut held = SigSet::empty();
    FROM_TERMINAL.iter().for_each(|&one| held.add(one));
    let mut before = SigSet::empty();
    let swap = |how, new: &SigSet, old: Option<&mut SigSet>| {
        sigprocmask(how, Some(new), old).map_err(|e| EngineError::io("hold signals", &e.into()))
    };
    swap(SigmaskHow::SIG_BLOCK, &held, Some(&mut before))?;
    // SAFETY: this process has one thread.
    match unsafe { fork() }.map_err(|e| EngineError::io("fork", &e.into()))? {
        ForkResult::Child => {
            swap(SigmaskHow::SIG_SETMASK, &before, None)?;
            let error = become_command(args);
            crate::lines::complain(&format!("streamgauge: {error}"));
            std::process::exit(error.code.into())
        }
        ForkResult::Parent { child } => wait(args, child),
    }
}

/// Makes a view of the caller's files in which some are ours.
fn show_files(args: &EnterArgs) -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNS).map_err(|e| EngineError::io("make a mount namespace", &e.into()))?;
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_SLAVE, None::<&str>)
        .map_err(|e| EngineError::io("keep mounts to ourselves", &e.into()))?;
    for pair in args.show.chunks(2) {
        let (shown, at) = (Path::new(&pair[0]), Path::new(&pair[1]));
        mount(Some(shown), at, None::<&str>, MsFlags::MS_BIND, None::<&str>)
            .map_err(|e| EngineError::io("show a file of ours in place of", &e.into()).at(at))?;
    }
    Ok(())
}

fn become_command(args: &EnterArgs) -> EngineError {
    let enter_network = || args.net.map_or(Ok(()), |net| join(net, CloneFlags::CLONE_NEWNET));
    let prepare = || -> Result<()> {
        if args.trusted {
            return enter_network();
        }
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        // Process ids are the sandbox's, and /proc has to agree with getpid().
        mount(Some("proc"), "/proc", Some("proc"), flags, None::<&str>)
            .map_err(|e| EngineError::io("mount", &e.into()).at(Path::new("/proc")))?;
        if let Some(user) = args.user {
            join(user, CloneFlags::CLONE_NEWUSER)?;
        }
        enter_network()?;
        if args.user.is_some() {
            raise_ambient(&KEPT)?;
        }
        super::run_as::keep_three_streams()
    };
    match prepare() {
        Ok(()) => exec(&args.command),
        Err(error) => error,
    }
}

fn join(namespace: RawFd, kind: CloneFlags) -> Result<()> {
    // SAFETY: the launcher passes open descriptors; a bad one is an error of setns.
    let fd = unsafe { BorrowedFd::borrow_raw(namespace) };
    setns(fd, kind).map_err(|e| EngineError::io(format!("enter namespace {namespace} ({kind:?})"), &e.into()))
}

fn wait(args: &EnterArgs, child: Pid) -> Result<u8> {
    for one in FROM_TERMINAL {
        // SAFETY: ignoring a signal runs no code of ours.
        let _ = unsafe { signal(one, SigHandler::SigIgn) };
    }
    if let Some(tell) = args.tell {
        // SAFETY: the launcher passes it for us alone.
        let mut pipe = unsafe { File::from_raw_fd(tell) };
        let _ = writeln!(pipe, "{child}");
    }
    // Other open descriptors belong to the launcher's pipes: held here, they would not close. SAFETY: plain
    // integers; nothing of ours uses a descriptor past the standard ones from here on.
    unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, 0) };
    loop {
        match waitpid(child, None).map(exit_code) {
            Ok(Some(code)) => return Ok(code),
            Ok(None) | Err(nix::Error::EINTR) => {}
            Err(e) => return Err(EngineError::io("wait for the command", &e.into())),
        }
    }
}
