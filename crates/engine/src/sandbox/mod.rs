//! Namespaces that vanish with their launcher, however it ends.
//!
//! Two ties, because either alone has a hole: PR_SET_PDEATHSIG follows the launching *thread* and is lost on a
//! change of uid; a pipe ("lifeline") closes only when every copy of its write end is gone. Pid 1 inside holds
//! both, and when pid 1 ends the kernel kills every process of the pid namespace.

mod devices;
mod enter;
mod filter;
mod init;
mod layers;
mod limits;
mod netns;
mod run_as;
mod sides;
mod trees;
mod unshare;
mod view;
mod writes;

pub use enter::{EnterArgs, enter};
pub use init::{InitArgs, init};
pub use netns::{NetnsArgs, netns};
pub use run_as::{RunAsArgs, run_as};
pub use sides::sides;
pub use unshare::{SandboxArgs, sandbox};

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::sys::wait::WaitStatus;

use crate::error::EngineError;

/// Replaces this process by `command`; returns only on failure, with the shell's 126 or 127 as exit code.
fn exec(command: &[OsString]) -> EngineError {
    let what = || format!("run {}", command[0].to_string_lossy());
    let words: Result<Vec<CString>, _> = command.iter().map(|w| CString::new(w.as_bytes())).collect();
    let Ok(words) = words else {
        return EngineError::new(what(), "an argument contains a zero byte").code(126);
    };
    match nix::unistd::execvp(&words[0], &words) {
        Ok(never) => match never {},
        // execvp returns EACCES when a directory of PATH may not be searched, even if the program is in none
        // of them.
        Err(e) if e == nix::Error::ENOENT || !exists(&command[0]) => {
            EngineError::io(what(), &nix::Error::ENOENT.into()).remedy("install it or correct PATH").code(127)
        }
        Err(e) => EngineError::io(what(), &e.into()).code(126),
    }
}

/// Returns whether `program` is a file, by itself if it has a slash, else somewhere in PATH.
fn exists(program: &OsStr) -> bool {
    if program.as_bytes().contains(&b'/') {
        return Path::new(program).exists();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).exists())
}

/// Returns a finished process's exit code as a shell gives it.
fn exit_code(status: WaitStatus) -> Option<u8> {
    match status {
        WaitStatus::Exited(_, code) => Some(code as u8),
        WaitStatus::Signaled(_, signal, _) => Some(128 + signal as i32 as u8),
        _ => None,
    }
}
