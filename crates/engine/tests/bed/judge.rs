//! Judges bounds that only a machine with a processor to spare meets, and reports others as starved.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::libc;
use serde_json::Value;

/// Beginning of the message of a trial that missed its bounds without a free processor: it is no fault, and
/// no pass.
pub const STARVED: &str = "STARVED: ";

/// Also reported where the machine was so busy all the while that nothing can be measured on it.
pub const UNFIT: &str = "the machine is not fit to judge: ";

/// Also reported where a delay was longer than the machine kept any thread waiting: if that holds at each
/// try, the machine is not the cause.
pub const WRONG: &str = "by more than the machine explains: ";

/// Allowed error of a delay beside the machine's own, s.
const WRONG_BY_S: f64 = 0.0005;

/// How often the sentinel sleeps and wakes.
const STEP: Duration = Duration::from_millis(1);

/// A wake-up later than this is late: the finest bound that a test holds a time to.
const LATE: Duration = Duration::from_micros(200);

/// A measurement may last no longer than this; events within it spoil it.
const WINDOW: Duration = Duration::from_millis(100);

/// The share of some window that the machine did not have: from here on a bound that was missed may be its doing.
const SHORT: f64 = 0.1;

/// The share of the whole time from which on the machine is not fit to judge.
const PRESSED: f64 = 0.25;

/// Watches the machine during a measurement, and keeps the missed bounds.
///
/// Facts that hold on any machine are asserted outside of it: that nothing is early, lost or counted twice.
pub struct Judge {
    over: Arc<AtomicBool>,
    sentinel: JoinHandle<Want>,
    missed: Vec<String>,
    /// The most that a delay was too long, s.
    too_long_s: f64,
    /// The judged program has a real-time class, and waits for no other.
    pub real_time: bool,
}

impl Judge {
    /// Watches from now on.
    pub fn begin() -> Judge {
        let over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&over);
        let sentinel = std::thread::spawn(move || watch(&until));
        Judge { over, sentinel, missed: Vec::new(), too_long_s: 0.0, real_time: false }
    }

    /// Notes `what` unless it `holds`.
    pub fn expect(&mut self, holds: bool, what: impl fmt::Display) {
        if !holds {
            self.missed.push(what.to_string());
        }
    }

    /// Expects the number `key` of `found` to be within `bound` of `asked`.
    pub fn near(&mut self, found: &Value, key: &str, asked: f64, bound: f64) {
        let measured = &found[key];
        let holds = measured.as_f64().is_some_and(|measured| (measured - asked).abs() <= bound);
        self.expect(holds, format_args!("{key}: {measured}, not {asked} (bound {bound})"));
    }

    /// As [`Judge::near`], of a delay in s. A packet that waits for a processor is late: an early one is
    /// always a fault.
    pub fn delay(&mut self, found: &Value, key: &str, asked: f64, bound: f64) {
        self.near(found, key, asked, bound);
        if let Some(measured) = found[key].as_f64() {
            assert!(measured >= asked / 2.0 - bound, "{key}: {measured}, not {asked}");
            self.too_long_s = self.too_long_s.max(measured - asked);
        }
    }

    /// Fails if anything was missed; on a machine that was short of the processor as [`STARVED`].
    pub fn end(self) {
        self.over.store(true, Ordering::Relaxed);
        let want = self.sentinel.join().unwrap();
        println!("the machine meanwhile: {want}");
        let explained_s = if self.real_time { 0.0 } else { 2.0 * want.late_s };
        match verdict(&self.missed, self.too_long_s - explained_s, &want) {
            None => {}
            Some(text) => panic!("\n{text}"),
        }
    }
}

/// Returns the message to fail with, if any.
fn verdict(missed: &[String], unexplained_s: f64, want: &Want) -> Option<String> {
    if missed.is_empty() {
        return None;
    }
    let missed = missed.join("; ");
    if want.worst.most() < SHORT {
        return Some(format!("{missed} (and the machine had time: {want})"));
    }
    let unfit = if want.all.most() < PRESSED { "" } else { UNFIT };
    let wrong = if unexplained_s > WRONG_BY_S { WRONG } else { "" };
    Some(format!("{STARVED}{unfit}{wrong}{missed} ({want})"))
}

/// Shares of a time.
#[derive(Clone, Copy, Default, Debug)]
struct Shares {
    /// Some task waited for a processor (PSI); 0 where the kernel keeps no account.
    waited: f64,
    /// A thread that wanted to run every millisecond was late.
    late: f64,
    /// The hypervisor kept the processors to itself.
    stolen: f64,
}

impl Shares {
    fn most(&self) -> f64 {
        self.waited.max(self.late).max(self.stolen)
    }
}

impl fmt::Display for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [waited, late, stolen] = [self.waited, self.late, self.stolen].map(|share| share * 100.0);
        write!(f, "tasks waited {waited:.0} %, late {late:.0} %, stolen {stolen:.0} %")
    }
}

/// Resources that the machine lacked.
#[derive(Clone, Copy, Default, Debug)]
struct Want {
    /// In all of the time.
    all: Shares,
    /// In that window, for each, in which it was most.
    worst: Shares,
    /// By how much half of the sentinel's wake-ups were late, s.
    late_s: f64,
}

