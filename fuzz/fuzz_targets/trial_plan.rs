//! A trial's plan that reads from JSON is written and read again as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use streamgauge_plan::TrialPlan;

fuzz_target!(|text: &str| {
    let Ok(plan) = serde_json::from_str::<TrialPlan>(text) else { return };
    let again = serde_json::to_string(&plan).expect("a plan can be written");
    assert_eq!(serde_json::from_str::<TrialPlan>(&again).expect("and read"), plan);
});
