//! A world of its own for each side of each flow: a view of files, processes, IPC and a network.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, sigprocmask};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, pipe, read, write};
use serde::Deserialize;
use serde_json::json;

use super::init::bring_up_loopback;
use super::netns::bind;
use super::view::{self, Shown};
use crate::error::{EngineError, Result};
use crate::lines::say;
use crate::sys;

/// The configuration file; see PROTOCOL.md.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    sides: Vec<Side>,
    /// Settings of each network that is made, by path below /proc/sys.
    sysctls: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Side {
    name: String,
    /// Whether it has a network namespace of its own, called after it.
    network: bool,
    /// Where the file system with all that the side writes is mounted in the sandbox.
    room: PathBuf,
    /// How much that may be.
    bytes: u64,
    /// The user that owns it; its maker if none is named.
    owner: Option<u32>,
    /// Folders to write to: the sandbox sees them too.
    writable: Vec<PathBuf>,
    /// Folders of the trial to read.
    readable: Vec<PathBuf>,
    /// Files and folders of the machine to read, which others use too.
    outside: Vec<PathBuf>,
}

/// Folders of the machine that all users may write to: each side has its own.
const COMMON: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
/// A folder of the side's file system in which nothing lies.
const EMPTY: &str = "empty";
/// Files on a side's file system at most.
const MOST_FILES: u32 = 200_000;
/// Message queues, of 16 kB each.
const MOST_QUEUES: &str = "64";

/// Makes the sides, prints the process ids of their first processes, and holds them until stdin closes.
pub fn sides(config: &Config) -> Result<()> {
    let own = File::open("/proc/self/ns/pid").map_err(|e| EngineError::io("open a namespace", &e))?;
    let mut made = Vec::with_capacity(config.sides.len());
    for side in &config.sides {
        furnish(side)?;
        made.push(First::start(side, &config.sysctls, &own)?);
    }
    let mut pids = BTreeMap::new();
    for (side, first) in config.sides.iter().zip(&made) {
        first.wait_until_ready(&side.name)?;
        if side.network {
            bind(&side.name, &first.pid.to_string())?;
        }
        pids.insert(&side.name, first.pid.as_raw());
    }
    say(&json!({"event": "ready", "sides": pids}));
    let mut rest = Vec::new();
    // Ends with stdin. The kernel ends the first processes with this one, and each ends all of its side's.
    std::io::stdin().read_to_end(&mut rest).map_err(|e| EngineError::io("wait for the end", &e))?;
    Ok(())
}

/// Returns where the folder that is written to in place of the nth of `COMMON` lies.
fn common_room(side: &Side, nth: usize) -> PathBuf {
    side.room.join(format!("common{nth}"))
}

/// Makes the side's file system, with its folders, as the sandbox sees them.
fn furnish(side: &Side) -> Result<()> {
    let failed = |what: &'static str, at: &Path| {
        let at = at.to_owned();
        move |e: std::io::Error| EngineError::io(what, &e).at(&at)
    };
    let make = |folder: &Path| std::fs::create_dir_all(folder).map_err(failed("make a folder", folder));
    make(&side.room)?;
    let options = format!("mode=755,size={},nr_inodes={MOST_FILES}", side.bytes);
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("tmpfs"), &side.room, Some("tmpfs"), flags, Some(options.as_str()))
        .map_err(|e| failed("mount a tmpfs on", &side.room)(e.into()))?;
    make(&side.room.join(EMPTY))?;
    for nth in 0..COMMON.len() {
        let room = common_room(side, nth);
        make(&room)?;
        std::fs::set_permissions(&room, std::fs::Permissions::from_mode(0o1777))
            .map_err(failed("open to all", &room))?;
    }
    for (nth, folder) in side.writable.iter().enumerate() {
        let room = side.room.join(nth.to_string());
        make(&room)?;
        make(folder)?;
        chown(&room, side.owner, side.owner).map_err(failed("give away", &room))?;
        mount(Some(&room), folder, None::<&str>, MsFlags::MS_BIND, None::<&str>)
            .map_err(|e| failed("bind", folder)(e.into()))?;
    }
    Ok(())
}

