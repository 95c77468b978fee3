//! The state of the flows' TCP, at regular times.

use std::borrow::Cow;

use streamgauge_base::{Duration, Event, FlowId, Instant};
use streamgauge_plan::{RelaySide, TrialPlan};
use streamgauge_systems::{begins_with_control, media_tcp};
use streamgauge_transport::tcp::Stats;

/// When the next samples are due, and their names in the record.
///
/// It only reads: a trial's packets are the same with samples and without.
#[derive(Debug)]
pub struct Sampler {
    interval: Duration,
    /// `FAR_FUTURE` if there are none.
    next: Instant,
    servers: Vec<Sampled>,
}

/// An endpoint with a sampled TCP: the server of a flow with media over TCP, or a relay at that side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sampled {
    /// The endpoint's number.
    pub end: usize,
    /// Whether its flow's first stream is left out: it carries no media, and a mean over both streams would be of
    /// neither.
    pub without_first: bool,
}

impl Sampler {
    /// Samples at each multiple of the plan's interval since the trial's start, its start excepted.
    pub fn new(plan: &TrialPlan) -> Self {
        let interval = plan.tcp_sample.unwrap_or(Duration::MAX);
        let sampled = if plan.tcp_sample.is_some() { &plan.flows[..] } else { &[] };
        let over_tcp = sampled.iter().enumerate().filter(|(_, flow)| media_tcp(&flow.app).is_some());
        let flows = over_tcp
            .map(|(flow, plan)| Sampled { end: 2 * flow, without_first: begins_with_control(&plan.app) });
        let sampled = if plan.tcp_sample.is_some() { &plan.relays[..] } else { &[] };
        let relays = (2 * plan.flows.len()..).zip(sampled);
        let relays = relays.filter(|(_, relay)| relay.at == RelaySide::Server);
        let relays = relays.map(|(end, _)| Sampled { end, without_first: false });
        Sampler { interval, next: Instant::ZERO + interval, servers: flows.chain(relays).collect() }
    }

    /// Returns whether a sample must be taken before anything happens at `now`: events at its own time are first.
    #[inline]
    pub fn is_due(&self, now: Instant) -> bool {
        self.next < now
    }

    /// Returns the time of the sample in [`Sampler::is_due`].
    pub fn due(&mut self, now: Instant) -> Option<Instant> {
        if !self.is_due(now) {
            return None;
        }
        let at = self.next;
        self.next = at + self.interval;
        Some(at)
    }

    /// Returns the endpoints that are sampled.
    pub fn servers(&self) -> &[Sampled] {
        &self.servers
    }
}

/// Returns the reason of a connection's samples: its congestion controller, and, from a flow's second connection on,
/// the ports of server and player, as emu has them: `cubic 80:40001`.
pub fn connection(controller: Cow<'static, str>, ports: Option<[u16; 2]>) -> Cow<'static, str> {
    match ports {
        None => controller,
        Some([server, player]) => format!("{controller} {server}:{player}").into(),
    }
}

/// Returns a connection's state as events; a figure without a value yet is left out.
pub fn events(
    at: Instant,
    flow: FlowId,
    connection: Cow<'static, str>,
    stats: &Stats,
) -> impl Iterator<Item = Event> {
    let ssthresh = (stats.ssthresh < u64::MAX).then_some(stats.ssthresh as f64);
    [
        ("tcp_cwnd", Some(stats.cwnd as f64), "B"),
        ("tcp_ssthresh", ssthresh, "B"),
        ("tcp_srtt", stats.srtt.map(|srtt| srtt.as_secs_f64()), "s"),
        ("tcp_retransmits", Some(stats.retransmits as f64), "1"),
        ("tcp_pacing_rate", stats.pacing_rate.map(|rate| rate as f64 * 8.0), "bit/s"),
        ("tcp_in_flight", Some(stats.in_flight as f64), "B"),
    ]
    .into_iter()
    .filter(|(_, value, _)| value.is_some())
    .map(move |(name, value, unit)| Event {
        at,
        flow: Some(flow),
        name: name.into(),
        value,
        unit: unit.into(),
        reason: connection.clone(),
    })
}
