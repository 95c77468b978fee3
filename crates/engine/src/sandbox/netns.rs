//! Network namespaces inside a sandbox, handed over to its launcher.

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::path::Path;

use nix::libc;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, getegid, geteuid, pipe, read, write};

use super::init::bring_up_loopback;
use super::unshare::map_ids;
use crate::error::{EngineError, Result};
use crate::sys::check;

/// Arguments of `netns`.
#[derive(clap::Args)]
pub struct NetnsArgs {
    /// A Unix socket that the launcher reads.
    #[arg(long)]
    socket: RawFd,
    /// Each new namespace belongs to a user namespace of its own. This user is its name for the sandbox's root.
    #[arg(long, requires = "gid")]
    uid: Option<u32>,
    /// As this group.
    #[arg(long, requires = "uid")]
    gid: Option<u32>,
    /// Their names in /run/netns.
    names: Vec<String>,
}

/// Makes the namespaces and sends their descriptors: first the sandbox's own under the name "sandbox", then each new
/// one's; a message is the name, with the user, network and pid namespace in that order.
pub fn netns(args: &NetnsArgs) -> Result<u8> {
    // SAFETY: the caller promises an open socket; a bad descriptor is an error of sendmsg.
    let socket = unsafe { BorrowedFd::borrow_raw(args.socket) };
    send(socket, "sandbox", "self")?;
    for name in &args.names {
        let holder = Holder::start(args.uid.zip(args.gid))?;
        let of = holder.pid.to_string();
        bind(name, &of)?;
        send(socket, name, &of)?;
    }
    Ok(0)
}

/// A child that lives in a new namespace until it is bound to a name.
struct Holder {
    pid: Pid,
}

impl Holder {
    fn start(ids: Option<(u32, u32)>) -> Result<Self> {
        let failed = |e: nix::Error| EngineError::io("make a network namespace", &e.into());
        let (done, tell) = pipe().map_err(failed)?;
        // SAFETY: this process has one thread.
        match unsafe { fork() }.map_err(failed)? {
            ForkResult::Child => {
                drop(done);
                let made = inside(ids);
                if let Err(error) = &made {
                    crate::lines::complain(&format!("streamgauge-engine netns: {error}"));
                }
                let _ = write(&tell, &[u8::from(made.is_ok())]);
                loop {
                    nix::unistd::pause();
                }
            }
            ForkResult::Parent { child } => {
                drop(tell);
                let holder = Holder { pid: child };
                let mut word = [0u8];
                match read(done.as_fd(), &mut word) {
                    Ok(1) if word[0] == 1 => Ok(holder),
                    _ => Err(EngineError::new("make a network namespace", "the kernel refused").code(4)),
                }
            }
        }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = kill(self.pid, Signal::SIGKILL);
        let _ = waitpid(self.pid, None);
    }
}

fn inside(ids: Option<(u32, u32)>) -> Result<()> {
    if let Some((uid, gid)) = ids {
        let (outside_uid, outside_gid) = (geteuid().as_raw(), getegid().as_raw());
        unshare(CloneFlags::CLONE_NEWUSER)
            .map_err(|e| EngineError::io("make a nested user namespace", &e.into()).code(4))?;
        map_ids(uid, outside_uid, gid, outside_gid)?;
    }
    unshare(CloneFlags::CLONE_NEWNET)
        .map_err(|e| EngineError::io("make a network namespace", &e.into()).code(4))?;
    bring_up_loopback()
}

/// Gives the network namespace of the process `of` a name.
pub fn bind(name: &str, of: &str) -> Result<()> {
    let path = Path::new("/run/netns").join(name);
    File::create_new(&path).map_err(|e| EngineError::io("make", &e).at(&path))?;
    let source = format!("/proc/{of}/ns/net");
    mount(Some(source.as_str()), &path, None::<&str>, MsFlags::MS_BIND, None::<&str>)
        .map_err(|e| EngineError::io("bind a network namespace to", &e.into()).at(&path))
}

fn send(socket: BorrowedFd<'_>, name: &str, of: &str) -> Result<()> {
    let open = |kind: &str| {
        let path = format!("/proc/{of}/ns/{kind}");
        File::open(&path).map_err(|e| EngineError::io("open a namespace", &e).at(Path::new(&path)))
    };
    let files = [open("user")?, open("net")?, open("pid")?];
    let descriptors = files.each_ref().map(AsRawFd::as_raw_fd);
    let text = [io::IoSlice::new(name.as_bytes())];
    let control = [ControlMessage::ScmRights(&descriptors)];
    sendmsg::<()>(socket.as_raw_fd(), &text, &control, MsgFlags::empty(), None)
        .map(drop)
        .map_err(|e| EngineError::io("hand a namespace over", &e.into()).remedy("pass a Unix socket").code(2))
}

/// Gives the command that this process will become capabilities that its user namespace holds.
pub fn raise_ambient(capabilities: &[u32]) -> Result<()> {
    /// `_LINUX_CAPABILITY_VERSION_3` and pid 0: ourselves.
    #[repr(C)]
    struct Header(u32, i32);
    let failed = |e: &io::Error| EngineError::io("keep capabilities in the namespace", e);
    let header = Header(0x2008_0522, 0);
    // Two triples of effective, permitted and inheritable.
    let mut sets = [0u32; 6];
    // SAFETY: version 3 writes and reads two triples of u32.
    unsafe {
        let place: *mut c_void = sets.as_mut_ptr().cast();
        check(libc::syscall(libc::SYS_capget, &header, place) as i32).map_err(|e| failed(&e))?;
        for &capability in capabilities {
            sets[3 * (capability as usize / 32) + 2] |= 1 << (capability % 32);
        }
        check(libc::syscall(libc::SYS_capset, &header, place) as i32).map_err(|e| failed(&e))?;
        for &capability in capabilities {
            check(libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_RAISE, capability, 0, 0))
                .map_err(|e| failed(&e))?;
        }
    }
    Ok(())
}
