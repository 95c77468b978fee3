//! A /dev of a side's own: the devices that programs need, and no service, terminal or log of the machine.

use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, open};
use nix::mount::{MsFlags, mount};
use nix::sys::stat::Mode;

use super::trees::{READ_ONLY, attach, clone_tree, failed, make_place, set};
use crate::error::Result;

const DEV: &str = "/dev";
const NONE: Option<&str> = None;
/// Only places of others lie on it.
const OPTIONS: &str = "mode=755,size=64k";
/// Devices without a state that others share, and graphics for decoders.
const SHOWN: [&str; 7] = ["null", "zero", "full", "random", "urandom", "tty", "dri"];
/// Folders for file systems of the side's own.
const FOLDERS: [&str; 3] = ["pts", "shm", "mqueue"];
const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// Devices of the machine, attached nowhere.
pub struct Devices(Vec<(PathBuf, bool, OwnedFd)>);

impl Devices {
    /// Returns those that the machine has.
    pub fn of_machine() -> Result<Self> {
        let there = SHOWN.iter().map(|name| Path::new(DEV).join(name)).filter(|at| at.exists());
        let taken = there.map(|at| {
            let (is_folder, tree) = (at.is_dir(), clone_tree(&at, true)?);
            Ok((at, is_folder, tree))
        });
        Ok(Devices(taken.collect::<Result<_>>()?))
    }

    /// Makes /dev, with terminals and message queues of the side's own; it has no shared memory yet.
    pub fn show(&self) -> Result<()> {
        let dev = Path::new(DEV);
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
        mount(Some("tmpfs"), dev, Some("tmpfs"), flags, Some(OPTIONS))
            .map_err(|e| failed("mount a tmpfs on", dev, &e.into()))?;
        for (at, is_folder, tree) in &self.0 {
            make_place(at, *is_folder)?;
            attach(tree, at)?;
        }
        for (name, target) in LINKS {
            let at = dev.join(name);
            symlink(target, &at).map_err(|e| failed("make a link", &at, &e))?;
        }
        for name in FOLDERS {
            make_place(&dev.join(name), true)?;
        }
        // A user without privileges owns it too. The devices on it are mounts of their own.
        let folder = open(dev, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty());
        let folder = folder.map_err(|e| failed("open", dev, &e.into()))?;
        set(Some(&folder), READ_ONLY, false).map_err(|e| failed("make read-only", dev, &e))?;
        terminals();
        // Without a place of theirs, `writes` would refuse them.
        let queues = dev.join("mqueue");
        let _ = mount(Some("mqueue"), &queues, Some("mqueue"), flags | MsFlags::MS_NODEV, NONE);
        Ok(())
    }
}

/// Mounts pseudo-terminals of its own: those of the machine are the caller's, possibly at one of them.
fn terminals() {
    let at = Path::new(DEV).join("pts");
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    if mount(Some("devpts"), &at, Some("devpts"), flags, Some("newinstance,ptmxmode=0666")).is_err() {
        let _ = mount(Some("tmpfs"), &at, Some("tmpfs"), flags, Some("mode=755,size=4k"));
    }
}
