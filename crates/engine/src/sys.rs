//! Thin, safe faces of the system calls that `nix` has no better word for.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::libc;
use nix::sched::{CloneFlags, setns};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::error::{EngineError, Result};

/// Turns a system call's -1 into its error.
pub fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Nanoseconds of `clock`.
#[inline]
pub fn clock_ns(clock: libc::clockid_t) -> i64 {
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `ts` is a valid out-pointer; the clocks used exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut ts) };
    ts.tv_sec * 1_000_000_000 + ts.tv_nsec
}

/// Returns CLOCK_MONOTONIC in ns.
#[inline]
pub fn monotonic_ns() -> i64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// Returns the columns of a terminal; none if `fd` is no terminal, or does not report them.
pub fn columns(fd: BorrowedFd<'_>) -> Option<usize> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: `size` is a valid out-pointer of the type that the request asks for.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCGWINSZ, &raw mut size) }).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Sets an integer-like socket option.
pub fn set_option<T>(fd: BorrowedFd<'_>, level: i32, name: i32, value: &T) -> io::Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` points to `size` readable bytes for the length of the call.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), size) })
        .map(drop)
}

/// Reads a socket option. `T` is one of the kernel's plain C types, for which all-zero bytes are a value.
pub fn get_option<T: Copy>(fd: BorrowedFd<'_>, level: i32, name: i32) -> io::Result<T> {
    let mut value = std::mem::MaybeUninit::<T>::zeroed();
    let mut size = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` bytes; the rest stays zero, which is a value of `T`.
    unsafe {
        check(libc::getsockopt(fd.as_raw_fd(), level, name, value.as_mut_ptr().cast(), &mut size))?;
        Ok(value.assume_init())
    }
}

/// Returns a new socket, closed on exec.
pub fn socket(domain: i32, kind: i32, protocol: i32) -> io::Result<OwnedFd> {
    // SAFETY: a fresh descriptor has no other owner.
    unsafe {
        let fd = check(libc::socket(domain, kind | libc::SOCK_CLOEXEC, protocol))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Returns the file of a network namespace: a name in /run/netns, or a path if it has a slash.
pub fn netns_path(name: &str) -> PathBuf {
    if name.contains('/') { PathBuf::from(name) } else { Path::new("/run/netns").join(name) }
}

/// Moves the calling thread into a network namespace.
pub fn enter_netns(name: &str) -> Result<()> {
    let path = netns_path(name);
    let file = std::fs::File::open(&path)
        .map_err(|e| EngineError::io("open network namespace", &e).at(&path).code(2))?;
    setns(&file, CloneFlags::CLONE_NEWNET)
        .map_err(|e| EngineError::io("enter network namespace", &e.into()).at(&path))
}

/// Returns the index of an interface in the calling thread's network namespace.
pub fn interface_index(name: &str) -> Result<i32> {
    nix::net::if_::if_nametoindex(name)
        .map(|index| index as i32)
        .map_err(|e| EngineError::io(format!("find interface {name}"), &e.into()).code(2))
}

/// Asks for SIGKILL when the parent *thread* ends, then makes sure that the parent still is `parent`.
pub fn die_with_parent(parent: i32) -> Result<()> {
    // SAFETY: plain integers.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })
        .map_err(|e| EngineError::io("ask to die with the parent", &e))?;
    if nix::unistd::getppid().as_raw() != parent {
        return Err(EngineError::new("start", "the launcher has gone").remedy("pass its own pid as --parent"));
    }
    Ok(())
}

/// Returns the CPU time that a hypervisor has kept from this machine since it started, all CPUs together, in
/// seconds. It causes lateness that no scheduling class can prevent.
pub fn stolen_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    // "cpu user nice system idle iowait irq softirq steal ...", in ticks.
    let ticks = text.lines().next().and_then(|line| line.split_whitespace().nth(8)?.parse::<f64>().ok());
    // SAFETY: a plain question.
    ticks.unwrap_or(0.0) / unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64
}

/// Returns the CPU time of this process in seconds.
pub fn cpu_seconds() -> f64 {
    clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID) as f64 / 1e9
}

/// CPU time of one thread, s.
#[derive(Clone, Copy, Default, Debug, serde::Serialize)]
pub struct Cpu {
    /// In its own code.
    pub user_s: f64,
    /// In the kernel on its behalf: system calls, and interrupts meanwhile.
    pub system_s: f64,
}

impl Cpu {
    /// Returns the sum of both.
    pub fn total_s(&self) -> f64 {
        self.user_s + self.system_s
    }

    /// Returns the times since `before`.
    pub fn since(&self, before: Cpu) -> Cpu {
        Cpu { user_s: self.user_s - before.user_s, system_s: self.system_s - before.system_s }
    }
}

/// Returns the CPU time of the calling thread, and how often another took its CPU. The sum is exact, its two
/// parts are shares by ticks.
pub fn thread_cpu() -> (Cpu, i64) {
    // SAFETY: `rusage` is plain C data, for which zero is a value, and a valid out-pointer.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    (Cpu { user_s: seconds(usage.ru_utime), system_s: seconds(usage.ru_stime) }, usage.ru_nivcsw)
}

/// Requests as many descriptors as `wanted`, within this process's limit; returns the number it has then.
pub fn raise_descriptors(wanted: u64) -> Option<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    if soft < wanted {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, wanted.min(hard), hard);
    }
    Some(getrlimit(Resource::RLIMIT_NOFILE).map_or(soft, |(soft, _)| soft))
}

/// Keeps the calling thread on one CPU.
pub fn pin(cpu: usize) -> io::Result<()> {
    let mut set = nix::sched::CpuSet::new();
    set.set(cpu)?;
    nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set)?;
    Ok(())
}

/// Sleeps until CLOCK_MONOTONIC reads `at` ns; not at all if that has passed.
pub fn sleep_until(at: i64) {
    let until = libc::timespec { tv_sec: at.max(0) / 1_000_000_000, tv_nsec: at.max(0) % 1_000_000_000 };
    // SAFETY: a valid time; interrupted, it is called again.
    unsafe {
        while libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &until, std::ptr::null_mut())
            == libc::EINTR
        {}
    }
}

/// Permissions granted to this thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RealTime {
    /// The FIFO priority, or `None` for the normal class.
    pub fifo: Option<i32>,
    /// Memory is locked.
    pub mlock: bool,
}

impl RealTime {
    /// Asks for SCHED_FIFO at `priority` and locked memory, and makes timers exact. Threads made later are of the
    /// normal class.
    pub fn enter(priority: Option<i32>) -> RealTime {
        let mut class = RealTime { fifo: None, mlock: false };
        // SAFETY: plain integers and a valid structure.
        unsafe {
            // Without effect under FIFO, decisive in the normal class, which has a default slack of 50 us.
            libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0);
            let Some(priority) = priority else { return class };
            let parameters = libc::sched_param { sched_priority: priority };
            let fifo = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
            if check(libc::sched_setscheduler(0, fifo, &parameters)).is_ok() {
                class.fifo = Some(priority);
            }
            class.mlock = check(libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE)).is_ok();
        }
        class
    }

    /// Returns to the normal class, for work that is not urgent.
    pub fn leave(&self) {
        let parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: a valid structure.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &parameters) };
    }

    /// Returns its name in the protocol.
    pub fn name(&self) -> String {
        match self.fifo {
            Some(priority) => format!("SCHED_FIFO {priority}"),
            None => "normal".into(),
        }
    }
}

/// Returns the memory available without swapping (`MemAvailable` of /proc/meminfo); `None` if the kernel does
/// not report it.
pub fn available_memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}
