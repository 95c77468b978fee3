//! A server, a router and a client namespace inside a sandbox, for the tests of this crate.

#![allow(dead_code)] // Each test file uses its part.

pub mod judge;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use judge::{STARVED, UNFIT, WRONG};

/// The tested executable.
pub fn engine() -> &'static str {
    env!("CARGO_BIN_EXE_streamgauge-engine")
}

/// The two ways into a sandbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// With this process's root privileges.
    Root,
    /// As an ordinary user.
    User,
}

/// Why `way` cannot be tried here, if it cannot.
pub fn obstacle(way: Way) -> Option<String> {
    let root = nix::unistd::geteuid().is_root();
    for program in ["ip", "ethtool"] {
        if Command::new(program).arg("--version").output().is_err() {
            return Some(format!("{program} is not installed"));
        }
    }
    match way {
        Way::Root if !root => Some("not root".into()),
        Way::User => {
            let tried = sandbox_command(way).args(["--", "true"]).output();
            let denied = tried.as_ref().map_or(true, |output| output.status.code() == Some(4));
            denied.then(|| format!("user namespaces are refused: {tried:?}"))
        }
        Way::Root => None,
    }
}

/// Returns `streamgauge-engine sandbox` with its lifeline; the command still lacks `--` and the program.
pub fn sandbox_command(way: Way) -> Command {
    let (read, write) = std::io::pipe().unwrap();
    // Both ends live as long as this process, which is the launcher.
    let lifeline = std::os::fd::IntoRawFd::into_raw_fd(read);
    std::mem::forget(write);
    sandbox_with_lifeline(way, lifeline)
}

/// As [`sandbox_command`], with the read end of the caller's own pipe.
pub fn sandbox_with_lifeline(way: Way, lifeline: i32) -> Command {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new(engine());
    command.args(["sandbox", "--parent", &std::process::id().to_string()]);
    command.args(["--lifeline", &lifeline.to_string()]);
    command.args(["--way", if way == Way::Root { "root" } else { "user" }]);
    if way == Way::User && nix::unistd::geteuid().is_root() {
        command.uid(65534).gid(65534);
    }
    // SAFETY: only an async-signal-safe call between fork and exec.
    unsafe {
        command.pre_exec(move || {
            let fd = std::os::fd::BorrowedFd::borrow_raw(lifeline);
            nix::fcntl::fcntl(fd, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty()))?;
            Ok(())
        });
    }
    command
}

/// Times that a test may be tried on a machine that is short of processor time.
const MOST_TRIES: usize = 5;

/// The allowance of every deadline that only prevents endless waits.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Runs the ignored test `name` of this very file inside a sandbox; prints the reason if it cannot. A starved
/// one is run again, with a message.
pub fn run_inside(way: Way, name: &str) {
    if let Some(why) = obstacle(way) {
        eprintln!("SKIPPED {name} ({way:?}): {why}");
        return;
    }
    // Tests run in parallel; measurements must not.
    let path = std::env::temp_dir().join("streamgauge-engine-tests.lock");
    let file = std::fs::File::create(&path).or_else(|_| std::fs::File::open(&path)).unwrap();
    let _lock = nix::fcntl::Flock::lock(file, nix::fcntl::FlockArg::LockExclusive).unwrap();
    let (mut all_unfit, mut all_wrong) = (true, true);
    for number in 1..=MOST_TRIES {
        let Err(starved) = try_inside(way, name) else { return };
        all_unfit &= starved.contains(UNFIT);
        all_wrong &= starved.contains(WRONG);
        say_loudly(&format!("{name} ({way:?}), try {number} of {MOST_TRIES}: {STARVED}{starved}"));
    }
    assert!(all_unfit, "{name} was starved {MOST_TRIES} times, on a machine that is not busy throughout");
    assert!(!all_wrong, "{name} was off {MOST_TRIES} times, {WRONG}see above");
    say_loudly(&format!("NOT JUDGED, the machine was too busy: {name} ({way:?})"));
}

