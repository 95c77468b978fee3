//! Registers two congestion controls of this crate. Alone it simulates a bulk transfer with one of them, and one with
//! CUBIC; `simulate PLAN DIRECTORY` runs a trial's plan, as `streamgauge evaluate cc` has it.
//!
//! ```text
//! cargo run --manifest-path examples/controller-crate/Cargo.toml
//! streamgauge evaluate cc examples/controller-crate:aimd --quick
//! ```

mod aimd;
mod gentle;

use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use streamgauge_plan::TrialPlan;
use streamgauge_sim::{simulate, simulate_in_memory};
use streamgauge_systems::media::Contents;
use streamgauge_transport::tcp::congestion::register;

/// A bulk transfer for 20 s over 10 Mbit/s and 20 ms each way, in front of which 100 packets may wait.
fn plan(control: &str) -> Result<TrialPlan, serde_json::Error> {
    let delay = json!({"name": "delay", "kind": {"delay": {"delay": 20_000_000}}});
    serde_json::from_value(json!({
        "scenario": "mine/gentle",
        "seed": 1,
        "duration": 20_000_000_000u64,
        "path": {
            "down": [
                {"name": "bottleneck", "kind": {"bottleneck": {
                    "rate": {"constant": 10_000_000},
                    "queue": {"droptail": {"packets": 100}},
                }}},
                delay,
            ],
            "up": [delay],
        },
        "flows": [{
            "name": "transfer",
            "role": "subject",
            "start": 0,
            "app": {"bulk": {"tcp": {"congestion_control": control}}},
        }],
    }))
}

fn main() -> Result<(), Box<dyn Error>> {
    register(Arc::new(gentle::GentleFactory))?;
    register(Arc::new(aimd::AimdFactory))?;
    let arguments: Vec<_> = env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [] => compare(),
        ["simulate", plan, directory] => run(Path::new(plan), Path::new(directory)),
        _ => Err("arguments: none, or simulate PLAN DIRECTORY".into()),
    }
}

/// Runs a plan, leaves its record in the directory and prints the summary as JSON.
fn run(plan: &Path, directory: &Path) -> Result<(), Box<dyn Error>> {
    let plan: TrialPlan = serde_json::from_str(&fs::read_to_string(plan)?)?;
    println!("{}", serde_json::to_string(&simulate(&plan, directory)?)?);
    Ok(())
}

fn compare() -> Result<(), Box<dyn Error>> {
    for control in ["gentle", "cubic"] {
        let (summary, _) = simulate_in_memory(&plan(control)?, &Contents::NONE)?;
        let flow = &summary.flows[0];
        let tcp = flow.tcp.as_ref().ok_or("the transfer has no connection")?;
        println!(
            "{control}: {:.2} Mbit/s, round trip {:.0} ms, {} segments sent again",
            flow.player_received_bytes as f64 * 8.0 / 20e6,
            tcp.srtt_s.unwrap_or_default() * 1e3,
            tcp.retransmits,
        );
    }
    Ok(())
}
