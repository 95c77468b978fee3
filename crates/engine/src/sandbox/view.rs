//! A view of the machine's files for one side of a flow: all of them read-only, and a few folders of its own.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use nix::libc;
use nix::mount::{MsFlags, mount};

use crate::error::{EngineError, Result};
use crate::sys::check;

const NONE: Option<&str> = None;
/// `MOUNT_ATTR_RDONLY` and `MOUNT_ATTR_NOSUID` (linux/mount.h).
const READ_ONLY: u64 = 1;
const NO_SUID: u64 = 2;
/// `MOVE_MOUNT_F_EMPTY_PATH` (linux/mount.h).
const MOVE_FROM_DESCRIPTOR: u32 = 4;
const AT_RECURSIVE: u32 = 0x8000;
/// Only mount points lie on it.
const RUN_OPTIONS: &str = "mode=755,size=1m";

/// A folder or file that the view shows, and where the rest of the machine has it.
#[derive(Debug)]
pub struct Shown {
    /// Where it is before the view is made.
    pub source: PathBuf,
    /// Where the view has it.
    pub at: PathBuf,
    /// Whether it may be written to.
    pub writable: bool,
}

/// Makes the calling process's mount namespace, which nobody else may share, the view. The caller is pid 1 of the
/// side's own pid namespace, and in its network namespace.
///
/// `hidden` are folders that the view has empty ones of its own for, each with the folder that takes its place.
pub fn make(hidden: &[(PathBuf, PathBuf)], shown: &[Shown]) -> Result<()> {
    // Taken before /run and the others are hidden, and before the rest turns read-only.
    let rooms = hidden.iter().map(|(_, room)| clone_tree(room)).collect::<Result<Vec<_>>>()?;
    let trees = shown.iter().map(|one| clone_tree(&one.source)).collect::<Result<Vec<_>>>()?;
    let folders: Vec<bool> = shown.iter().map(|one| one.source.is_dir()).collect();
    set(None, READ_ONLY | NO_SUID).map_err(|e| failed("make read-only", Path::new("/"), &e))?;
    let plain = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("tmpfs"), "/run", Some("tmpfs"), plain, Some(RUN_OPTIONS))
        .map_err(|e| failed("mount a tmpfs on", Path::new("/run"), &e.into()))?;
    for ((at, _), room) in hidden.iter().zip(&rooms) {
        // A link leads to another of them, or to /run.
        if at.is_dir() && !at.is_symlink() {
            attach(room, at)?;
        }
    }
    own_terminals();
    mount(Some("proc"), "/proc", Some("proc"), plain | MsFlags::MS_NOEXEC, NONE)
        .map_err(|e| failed("mount", Path::new("/proc"), &e.into()))?;
    // As in the sandbox: a convenience, which containers may refuse.
    let _ =
        mount(Some("sysfs"), "/sys", Some("sysfs"), plain | MsFlags::MS_NOEXEC | MsFlags::MS_RDONLY, NONE);
    for ((one, tree), is_folder) in shown.iter().zip(&trees).zip(folders) {
        if !one.writable {
            set(Some(tree), READ_ONLY).map_err(|e| failed("make read-only", &one.at, &e))?;
        }
        make_place(&one.at, is_folder)?;
        attach(tree, &one.at)?;
    }
    Ok(())
}

/// Pseudo-terminals of its own: those of the machine are the caller's, who may be at one of them.
fn own_terminals() {
    if !Path::new("/dev/pts").is_dir() {
        return;
    }
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    if mount(Some("devpts"), "/dev/pts", Some("devpts"), flags, Some("newinstance,ptmxmode=0666")).is_err() {
        let _ = mount(Some("tmpfs"), "/dev/pts", Some("tmpfs"), flags, Some("mode=755,size=4k"));
    }
}

/// A folder, or an empty file, for something to be attached to.
fn make_place(at: &Path, is_folder: bool) -> Result<()> {
    let failed = |e: &io::Error| failed("make a place for", at, e);
    if at.exists() {
        return Ok(());
    }
    let folder = if is_folder { at } else { at.parent().unwrap_or(at) };
    DirBuilder::new().recursive(true).mode(0o755).create(folder).map_err(|e| failed(&e))?;
    if !is_folder {
        File::create(at).map_err(|e| failed(&e))?;
    }
    Ok(())
}

fn failed(what: &str, at: &Path, error: &io::Error) -> EngineError {
    let old = matches!(error.raw_os_error(), Some(libc::ENOSYS));
    let remedy = if old { "this needs Linux 5.12 or later" } else { "" };
    EngineError::io(what, error).at(at).remedy(remedy).code(4)
}

fn path(of: &Path) -> io::Result<std::ffi::CString> {
    std::ffi::CString::new(of.as_os_str().as_bytes()).map_err(io::Error::other)
}

/// The tree of mounts at `source`, attached nowhere.
fn clone_tree(source: &Path) -> Result<OwnedFd> {
    let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | AT_RECURSIVE;
    let clone = || {
        let name = path(source)?;
        // SAFETY: a valid string; a fresh descriptor has no other owner.
        unsafe {
            let fd = libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, name.as_ptr(), flags) as i32;
            Ok(OwnedFd::from_raw_fd(check(fd)?))
        }
    };
    clone().map_err(|e: io::Error| failed("show", source, &e))
}

/// Attaches a tree at `at`.
fn attach(tree: &OwnedFd, at: &Path) -> Result<()> {
    let attach = || {
        let name = path(at)?;
        // SAFETY: valid strings.
        let moved = unsafe {
            libc::syscall(
                libc::SYS_move_mount,
                tree.as_raw_fd(),
                c"".as_ptr(),
                libc::AT_FDCWD,
                name.as_ptr(),
                MOVE_FROM_DESCRIPTOR,
            )
        };
        check(moved as i32).map(drop)
    };
    attach().map_err(|e: io::Error| failed("show a folder at", at, &e))
}

/// Sets attributes of every mount of a tree; of all there are if none is given.
fn set(tree: Option<&OwnedFd>, attributes: u64) -> io::Result<()> {
    // `struct mount_attr`: set, clear, propagation, a user namespace.
    let wanted = [attributes, 0, 0, 0];
    let (fd, name) = tree.map_or((libc::AT_FDCWD, c"/"), |tree| (tree.as_raw_fd(), c""));
    let flags = AT_RECURSIVE | if tree.is_some() { libc::AT_EMPTY_PATH as u32 } else { 0 };
    // SAFETY: a valid string, and a structure of the size given.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            fd,
            name.as_ptr(),
            flags,
            wanted.as_ptr(),
            size_of_val(&wanted),
        )
    };
    check(done as i32).map(drop)
}
