//! A session of a player over a trace, in which a rule decides; the traces and contents of `data/abr`.

use streamgauge_base::{BitRate, Duration};
use streamgauge_systems::abr::{Fetched, Ladder, Live, Progress, Rule, Situation, Tuning, rule};

const TRACES: &str = include_str!("../data/abr/traces.txt");
const MOVIE_A: &str = include_str!("../data/abr/movie-A.txt");
const MOVIE_B: &str = include_str!("../data/abr/movie-B.txt");

/// A network of one rate a second, which repeats.
pub struct Trace {
    latency_ms: f64,
    kbps: Vec<f64>,
}

impl Trace {
    /// Returns the end of reading from `start_ms`: once `bits` have arrived and at least `time_ms` has
    /// passed, but never past `all` bits. Gives the time and the bits.
    fn read(&self, start_ms: f64, bits: f64, time_ms: f64, all: f64) -> (f64, f64) {
        let (mut now, mut got) = (start_ms, 0.0);
        loop {
            let second = (now / 1000.0).floor();
            let (rate, end) = (self.kbps[second as usize % self.kbps.len()], (second + 1.0) * 1000.0);
            let until = |bits: f64| if bits <= got { now } else { now + (bits - got) / rate };
            let at = until(bits.min(all)).max(start_ms + time_ms);
            if at.min(until(all)) <= end {
                return if at < until(all) { (at, got + (at - now) * rate) } else { (until(all), all) };
            }
            (now, got) = (end, got + (end - now) * rate);
        }
    }
}

/// The trace of that number.
pub fn trace(number: &str) -> Trace {
    let line = TRACES.lines().find(|line| line.starts_with(number)).unwrap();
    let numbers: Vec<f64> = line.split(' ').skip(2).map(|one| one.parse().unwrap()).collect();
    Trace { latency_ms: numbers[0], kbps: numbers[1..].to_vec() }
}

/// The content of that name.
pub fn movie(name: &str) -> Ladder {
    let text = if name == "A" { MOVIE_A } else { MOVIE_B };
    let numbers = |line: &str| line.split(' ').map(|one| one.parse::<u64>().unwrap()).collect::<Vec<_>>();
    let (first, rest) = text.split_once('\n').unwrap();
    let first = numbers(first);
    let mut ladder = Ladder {
        rates: first[1..].iter().map(|kbps| BitRate::from_bps(kbps * 1000)).collect(),
        segment: Duration::from_millis(first[0]),
        segments: None,
        sizes: Vec::new(),
    };
    if let Some(count) = rest.strip_prefix("nominal ") {
        ladder.segments = count.trim().parse().ok();
    } else {
        let segments: Vec<_> = rest.lines().map(numbers).collect();
        ladder.segments = Some(segments.len());
        ladder.sizes =
            (0..ladder.rates.len()).map(|level| segments.iter().map(|of| of[level]).collect()).collect();
    }
    ladder
}

/// A session as Sabre's, a live one with latencies that repeat: one request at a time, the latency once a
/// request, then at once the trace's rate; play begins with the last bit of segment 0 and resumes after a
/// stall with the next segment's.
pub struct Session<'a> {
    trace: &'a Trace,
    ladder: &'a Ladder,
    target_ms: f64,
    /// The part of it that the rule is given.
    told_ms: f64,
    now_ms: f64,
    buffer_ms: f64,
    last: Option<usize>,
    live: bool,
    /// Bytes that the rule adds to each body, and that its own session had not.
    added: u64,
}

fn time(ms: f64) -> Duration {
    Duration::from_nanos((ms * 1e6).round() as u64)
}

impl<'a> Session<'a> {
    /// Before the first request, over a buffer of `buffer_s`.
    pub fn new(trace: &'a Trace, ladder: &'a Ladder, buffer_s: u64) -> Self {
        let target_ms = buffer_s as f64 * 1e3;
        let told_ms = target_ms;
        Session {
            trace,
            ladder,
            target_ms,
            told_ms,
            now_ms: 0.0,
            buffer_ms: 0.0,
            last: None,
            live: false,
            added: 0,
        }
    }

