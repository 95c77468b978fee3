//! Damaged records: every one is an error that names the file, none is a panic.

mod common;

use std::fs;
use std::path::Path;

use bytes::Bytes;
use common::{Scratch, encode, legend, row};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use proptest::prelude::*;
use streamgauge_base::{Event, FlowId, Instant};
use streamgauge_record::{
    Compression, EVENTS_FILE, PACKETS_FILE, RecordError, TRIAL_FILE, footer, read_packets, trial_digest,
    verify, verify_events, verify_packets, verify_packets_in, write_events,
};

const SCENARIO: &str = r#"{"id": "test/one", "rate": 1e6, "title": "one"}"#;

fn events() -> Vec<Event> {
    let event = |at, flow, name: &'static str, value| Event {
        at: Instant::from_nanos(at),
        flow,
        name: name.into(),
        value,
        unit: "s".into(),
        reason: "because".into(),
    };
    vec![
        event(20, Some(FlowId(1)), "frame_shown", Some(2.0)),
        event(10, None, "rate", Some(1e6)),
        event(20, Some(FlowId::OTHER), "frame_shown", None),
        event(10, Some(FlowId(0)), "rate", Some(-0.0)),
    ]
}

/// A whole record in `directory`.
fn write(directory: &Path) {
    let rows: Vec<_> = (0..100).map(row).collect();
    let (file, summary) = encode(&rows, &legend(), Compression::None);
    fs::write(directory.join(PACKETS_FILE), file).unwrap();
    let events_digest = write_events(&directory.join(EVENTS_FILE), &events(), &legend()).unwrap();
    let digest = trial_digest(SCENARIO, &summary.digest, &events_digest).unwrap();
    let trial = format!(
        r#"{{"schema": "streamgauge.trial/2", "scenario": {SCENARIO}, "kept": ["{PACKETS_FILE}", "{EVENTS_FILE}"],
            "packets_digest": "{}", "events_digest": "{events_digest}", "digest": "{digest}"}}"#,
        summary.digest
    );
    fs::write(directory.join(TRIAL_FILE), trial).unwrap();
}

/// Returns the error's text, after making sure that it names `file` of `directory`.
fn names(directory: &Path, file: &str) -> String {
    let text = verify(directory).unwrap_err().to_string();
    let path = directory.join(file).display().to_string();
    assert!(text.starts_with(&format!("{path}: ")), "{text} does not name {path}");
    text
}

fn edit_trial(directory: &Path, from: &str, to: &str) {
    let path = directory.join(TRIAL_FILE);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from));
    fs::write(path, text.replace(from, to)).unwrap();
}

#[test]
fn a_whole_record_verifies() {
    let scratch = Scratch::new();
    write(&scratch.0);
    let verified = verify(&scratch.0).unwrap();
    assert_eq!((verified.packets.unwrap().rows, verified.events.unwrap().rows), (100, 4));
    // A file that was dropped on purpose is no damage: its digest is in trial.json.
    fs::remove_file(scratch.join(PACKETS_FILE)).unwrap();
    edit_trial(&scratch.0, &format!("\"{PACKETS_FILE}\", "), "");
    assert_eq!(verify(&scratch.0).unwrap().digest, verified.digest);
}

#[test]
fn missing_files() {
    for file in [PACKETS_FILE, EVENTS_FILE, TRIAL_FILE] {
        let scratch = Scratch::new();
        write(&scratch.0);
        fs::remove_file(scratch.join(file)).unwrap();
        assert!(names(&scratch.0, file).contains("missing"));
    }
}

#[test]
fn files_cut_short() {
    for file in [PACKETS_FILE, EVENTS_FILE, TRIAL_FILE] {
        let whole = Scratch::new();
        write(&whole.0);
        let bytes = fs::read(whole.join(file)).unwrap();
        for length in [0, 1, 4, bytes.len() / 2, bytes.len() - 1] {
            let scratch = Scratch::new();
            write(&scratch.0);
            fs::write(scratch.join(file), &bytes[..length]).unwrap();
            let text = names(&scratch.0, file);
            assert!(text.contains("damaged"), "{text}");
        }
    }
}

