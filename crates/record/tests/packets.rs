//! `packets.parquet`: the rows read are those written, and the digest covers them and nothing else.

mod common;

use std::fs::OpenOptions;
use std::path::Path;

use bytes::Bytes;
use common::{Row, Scratch, any_row, encode, legend, row};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use proptest::prelude::*;
use streamgauge_base::{Direction, Ecn, FlowId, Fragment, Item, Outcome, PacketInfo, StageId};
use streamgauge_record::{
    Balance, Compression, Ledger, PacketSender, PacketWriter, RecordError, footer, verify_packets,
    verify_packets_in,
};

/// Returns the expected content of the file for a row, in file order, as text; "null" for a null.
fn expected((fate, info, direction): &Row) -> Vec<String> {
    let item = &fate.item;
    let ecn_in = u16::from(item.ecn != Ecn::NotEct) * 2;
    let marked = u16::from(fate.marked) * 4;
    let corrupted = u16::from(item.corrupted) * 8;
    let more = u16::from(item.fragment.word() & 0x2000 != 0) * 16;
    let whole = u16::from(item.fragment.word() & 0x4000 != 0) * 128;
    let or_null = |value: Option<String>| value.unwrap_or_else(|| "null".into());
    vec![
        item.id.0.to_string(),
        item.copy.to_string(),
        (item.fragment.word() & 0x1fff).to_string(),
        item.flow.0.to_string(),
        (*direction as u8).to_string(),
        fate.stage.0.to_string(),
        (info.kind as u8).to_string(),
        fate.t_in.as_nanos().to_string(),
        or_null((fate.outcome == Outcome::Delivered).then(|| fate.at.as_nanos().to_string())),
        or_null((fate.outcome == Outcome::Dropped).then(|| fate.at.as_nanos().to_string())),
        (fate.outcome as u8).to_string(),
        (fate.cause as u8).to_string(),
        item.bytes.to_string(),
        item.ip_bytes.to_string(),
        payload(item, info).to_string(),
        or_null(info.seq.map(|s| s.to_string())),
        (info.flags | ecn_in | marked | corrupted | more | whole).to_string(),
        fate.queue.bytes.to_string(),
        fate.queue.packets.to_string(),
        item.hash.to_string(),
        (item.protocol as u8).to_string(),
        or_null(info.connection.map(|number| number.to_string())),
    ]
}

/// Returns the bytes above the transport header, which the first fragment has.
fn payload(item: &Item, info: &PacketInfo) -> u32 {
    match item.fragment.word() & 0x3fff {
        0 => info.payload_bytes,
        0x2000 => item.ip_bytes.saturating_sub(20 + u32::from(info.header_bytes)),
        _ => item.ip_bytes.saturating_sub(20),
    }
}

/// Reads with the library's row reader, which shares nothing with our own reader.
fn read_rows(file: Vec<u8>) -> Vec<Vec<String>> {
    let reader = SerializedFileReader::new(Bytes::from(file)).unwrap();
    let rows = reader.get_row_iter(None).unwrap().map(|row| {
        let text = |(_, field): (&String, &Field)| field.to_string();
        row.unwrap().get_column_iter().map(text).collect()
    });
    rows.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every cell is read back, compressed or not.
    #[test]
    fn round_trip(rows in proptest::collection::vec(any_row(), 0..60), zstd in any::<bool>()) {
        let compression = if zstd { Compression::Zstd } else { Compression::None };
        let (file, summary) = encode(&rows, &legend(), compression);
        prop_assert_eq!(summary.rows, rows.len() as u64);
        let verified = verify_packets_in(Bytes::from(file.clone()), Path::new("x")).unwrap();
        prop_assert_eq!((verified.rows, verified.digest), (summary.rows, summary.digest));
        prop_assert_eq!(read_rows(file), rows.iter().map(expected).collect::<Vec<_>>());
    }

    /// The digest is that of the rows in their order, however they are compressed.
    #[test]
    fn digest_is_of_the_rows(
        rows in proptest::collection::vec(any_row(), 1..30),
        other in any_row(),
        at in any::<prop::sample::Index>(),
    ) {
        let digest = |rows: &[Row], compression| encode(rows, &legend(), compression).1.digest;
        let original = digest(&rows, Compression::None);
        prop_assert_eq!(&original, &digest(&rows, Compression::Zstd));
        let at = at.index(rows.len());
        let mut changed = rows.clone();
        changed[at] = other;
        prop_assert_eq!(digest(&changed, Compression::None) == original, expected(&other) == expected(&rows[at]));
        let mut fewer = rows.clone();
        fewer.remove(at);
        prop_assert_ne!(&original, &digest(&fewer, Compression::None));
        let mut turned = rows.clone();
        turned.rotate_left(1);
        let same = turned.iter().map(expected).eq(rows.iter().map(expected));
        prop_assert_eq!(digest(&turned, Compression::None) == original, same);
    }
}

