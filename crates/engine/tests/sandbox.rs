//! Sandboxes that vanish with their launcher, and privileges that are gone.
#![cfg(target_os = "linux")]

mod bed;

use std::process::Command;

use bed::{Way, engine, eventually, obstacle, sandbox_command};

const WAYS: [Way; 2] = [Way::Root, Way::User];

/// Returns the ways that this machine has; prints why one is left out.
fn ways() -> impl Iterator<Item = Way> {
    WAYS.into_iter().filter(|&way| match obstacle(way) {
        Some(why) => {
            eprintln!("SKIPPED {way:?}: {why}");
            false
        }
        None => true,
    })
}

fn inside(way: Way, script: &str) -> (String, Option<i32>) {
    let output = sandbox_command(way).args(["--", "sh", "-c", script]).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8_lossy(&text).into_owned(), output.status.code())
}

#[test]
fn passes_on_output_and_exit_code() {
    for way in ways() {
        assert_eq!(inside(way, "echo hello; exit 7"), ("hello\n".into(), Some(7)), "{way:?}");
        assert_eq!(inside(way, "kill -9 $$").1, Some(137), "{way:?}");
        let output = sandbox_command(way).args(["--", "no-such-program"]).output().unwrap();
        assert_eq!(output.status.code(), Some(127));
        assert!(String::from_utf8_lossy(&output.stderr).contains("no-such-program"), "{output:?}");
    }
}

#[test]
fn has_namespaces_of_its_own() {
    for way in ways() {
        let (text, code) =
            inside(way, "id -u; cat /proc/1/comm; ls -A /run; ls -A /run/netns; ip -br link; ip netns add x");
        assert_eq!(
            text.lines().collect::<Vec<_>>()[..3],
            ["0", "streamgauge-eng", "netns"],
            "{way:?}: {text}"
        );
        assert!(
            text.lines().filter(|line| line.contains("UP") || line.contains("UNKNOWN")).count() == 1,
            "{text}"
        );
        assert_eq!(code, Some(0), "{text}");
        assert!(!std::path::Path::new("/run/netns/x").exists());
    }
}

#[test]
fn runs_players_without_privileges() {
    for way in ways() {
        let script = format!(
            "ip netns add x; {} run-as --netns x -- sh -c 'id -u; id -g; grep -E \"Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs\" /proc/self/status; ip netns add y && echo LEAK; chown 0 /tmp && echo LEAK; readlink /proc/self/ns/net'; readlink /proc/self/ns/net",
            engine()
        );
        let (text, _) = inside(way, &script);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..2], ["1000", "1000"], "{way:?}: {text}");
        assert_eq!(
            lines.iter().filter(|line| line.ends_with("0000000000000000")).count(),
            5,
            "{way:?}: {text}"
        );
        assert!(
            lines.iter().any(|line| line.starts_with("NoNewPrivs") && line.ends_with('1')),
            "{way:?}: {text}"
        );
        assert!(!text.contains("LEAK"), "{way:?}: {text}");
        let spaces: Vec<&&str> = lines.iter().filter(|line| line.starts_with("net:[")).collect();
        assert!(spaces.len() == 2 && spaces[0] != spaces[1], "{way:?}: {text}");
    }
}

#[test]
fn a_player_inherits_nothing_but_its_three_streams() {
    for way in ways() {
        // 7 represents the machine's lock, which any holder would keep.
        let script = format!(
            "exec 7</dev/zero; {} run-as -- sh -c 'test -e /proc/self/fd/7 && echo LEAK; echo done'",
            engine()
        );
        let (text, _) = inside(way, &script);
        assert!(text.contains("done") && !text.contains("LEAK"), "{way:?}: {text}");
    }
}

#[test]
fn variables_are_the_commands_alone() {
    for way in ways() {
        // The loader of any program that has these, run-as among them, writes a file.
        let mark = format!("/tmp/streamgauge-test-loader-{}", std::process::id());
        let script = format!(
            "OTHER=kept {} run-as --variable LD_DEBUG=libs --variable LD_DEBUG_OUTPUT={mark} --variable A=b=c -- \
             /usr/bin/env; ls {mark}*",
            engine()
        );
        let (text, _) = inside(way, &script);
        let files: Vec<_> = std::fs::read_dir("/tmp").unwrap().flatten().map(|one| one.path()).collect();
        let files: Vec<_> = files.iter().filter(|one| one.to_string_lossy().starts_with(&mark)).collect();
        files.iter().for_each(|file| std::fs::remove_file(file).unwrap());
        assert_eq!(files.len(), 1, "{way:?}, of env alone: {text}");
        assert!(
            text.contains("A=b=c\n") && !text.contains("OTHER=") && !text.contains("PATH="),
            "{way:?}: {text}"
        );
        let (text, code) = inside(way, &format!("{} run-as --variable =x -- true", engine()));
        assert!(code == Some(2) && text.contains("=x is no NAME=VALUE"), "{way:?}: {text}");
    }
}

