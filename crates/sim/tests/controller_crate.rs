//! A crate outside the workspace brings a congestion control: `examples/controller-crate` is built and run.

use std::path::Path;
use std::process::Command;

#[test]
fn a_stranger_s_crate_registers_a_controller_and_simulates_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // Beside the output of this workspace's build, so that dependencies are not built again.
    let target = std::env::current_exe().unwrap();
    let target = target.ancestors().nth(3).unwrap();
    let output = Command::new(cargo)
        .args(["run", "--quiet", "--offline", "--manifest-path", "examples/controller-crate/Cargo.toml"])
        .arg("--target-dir")
        .arg(target)
        .current_dir(root)
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{err}");
    let lines: Vec<_> = out.lines().collect();
    let [gentle, cubic] = lines[..] else { panic!("{out}") };
    // It fills the link without filling the queue, which CUBIC fills.
    let number = |line: &str, word: usize| line.split_whitespace().nth(word).unwrap().parse::<f64>().unwrap();
    assert!(gentle.starts_with("gentle: ") && cubic.starts_with("cubic: "), "{out}");
    assert!(number(gentle, 1) > 8.0 && number(cubic, 1) > 8.0, "{out}");
    assert!(number(gentle, 5) < 60.0 && number(gentle, 7) == 0.0, "{out}");
    assert!(number(cubic, 7) > 0.0, "{out}");
}