/// Each cell by itself changes the digest.
#[test]
fn digest_changes_with_any_cell() {
    let digest = |row: &Row| encode(&[*row], &legend(), Compression::None).1.digest;
    let original = row(7);
    let change = |f: &dyn Fn(&mut Row)| {
        let mut changed = original;
        f(&mut changed);
        changed
    };
    let changed = [
        change(&|r| r.0.item.id.0 += 1),
        change(&|r| r.0.item.copy = 1),
        change(&|r| r.0.item.fragment = Fragment::part(1, false)),
        change(&|r| r.0.item.fragment = Fragment::part(0, true)),
        change(&|r| r.0.item.corrupted = true),
        change(&|r| r.0.outcome = Outcome::Dropped),
        change(&|r| {
            r.0.outcome = Outcome::Dropped;
            r.0.at = streamgauge_base::Instant::from_nanos(1);
        }),
        change(&|r| r.0.item.flow = FlowId(1)),
        change(&|r| r.2 = Direction::Up),
        change(&|r| r.0.stage = StageId(1)),
        change(&|r| r.1.kind = streamgauge_base::PacketKind::Cross),
        change(&|r| r.0.t_in = streamgauge_base::Instant::from_nanos(1)),
        change(&|r| r.0.at = streamgauge_base::Instant::from_nanos(1)),
        change(&|r| r.0.outcome = Outcome::Held),
        change(&|r| r.0.cause = streamgauge_base::Cause::Aqm),
        change(&|r| r.0.item.bytes += 1),
        change(&|r| r.0.item.ip_bytes += 1),
        change(&|r| r.1.payload_bytes += 1),
        change(&|r| r.1.seq = Some(1)),
        change(&|r| r.1.seq = None),
        change(&|r| r.1.flags = 1),
        change(&|r| r.1.flags = 0x100),
        change(&|r| r.1.connection = Some(1)),
        change(&|r| r.1.connection = None),
        change(&|r| r.0.marked = true),
        change(&|r| r.0.item.ecn = Ecn::Ect0),
        change(&|r| r.0.queue.bytes += 1),
        change(&|r| r.0.queue.packets += 1),
    ];
    let mut digests: Vec<_> = changed.iter().chain([&original]).map(digest).collect();
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), changed.len() + 1);
    let mut renamed = legend();
    renamed.flows.swap(0, 1);
    assert_ne!(encode(&[original], &renamed, Compression::None).1.digest, digest(&original));
}

/// The digest of a given row is part of the schema: a change here is a new version of it.
#[test]
fn digest_is_pinned() {
    let (_, summary) = encode(&[row(0), row(1)], &legend(), Compression::None);
    assert_eq!(summary.digest, "blake3:7071964a6daf2a99a069953032fe8b3ef111876bb8c846656308de0ce6b3e932");
}

/// Several row groups, the last one short, written by the caller's thread and by one of its own.
#[test]
fn batches_and_threads_make_one_file() {
    let scratch = Scratch::new();
    let rows: Vec<Row> = (0..150_000).map(row).collect();
    let (here, there) = (scratch.join("here.parquet"), scratch.join("there.parquet"));
    let mut writer = PacketWriter::create(&here, &legend()).unwrap();
    let mut sender = PacketSender::create(&there, &legend()).unwrap();
    for (fate, info, direction) in &rows {
        writer.row(fate, info, *direction).unwrap();
        sender.row(fate, info, *direction).unwrap();
    }
    let summary = writer.finish().unwrap();
    assert_eq!(summary, sender.finish().unwrap());
    assert_eq!(std::fs::read(&here).unwrap(), std::fs::read(&there).unwrap());
    assert_eq!(verify_packets(&here).unwrap().digest, summary.digest);
    assert_eq!(footer(&here).unwrap().rows, 150_000);
    assert_eq!(scratch.names(), ["here.parquet", "there.parquet"]);
}

