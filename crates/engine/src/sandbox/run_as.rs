//! Into a network namespace, without privileges.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};
use nix::libc;
use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::{Gid, Uid, fchdir, getegid, geteuid, setgroups, setresgid, setresuid};

use super::limits::{self, Limit};
use super::unshare::map_ids;
use super::{exec, filter, writes};
use crate::error::{EngineError, Result};
use crate::sys::{self, check};

/// Arguments of `run-as`.
#[derive(clap::Args)]
pub struct RunAsArgs {
    /// The user id that the command sees as its own.
    #[arg(long, default_value_t = 1000)]
    uid: u32,
    /// The group id that the command sees as its own.
    #[arg(long, default_value_t = 1000)]
    gid: u32,
    /// A name in /run/netns, or a path with a slash.
    #[arg(long)]
    netns: Option<String>,
    /// Pid 1 of the side that lends the command its files, IPC and (without --netns) network. Its pid
    /// namespace must be this process's already.
    #[arg(long, value_name = "PID")]
    side: Option<i32>,
    /// A bound of the command's resources: NAME=VALUE, names as in setrlimit(2).
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "keep_privileges")]
    limit: Vec<Limit>,
    /// A variable of the command's environment, which has these and no others. They have no effect on this
    /// process, which may have privileges.
    #[arg(long, value_name = "NAME=VALUE")]
    variable: Vec<OsString>,
    /// Enter the namespace, but stay the same user.
    #[arg(long)]
    keep_privileges: bool,
    /// The command to run.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Enters the namespace, drops privileges and becomes the command.
pub fn run_as(args: &RunAsArgs) -> Result<u8> {
    if let Some(name) = &args.netns {
        sys::enter_netns(name)?;
    }
    if let Some(pid) = args.side {
        enter_side(pid, args.netns.is_none())?;
    }
    if !args.keep_privileges {
        limits::first_to_go();
        drop_privileges(args.uid, args.gid)?;
        limits::set(&args.limit)?;
        keep_three_streams()?;
        if args.side.is_some() {
            writes::confine()?;
        }
        filter::refuse()?;
    }
    if !args.variable.is_empty() {
        replace_environment(&args.variable)?;
    }
    Err(exec(&args.command))
}

/// Makes `variables` the environment of this process.
fn replace_environment(variables: &[OsString]) -> Result<()> {
    let wrong = |variable: &OsString| {
        EngineError::new("read --variable", format!("{} is no NAME=VALUE", variable.to_string_lossy()))
            .code(2)
    };
    let pairs = variables.iter().map(|one| split_variable(one).ok_or_else(|| wrong(one)));
    let pairs = pairs.collect::<Result<Vec<_>>>()?;
    for (name, _) in std::env::vars_os() {
        // SAFETY: this process has one thread.
        unsafe { std::env::remove_var(name) };
    }
    for (name, value) in pairs {
        // SAFETY: this process has one thread; the name is not empty and has no "=", and arguments have no zero byte.
        unsafe { std::env::set_var(name, value) };
    }
    Ok(())
}

fn split_variable(variable: &OsStr) -> Option<(&OsStr, &OsStr)> {
    let bytes = variable.as_bytes();
    let at = bytes.iter().position(|&byte| byte == b'=').filter(|&at| at > 0)?;
    Some((OsStr::from_bytes(&bytes[..at]), OsStr::from_bytes(&bytes[at + 1..])))
}

/// Enters the namespaces of pid 1 of a side, and the working folder as the side has it.
fn enter_side(pid: i32, network: bool) -> Result<()> {
    // Its name, since the descriptor would lead out of the side's files.
    let folder = std::env::current_dir().map_err(|e| EngineError::io("read the working folder", &e))?;
    // By the sandbox's /proc, in which `pid` counts; it is out of sight with the first of them.
    let open = |kind: &str| {
        let path = format!("/proc/{pid}/ns/{kind}");
        File::open(&path)
            .map_err(|e| EngineError::io("open a namespace of the side", &e).at(Path::new(&path)))
    };
    let kinds = if network { &["net", "ipc", "uts", "mnt"][..] } else { &["ipc", "uts", "mnt"] };
    for file in kinds.iter().map(|kind| open(kind)).collect::<Result<Vec<_>>>()? {
        setns(file, CloneFlags::empty())
            .map_err(|e| EngineError::io("enter a namespace of the side", &e.into()))?;
    }
    // It has no links in it now; a program of the side could put one there, and this process still has privileges.
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    openat2(AT_FDCWD, &folder, how)
        .and_then(fchdir)
        .map_err(|e| EngineError::io("enter the working folder", &e.into()).at(&folder))
}

