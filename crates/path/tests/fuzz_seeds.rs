//! The seeds of the fuzz targets are valid: a target that starts from refusals alone would try little else.

use std::fs;
use std::path::PathBuf;

use streamgauge_base::{Direction, StageId};
use streamgauge_path::Path;
use streamgauge_path::spec::PathSpec;
use streamgauge_path::trace::Trace;

fn seeds(target: &str) -> Vec<(PathBuf, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    files.map(|file| (file.clone(), String::from_utf8_lossy(&fs::read(file).unwrap()).into_owned())).collect()
}

#[test]
fn every_path_is_accepted() {
    let seeds = seeds("path_spec");
    assert!(seeds.len() >= 14);
    for (file, text) in seeds {
        let spec: PathSpec = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file:?}: {error}"));
        for (stages, direction) in [(&spec.down, Direction::Down), (&spec.up, Direction::Up)] {
            Path::new(stages, StageId(0), 1, direction).unwrap_or_else(|error| panic!("{file:?}: {error}"));
        }
    }
}

#[test]
fn every_trace_is_read() {
    let seeds = seeds("trace");
    assert!(seeds.len() >= 7);
    for (file, text) in seeds {
        // The first byte chooses the format.
        let text = text.strip_prefix(char::REPLACEMENT_CHARACTER).expect("0xff: no format is forced");
        Trace::parse(text, None).unwrap_or_else(|error| panic!("{file:?}: {error}"));
    }
}
