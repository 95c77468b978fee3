//! Controllers by name: those of this crate, those that other crates register, and functions of Python.

use std::borrow::Cow;
use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, OnceLock, RwLock};

use super::{Bbr, Bbr3, Bic, Controller, Cubic, Dctcp, Fixed, Hystart, Prague, Reno, Tfrc, Vegas};
use crate::tcp::mechanisms::Mechanisms;

/// The conditions under which a sender starts: those of its connection's settings that controllers may need.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Start {
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// The initial window in segments: `initial_window`, or less if the handshake lost SYNs.
    pub segments: u32,
    /// Start of the controller's own random stream.
    pub seed: u64,
    /// The initial window that was set, in segments.
    pub initial_window: u32,
    /// The window in bytes that was set to be kept.
    pub fixed_window: Option<u64>,
    /// How CUBIC leaves slow start.
    pub hystart: Hystart,
    /// Mechanisms that are switched on.
    pub mechanisms: Mechanisms,
}

/// The feedback of congestion marks that a controller can work with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Marks {
    /// An echo once in a window (RFC 3168), which is answered as a loss is.
    Echo,
    /// That, or counts (RFC 9768).
    Either,
    /// Counts alone.
    Counts,
}

/// Makes the controllers of one name, one for each sender.
pub trait Factory: Debug + Send + Sync {
    /// Returns the name that scenarios and records have for it.
    fn name(&self) -> &str;
    /// Makes the controller of a sender.
    fn make(&self, start: &Start) -> Box<dyn Controller>;
    /// Makes a controller that is asked for its first window alone and thrown away, as an end without data has no sender.
    /// Default: the usual one.
    fn preview(&self, start: &Start) -> Box<dyn Controller> {
        self.make(start)
    }
    /// Returns the feedback that its controllers can work with. Default either kind.
    fn marks(&self) -> Marks {
        Marks::Either
    }
    /// Windows of data that a send buffer without a limit holds. Default 2, as in Linux.
    fn buffered_windows(&self) -> u64 {
        2
    }
}

/// A factory of this crate.
struct BuiltIn {
    name: &'static str,
    make: fn(&Start) -> Box<dyn Controller>,
    marks: Marks,
    buffered_windows: u64,
}

impl BuiltIn {
    const fn new(name: &'static str, make: fn(&Start) -> Box<dyn Controller>) -> Self {
        BuiltIn { name, make, marks: Marks::Echo, buffered_windows: 2 }
    }
}