fn drop_privileges(uid: u32, gid: u32) -> Result<()> {
    if uid == 0 || gid == 0 {
        return Err(EngineError::new("drop privileges", "uid 0 and gid 0 are no ordinary user").code(2));
    }
    normal_class()?;
    drop_bounding_set()?;
    if is_mapped(uid)? {
        let failed = |e: nix::Error| EngineError::io(format!("become user {uid}"), &e.into());
        setgroups(&[]).map_err(failed)?;
        let gid = Gid::from_raw(gid);
        setresgid(gid, gid, gid).map_err(failed)?;
        let uid = Uid::from_raw(uid);
        setresuid(uid, uid, uid).map_err(failed)?;
    } else {
        let (outside_uid, outside_gid) = (geteuid().as_raw(), getegid().as_raw());
        unshare(CloneFlags::CLONE_NEWUSER)
            .map_err(|e| EngineError::io("make a nested user namespace", &e.into()).code(4))?;
        map_ids(uid, outside_uid, gid, outside_gid)?;
        // The new namespace has a full bounding set of its own.
        drop_bounding_set()?;
    }
    clear_capabilities()?;
    // SAFETY: plain integers.
    check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })
        .map(drop)
        .map_err(|e| EngineError::io("set no_new_privs", &e))
}

/// Makes every descriptor past the standard ones close on exec: our own callers pass none, but a lock or a
/// lifeline in a player's hands would outlive its holder.
pub fn keep_three_streams() -> Result<()> {
    // SAFETY: plain integers.
    let result = unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    check(result as i32).map(drop).map_err(|e| {
        EngineError::io("keep descriptors from the command", &e).remedy("this needs Linux 5.11 or later")
    })
}

/// Leaves a real-time class. A class below the normal one is the caller's wish.
fn normal_class() -> Result<()> {
    // SAFETY: a plain integer.
    let class = unsafe { libc::sched_getscheduler(0) } & !libc::SCHED_RESET_ON_FORK;
    if matches!(class, libc::SCHED_IDLE | libc::SCHED_BATCH) {
        return Ok(());
    }
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: `parameters` is valid for the call.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &parameters) })
        .map(drop)
        .map_err(|e| EngineError::io("return to the normal scheduling class", &e))
}

fn drop_bounding_set() -> Result<()> {
    for capability in 0..64 {
        // SAFETY: plain integers.
        let dropped = check(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) });
        if let Err(e) = dropped {
            // EINVAL: past the last capability of this kernel.
            if e.raw_os_error() == Some(libc::EINVAL) {
                break;
            }
            return Err(EngineError::io("drop capabilities", &e));
        }
    }
    Ok(())
}

/// Empties the effective, permitted, inheritable and (with them) ambient sets.
fn clear_capabilities() -> Result<()> {
    /// `_LINUX_CAPABILITY_VERSION_3` and pid 0: ourselves.
    #[repr(C)]
    struct Header(u32, i32);
    let header = Header(0x2008_0522, 0);
    let none = [0u32; 6];
    // SAFETY: version 3 reads two triples of u32.
    let result = unsafe { libc::syscall(libc::SYS_capset, &header, none.as_ptr()) };
    check(result as i32).map(drop).map_err(|e| EngineError::io("drop capabilities", &e))
}

/// Returns whether `uid` exists in our user namespace.
fn is_mapped(uid: u32) -> Result<bool> {
    let map = std::fs::read_to_string("/proc/self/uid_map")
        .map_err(|e| EngineError::io("read /proc/self/uid_map", &e))?;
    Ok(contains(&map, uid))
}

fn contains(map: &str, uid: u32) -> bool {
    map.lines().any(|line| {
        let mut numbers = line.split_whitespace().map(|word| word.parse::<u64>().unwrap_or(0));
        match (numbers.next(), numbers.next(), numbers.next()) {
            (Some(first), Some(_), Some(count)) => (first..first + count).contains(&u64::from(uid)),
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_a_name_and_a_value() {
        let split = |text: &'static str| {
            split_variable(OsStr::new(text))
                .map(|(name, value)| (name.to_str().unwrap(), value.to_str().unwrap()))
        };
        assert_eq!(split("A=b=c"), Some(("A", "b=c")));
        assert_eq!(split("A="), Some(("A", "")));
        assert_eq!((split("A"), split("=b"), split("")), (None, None, None));
    }

    #[test]
    fn a_uid_is_mapped_only_inside_its_ranges() {
        assert!(contains("         0          0 4294967295\n", 1000));
        assert!(!contains("         0       1000          1\n", 1000));
        assert!(contains("0 1000 1\n1 100000 65536\n", 1000));
        assert!(!contains("", 0));
    }
}
