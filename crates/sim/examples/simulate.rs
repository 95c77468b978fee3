//! Runs a plan (JSON) into a folder and prints the summary: `cargo run --example simulate -- plan.json folder`.

use std::path::Path;

use streamgauge_plan::TrialPlan;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [plan, directory] = &args[..] else { return Err("usage: simulate PLAN.json FOLDER".into()) };
    let plan: TrialPlan = serde_json::from_str(&std::fs::read_to_string(plan)?)?;
    std::fs::create_dir_all(directory)?;
    let summary = streamgauge_sim::simulate(&plan, Path::new(directory))?;
    println!("{}", serde_json::to_string_pretty(&summary)?);
    Ok(())
}