    fn at(&self, segment: usize, after_ms: f64) -> Situation<'_> {
        Situation {
            now: time(self.now_ms + after_ms),
            ladder: self.ladder,
            segment,
            level: self.last,
            buffer: time((self.buffer_ms - after_ms).max(0.0)),
            target: time(self.told_ms),
            playing: segment > 0,
            live: self.live.then(|| Live {
                latency: Duration::from_millis(1000 + 500 * (segment as u64 % 5)),
                target: Duration::from_secs(1),
                speed: 1.02,
            }),
        }
    }

    fn pass(&mut self, ms: f64) {
        self.now_ms += ms;
        self.buffer_ms = (self.buffer_ms - ms).max(0.0);
    }

    /// Fetches `segment` at `level`; the rule may look at it on its way if `looks`. For which level it was given up, if it
    /// was.
    fn fetch(&mut self, rule: &mut dyn Rule, segment: usize, level: usize, looks: bool) -> Option<usize> {
        let size = self.ladder.bytes(level, segment) * 8.0;
        let latency_ms = self.trace.latency_ms;
        let (asked, first_byte) = (self.now_ms, self.now_ms + latency_ms);
        let (mut end, mut bits, mut given_up) = (first_byte, 0.0, None);
        // It looks at a segment after each 12,000 bits and 50 ms, the first 50 with the latency in them; not at the first.
        let mut pause_ms = (50.0 - latency_ms).max(0.0);
        while bits < size && given_up.is_none() {
            let (step, rest) = (if segment == 0 { size } else { 12_000.0 }, size - bits);
            let more;
            (end, more) = self.trace.read(end, step, pause_ms, rest);
            (bits, pause_ms) = (if more < rest { bits + more } else { size }, 50.0);
            if bits < size && looks {
                let progress = Progress {
                    segment,
                    level,
                    bytes: (bits / 8.0) as u64,
                    of: Some((size / 8.0) as u64),
                    asked: time(asked),
                    first_byte: Some(time(first_byte)),
                };
                given_up = rule.abandon(&progress, &self.at(segment, end - asked)).map(|to| to.level);
            }
        }
        if segment > 0 && end - asked > self.buffer_ms {
            rule.ran_dry();
        }
        self.pass(end - asked);
        if given_up.is_none() {
            self.buffer_ms += self.ladder.segment.as_secs_f64() * 1e3;
            self.last = Some(level);
        }
        let fetched = Fetched {
            segment,
            level,
            bytes: ((bits / 8.0) as u64).saturating_sub(self.added),
            asked: time(asked),
            first_byte: time(first_byte),
            done: time(end),
            seen: time(end),
            appended: time(end),
            reading: time(end - asked),
            abandoned: given_up.is_some(),
        };
        rule.fetched(&fetched, &self.at(segment, 0.0));
        given_up
    }

    /// The levels to the end, a hexadecimal digit each; after one that was given up, `>` and the level it was fetched at.
    pub fn run(&mut self, rule: &mut dyn Rule) -> String {
        let segment_ms = self.ladder.segment.as_secs_f64() * 1e3;
        let mut levels = String::new();
        for segment in 0..self.ladder.segments.unwrap() {
            let full_ms = (self.buffer_ms + segment_ms - self.target_ms).max(0.0);
            if full_ms > 0.0 {
                self.pass(full_ms);
                rule.idled(time(full_ms));
            }
            let decision = rule.decide(&self.at(segment, 0.0));
            if decision.wait > Duration::ZERO {
                self.pass(decision.wait.as_secs_f64() * 1e3);
                rule.idled(decision.wait);
            }
            levels += &format!("{:x}", decision.level);
            if let Some(to) = self.fetch(rule, segment, decision.level, true) {
                levels += &format!(">{to:x}");
                self.fetch(rule, segment, to, false);
            }
        }
        levels
    }
}

/// Returns the decisions of the rule `name` in a session over trace `number`, content `content`, a buffer of
/// this many seconds, with `told_s` of it given to the rule; the rule adds `added` bytes to each body.
pub fn levels(
    name: &str,
    tuning: &Tuning,
    (number, content, buffer_s, live): (&str, &str, u64, bool),
    told_s: u64,
    added: u64,
) -> String {
    let (trace, ladder) = (trace(number), movie(content));
    let told_ms = told_s as f64 * 1e3;
    let mut session = Session { live, told_ms, added, ..Session::new(&trace, &ladder, buffer_s) };
    session.run(&mut *(rule(name).unwrap().make)(tuning))
}

/// Returns the number of places at which two sessions have the same level, and the number of all: places
/// after a difference count unchanged.
pub fn same(one: &str, other: &str) -> (usize, usize) {
    let same = one.chars().zip(other.chars()).filter(|(one, other)| one == other).count();
    (same, one.len().max(other.len()))
}
