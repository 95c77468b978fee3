//! The state of the flows' TCP, at regular times.

use std::borrow::Cow;

use streamgauge_base::{Duration, Event, FlowId, Instant};
use streamgauge_plan::{RelaySide, TrialPlan};
use streamgauge_systems::media_tcp;
use streamgauge_transport::tcp::Stats;

/// When the next samples are due, and under which names they go into the record.
///
/// It only reads: a trial's packets are the same with samples and without.
#[derive(Debug)]
pub struct Sampler {
    interval: Duration,
    /// `FAR_FUTURE` if none are taken.
    next: Instant,
    /// Endpoints: the servers of flows whose media runs over TCP, and relays at their side.
    servers: Vec<usize>,
}

impl Sampler {
    /// Samples at each multiple of the plan's interval since the trial's start, its start excepted.
    pub fn new(plan: &TrialPlan) -> Self {
        let interval = plan.tcp_sample.unwrap_or(Duration::MAX);
        let sampled = if plan.tcp_sample.is_some() { &plan.flows[..] } else { &[] };
        let over_tcp = sampled.iter().map(|flow| media_tcp(&flow.app).is_some()).enumerate();
        let flows = over_tcp.filter_map(|(flow, over_tcp)| over_tcp.then_some(2 * flow));
        let sampled = if plan.tcp_sample.is_some() { &plan.relays[..] } else { &[] };
        let relays = (2 * plan.flows.len()..).zip(sampled);
        let relays = relays.filter_map(|(end, relay)| (relay.at == RelaySide::Server).then_some(end));
        Sampler { interval, next: Instant::ZERO + interval, servers: flows.chain(relays).collect() }
    }

    /// A sample must be taken before anything happens at `now`: what happens at its own time comes first.
    #[inline]
    pub fn is_due(&self, now: Instant) -> bool {
        self.next < now
    }

    /// The time of the sample that [`Sampler::is_due`].
    pub fn due(&mut self, now: Instant) -> Option<Instant> {
        if !self.is_due(now) {
            return None;
        }
        let at = self.next;
        self.next = at + self.interval;
        Some(at)
    }

    /// Endpoints: the servers of flows whose media runs over TCP, and relays at their side.
    pub fn servers(&self) -> &[usize] {
        &self.servers
    }
}

/// What a connection's samples give as their reason: its congestion controller, and, of a flow's second connection and
/// those after it, the ports of server and player, as emu has them: `cubic 80:40001`.
pub fn connection(controller: &'static str, ports: Option<[u16; 2]>) -> Cow<'static, str> {
    match ports {
        None => controller.into(),
        Some([server, player]) => format!("{controller} {server}:{player}").into(),
    }
}

/// A connection's state as events; what has no value yet is left out.
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