#[test]
fn a_dropped_row_and_swapped_flows_under_a_footer_that_fits() {
    let honest: Vec<_> = (0..100).map(row).collect();
    let mut fewer = honest.clone();
    fewer.remove(50);
    let mut swapped = legend();
    swapped.flows.swap(0, 1);
    for (rows, legend) in [(&fewer, legend()), (&honest, swapped)] {
        let scratch = Scratch::new();
        write(&scratch.0);
        fs::write(scratch.join(PACKETS_FILE), encode(rows, &legend, Compression::None).0).unwrap();
        let text = names(&scratch.0, PACKETS_FILE);
        assert!(text.contains("its rows give") && text.contains("trial.json has"), "{text}");
    }
}

#[test]
fn another_scenario_or_digest_in_trial_json() {
    for (from, to) in
        [("test/one", "test/two"), ("1e6", "1000001"), ("\"digest\": \"blake3:", "\"digest\": \"blake3:0")]
    {
        let scratch = Scratch::new();
        write(&scratch.0);
        edit_trial(&scratch.0, from, to);
        assert!(names(&scratch.0, TRIAL_FILE).contains("give digest"));
    }
    // Another spelling of the same scenario is the same scenario.
    let scratch = Scratch::new();
    write(&scratch.0);
    edit_trial(&scratch.0, SCENARIO, r#"{"title": "\u006fne", "rate": 1000000, "id": "test/one"}"#);
    verify(&scratch.0).unwrap();
}

#[test]
fn other_versions() {
    let scratch = Scratch::new();
    write(&scratch.0);
    edit_trial(&scratch.0, "streamgauge.trial/2", "streamgauge.trial/9");
    let error = verify(&scratch.0).unwrap_err();
    assert!(matches!(&error, RecordError::Version { found, .. } if found == "streamgauge.trial/9"));
    assert!(names(&scratch.0, TRIAL_FILE).contains("read it with the StreamGauge that wrote it"));

    let scratch = Scratch::new();
    write(&scratch.0);
    let path = scratch.join(PACKETS_FILE);
    let bytes = fs::read(&path).unwrap();
    let at = bytes.windows(21).position(|w| w == b"streamgauge.packets/3").unwrap();
    let mut later = bytes.clone();
    later[at + 20] = b'7';
    fs::write(&path, later).unwrap();
    assert!(matches!(verify_packets(&path), Err(RecordError::Version { .. })));
    let error = read_packets(&path, |_| ()).unwrap_err().to_string();
    assert!(error.contains("packets/7") && error.contains("(streamgauge.packets/3)"), "{error}");
    // The footer of any version can be read, so that a reader can choose.
    assert_eq!(footer(&path).unwrap().schema, "streamgauge.packets/7");
    // A file of the other kind is not one of ours either.
    assert!(matches!(verify_events(&path), Err(RecordError::Version { .. })));
}

/// One byte changed anywhere: an error, or the same content (a byte without effect, as the writer's name).
#[test]
fn any_flipped_byte_is_found_or_harmless() {
    let rows: Vec<_> = (0..40).map(row).collect();
    for compression in [Compression::None, Compression::Zstd] {
        let (file, summary) = encode(&rows, &legend(), compression);
        let mut found = 0;
        for at in 0..file.len() {
            for bit in [0x01, 0x80] {
                let mut damaged = file.clone();
                damaged[at] ^= bit;
                match verify_packets_in(Bytes::from(damaged), Path::new("p")) {
                    Ok(verified) => assert_eq!((verified.rows, &verified.digest), (40, &summary.digest)),
                    Err(error) => {
                        assert!(error.to_string().starts_with("p: "), "{error}");
                        found += 1;
                    }
                }
            }
        }
        assert!(found > file.len(), "{found} of {} flips found", 2 * file.len());
    }
}

#[test]
fn events_are_sorted_by_time_and_keep_their_order_within_one() {
    let scratch = Scratch::new();
    let path = scratch.join(EVENTS_FILE);
    let (given, legend) = (events(), legend());
    let digest = write_events(&path, &given, &legend).unwrap();
    // By the library's row reader.
    let reader = SerializedFileReader::new(fs::File::open(&path).unwrap()).unwrap();
    let read = reader.get_row_iter(None).unwrap().map(|row| {
        let row = row.unwrap();
        (row.get_long(0).unwrap(), row.get_string(1).ok().cloned())
    });
    let expected = [(10, None), (10, Some(FlowId(0))), (20, Some(FlowId(1))), (20, Some(FlowId::OTHER))];
    let named = |flow: FlowId| legend.flow_name(flow).unwrap().to_owned();
    assert_eq!(read.collect::<Vec<_>>(), expected.map(|(at, flow)| (at, flow.map(named))));
    assert_eq!(verify_events(&path).unwrap().digest, digest);
    assert_eq!(scratch.names(), [EVENTS_FILE]);
    write_events(&path, &[], &legend).unwrap();
    assert_eq!(verify_events(&path).unwrap().rows, 0);
}

#[test]
fn every_field_of_an_event_is_in_its_digest() {
    let scratch = Scratch::new();
    let digest = |change: &dyn Fn(&mut Event)| {
        let mut events = events();
        change(&mut events[0]);
        write_events(&scratch.join(EVENTS_FILE), &events, &legend()).unwrap()
    };
    let mut digests = vec![
        digest(&|_| ()),
        digest(&|e| e.at = Instant::from_nanos(21)),
        digest(&|e| e.flow = None),
        digest(&|e| e.name = "frame_late".into()),
        digest(&|e| e.value = None),
        digest(&|e| e.value = Some(3.0)),
        digest(&|e| e.unit = "1".into()),
        digest(&|e| e.reason = "".into()),
    ];
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), 8);
}

