//! A view of the machine's files for one side of a flow: all of them read-only, and a few folders of its own.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use nix::libc;
use nix::mount::{MsFlags, mount};

use super::layers::Layers;
use super::trees::{AT_RECURSIVE, attach, clone_tree, failed};
use crate::error::Result;
use crate::sys::check;

const NONE: Option<&str> = None;
/// `MOUNT_ATTR_RDONLY` and `MOUNT_ATTR_NOSUID` (linux/mount.h).
const READ_ONLY: u64 = 1;
const NO_SUID: u64 = 2;
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
    /// Whether others use it too: it lies behind a layer then.
    pub of_machine: bool,
}

/// Makes the calling process's mount namespace, which must not be shared, the view. The caller is pid 1 of
/// the side's own pid namespace, and in its network namespace.
///
/// `hidden` are folders that the view has empty ones of its own for, each with the folder that takes its place. `empty` is
/// an empty folder.
pub fn make(hidden: &[(PathBuf, PathBuf)], shown: &[Shown], empty: &Path) -> Result<()> {
    // Taken before /run and the others are hidden, and before the rest turns read-only.
    let rooms = hidden.iter().map(|(_, room)| clone_tree(room, true)).collect::<Result<Vec<_>>>()?;
    let trees = shown.iter().map(|one| clone_tree(&one.source, true)).collect::<Result<Vec<_>>>()?;
    let layers = Layers::new(empty)?;
    let folders: Vec<bool> = shown.iter().map(|one| one.source.is_dir()).collect();
    set(None, READ_ONLY | NO_SUID).map_err(|e| failed("make read-only", Path::new("/"), &e))?;
    layers.lay_on_machine()?;
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
    own_queues();
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
        if one.of_machine && is_folder {
            layers.lay_on(&one.at);
        }
    }
    Ok(())
}

/// Mounts the message queues of its own IPC namespace, in place of the machine's. Without a place of theirs,
/// `writes` would refuse them.
fn own_queues() {
    let usual = Path::new("/dev/mqueue");
    let at = if usual.is_dir() { usual } else { Path::new("/run/mqueue") };
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    if make_place(at, true).is_ok() {
        let _ = mount(Some("mqueue"), at, Some("mqueue"), flags, NONE);
    }
}

/// Mounts pseudo-terminals of its own: those of the machine are the caller's, possibly at one of them.
fn own_terminals() {
    if !Path::new("/dev/pts").is_dir() {
        return;
    }
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    if mount(Some("devpts"), "/dev/pts", Some("devpts"), flags, Some("newinstance,ptmxmode=0666")).is_err() {
        let _ = mount(Some("tmpfs"), "/dev/pts", Some("tmpfs"), flags, Some("mode=755,size=4k"));
    }
}

/// Makes a folder, or an empty file, for something to be attached to.
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
