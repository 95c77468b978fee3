//! Where a command may open files for writing: only in its side's writable places, by landlock(7).
//!
//! A read-only mount does not keep writers from the named pipes on it, which may have readers elsewhere.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use nix::fcntl::{OFlag, open};
use nix::libc;
use nix::sys::stat::Mode;

use crate::error::{EngineError, Result};
use crate::sys::check;

/// `LANDLOCK_CREATE_RULESET_VERSION`, `LANDLOCK_RULE_PATH_BENEATH` (linux/landlock.h).
const VERSION: u32 = 1;
const BENEATH: u32 = 1;
/// `LANDLOCK_ACCESS_FS_WRITE_FILE` and `_REFER`.
const WRITE: u64 = 1 << 1;
const REFER: u64 = 1 << 13;
/// Since Linux 5.19. Before, no file could move from one folder to another.
const LEAST: i64 = 2;
/// Devices of the side, which permitted users may use.
const DEVICES: &str = "/dev";
/// Among its files is the order in which the kernel ends processes when memory runs out.
const PROCESSES: &str = "/proc";

/// `struct landlock_path_beneath_attr`.
#[repr(C, packed)]
struct Beneath {
    allowed: u64,
    folder: RawFd,
}

/// Refuses from now on writes to read-only mounts, by this process and all that it starts. It must have set
/// no_new_privs. On a kernel without landlock nothing is refused.
pub fn confine() -> Result<()> {
    // SAFETY: asks for the version alone.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0usize, VERSION) };
    if version < LEAST {
        return Ok(());
    }
    restrict().map_err(|e| EngineError::io("refuse writing outside the side's folders", &e))
}

fn restrict() -> io::Result<()> {
    let handled: u64 = WRITE | REFER;
    // SAFETY: a structure of the size given; a fresh descriptor has no other owner.
    let rules = unsafe {
        let made =
            libc::syscall(libc::SYS_landlock_create_ruleset, &raw const handled, size_of_val(&handled), 0);
        OwnedFd::from_raw_fd(check(made as i32)?)
    };
    allow(&rules, &PathBuf::from("/"), REFER)?;
    let mounts = std::fs::read("/proc/self/mountinfo")?;
    let places = writable(&mounts).into_iter().filter(|at| !at.starts_with(PROCESSES));
    for folder in places.chain([PathBuf::from(DEVICES)]) {
        allow(&rules, &folder, WRITE | REFER)?;
    }
    // SAFETY: a descriptor that is open.
    check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0) } as i32).map(drop)
}

/// Adds a rule for a place; one that is out of reach, such as below another mount, is not writable either.
fn allow(rules: &OwnedFd, at: &PathBuf, access: u64) -> io::Result<()> {
    let Ok(folder) = open(at, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty()) else {
        return Ok(());
    };
    let rule = Beneath { allowed: access, folder: folder.as_raw_fd() };
    // SAFETY: a structure of that kind, and a descriptor that is open.
    let done =
        unsafe { libc::syscall(libc::SYS_landlock_add_rule, rules.as_raw_fd(), BENEATH, &raw const rule, 0) };
    check(done as i32).map(drop)
}

/// Returns the places of the mounts that are not read-only, in a mountinfo of proc(5).
fn writable(mounts: &[u8]) -> Vec<PathBuf> {
    let is_writable = |options: &[u8]| !options.split(|&letter| letter == b',').any(|word| word == b"ro");
    mounts
        .split(|&letter| letter == b'\n')
        .filter_map(|line| {
            let mut fields = line.split(|&letter| letter == b' ').skip(4);
            let (at, options) = (fields.next()?, fields.next()?);
            is_writable(options).then(|| PathBuf::from(OsString::from_vec(plain(at))))
        })
        .collect()
}

/// Returns a name without the octal escapes that spaces and the like have there.
pub(super) fn plain(name: &[u8]) -> Vec<u8> {
    let mut found = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((&letter, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|digits| digits.iter().all(|digit| (b'0'..=b'7').contains(digit)));
        if let (b'\\', Some(digits)) = (letter, digits) {
            found.push(digits.iter().fold(0u8, |sum, digit| sum.wrapping_mul(8).wrapping_add(digit - b'0')));
            rest = &after[3..];
        } else {
            found.push(letter);
            rest = after;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_that_are_not_read_only_are_found_by_their_names() {
        let mounts = b"22 1 254:0 / / ro,relatime shared:1 - ext4 /dev/vda rw\n\
            23 22 0:21 / /proc rw,nosuid - proc proc rw\n\
            24 22 0:22 / /a\\040b\\134c rw - tmpfs tmpfs rw,size=4k\n\
            25 22 0:23 / /sys nosuid,ro - sysfs sysfs rw\n\nodd line\n";
        assert_eq!(writable(mounts), ["/proc", "/a b\\c"].map(PathBuf::from));
        assert_eq!(plain(b"\\04"), b"\\04");
    }
}