/// Runs it once; returns the message of a starved test. Panics if it fails otherwise.
fn try_inside(way: Way, name: &str) -> Result<(), String> {
    let me = std::env::current_exe().unwrap();
    let output = sandbox_command(way)
        .arg("--")
        .arg(me)
        .args(["--exact", name, "--ignored", "--nocapture", "--test-threads=1"])
        .output()
        .unwrap();
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("{text}");
    if output.status.success() && text.contains("1 passed") {
        return Ok(());
    }
    let starved = text.lines().find_map(|line| line.strip_prefix(STARVED));
    Err(starved.unwrap_or_else(|| panic!("{name} failed inside the {way:?} sandbox")).to_owned())
}

/// Prints past the test runner, which hides the output of passing tests.
fn say_loudly(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Runs a program to its end; panics with its output if it fails.
pub fn sh(command: &str) -> String {
    let output = Command::new("sh").args(["-ec", command]).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The namespaces and their veths. Addresses: flow i has server 10.1.i.1 and player 10.2.i.1.
pub struct Bed {
    /// Where the link writes.
    pub out: PathBuf,
}

impl Bed {
    /// Builds them for `flows` flows and the pre-flight's pair, 255.
    pub fn new(flows: u8) -> Bed {
        let out = PathBuf::from(format!("/run/out-{}", std::process::id()));
        std::fs::create_dir_all(&out).unwrap();
        for name in ["server", "client"] {
            sh(&format!("ip netns add {name}; ip netns exec {name} ip link set lo up"));
        }
        sh("ip link add to-server type veth peer name eth0 netns server
            ip link add to-client type veth peer name eth0 netns client
            for i in to-server to-client; do
              echo 1 > /proc/sys/net/ipv6/conf/$i/disable_ipv6
              ethtool -K $i tso off gso off gro off tx off >/dev/null
              ip link set $i up
            done
            for n in server client; do
              ip netns exec $n sh -c 'echo 1 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6'
              ip netns exec $n ethtool -K eth0 tso off gso off gro off tx off >/dev/null
              ip -n $n link set eth0 up
            done");
        let mac =
            |ns: &str| sh(&format!("ip netns exec {ns} cat /sys/class/net/eth0/address")).trim().to_owned();
        let (server, client) = (mac("server"), mac("client"));
        for i in (0..flows).chain([255]) {
            sh(&format!(
                "ip -n server addr add 10.1.{i}.1/32 dev eth0
                 ip -n client addr add 10.2.{i}.1/32 dev eth0
                 ip -n server route add 10.2.{i}.1 dev eth0 src 10.1.{i}.1
                 ip -n client route add 10.1.{i}.1 dev eth0 src 10.2.{i}.1
                 ip -n server neigh add 10.2.{i}.1 lladdr {client} dev eth0
                 ip -n client neigh add 10.1.{i}.1 lladdr {server} dev eth0"
            ));
        }
        Bed { out }
    }

    /// A plan of `flows` third-party flows f0, f1 ... over `down` and `up`, each a list of stages.
    pub fn plan(&self, seconds: f64, down: Value, up: Value, flows: u8) -> Value {
        let flow = |i| json!({"name": format!("f{i}"), "role": "subject", "start": 0, "app": "external"});
        json!({
            "scenario": "test/link", "seed": 1, "duration": (seconds * 1e9) as u64,
            "path": {"down": down, "up": up}, "flows": (0..flows).map(flow).collect::<Vec<_>>(),
        })
    }

    /// Adds a namespace of sources that enter at the router: flow `index` has 10.3.index.1 there.
    pub fn add_cross(&self, index: u8) {
        sh("ip netns add cross; ip -n cross link set lo up
            ip link add to-cross type veth peer name eth0 netns cross
            echo 1 > /proc/sys/net/ipv6/conf/to-cross/disable_ipv6
            ip netns exec cross sh -c 'echo 1 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6'
            ethtool -K to-cross tso off gso off gro off tx off >/dev/null
            ip netns exec cross ethtool -K eth0 tso off gso off gro off tx off >/dev/null
            ip link set to-cross up; ip -n cross link set eth0 up");
        let mac =
            |ns: &str| sh(&format!("ip netns exec {ns} cat /sys/class/net/eth0/address")).trim().to_owned();
        let (cross, client) = (mac("cross"), mac("client"));
        sh(&format!(
            "ip -n cross addr add 10.3.{index}.1/32 dev eth0
             ip -n client addr add 10.2.{index}.1/32 dev eth0
             ip -n cross route add 10.2.{index}.1 dev eth0 src 10.3.{index}.1
             ip -n client route add 10.3.{index}.1 dev eth0 src 10.2.{index}.1
             ip -n cross neigh add 10.2.{index}.1 lladdr {client} dev eth0
             ip -n client neigh add 10.3.{index}.1 lladdr {cross} dev eth0"
        ));
    }

    /// The server's end of a flow that enters at the router.
    pub fn cross_node(&self, plan: &Value, index: u8) -> EngineProcess {
        let config = json!({
            "plan": plan, "flow": format!("f{index}"), "side": "server",
            "server_ip": format!("10.3.{index}.1"), "player_ip": format!("10.2.{index}.1"),
        });
        let mut node =
            EngineProcess::spawn_in("cross", "node", &write_json(&self.out, "node-cross.json", &config));
        assert_eq!(node.read()["event"], "ready");
        node
    }

    /// Starts the link on `plan`.
    pub fn link(&self, plan: &Value, more: Value) -> EngineProcess {
        let mut link = EngineProcess::spawn("link", &self.link_config(plan, more));
        let ready = link.read();
        assert_eq!(ready["event"], "ready", "{ready}");
        link.real_time = ready["class"] != "normal";
        link
    }

    /// Returns the message of a link that cannot start, and its exit code.
    pub fn broken_link(&self, plan: &Value, more: Value) -> (Value, Option<i32>) {
        EngineProcess::spawn("link", &self.link_config(plan, more)).failed()
    }

    fn link_config(&self, plan: &Value, more: Value) -> PathBuf {
        let flows = plan["flows"].as_array().unwrap().len();
        let address = |i| json!({"name": format!("f{i}"), "server_ip": format!("10.1.{i}.1"), "player_ip": format!("10.2.{i}.1")});
        let mut config = json!({
            "plan": plan, "out": self.out, "fifo_priority": 50, "capture": false,
            "interfaces": {"server": "to-server", "client": "to-client", "cross": null},
            "flows": (0..flows).map(address).collect::<Vec<_>>(),
        });
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        write_json(&self.out, "link.json", &config)
    }

    /// Starts one end of flow `f{index}` of `plan` on real sockets and waits until it is ready.
    pub fn node(&self, plan: &Value, index: u8, side: &str) -> EngineProcess {
        let config = json!({
            "plan": plan, "flow": format!("f{index}"), "side": side,
            "server_ip": format!("10.1.{index}.1"), "player_ip": format!("10.2.{index}.1"),
        });
        let file = write_json(&self.out, &format!("node-{index}-{side}.json"), &config);
        let netns = if side == "server" { "server" } else { "client" };
        let mut node = EngineProcess::spawn_in(netns, "node", &file);
        assert_eq!(node.read()["event"], "ready");
        node
    }

    /// Starts a witness at the client's end.
    pub fn witness(&self, flows: u8) -> EngineProcess {
        let address = |i| json!({"name": format!("f{i}"), "server_ip": format!("10.1.{i}.1"), "player_ip": format!("10.2.{i}.1")});
        let flows: Vec<Value> = (0..flows).map(address).collect();
        let config = json!({"netns": "client", "interface": "eth0", "flows": flows});
        let mut witness = EngineProcess::spawn("witness", &write_json(&self.out, "witness.json", &config));
        assert_eq!(witness.read()["event"], "ready");
        witness
    }

    /// Returns the ends' measurement of the path; errors alone if they have none.
    pub fn preflight(&self, plan: &Value) -> Value {
        let config = json!({
            "server_netns": "server", "client_netns": "client", "server_ip": "10.1.255.1",
            "player_ip": "10.2.255.1", "server_if": "eth0", "client_if": "eth0", "expect": plan["path"],
        });
        let file = write_json(&self.out, "preflight.json", &config);
        let output = Command::new(engine()).arg("preflight").arg("--config").arg(file).output().unwrap();
        let found: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"));
        if output.status.success() { found } else { json!({"errors": [found]}) }
    }
}

/// Writes a JSON file and returns its path.
pub fn write_json(directory: &Path, name: &str, value: &Value) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, value.to_string()).unwrap();
    path
}

/// CLOCK_MONOTONIC in ns.
pub fn monotonic_ns() -> u64 {
    let ts = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).unwrap();
    ts.tv_sec() as u64 * 1_000_000_000 + ts.tv_nsec() as u64
}

/// A subcommand that speaks JSON lines.
pub struct EngineProcess {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    /// It has a real-time class.
    pub real_time: bool,
}

impl EngineProcess {
    /// Starts `subcommand --config FILE`.
    pub fn spawn(subcommand: &str, config: &Path) -> EngineProcess {
        EngineProcess::launch(Command::new(engine()), subcommand, config)
    }

    /// The same in a namespace, with our privileges.
    pub fn spawn_in(netns: &str, subcommand: &str, config: &Path) -> EngineProcess {
        let mut command = Command::new(engine());
        command.args(["run-as", "--keep-privileges", "--netns", netns, "--", engine()]);
        EngineProcess::launch(command, subcommand, config)
    }

    fn launch(mut command: Command, subcommand: &str, config: &Path) -> EngineProcess {
        let mut child = command
            .arg(subcommand)
            .arg("--config")
            .arg(config)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        EngineProcess { child, stdin, stdout, real_time: false }
    }

    /// The next line.
    pub fn read(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e} in {line:?}"))
    }

    /// Sends a command and reads its answer.
    pub fn ask(&mut self, command: Value) -> Value {
        self.tell(&command);
        self.read()
    }

    /// Sends a command.
    pub fn tell(&mut self, command: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{command}").unwrap();
    }

    /// Runs pre-flight, reset and start at once; returns the pre-flight's result.
    pub fn fly(&mut self, bed: &Bed, plan: &Value) -> Value {
        assert_eq!(self.ask(json!({"cmd": "preflight"}))["event"], "preflight");
        let found = bed.preflight(plan);
        self.start_now();
        found
    }

    /// Reset and start at once; the trial's time zero.
    pub fn start_now(&mut self) -> u64 {
        assert_eq!(self.ask(json!({"cmd": "reset"}))["event"], "reset");
        let t0 = monotonic_ns() + 50_000_000;
        self.start_at(t0);
        std::thread::sleep(Duration::from_millis(60));
        t0
    }

    /// Starts at `t0`.
    pub fn start_at(&mut self, t0: u64) {
        assert_eq!(self.ask(json!({"cmd": "start", "t0_monotonic_ns": t0}))["event"], "started");
    }

    /// Its events until it stops, and its statistics.
    pub fn events(mut self) -> (Vec<Value>, Value) {
        let mut events = Vec::new();
        loop {
            let line = self.read();
            match line["event"].as_str() {
                Some("stopped") => return (events, line["stats"].clone()),
                Some(other) => panic!("{other}: {line}"),
                None => events.push(line),
            }
        }
    }

    /// Ends it; its statistics.
    pub fn stop(mut self) -> Value {
        self.tell(&json!({"cmd": "stop"}));
        self.stopped()
    }

    /// Waits for its end; its statistics.
    pub fn stopped(mut self) -> Value {
        let last = self.read();
        assert_eq!(last["event"], "stopped", "{last}");
        drop(self.stdin.take());
        assert!(self.child.wait().unwrap().success());
        if last["stats"].is_null() { last } else { last["stats"].clone() }
    }

    /// Waits for its failure: the last line and the exit code.
    pub fn failed(mut self) -> (Value, Option<i32>) {
        let last = self.read();
        drop(self.stdin.take());
        (last, self.child.wait().unwrap().code())
    }
}

/// `plan` with machines in place of third-party flows.
pub fn with_apps(mut plan: Value, apps: &[Value]) -> Value {
    for (flow, app) in plan["flows"].as_array_mut().unwrap().iter_mut().zip(apps) {
        flow["app"] = app.clone();
    }
    plan
}

/// Waits until `done` holds.
pub fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "{what} not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
