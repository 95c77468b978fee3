//! Pid 1 of a sandbox.

use std::ffi::OsString;
use std::io;
use std::os::fd::RawFd;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::libc;
use nix::mount::{MsFlags, mount};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, killpg, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getpid, setpgid};

use super::{exec, exit_code};
use crate::error::{EngineError, Result};
use crate::sys::check;

/// How long CMD may take to end after a forwarded signal.
const GRACE: Duration = Duration::from_secs(5);

/// Arguments of `init`.
#[derive(clap::Args)]
pub struct InitArgs {
    /// The read end of the launcher's pipe; several may be given.
    #[arg(long = "lifeline", required = true)]
    pub lifelines: Vec<RawFd>,
    /// The command to run.
    #[arg(last = true, required = true)]
    pub command: Vec<OsString>,
}

/// Sets the sandbox up, runs the command, reaps, and returns the command's exit code; 137 if the lifeline closed.
pub fn init(args: &InitArgs) -> Result<u8> {
    if getpid().as_raw() != 1 {
        return Err(EngineError::new("run init", "it is not pid 1 of a pid namespace")
            .remedy("use `streamgauge-engine sandbox`, which makes one")
            .code(2));
    }
    for &lifeline in &args.lifelines {
        close_on_exec(lifeline)?;
    }
    mount_private_tree()?;
    bring_up_loopback()?;

    let mut signals = SigSet::empty();
    for signal in [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        signals.add(signal);
    }
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&signals), None)
        .map_err(|e| EngineError::io("block signals", &e.into()))?;
    let signal_fd = SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
        .map_err(|e| EngineError::io("make a signalfd", &e.into()))?;

    // SAFETY: pid 1 has one thread.
    let child = match unsafe { fork() }.map_err(|e| EngineError::io("fork", &e.into()))? {
        ForkResult::Child => {
            let _ = setpgid(Pid::from_raw(0), Pid::from_raw(0));
            let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None);
            let error = exec(&args.command);
            crate::lines::complain(&format!("streamgauge-engine init: {error}"));
            std::process::exit(error.code.into())
        }
        ForkResult::Parent { child } => child,
    };
    supervise(&args.lifelines, &signal_fd, child)
}

fn supervise(lifelines: &[RawFd], signal_fd: &SignalFd, child: Pid) -> Result<u8> {
    use std::os::fd::AsRawFd;
    let mut give_up: Option<Instant> = None;
    loop {
        let timeout = give_up.map_or(-1, |at| {
            at.saturating_duration_since(Instant::now()).as_millis().min(i32::MAX as u128) as i32
        });
        // A lifeline carries no data: only POLLHUP and POLLERR matter, and those always report.
        let mut fds = vec![libc::pollfd { fd: signal_fd.as_raw_fd(), events: libc::POLLIN, revents: 0 }];
        fds.extend(lifelines.iter().map(|&fd| libc::pollfd { fd, events: 0, revents: 0 }));
        // SAFETY: `fds` has the stated number of valid entries.
        match check(unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout) }) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(EngineError::io("wait", &e)),
            Ok(_) => {}
        }
        if fds[1..].iter().any(|fd| fd.revents != 0) {
            return Ok(128 + libc::SIGKILL as u8);
        }
        while let Ok(Some(info)) = signal_fd.read_signal() {
            match Signal::try_from(info.ssi_signo as i32) {
                Ok(Signal::SIGCHLD) | Err(_) => {}
                Ok(signal) => {
                    // The whole group, as a terminal would; the group is gone if CMD made itself another.
                    let _ = killpg(child, signal).or_else(|_| kill(child, signal));
                    give_up.get_or_insert(Instant::now() + GRACE);
                }
            }
        }
        if let Some(code) = reap(child) {
            return Ok(code);
        }
        if give_up.is_some_and(|at| Instant::now() >= at) {
            return Ok(128 + libc::SIGTERM as u8);
        }
    }
}

/// Collects every ended process; the exit code if `child` is among them.
fn reap(child: Pid) -> Option<u8> {
    let mut code = None;
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) | Err(_) => return code,
            Ok(status) if status.pid() == Some(child) => code = exit_code(status).or(code),
            Ok(_) => {}
        }
    }
}

fn close_on_exec(fd: RawFd) -> Result<()> {
    // SAFETY: plain integers; a bad descriptor is an error.
    check(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) }).map(drop).map_err(|e| {
        EngineError::io(format!("use descriptor {fd} as lifeline"), &e)
            .remedy("pass the read end of a pipe")
            .code(2)
    })
}

fn mount_private_tree() -> Result<()> {
    let failed = |what: &str, at: &str, e: nix::Error| {
        EngineError::io(format!("mount {what} on"), &e.into())
            .at(Path::new(at))
            .remedy("this container forbids mounts in a user namespace; run as root or outside it")
            .code(4)
    };
    let none = None::<&str>;
    // Private, not slave: nothing done inside may show outside, and the other way round nothing need.
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
        .map_err(|e| failed("private", "/", e))?;
    let plain = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("tmpfs"), "/run", Some("tmpfs"), plain, Some("mode=755"))
        .map_err(|e| failed("tmpfs", "/run", e))?;
    std::fs::create_dir_all("/run/netns")
        .map_err(|e| EngineError::io("make directory", &e).at(Path::new("/run/netns")))?;
    mount(Some("proc"), "/proc", Some("proc"), plain | MsFlags::MS_NOEXEC, none)
        .map_err(|e| failed("proc", "/proc", e))?;
    // A convenience for programs that look at /sys/class/net; containers often refuse it, and nothing of ours
    // reads it.
    let _ =
        mount(Some("sysfs"), "/sys", Some("sysfs"), plain | MsFlags::MS_NOEXEC | MsFlags::MS_RDONLY, none);
    Ok(())
}

/// Brings up `lo` of the network namespace that the caller is in.
pub fn bring_up_loopback() -> Result<()> {
    let failed = |e: &io::Error| EngineError::io("bring up interface lo", e);
    let fd = crate::sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0).map_err(|e| failed(&e))?;
    use std::os::fd::AsRawFd;
    // SAFETY: `ifreq` is plain C data; zero is a value, and the name is shorter than its field.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        check(libc::ioctl(fd.as_raw_fd(), libc::SIOCGIFFLAGS, &mut request)).map_err(|e| failed(&e))?;
        request.ifr_ifru.ifru_flags |= libc::IFF_UP as i16;
        check(libc::ioctl(fd.as_raw_fd(), libc::SIOCSIFFLAGS, &request)).map_err(|e| failed(&e))?;
    }
    Ok(())
}
