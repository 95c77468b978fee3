//! A view of the machine's files for one side of a flow: all of them read-only, and a few folders of its own.

use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};

use super::devices::Devices;
use super::layers::Layers;
use super::trees::{READ_ONLY, attach, clone_tree, failed, make_place, set};
use crate::error::Result;

const NONE: Option<&str> = None;
/// `MOUNT_ATTR_NOSUID` (linux/mount.h).
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
    let devices = Devices::of_machine()?;
    let folders: Vec<bool> = shown.iter().map(|one| one.source.is_dir()).collect();
    set(None, READ_ONLY | NO_SUID, true).map_err(|e| failed("make read-only", Path::new("/"), &e))?;
    layers.lay_on_machine()?;
    let plain = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("tmpfs"), "/run", Some("tmpfs"), plain, Some(RUN_OPTIONS))
        .map_err(|e| failed("mount a tmpfs on", Path::new("/run"), &e.into()))?;
    devices.show()?;
    for ((at, _), room) in hidden.iter().zip(&rooms) {
        // A link leads to another of them, or to /run.
        if at.is_dir() && !at.is_symlink() {
            attach(room, at)?;
        }
    }
    mount(Some("proc"), "/proc", Some("proc"), plain | MsFlags::MS_NOEXEC, NONE)
        .map_err(|e| failed("mount", Path::new("/proc"), &e.into()))?;
    // As in the sandbox: a convenience, which containers may refuse.
    let _ =
        mount(Some("sysfs"), "/sys", Some("sysfs"), plain | MsFlags::MS_NOEXEC | MsFlags::MS_RDONLY, NONE);
    for ((one, tree), is_folder) in shown.iter().zip(&trees).zip(folders) {
        if !one.writable {
            set(Some(tree), READ_ONLY, true).map_err(|e| failed("make read-only", &one.at, &e))?;
        }
        make_place(&one.at, is_folder)?;
        attach(tree, &one.at)?;
        if one.of_machine && is_folder {
            layers.lay_on(&one.at);
        }
    }
    Ok(())
}
