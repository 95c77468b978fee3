//! File systems of the machine behind a layer of the side's own: overlayfs without an upper folder.
//!
//! A read-only mount does not protect a socket that a service of the machine has bound there, a lock on a
//! file that others need, or a named pipe with a reader: all three belong to the inode. A layer has inodes of
//! its own for the same files.

use std::ffi::OsString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, open};
use nix::mount::{MsFlags, mount};
use nix::sys::stat::Mode;

use super::trees::{attach, clone_tree};
use super::writes::plain;
use crate::error::{EngineError, Result};

/// Places that a side has of its own, or that hold no file system with others' files.
const SPARED: [&str; 6] = ["/proc", "/sys", "/dev", "/run", "/tmp", "/var/tmp"];

/// A folder or file that a mount has, as it was before anything was laid over it.
struct Below {
    at: PathBuf,
    /// The folder itself; its mounts are not in it.
    folder: Option<OwnedFd>,
    /// A mount that is attached again where no layer can take its place.
    mount: Option<OwnedFd>,
}

/// Settings of layers.
pub struct Layers {
    /// A layer has two folders at least: the second is empty.
    empty: OwnedFd,
}

impl Layers {
    /// Returns the settings; `empty` must be an empty folder.
    pub fn new(empty: &Path) -> Result<Self> {
        let empty = opened(empty).map_err(|e| EngineError::io("open", &e.into()).at(empty))?;
        Ok(Layers { empty })
    }

    /// Lays a layer over every file system of the machine. Where the kernel refuses one, the file system
    /// stays as it is.
    pub fn lay_on_machine(&self) -> Result<()> {
        let table = std::fs::read("/proc/self/mountinfo").map_err(|e| EngineError::io("read mounts", &e))?;
        // All are opened before the first layer hides the file systems below.
        let found: Vec<Below> = places(&table).into_iter().filter_map(below).collect();
        for one in &found {
            let is_laid = one.folder.as_ref().is_some_and(|folder| self.laid(folder, &one.at));
            if !is_laid && let Some(tree) = &one.mount {
                let _ = attach(tree, &one.at);
            }
        }
        Ok(())
    }

    /// Lays one over a folder, if the kernel permits it.
    pub fn lay_on(&self, folder: &Path) {
        if let Ok(below) = opened(folder) {
            self.laid(&below, folder);
        }
    }

    fn laid(&self, folder: &OwnedFd, at: &Path) -> bool {
        let [folder, empty] = [folder, &self.empty].map(AsRawFd::as_raw_fd);
        // A user namespace may read no other attributes than those of `userxattr`.
        let options = format!("lowerdir=/proc/self/fd/{folder}:/proc/self/fd/{empty},userxattr");
        let flags = MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        mount(Some("overlay"), at, Some("overlay"), flags, Some(options.as_str())).is_ok()
    }
}

fn opened(folder: &Path) -> nix::Result<OwnedFd> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    open(folder, flags, Mode::empty())
}

/// Returns where layers are to lie, outer ones first: folders of the root, and mounts (true).
fn places(table: &[u8]) -> Vec<(PathBuf, bool)> {
    let mut found: Vec<(PathBuf, bool)> =
        points(table).into_iter().filter(|at| at != Path::new("/")).map(|at| (at, true)).collect();
    let root = std::fs::read_dir("/").into_iter().flatten().flatten();
    found.extend(
        root.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| (entry.path(), false)),
    );
    found.retain(|(at, _)| !SPARED.iter().any(|spared| at.starts_with(spared)));
    // Between two at one place the mount is first.
    found.sort_by_key(|(at, is_mount)| (at.components().count(), at.clone(), !is_mount));
    found.dedup_by(|second, first| second.0 == first.0);
    found
}

fn below((at, is_mount): (PathBuf, bool)) -> Option<Below> {
    let mount = if is_mount { clone_tree(&at, false).ok() } else { None };
    let folder = opened(&at).ok();
    (mount.is_some() || folder.is_some()).then_some(Below { at, folder, mount })
}

/// Returns the places of mounts in a mountinfo of proc(5).
fn points(table: &[u8]) -> Vec<PathBuf> {
    table
        .split(|&letter| letter == b'\n')
        .filter_map(|line| line.split(|&letter| letter == b' ').nth(4))
        .map(|at| PathBuf::from(OsString::from_vec(plain(at))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outer_places_come_first_and_each_once() {
        let table = b"22 1 254:0 / / ro - ext4 /dev/vda rw\n\
            24 22 0:22 / /zz/b\\040c ro - tmpfs tmpfs rw\n\
            23 22 0:21 / /zz ro - ext4 /dev/vdb rw\n\
            25 22 0:21 / /zz ro - ext4 /dev/vdc rw\n\
            26 22 0:21 / /proc/sys ro - proc proc rw\n\
            27 22 0:21 / /run/lock rw - tmpfs tmpfs rw\n";
        let found = places(table);
        let of_table: Vec<_> = found.iter().filter(|(at, _)| at.starts_with("/zz")).collect();
        let expected = [("/zz", true), ("/zz/b c", true)].map(|(at, is_mount)| (PathBuf::from(at), is_mount));
        assert_eq!(of_table, expected.iter().collect::<Vec<_>>());
        assert!(found.contains(&(PathBuf::from("/usr"), false)));
        for spared in SPARED {
            assert!(!found.iter().any(|(at, _)| at.starts_with(spared)), "{spared}");
        }
    }
}