impl Want {
    fn add(&mut self, window: Shares) {
        let worst = &mut self.worst;
        worst.waited = worst.waited.max(window.waited);
        worst.late = worst.late.max(window.late);
        worst.stolen = worst.stolen.max(window.stolen);
    }
}

impl fmt::Display for Want {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let late_ms = self.late_s * 1e3;
        write!(f, "{}; in the worst tenth of a second {}; half by {late_ms:.3} ms", self.all, self.worst)
    }
}

/// Totals so far.
#[derive(Clone, Copy)]
struct Account {
    at: Instant,
    /// Seconds, all of the machine.
    waited_s: f64,
    /// Seconds, of one processor.
    stolen_s: f64,
    /// Steps of the sentinel.
    steps: u64,
    late_steps: u64,
}

impl Account {
    fn open() -> Account {
        let (waited_s, stolen_s) = (waited_s(), stolen_s());
        Account { at: Instant::now(), waited_s, stolen_s, steps: 0, late_steps: 0 }
    }

    /// The sentinel has woken `late`; a step that it slept through is a late one too.
    fn step(&mut self, late: Duration) {
        let steps = 1 + (late.as_nanos() / STEP.as_nanos()) as u64;
        self.steps += steps;
        self.late_steps += if late > LATE { steps } else { 0 };
    }

    fn since(&self, before: &Account) -> Shares {
        let time_s = (self.at - before.at).as_secs_f64().max(1e-3);
        let steps = (self.steps - before.steps).max(1) as f64;
        Shares {
            waited: (self.waited_s - before.waited_s) / time_s,
            late: (self.late_steps - before.late_steps) as f64 / steps,
            stolen: (self.stolen_s - before.stolen_s) / time_s,
        }
    }
}

fn watch(over: &AtomicBool) -> Want {
    // SAFETY: plain integers. Without it every wake-up would be late by the 50 us that the kernel may take.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
    let began = Account::open();
    let (mut want, mut window, mut now, mut lates) = (Want::default(), began, began, Vec::new());
    loop {
        let last = over.load(Ordering::Relaxed);
        let due = Instant::now() + STEP;
        std::thread::sleep(STEP);
        let late = due.elapsed();
        now.step(late);
        lates.push(late);
        if last || window.at.elapsed() >= WINDOW {
            now = Account { steps: now.steps, late_steps: now.late_steps, ..Account::open() };
            want.add(now.since(&window));
            window = now;
        }
        if last {
            lates.sort_unstable();
            return Want { all: now.since(&began), late_s: lates[lates.len() / 2].as_secs_f64(), ..want };
        }
    }
}

/// Time in which some task waited for a processor, by the kernel's own account.
fn waited_s() -> f64 {
    let text = std::fs::read_to_string("/proc/pressure/cpu").unwrap_or_default();
    let some = text.lines().find_map(|line| line.strip_prefix("some ")?.split_once("total="));
    some.and_then(|(_, us)| us.parse().ok()).map_or(0.0, |us: f64| us / 1e6)
}

/// Processor time that the hypervisor kept, as a share of all processors.
fn stolen_s() -> f64 {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let cpus = text.lines().filter(|line| line.starts_with("cpu")).count().saturating_sub(1).max(1);
    let ticks: f64 = text.split_whitespace().nth(8).and_then(|ticks| ticks.parse().ok()).unwrap_or(0.0);
    // SAFETY: a plain integer.
    ticks / unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64 / cpus as f64
}

/// Checks everything above, with made-up numbers: excused ones, and others.
pub fn check() {
    let missed = ["a delay: 6 ms, not 5 ms".to_owned()];
    let want = |all, worst| Want {
        all: Shares { late: all, ..Shares::default() },
        worst: Shares { waited: worst, ..Shares::default() },
        ..Want::default()
    };
    assert_eq!(verdict(&[], 0.0, &want(1.0, 1.0)), None, "what was held is held");
    let idle = verdict(&missed, 0.001, &want(0.01, SHORT / 2.0)).unwrap();
    assert!(idle.starts_with("a delay: 6 ms") && !idle.contains(STARVED), "{idle}");
    let busy = verdict(&missed, 0.0004, &want(0.1, 0.5)).unwrap();
    assert!(busy.starts_with(STARVED) && !busy.contains(UNFIT) && !busy.contains(WRONG), "{busy}");
    let unfit = verdict(&missed, 0.001, &want(0.3, 0.5)).unwrap();
    assert!(unfit.starts_with(&format!("{STARVED}{UNFIT}{WRONG}")), "{unfit}");

    let mut account = Account::open();
    let before = account;
    account.at += Duration::from_secs(1);
    account.waited_s += 0.25;
    (0..6).for_each(|_| account.step(LATE / 2));
    account.step(Duration::from_micros(3500));
    let shares = account.since(&before);
    assert_eq!(
        (shares.waited, shares.late, shares.stolen),
        (0.25, 0.4, 0.0),
        "three steps were slept through"
    );
}
