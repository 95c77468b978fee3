//! Trees of mounts that are attached nowhere, until they are.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use nix::libc;

use crate::error::{EngineError, Result};
use crate::sys::check;

/// `MOVE_MOUNT_F_EMPTY_PATH` (linux/mount.h).
const MOVE_FROM_DESCRIPTOR: u32 = 4;
/// `MOUNT_ATTR_RDONLY` (linux/mount.h).
pub const READ_ONLY: u64 = 1;
/// `AT_RECURSIVE` (linux/fcntl.h).
const AT_RECURSIVE: u32 = 0x8000;

pub fn failed(what: &str, at: &Path, error: &io::Error) -> EngineError {
    let old = matches!(error.raw_os_error(), Some(libc::ENOSYS));
    let remedy = if old { "this needs Linux 5.12 or later" } else { "" };
    EngineError::io(what, error).at(at).remedy(remedy).code(4)
}

fn path(of: &Path) -> io::Result<std::ffi::CString> {
    std::ffi::CString::new(of.as_os_str().as_bytes()).map_err(io::Error::other)
}

/// Returns the tree of mounts at `source`, or its first alone, attached nowhere.
pub fn clone_tree(source: &Path, whole: bool) -> Result<OwnedFd> {
    let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | if whole { AT_RECURSIVE } else { 0 };
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
pub fn attach(tree: &OwnedFd, at: &Path) -> Result<()> {
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

/// Sets attributes of a tree's first mount, with `whole` of each of its mounts; of those at / if no tree is given.
pub fn set(tree: Option<&OwnedFd>, attributes: u64, whole: bool) -> io::Result<()> {
    // `struct mount_attr`: set, clear, propagation, a user namespace.
    let wanted = [attributes, 0, 0, 0];
    let (fd, name) = tree.map_or((libc::AT_FDCWD, c"/"), |tree| (tree.as_raw_fd(), c""));
    let flags = if tree.is_some() { libc::AT_EMPTY_PATH as u32 } else { 0 };
    let flags = flags | if whole { AT_RECURSIVE } else { 0 };
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

/// Makes a folder, or an empty file, for something to be attached to.
pub fn make_place(at: &Path, is_folder: bool) -> Result<()> {
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