impl Debug for BuiltIn {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Factory for BuiltIn {
    fn name(&self) -> &str {
        self.name
    }
    fn make(&self, start: &Start) -> Box<dyn Controller> {
        (self.make)(start)
    }
    fn marks(&self) -> Marks {
        self.marks
    }
    fn buffered_windows(&self) -> u64 {
        self.buffered_windows
    }
}

static RENO: BuiltIn = BuiltIn::new("reno", |start| Box::new(Reno::new(start.mss, start.segments)));
static BIC: BuiltIn = BuiltIn::new("bic", |start| {
    Box::new(Bic::new(start.mss, start.segments, start.mechanisms.bic_per_round))
});
static CUBIC: BuiltIn =
    BuiltIn::new("cubic", |start| Box::new(Cubic::new(start.mss, start.segments, start.hystart)));
static VEGAS: BuiltIn = BuiltIn::new("vegas", |start| Box::new(Vegas::new(start.mss, start.segments)));
static FIXED: BuiltIn = BuiltIn::new("fixed", |start| {
    let initial = u64::from(start.initial_window) * u64::from(start.mss);
    Box::new(Fixed::new(start.mss, start.fixed_window.unwrap_or(initial)))
});
static TFRC: BuiltIn = BuiltIn::new("tfrc", |start| Box::new(Tfrc::new(start.mss)));
static BBR: BuiltIn = BuiltIn {
    // BBR asks for more than the others (`bbr_sndbuf_expand`).
    buffered_windows: 3,
    ..BuiltIn::new("bbr", |start| {
        let fine = start.mechanisms.fine_bandwidth;
        Box::new(Bbr::new(start.mss, start.segments, start.seed, fine))
    })
};
static BBR3: BuiltIn =
    BuiltIn::new("bbr3", |start| Box::new(Bbr3::new(start.mss, start.segments, start.seed)));

static DCTCP: BuiltIn = BuiltIn {
    marks: Marks::Counts,
    ..BuiltIn::new("dctcp", |start| Box::new(Dctcp::new(start.mss, start.segments)))
};
static PRAGUE: BuiltIn = BuiltIn {
    marks: Marks::Counts,
    ..BuiltIn::new("prague", |start| {
        Box::new(Prague::new(start.mss, start.segments, start.mechanisms.rtt_scaling))
    })
};

/// A way to control congestion: a factory that connections share. Equal if the names are.
#[derive(Clone)]
pub struct CongestionControl(Kind);

#[derive(Clone)]
enum Kind {
    BuiltIn(&'static BuiltIn),
    Registered(Arc<dyn Factory>),
}

impl CongestionControl {
    /// RFC 5681.
    pub const RENO: Self = CongestionControl(Kind::BuiltIn(&RENO));
    /// BIC-TCP, Linux's default from 2.6.8 to 2.6.18.
    pub const BIC: Self = CongestionControl(Kind::BuiltIn(&BIC));
    /// RFC 9438, Linux's default since 2.6.19.
    pub const CUBIC: Self = CongestionControl(Kind::BuiltIn(&CUBIC));
    /// Brakmo, O'Malley and Peterson (1994).
    pub const VEGAS: Self = CongestionControl(Kind::BuiltIn(&VEGAS));
    /// A window that never changes.
    pub const FIXED: Self = CongestionControl(Kind::BuiltIn(&FIXED));
    /// RFC 5348: a rate that TCP would have on average.
    pub const TFRC: Self = CongestionControl(Kind::BuiltIn(&TFRC));
    /// Version 1, as Linux has it.
    pub const BBR: Self = CongestionControl(Kind::BuiltIn(&BBR));
    /// Version 3, draft-ietf-ccwg-bbr.
    pub const BBR3: Self = CongestionControl(Kind::BuiltIn(&BBR3));
    /// RFC 8257, with the feedback of RFC 9768.
    pub const DCTCP: Self = CongestionControl(Kind::BuiltIn(&DCTCP));
    /// RFC 9331 section 4, draft-briscoe-iccrg-prague-congestion-control.
    pub const PRAGUE: Self = CongestionControl(Kind::BuiltIn(&PRAGUE));

    /// Those of this crate. Their names are Linux's where Linux has them.
    pub const BUILT_IN: &[Self] = &[
        Self::RENO,
        Self::BIC,
        Self::CUBIC,
        Self::VEGAS,
        Self::FIXED,
        Self::TFRC,
        Self::BBR,
        Self::BBR3,
        Self::DCTCP,
        Self::PRAGUE,
    ];

    /// Makes the one of a factory, which need not be registered.
    pub fn of(factory: Arc<dyn Factory>) -> Self {
        CongestionControl(Kind::Registered(factory))
    }

    /// Returns the one of a name: of this crate, registered, or a function of Python (`FILE.py:NAME`).
    ///
    /// # Errors
    ///
    /// No such name, with those that there are; or the function's fault.
    pub fn named(name: &str) -> Result<Self, String> {
        if let Some(known) = Self::BUILT_IN.iter().find(|known| known.name() == name) {
            return Ok(known.clone());
        }
        let registered = REGISTERED.read().expect("no panic holds it");
        if let Some(known) = registered.iter().find(|known| known.name() == name) {
            return Ok(Self::of(known.clone()));
        }
        drop(registered);
        if is_function(name) {
            let maker = MAKER
                .get()
                .ok_or_else(|| format!("{name} is a function of Python, which this program does not call"))?;
            return maker(name).map(Self::of);
        }
        Err(format!("{name:?} is not simulated; give one of {}", Self::names().join(", ")))
    }

    /// Returns the names of those of this crate and of those registered.
    pub fn names() -> Vec<String> {
        let registered = REGISTERED.read().expect("no panic holds it");
        let built_in = Self::BUILT_IN.iter().map(|known| known.name().to_owned());
        built_in.chain(registered.iter().map(|known| known.name().to_owned())).collect()
    }