#[test]
fn a_command_has_no_class_that_its_user_may_have() {
    for way in ways() {
        let script = format!(
            "ulimit -r 2>/dev/null 5; {} run-as --limit rtprio=0 --limit nice=0 -- \
             grep -E '^Max (realtime|nice) priority' /proc/self/limits",
            engine()
        );
        let (text, _) = inside(way, &script);
        let values: Vec<&str> = text.split_whitespace().filter(|word| word.parse::<u32>().is_ok()).collect();
        assert_eq!(values, ["0"; 4], "{way:?}: {text}");
    }
}

/// Returns the processes with `mark` in their command line, as (pid, command line).
fn marked(mark: &str) -> Vec<(i32, String)> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: i32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let line = String::from_utf8_lossy(&words).replace('\0', " ");
        (line.contains(mark) && pid != std::process::id() as i32).then_some((pid, line))
    })
    .collect()
}

/// A launcher in a process of its own, so that it can be killed: runs a sandbox and waits.
#[test]
#[ignore = "a launcher for the tests below"]
fn launcher() {
    let mark = std::env::var("MARK").unwrap();
    let way = if std::env::var("WAY").unwrap() == "Root" { Way::Root } else { Way::User };
    // A grandchild in a session of its own, as a badly behaved player would be.
    let script = format!("setsid sleep 1000.{mark} & sleep 2000.{mark}; exit 0");
    let _ = sandbox_command(way).args(["--", "sh", "-c", &script]).status();
}

#[test]
fn vanishes_whoever_is_killed() {
    for way in ways() {
        for victim in ["launcher", "sandbox", "init"] {
            let mark = format!("{}{}", std::process::id(), victim.len());
            let mut launcher = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "launcher", "--ignored"])
                .env("MARK", &mark)
                .env("WAY", format!("{way:?}"))
                .spawn()
                .unwrap();
            let sleepers = |n: usize| {
                marked(&format!("000.{mark}")).iter().filter(|(_, l)| l.starts_with("sleep")).count() == n
            };
            eventually("the sandbox", || sleepers(2));
            let engines: Vec<i32> = marked(&format!("000.{mark}"))
                .into_iter()
                .filter(|(_, line)| line.contains("--lifeline"))
                .map(|(pid, _)| pid)
                .collect();
            assert_eq!(engines.len(), 2, "sandbox and init");
            let pid = match victim {
                "launcher" => launcher.id() as i32,
                "sandbox" => engines[0],
                _ => engines[1],
            };
            nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL)
                .unwrap();
            eventually(&format!("{way:?}: end after the {victim}'s"), || {
                marked(&format!("000.{mark}")).is_empty()
            });
            launcher.wait().unwrap();
        }
    }
}

#[test]
fn sigterm_ends_it_and_is_passed_on() {
    for way in ways() {
        let mut sandbox = sandbox_command(way)
            .args(["--", "sh", "-c", "trap 'echo told; exit 3' TERM; echo up; while :; do sleep 0.1; done"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = std::io::BufReader::new(sandbox.stdout.take().unwrap());
        let mut line = String::new();
        std::io::BufRead::read_line(&mut out, &mut line).unwrap();
        let pid = nix::unistd::Pid::from_raw(sandbox.id() as i32);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
        std::io::BufRead::read_line(&mut out, &mut line).unwrap();
        assert_eq!(line, "up\ntold\n", "{way:?}");
        assert_eq!(sandbox.wait().unwrap().code(), Some(3), "{way:?}");
    }
}

#[test]
fn a_launcher_that_is_not_the_parent_is_refused() {
    let output = Command::new(engine())
        .args(["sandbox", "--way", "root", "--parent", "1", "--lifeline", "0", "--", "true"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--parent"), "{output:?}");
}