/// Pid 1 of a side, as seen by its parent.
struct First {
    pid: Pid,
    ready: OwnedFd,
}

impl First {
    fn start(side: &Side, sysctls: &BTreeMap<String, String>, own: &File) -> Result<Self> {
        let failed = |e: nix::Error| EngineError::io("make namespaces", &e.into()).code(4);
        let (ready, tell) = pipe().map_err(failed)?;
        unshare(CloneFlags::CLONE_NEWPID).map_err(failed)?;
        // SAFETY: this process has one thread.
        match unsafe { fork() }.map_err(failed)? {
            ForkResult::Child => {
                drop(ready);
                if let Err(error) = live(side, sysctls, &tell) {
                    crate::lines::complain(&format!("streamgauge-engine sides: {}: {error}", side.name));
                }
                std::process::exit(1)
            }
            ForkResult::Parent { child } => {
                // The next one's namespace is to be beside this one's, not inside it.
                setns(own, CloneFlags::CLONE_NEWPID).map_err(failed)?;
                Ok(First { pid: child, ready })
            }
        }
    }

    fn wait_until_ready(&self, name: &str) -> Result<()> {
        let mut word = [0u8];
        match read(self.ready.as_fd(), &mut word) {
            Ok(1) => Ok(()),
            _ => Err(EngineError::new(format!("make the side {name}"), "the kernel refused").code(4)),
        }
    }
}

/// Bounds System V's shared memory and queues, which are no files and no process's. Kernels before 6.2 let
/// root alone set it.
fn bound_ipc(bytes: u64) {
    let pages = (bytes / 4096).to_string();
    for (name, value) in [("shmall", pages.as_str()), ("msgmni", MOST_QUEUES)] {
        let _ = std::fs::write(Path::new("/proc/sys/kernel").join(name), value);
    }
}

/// Runs pid 1: it makes the namespaces, then reaps the remains of others, and ends them on SIGTERM.
fn live(side: &Side, sysctls: &BTreeMap<String, String>, tell: &OwnedFd) -> Result<()> {
    sys::die_with_parent(0)?;
    let mut signals = SigSet::from(Signal::SIGCHLD);
    signals.add(Signal::SIGTERM);
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&signals), None)
        .map_err(|e| EngineError::io("block signals", &e.into()))?;
    let mut kinds = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWUTS;
    if side.network {
        kinds |= CloneFlags::CLONE_NEWNET;
    }
    unshare(kinds).map_err(|e| EngineError::io("make namespaces", &e.into()).code(4))?;
    bound_ipc(side.bytes);
    if side.network {
        bring_up_loopback()?;
        for (name, value) in sysctls {
            let file = Path::new("/proc/sys").join(name);
            // IPv6 may be compiled out.
            if file.exists() || !name.starts_with("net/ipv6/") {
                std::fs::write(&file, value).map_err(|e| EngineError::io("set", &e).at(&file))?;
            }
        }
    }
    let common: Vec<_> =
        COMMON.iter().enumerate().map(|(nth, at)| (PathBuf::from(at), common_room(side, nth))).collect();
    let show = |path: &PathBuf, writable, of_machine| Shown {
        source: path.clone(),
        at: path.clone(),
        writable,
        of_machine,
    };
    let shown: Vec<Shown> = (side.outside.iter().map(|path| show(path, false, true)))
        .chain(side.readable.iter().map(|path| show(path, false, false)))
        .chain(side.writable.iter().map(|path| show(path, true, false)))
        .collect();
    view::make(&common, &shown, &side.room.join(EMPTY))?;
    let _ = std::env::set_current_dir("/");
    let _ = write(tell, &[1]);
    loop {
        while matches!(waitpid(None, Some(WaitPidFlag::WNOHANG)), Ok(status) if status != WaitStatus::StillAlive)
        {
        }
        if signals.wait() == Ok(Signal::SIGTERM) {
            // All of this namespace except its first process, which still has its network to be read.
            let _ = kill(Pid::from_raw(-1), Signal::SIGKILL);
        }
    }
}