    fn factory(&self) -> &dyn Factory {
        match &self.0 {
            Kind::BuiltIn(factory) => *factory,
            Kind::Registered(factory) => factory.as_ref(),
        }
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        self.factory().name()
    }
    /// Returns its name as records keep it.
    pub fn label(&self) -> Cow<'static, str> {
        match &self.0 {
            Kind::BuiltIn(factory) => Cow::Borrowed(factory.name),
            Kind::Registered(factory) => Cow::Owned(factory.name().to_owned()),
        }
    }
    /// Makes the controller of a sender.
    pub fn make(&self, start: &Start) -> Box<dyn Controller> {
        self.factory().make(start)
    }
    /// See [`Factory::preview`].
    pub fn preview(&self, start: &Start) -> Box<dyn Controller> {
        self.factory().preview(start)
    }
    /// See [`Factory::marks`].
    pub fn marks(&self) -> Marks {
        self.factory().marks()
    }
    /// See [`Factory::buffered_windows`].
    pub fn buffered_windows(&self) -> u64 {
        self.factory().buffered_windows()
    }
}

impl Default for CongestionControl {
    fn default() -> Self {
        Self::CUBIC
    }
}

impl PartialEq for CongestionControl {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}
impl Eq for CongestionControl {}

impl Debug for CongestionControl {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Another factory has the name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NameTaken(pub String);

impl fmt::Display for NameTaken {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "there is a congestion control {:?} already; register another name", self.0)
    }
}
impl std::error::Error for NameTaken {}

static REGISTERED: RwLock<Vec<Arc<dyn Factory>>> = RwLock::new(Vec::new());

/// Adds a factory to those that [`CongestionControl::named`] finds, for the rest of this process.
///
/// # Errors
///
/// The name is already in use, or is a function's.
pub fn register(factory: Arc<dyn Factory>) -> Result<(), NameTaken> {
    let name = factory.name().to_owned();
    let mut registered = REGISTERED.write().expect("no panic holds it");
    let built_in = CongestionControl::BUILT_IN.iter().any(|known| known.name() == name);
    if built_in || is_function(&name) || registered.iter().any(|known| known.name() == name) {
        return Err(NameTaken(name));
    }
    registered.push(factory);
    Ok(())
}

/// Makes the factory of a Python function from its name; otherwise returns the fault.
pub type FunctionMaker = fn(&str) -> Result<Arc<dyn Factory>, String>;

static MAKER: OnceLock<FunctionMaker> = OnceLock::new();

/// Controllers that are functions of Python are made by `maker` from now on, in this process. The first one stays.
pub fn call_functions_by(maker: FunctionMaker) {
    let _ = MAKER.set(maker);
}

/// Returns whether a name is that of a function of Python: `FILE.py:NAME`.
pub fn is_function(name: &str) -> bool {
    name.rsplit_once(".py:").is_some_and(|(file, function)| !file.is_empty() && !function.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Named(&'static str);

    impl Factory for Named {
        fn name(&self) -> &str {
            self.0
        }
        fn make(&self, start: &Start) -> Box<dyn Controller> {
            Box::new(Fixed::new(start.mss, 7 * u64::from(start.mss)))
        }
    }

    #[test]
    fn each_built_in_control_is_found_by_its_own_name() {
        for (place, control) in CongestionControl::BUILT_IN.iter().enumerate() {
            assert_eq!(CongestionControl::named(control.name()).as_ref(), Ok(control));
            assert!(!CongestionControl::BUILT_IN[..place].contains(control), "{control:?}");
        }
    }

    #[test]
    fn a_registered_factory_is_found_and_keeps_its_name() {
        assert!(CongestionControl::named("factory_test").unwrap_err().contains("reno, bic, cubic"));
        register(Arc::new(Named("factory_test"))).unwrap();
        let found = CongestionControl::named("factory_test").unwrap();
        let start = crate::tcp::Config::default().start();
        assert_eq!(found.make(&start).window(), 7 * 1448);
        assert!(CongestionControl::names().contains(&"factory_test".to_owned()));
        for taken in ["factory_test", "cubic", "own.py:Control"] {
            assert_eq!(register(Arc::new(Named(taken))), Err(NameTaken(taken.into())));
        }
    }

    #[test]
    fn a_function_needs_a_process_that_calls_python() {
        let why = CongestionControl::named("own.py:Control").unwrap_err();
        assert!(why.contains("does not call"), "{why}");
    }
}
