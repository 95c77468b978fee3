//! Crates import one way: base <- path, transport, wire, hosted <- plan <- systems <- sim, engine; record is imported by sim,
//! engine and python alone, live by sim and engine; capture imports none of them, and wire in its tests alone.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// The crates that each crate of the workspace may import, dependencies of tests and builds included.
const ALLOWED: [(&str, &[&str]); 13] = [
    ("base", &[]),
    ("path", &["base"]),
    ("transport", &["base"]),
    ("wire", &["base"]),
    ("plan", &["base", "path"]),
    ("hosted", &["base"]),
    ("systems", &["base", "transport", "wire", "plan", "hosted"]),
    // The record's codes are those of the plan's legend.
    ("record", &["base", "plan"]),
    // Its tests write the feedback that it reads.
    ("capture", &["wire"]),
    // The live view of a trial: counts of the path's fates, changes of its stages.
    ("live", &["base", "path", "plan"]),
    ("sim", &["base", "path", "transport", "plan", "systems", "record", "live"]),
    ("engine", &["base", "path", "transport", "wire", "plan", "systems", "record", "live"]),
    // The scenario language reads traces by the path's parser, and gets the names of controllers and mechanisms from
    // the transport: the existing ones.
    ("python", &["base", "path", "transport", "wire", "plan", "systems", "record", "capture", "sim"]),
];

/// Returns for each crate the crates of the workspace that its manifest names.
fn graph() -> BTreeMap<String, BTreeSet<String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--no-deps", "--format-version", "1", "--offline"]);
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo runs this test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let room =
        |value: &serde_json::Value| value["name"].as_str()?.strip_prefix("streamgauge-").map(str::to_owned);
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages
        .map(|package| {
            let imports = package["dependencies"].as_array().unwrap().iter().filter_map(room).collect();
            (room(package).expect("every crate of the workspace is called streamgauge-ROOM"), imports)
        })
        .collect()
}

#[test]
fn crates_import_one_way() {
    let allowed: BTreeMap<_, _> = ALLOWED.into_iter().collect();
    for (room, imports) in graph() {
        let Some(allowed) = allowed.get(room.as_str()) else {
            panic!("crate {room} has no place in the graph yet")
        };
        for import in imports {
            assert!(allowed.contains(&import.as_str()), "{room} imports {import}");
        }
    }
}

#[test]
fn the_graph_is_read_and_not_empty() {
    let graph = graph();
    assert!(graph.len() >= ALLOWED.len(), "{graph:?}");
    assert!(graph["sim"].contains("path"), "{graph:?}");
}
