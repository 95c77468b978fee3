//! The state of the flows' TCP, at regular times.

use streamgauge_base::{Duration, Event, FlowId, Instant};
use streamgauge_systems::darwin::Transport;
use streamgauge_systems::plan::{AppSpec, FlowSpec, TrialPlan};
use streamgauge_transport::tcp::{CongestionControl, Stats};

/// When the next samples are due, and under which names they go into the record.
///
/// It only reads: a trial's packets are the same with samples and without.
#[derive(Debug)]
pub struct Sampler {
    interval: Duration,
    /// `FAR_FUTURE` if none are taken.
    next: Instant,
    /// Flows over TCP, with the names of their congestion controllers.
    flows: Vec<(usize, &'static str)>,
}

impl Sampler {
    /// Samples at each multiple of the plan's interval since the trial's start, its start excepted.
    pub fn new(plan: &TrialPlan) -> Self {
        let interval = plan.tcp_sample.unwrap_or(Duration::MAX);
        let controllers = plan.flows.iter().map(controller).enumerate();
        let flows = controllers.filter_map(|(flow, name)| Some((flow, name?))).collect();
        Sampler { interval, next: Instant::ZERO + interval, flows }
    }

    /// The time of a sample that must be taken before anything happens at `now`: what happens at its own time
    /// comes first.
    #[inline]
    pub fn due(&mut self, now: Instant) -> Option<Instant> {
        if self.next >= now {
            return None;
        }
        let at = self.next;
        self.next = at + self.interval;
        Some(at)
    }

    /// The flows that run over TCP, with the names of their congestion controllers.
    pub fn flows(&self) -> &[(usize, &'static str)] {
        &self.flows
    }
}

/// The congestion controller of a flow's server; `None` if it does not run over TCP.
fn controller(flow: &FlowSpec) -> Option<&'static str> {
    let tcp = match &flow.app {
        AppSpec::Bulk(bulk) => &bulk.tcp,
        AppSpec::Rtp(rtp) => rtp.tcp.as_ref()?,
        // Where the media is on UDP, the RTSP connection has nothing to show.
        AppSpec::Darwin(darwin) if darwin.player.transport == Transport::Tcp => &darwin.tcp,
        AppSpec::Darwin(_) | AppSpec::Cbr(_) | AppSpec::Ping(_) | AppSpec::External => return None,
    };
    let named = CongestionControl::NAMED.iter().find(|(name, _)| *name == tcp.congestion_control);
    named.map(|(name, _)| *name)
}

/// A connection's state as events; what has no value yet is left out.
pub fn events(
    at: Instant,
    flow: usize,
    controller: &'static str,
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
        flow: Some(FlowId(flow as u16)),
        name: name.into(),
        value,
        unit: unit.into(),
        reason: controller.into(),
    })
}
