//! Bounds of a command's resources.

use std::str::FromStr;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::error::{EngineError, Result};

/// The kernel ends it before anything else when memory runs out: neither the emulator nor the caller's own programs.
const FIRST: &str = "1000";
/// Since then each user namespace has a count of processes of its own; before, all of a user's shared one.
const COUNTS_APART: (u32, u32) = (5, 14);

const KNOWN: &str = "core, data, fsize, nice, nofile, nproc or rtprio";

/// One bound.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    resource: Resource,
    value: u64,
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
        let resource = match name {
            "core" => Resource::RLIMIT_CORE,
            "data" => Resource::RLIMIT_DATA,
            "fsize" => Resource::RLIMIT_FSIZE,
            "nice" => Resource::RLIMIT_NICE,
            "nofile" => Resource::RLIMIT_NOFILE,
            "nproc" => Resource::RLIMIT_NPROC,
            "rtprio" => Resource::RLIMIT_RTPRIO,
            _ => return Err(format!("no bound is called '{name}'; take {KNOWN}")),
        };
        let value = value.parse().map_err(|_| format!("expected a whole number, got '{value}'"))?;
        Ok(Limit { resource, value })
    }
}

/// Sets the bounds. A lower existing bound stays; for open files, programs may raise their limit to the
/// bound.
pub fn set(limits: &[Limit]) -> Result<()> {
    for limit in limits {
        if limit.resource == Resource::RLIMIT_NPROC && !counts_apart() {
            continue;
        }
        let failed = |e: nix::Error| EngineError::io(format!("set {:?}", limit.resource), &e.into());
        let (soft, hard) = getrlimit(limit.resource).map_err(failed)?;
        let most = limit.value.min(hard);
        // That of core dumps has a meaning of its own at 1, and is mostly 0.
        let soft = if limit.resource == Resource::RLIMIT_CORE { most } else { soft.min(most) };
        setrlimit(limit.resource, soft, most).map_err(failed)?;
    }
    Ok(())
}

/// Has the kernel end this process, and those that it starts, first when memory runs out.
pub fn first_to_go() {
    let _ = std::fs::write("/proc/self/oom_score_adj", FIRST);
}

fn counts_apart() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers =
        release.split(|letter: char| !letter.is_ascii_digit()).map(|word| word.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= COUNTS_APART
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_a_name_and_a_number() {
        let one: Limit = "nproc=4096".parse().unwrap();
        assert_eq!((one.resource, one.value), (Resource::RLIMIT_NPROC, 4096));
        for wrong in ["nproc", "nproc=many", "stack=1", "=3", "core=-1"] {
            assert!(wrong.parse::<Limit>().is_err(), "{wrong}");
        }
    }
}
