//! Random rows, and a directory to write them to.
#![allow(dead_code)] // not every test uses all of it

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;
use streamgauge_base::{
    Cause, Direction, Ecn, Fate, FlowId, Fragment, Instant, Item, Outcome, PacketId, PacketInfo, PacketKind,
    QueueDepth, StageId,
};
use streamgauge_plan::{FlowEntry, Legend, StageEntry};
use streamgauge_record::{Compression, PacketWriter, PacketsSummary};

pub type Row = (Fate, PacketInfo, Direction);

pub fn legend() -> Legend {
    let stage = |name: &str, direction| StageEntry { name: name.into(), direction };
    let flow = |name: &str, subject| FlowEntry { name: name.into(), subject };
    Legend {
        flows: vec![flow("video", true), flow("ftp", false)],
        stages: vec![
            stage("bottleneck", Direction::Down),
            stage("delay", Direction::Down),
            stage("wire", Direction::Up),
        ],
    }
}

/// Makes a packet that crossed the bottleneck.
pub fn row(id: u64) -> Row {
    let item = Item { hash: 1, ..Item::new(PacketId(id), FlowId(0), 1500) };
    let fate = Fate {
        item,
        stage: StageId(0),
        t_in: Instant::from_nanos(id * 12_112_000),
        at: Instant::from_nanos((id + 1) * 12_112_000),
        outcome: Outcome::Delivered,
        cause: Cause::None,
        queue: QueueDepth { bytes: 3028, packets: 2 },
        marked: false,
    };
    let info = PacketInfo {
        kind: PacketKind::Media,
        flags: 0,
        header_bytes: 32,
        payload_bytes: 1448,
        seq: Some(id as u32),
        connection: Some(0),
    };
    (fate, info, Direction::Down)
}

const CAUSES: [Cause; 6] =
    [Cause::None, Cause::QueueFull, Cause::RandomLoss, Cause::Aqm, Cause::Blocked, Cause::TooBig];

/// Draws any row that the legend can explain, extremes of every column included.
pub fn any_row() -> impl Strategy<Value = Row> {
    let fragment = (any::<u16>(), any::<bool>());
    let item = (any::<u64>(), any::<u32>(), any::<u32>(), 0u16..3, any::<u8>(), 0u8..4, fragment).prop_map(
        |(id, bytes, ip_bytes, flow, copy, ecn, (word, corrupted))| Item {
            bytes,
            ip_bytes,
            copy,
            fragment: Fragment::from_word(word),
            corrupted,
            ecn: [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(ecn)],
            ..Item::new(PacketId(id), if flow == 2 { FlowId::OTHER } else { FlowId(flow) }, 0)
        },
    );
    let time = 0..=i64::MAX as u64;
    let fate = (item, 0u8..3, time.clone(), time, 0u8..3, 0u8..6, any::<(u32, u32, bool)>()).prop_map(
        |(item, stage, t_in, at, outcome, cause, (bytes, packets, marked))| Fate {
            item,
            stage: StageId(stage),
            t_in: Instant::from_nanos(t_in),
            at: Instant::from_nanos(at),
            outcome: [Outcome::Delivered, Outcome::Dropped, Outcome::Held][usize::from(outcome)],
            cause: CAUSES[usize::from(cause)],
            queue: QueueDepth { bytes, packets },
            marked,
        },
    );
    let kind = prop_oneof![Just(PacketKind::Media), Just(PacketKind::Ack), Just(PacketKind::Other)];
    let numbers = any::<(Option<u32>, Option<u32>)>();
    let info = (kind, 0u16..2, any::<u8>(), any::<u32>(), numbers).prop_map(
        |(kind, flags, header_bytes, payload_bytes, (seq, connection))| PacketInfo {
            kind,
            flags,
            header_bytes,
            payload_bytes,
            seq,
            connection,
        },
    );
    (fate, info, any::<bool>())
        .prop_map(|(fate, info, up)| (fate, info, if up { Direction::Up } else { Direction::Down }))
}

/// Encodes a file of these rows, in memory.
pub fn encode(rows: &[Row], legend: &Legend, compression: Compression) -> (Vec<u8>, PacketsSummary) {
    let mut file = Vec::new();
    let mut writer = PacketWriter::new(&mut file, Path::new("packets.parquet"), legend, compression).unwrap();
    for (fate, info, direction) in rows {
        writer.row(fate, info, *direction).unwrap();
    }
    let summary = writer.finish().unwrap();
    (file, summary)
}

/// A directory of this test's own, removed after it.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("streamgauge-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Names in it, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
