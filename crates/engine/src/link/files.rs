//! The files of a trial on disk.

use std::path::Path;

use serde_json::{Value, json};
use streamgauge_base::{Direction, Event, FlowId, Instant};
use streamgauge_plan::{Legend, direction_name};

use super::clocked_path::FlowTally;
use super::config::Config;
use super::emulator::Finished;
use super::live;
use super::stats::Tally;
use crate::error::{EngineError, Result};

/// Completes `packets.parquet`, writes `link-events.json`, and returns their part of the statistics.
pub fn write(config: &Config, finished: Finished, health: (u64, u64, u64)) -> Result<Value> {
    let Finished { mut trial, duration_ns, clamped, .. } = finished;
    let legend = Legend::of(&config.plan);
    let ledger = trial.ledger.clone();
    let steered =
        live::finish(&mut trial, &config.plan.path, duration_ns, (health.0, health.1, clamped.count));
    let mut events = std::mem::take(&mut trial.events);
    let end = Instant::from_nanos(duration_ns.max(0) as u64);
    events.extend(config.plan.marks_until(end));
    let tallies = std::mem::take(&mut trial.flows);
    let failed = trial.failed.take();
    let summary = match (trial.into_rows().finish(), failed) {
        (Ok(summary), None) => summary,
        // The writer's own error has more detail than that of the thread that could not reach it.
        (Err(error), _) | (Ok(_), Some(error)) => return Err(EngineError::record(&error)),
    };
    write_events(&config.out.join("link-events.json"), &events, &legend)?;
    Ok(json!({
        "duration_s": duration_ns as f64 / 1e9,
        "clamped": clamped,
        "rows": summary.rows,
        "packets_digest": summary.digest,
        "balance": summary.balance.rows(),
        "conservation": summary.balance.check(&ledger),
        "entered": flows(&tallies, |flow| flow.entered),
        "left": flows(&tallies, |flow| flow.left),
        "steered": steered,
    }))
}

fn write_events(path: &Path, events: &[Event], legend: &Legend) -> Result<()> {
    let rows: Vec<Value> = events
        .iter()
        .map(|event| {
            let stage = event.reason.parse::<usize>().ok().and_then(|index| legend.stages.get(index));
            let stage = stage.map(|s| format!("path.{}.{}", direction_name(s.direction), s.name));
            let flow = event.flow.and_then(|flow| legend.flow_name(flow));
            json!({
                "t_ns": event.at.as_nanos(), "flow": flow, "name": event.name, "value": event.value,
                "unit": event.unit, "reason": stage.unwrap_or_else(|| event.reason.clone().into_owned()),
            })
        })
        .collect();
    let text = serde_json::to_vec(&rows).map_err(|e| EngineError::new("write", e).at(path))?;
    std::fs::write(path, text).map_err(|e| EngineError::io("write", &e).at(path))
}

/// Returns one side of every flow's account, without the empty ones.
fn flows(flows: &[[FlowTally; 2]], side: fn(&FlowTally) -> Tally) -> Vec<Value> {
    let mut rows = Vec::new();
    for (index, ways) in flows.iter().enumerate() {
        let code = if index + 1 == flows.len() { FlowId::OTHER } else { FlowId(index as u16) };
        for direction in [Direction::Down, Direction::Up] {
            let tally = side(&ways[direction as usize]);
            if tally.packets > 0 {
                let dir = direction_name(direction);
                rows.push(
                    json!({"flow": code.0, "dir": dir, "packets": tally.packets, "bytes": tally.bytes}),
                );
            }
        }
    }
    rows
}