#[test]
fn events_that_cannot_be_kept_are_refused() {
    let scratch = Scratch::new();
    let path = scratch.join(EVENTS_FILE);
    let refused = |change: &dyn Fn(&mut Event)| {
        let mut events = events();
        change(&mut events[0]);
        write_events(&path, &events, &legend()).unwrap_err().to_string()
    };
    assert!(refused(&|e| e.value = Some(f64::NAN)).contains("not a finite number"));
    assert!(refused(&|e| e.flow = Some(FlowId(2))).contains("no flow 2"));
    assert!(scratch.names().is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Bytes that were never a record, with and without Parquet's magic around them.
    #[test]
    fn arbitrary_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300), footer_length in 0u32..400) {
        let mut file = b"PAR1".to_vec();
        file.extend(&bytes);
        file.extend(footer_length.to_le_bytes());
        file.extend(b"PAR1");
        for file in [bytes, file] {
            prop_assert!(verify_packets_in(Bytes::from(file), Path::new("p")).is_err());
        }
    }

    /// Several bytes of a good file overwritten.
    #[test]
    fn damaged_bytes(damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20)) {
        let rows: Vec<_> = (0..20).map(row).collect();
        let (mut file, summary) = encode(&rows, &legend(), Compression::Zstd);
        for (at, byte) in damage {
            let at = at.index(file.len());
            file[at] = byte;
        }
        if let Ok(verified) = verify_packets_in(Bytes::from(file), Path::new("p")) {
            prop_assert_eq!(verified.digest, summary.digest);
        }
    }
}

/// Records of the first version, as it wrote them.
#[test]
fn the_first_version_is_still_verified() {
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/report/records");
    for name in ["1", "1-model-4"] {
        let directory = records.join(name);
        assert_eq!(footer(&directory.join(PACKETS_FILE)).unwrap().schema, "streamgauge.packets/1");
        let verified = verify(&directory).unwrap();
        assert!(verified.packets.unwrap().rows > 500, "{name}");
    }
}

/// A record of the second version, as it wrote it.
#[test]
fn the_second_version_is_still_verified_and_its_rows_read() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/record/data/v2");
    let path = directory.join(PACKETS_FILE);
    assert_eq!(footer(&path).unwrap().schema, "streamgauge.packets/2");
    let rows = verify(&directory).unwrap().packets.unwrap().rows;
    let mut read = 0;
    read_packets(&path, |row| {
        assert!(row.flags <= 0xff, "eight bits");
        read += 1;
    })
    .unwrap();
    assert_eq!(read, rows);
}
