//! A call under the guard: this program ends as soon as hosted code reads the clock or the chance of the system.

#![cfg(target_os = "linux")]

mod call;

use std::process::Command;

use call::Conditions;
use streamgauge_base::Duration;
use streamgauge_hosted::Chance;

/// The C library's functions as the standard library calls them, in front of the system's own.
#[allow(unsafe_code)]
mod symbols {
    use libc::{
        SYS_clock_gettime, SYS_getrandom, c_int, c_uint, c_void, clockid_t, size_t, ssize_t, syscall,
        timespec,
    };
    use streamgauge_hosted::guard;

    fn stop_if_watched(what: &str) {
        if guard::is_watched() {
            let _ = std::io::Write::write_all(&mut std::io::stderr(), what.as_bytes());
            std::process::abort();
        }
    }

    /// # Safety
    ///
    /// That of the C library's function.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
        stop_if_watched("hosted code reads the system's clock\n");
        // SAFETY: the caller's arguments, to the function that it means.
        unsafe { syscall(SYS_clock_gettime, clock, time) as c_int }
    }

    /// Draws from the system as the `getrandom` crate does.
    pub fn draw() {
        let mut drawn = [0_u8; 8];
        // SAFETY: the length is the array's.
        unsafe { libc::getrandom(drawn.as_mut_ptr().cast(), drawn.len(), 0) };
    }

    /// # Safety
    ///
    /// That of the C library's function.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn getrandom(to: *mut c_void, bytes: size_t, flags: c_uint) -> ssize_t {
        stop_if_watched("hosted code reads the system's chance\n");
        // SAFETY: the caller's arguments, to the function that it means.
        unsafe { syscall(SYS_getrandom, to, bytes, flags) as ssize_t }
    }
}

#[test]
fn a_call_reads_neither_the_clock_nor_the_chance_of_the_system() {
    let lossy = |number: usize| number % 40 == 39;
    let course = Conditions { drop: lossy, ..Conditions::usual(1, Duration::from_secs(5)) }.run();
    assert!(course.frames.len() > 100 && course.requests > 0);
}

/// Set in the program that is to be ended.
const CHILD: &str = "STREAMGAUGE_GUARD_READS";

#[test]
fn the_guard_ends_a_program_that_reads_them() {
    if let Ok(what) = std::env::var(CHILD) {
        return Chance::new(1).run(|| match what.as_str() {
            "clock" => drop(std::time::Instant::now()),
            "date" => drop(std::time::SystemTime::now()),
            "chance" => symbols::draw(),
            _ => {}
        });
    }
    let ends_well = |what: &str| {
        let test = "the_guard_ends_a_program_that_reads_them";
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", test]).env(CHILD, what).output().unwrap()
    };
    for (what, words) in
        [("clock", "system's clock"), ("date", "system's clock"), ("chance", "system's chance")]
    {
        let ended = ends_well(what);
        assert!(!ended.status.success(), "{what}: {ended:?}");
        let words_of_it = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(words_of_it.contains(words), "{what}: {words_of_it}");
    }
    assert!(ends_well("nothing").status.success());
}