#[test]
fn what_is_not_finished_leaves_nothing() {
    let scratch = Scratch::new();
    let path = scratch.join("packets.parquet");
    let mut writer = PacketWriter::create(&path, &legend()).unwrap();
    let (fate, info, direction) = row(0);
    writer.row(&fate, &info, direction).unwrap();
    assert_eq!(scratch.names(), ["packets.parquet.partial"]);
    drop(writer);
    assert!(scratch.names().is_empty());
    let mut sender = PacketSender::create(&path, &legend()).unwrap();
    sender.row(&fate, &info, direction).unwrap();
    drop(sender);
    // Its thread clears up after itself.
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !scratch.names().is_empty() {
        assert!(std::time::Instant::now() < patience, "{:?} is left", scratch.names());
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn a_missing_directory_is_named() {
    let error = PacketWriter::create(Path::new("/no/such/place/packets.parquet"), &legend()).err().unwrap();
    assert!(matches!(error, RecordError::Io { .. }));
    assert!(error.to_string().starts_with("/no/such/place/packets.parquet: creating: "), "{error}");
}

/// Linux's /dev/full accepts nothing: every write fails as on a full disk.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_with_a_remedy() {
    let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
    let name = Path::new("run/packets.parquet");
    let is_full = |error: &RecordError| {
        assert!(
            matches!(error, RecordError::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull),
            "{error:?}"
        );
        let text = error.to_string();
        assert!(text.starts_with("run/packets.parquet: ") && text.contains("free some space"), "{text}");
    };
    let writer = PacketWriter::new(full(), name, &legend(), Compression::None).unwrap();
    is_full(&writer.finish().unwrap_err());
    let mut writer = PacketWriter::new(full(), name, &legend(), Compression::None).unwrap();
    let error = (0..100_000).find_map(|id| {
        let (fate, info, direction) = row(id);
        writer.row(&fate, &info, direction).err()
    });
    is_full(&error.expect("the first batch does not fit"));
}

#[test]
fn codes_that_the_legend_has_not_are_refused() {
    let mut writer = PacketWriter::new(Vec::new(), Path::new("p"), &legend(), Compression::None).unwrap();
    let (mut fate, info, direction) = row(0);
    fate.item.flow = FlowId(2);
    let error = writer.row(&fate, &info, direction).unwrap_err();
    assert_eq!(error.to_string(), "p: the legend has no flow 2 or no stage 0");
    fate.item.flow = FlowId::OTHER;
    writer.row(&fate, &info, direction).unwrap();
    fate.stage = StageId(3);
    assert!(writer.row(&fate, &info, direction).is_err());
}

/// Makes the account of two stages down: the path's fates and the driver's counts.
fn account(rows: &[Row], put: &[(StageId, FlowId)], taken: &[FlowId]) -> Vec<String> {
    let balance: Balance = encode(rows, &legend(), Compression::None).1.balance;
    let mut ledger = Ledger::new(&legend());
    put.iter().for_each(|&(stage, flow)| ledger.entered(stage, flow, 1514));
    taken.iter().for_each(|&flow| ledger.left(Direction::Down, flow, 1514));
    balance.check(&ledger)
}

#[test]
fn conservation() {
    let (bottleneck, delay) = (StageId(0), StageId(1));
    let at = |id, stage, flow, outcome| {
        let (mut fate, info, direction) = row(id);
        (fate.stage, fate.item.flow, fate.outcome) = (stage, flow, outcome);
        (fate, info, direction)
    };
    let (video, ftp) = (FlowId(0), FlowId(1));
    let rows = [
        at(0, bottleneck, video, Outcome::Delivered),
        at(0, delay, video, Outcome::Delivered),
        at(1, bottleneck, video, Outcome::Dropped),
        at(2, bottleneck, video, Outcome::Held),
        // Enters past the bottleneck.
        at(3, delay, ftp, Outcome::Delivered),
    ];
    let put = [(bottleneck, video), (bottleneck, video), (bottleneck, video), (delay, ftp)];
    assert!(account(&rows, &put, &[video, ftp]).is_empty());
    // Any one row missing, any one packet not counted, two flows swapped: each shows.
    for i in 0..rows.len() {
        let mut fewer = rows.to_vec();
        fewer.remove(i);
        assert!(!account(&fewer, &put, &[video, ftp]).is_empty(), "without row {i}");
    }
    for i in 0..put.len() {
        let mut fewer = put.to_vec();
        fewer.remove(i);
        assert!(!account(&rows, &fewer, &[video, ftp]).is_empty(), "without entry {i}");
    }
    assert!(!account(&rows, &put, &[ftp]).is_empty());
    assert_eq!(
        account(&rows, &put, &[ftp, ftp]),
        [
            "flow video, out of the path (down): 1 packets recorded, 0 expected",
            "flow video, out of the path (down): 1514 bytes recorded, 0 expected",
            "flow ftp, out of the path (down): 1 packets recorded, 2 expected",
            "flow ftp, out of the path (down): 1514 bytes recorded, 3028 expected",
        ]
    );
}

#[test]
fn balance_rows_are_those_of_trial_json() {
    let mut rows = vec![row(0), row(1)];
    (rows[1].0.outcome, rows[1].0.cause) = (Outcome::Dropped, streamgauge_base::Cause::QueueFull);
    let balance = encode(&rows, &legend(), Compression::None).1.balance;
    let json = serde_json::to_string(&balance.rows()).unwrap();
    assert_eq!(
        json,
        r#"[{"stage":"bottleneck","direction":"down","flow":"video","in_packets":2,"in_bytes":3028,"#
            .to_owned()
            + r#""made_packets":0,"made_bytes":0,"#
            + r#""out_packets":1,"out_bytes":1514,"dropped_packets":{"queue_full":1},"#
            + r#""dropped_bytes":{"queue_full":1514},"held_packets":0,"held_bytes":0}]"#
    );
}

/// A stage that doubles one packet and cuts another: the packets it made are in the account, in packets and in bytes.
#[test]
fn copies_and_fragments_balance() {
    let (mtu, delay) = (StageId(0), StageId(1));
    let mut writer = PacketWriter::new(Vec::new(), Path::new("p"), &legend(), Compression::None).unwrap();
    let (fate, info, direction) = row(0);
    let whole = fate.item;
    let twin = Item { copy: 1, ..whole };
    // 1500 IP bytes through an MTU of 1000: 976 and 504 bytes of payload.
    let cut = Item { id: streamgauge_base::PacketId(1), ..whole };
    let part = |offset, more, ip_bytes| Item {
        fragment: Fragment::part(offset, more),
        ip_bytes,
        bytes: ip_bytes + 14,
        ..cut
    };
    let (first, second) = (part(0, true, 996), part(122, false, 524));
    writer.made(mtu, &whole, &twin);
    writer.made(mtu, &cut, &second);
    for stage in [mtu, delay] {
        for item in [whole, twin, first, second] {
            writer.row(&streamgauge_base::Fate { item, stage, ..fate }, &info, direction).unwrap();
        }
    }
    let mut ledger = Ledger::new(&legend());
    ledger.entered(mtu, whole.flow, whole.bytes);
    ledger.entered(mtu, cut.flow, cut.bytes);
    for item in [whole, twin, first, second] {
        ledger.left(direction, item.flow, item.bytes);
    }
    let balance = writer.finish().unwrap().balance;
    assert_eq!(balance.check(&ledger), Vec::<String>::new());
    let rows = balance.rows();
    assert_eq!((rows[0].in_packets, rows[0].in_bytes), (2, 2 * 1514));
    assert_eq!((rows[0].made_packets, rows[0].made_bytes), (2, 1514 + 34));
    assert_eq!((rows[0].out_packets, rows[0].out_bytes), (4, 3 * 1514 + 34));
    assert_eq!((rows[1].in_packets, rows[1].made_packets), (4, 0));
    // An unreported copy shows.
    let mut writer = PacketWriter::new(Vec::new(), Path::new("p"), &legend(), Compression::None).unwrap();
    for item in [whole, twin] {
        writer.row(&streamgauge_base::Fate { item, stage: delay, ..fate }, &info, direction).unwrap();
    }
    let mut ledger = Ledger::new(&legend());
    ledger.entered(delay, whole.flow, whole.bytes);
    ledger.left(direction, whole.flow, whole.bytes);
    ledger.left(direction, whole.flow, whole.bytes);
    assert_eq!(
        writer.finish().unwrap().balance.check(&ledger),
        [
            "flow video, into stage delay (down): 2 packets recorded, 1 expected",
            "flow video, into stage delay (down): 3028 bytes recorded, 1514 expected",
        ]
    );
}
