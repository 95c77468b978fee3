//! Counts in words: a line of JSON a sample.

use serde_json::{Map, Value, json};
use streamgauge_base::Event;
use streamgauge_plan::{CAUSES, cause_name};

use crate::counts::{Aggregates, Way};
use crate::histogram::Histogram;

/// A driver's own data with its counts.
#[derive(Clone, Debug, Default)]
pub struct Moment {
    /// The trial's time, ns.
    pub at_ns: u64,
    /// Since the last sample, ns.
    pub span_ns: u64,
    /// Bytes that each bottleneck holds now.
    pub held_bytes: [u32; 2],
    /// Since the trial began: packets later than their own transmission time.
    pub late_over_service: u64,
    /// Since the trial began: packets that the emulator itself lost.
    pub own_losses: u64,
    /// Since the trial began: arrivals that were read too late.
    pub clamped: u64,
    /// The last one: the trial is over.
    pub ended: bool,
    /// Events of the path and of machines since the last sample.
    pub events: Vec<Event>,
}

/// A line for each sample, and the words common to all of them.
pub(crate) struct Words {
    flows: Vec<String>,
    stages: Vec<String>,
    lateness: Histogram,
    packets: u64,
}

impl Words {
    pub fn new(flows: Vec<String>, stages: Vec<String>) -> Self {
        Words { flows, stages, lateness: Histogram::default(), packets: 0 }
    }

    pub fn sample(&mut self, counts: &Aggregates, moment: &Moment) -> Value {
        self.lateness.merge(&counts.lateness);
        self.packets += counts.ways.iter().map(|way| way.offered[0]).sum::<u64>();
        let span_s = moment.span_ns as f64 / 1e9;
        let [down, up] = [0, 1].map(|way| {
            let mut said = in_words(&counts.ways[way], span_s);
            let most = counts.ways[way].queue_bytes.max(moment.held_bytes[way]);
            said.insert("queue_bytes".into(), most.into());
            said
        });
        let last = counts.flows.len() - 1;
        let flows = counts.flows.iter().enumerate().filter_map(|(code, ways)| {
            let name = if code == last { "other" } else { self.flows.get(code)? };
            let silent = code == last && ways.iter().all(|way| way.offered[0] + way.delivered[0] == 0);
            let ways = ways.each_ref().map(|way| in_words(way, span_s));
            (!silent).then(|| (name.to_owned(), json!({"down": ways[0], "up": ways[1]})))
        });
        let flows: Map<String, Value> = flows.collect();
        json!({"sample": {
            "t_s": moment.at_ns as f64 / 1e9, "span_s": span_s, "down": down, "up": up, "flows": flows,
            "late": {
                "p50_s": seconds(self.lateness.quantile(0.5)), "p99_s": seconds(self.lateness.quantile(0.99)),
                "packets": self.lateness.count(), "over_service": moment.late_over_service,
            },
            "entered_packets": self.packets, "own_losses": moment.own_losses, "clamped": moment.clamped,
            "ended": moment.ended,
            "events": moment.events.iter().map(|event| self.event(event)).collect::<Vec<_>>(),
        }})
    }

    fn event(&self, event: &Event) -> Value {
        let flow = event.flow.and_then(|flow| self.flows.get(usize::from(flow.0)));
        // The path identifies its stage by number where the name is not at hand.
        let stage = event.reason.parse::<usize>().ok().and_then(|code| self.stages.get(code));
        json!({
            "t_s": event.at.as_nanos() as f64 / 1e9, "flow": flow, "name": event.name, "value": event.value,
            "unit": event.unit, "reason": stage.map_or(event.reason.as_ref(), String::as_str),
        })
    }
}

fn seconds(ns: Option<u64>) -> Option<f64> {
    ns.map(|ns| ns as f64 / 1e9)
}

fn in_words(way: &Way, span_s: f64) -> Map<String, Value> {
    let rate = |bytes: u64| if span_s > 0.0 { 8.0 * bytes as f64 / span_s } else { 0.0 };
    let mean = |sum: u64| (way.served > 0).then(|| sum as f64 / way.served as f64);
    let dropped: Map<String, Value> = CAUSES
        .iter()
        .filter(|&&cause| way.dropped[cause as usize] > 0)
        .map(|&cause| (cause_name(cause).to_owned(), way.dropped[cause as usize].into()))
        .collect();
    let said = json!({
        "offered_bps": rate(way.offered[1]), "delivered_bps": rate(way.delivered[1]),
        "offered_packets": way.offered[0], "offered_bytes": way.offered[1],
        "delivered_packets": way.delivered[0], "delivered_bytes": way.delivered[1],
        "lost": way.lost[0], "lost_bytes": way.lost[1], "dropped": dropped, "marked": way.marked,
        "queue_bytes": way.queue_bytes, "queue_mean_bytes": mean(way.queue_bytes_sum),
        "queue_s": way.queue_ns as f64 / 1e9, "queue_mean_s": mean(way.queue_ns_sum).map(|ns| ns / 1e9),
        "delay_p50_s": seconds(way.delays.quantile(0.5)), "delay_p95_s": seconds(way.delays.quantile(0.95)),
    });
    match said {
        Value::Object(said) => said,
        _ => Map::new(),
    }
}
