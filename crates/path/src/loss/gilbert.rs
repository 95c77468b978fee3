//! Bursts of losses from a two-state Markov chain.

use streamgauge_base::RandomStream;

use crate::chance::Chance;

/// The chain, which may step once a packet, after it. It starts in its stationary distribution, so that short trials
/// lose as much as long ones on average.
#[derive(Clone, Debug)]
struct Chain {
    bad: bool,
    leave_good: Chance,
    leave_bad: Chance,
}

impl Chain {
    fn new(good_packets: f64, bad_packets: f64, random: &mut RandomStream) -> Self {
        Chain {
            bad: Chance::new(bad_packets / (good_packets + bad_packets)).draw(random),
            leave_good: Chance::new(1.0 / good_packets),
            leave_bad: Chance::new(1.0 / bad_packets),
        }
    }

    /// Returns the state that this packet meets.
    #[inline]
    fn step(&mut self, random: &mut RandomStream) -> bool {
        let bad = self.bad;
        let leave = if bad { self.leave_bad } else { self.leave_good };
        self.bad ^= leave.draw(random);
        bad
    }
}

/// Good delivers and bad drops (Gilbert 1960, with certain loss in the bad state): one draw a packet.
#[derive(Clone, Debug)]
pub(super) struct Gilbert(Chain);

impl Gilbert {
    pub fn new(good_packets: f64, bad_packets: f64, random: &mut RandomStream) -> Self {
        Gilbert(Chain::new(good_packets, bad_packets, random))
    }

    #[inline]
    pub fn loses(&mut self, random: &mut RandomStream) -> bool {
        self.0.step(random)
    }
}

/// Each state loses with a probability of its own (Elliott 1963, "Estimates of error rates for codes on
/// burst-noise channels"): two draws a packet, the loss and then the step.
#[derive(Clone, Debug)]
pub(super) struct GilbertElliott {
    chain: Chain,
    lose_good: Chance,
    lose_bad: Chance,
}

impl GilbertElliott {
    pub fn new(
        good_packets: f64,
        bad_packets: f64,
        loss_good: f64,
        loss_bad: f64,
        random: &mut RandomStream,
    ) -> Self {
        GilbertElliott {
            chain: Chain::new(good_packets, bad_packets, random),
            lose_good: Chance::new(loss_good),
            lose_bad: Chance::new(loss_bad),
        }
    }

    #[inline]
    pub fn loses(&mut self, random: &mut RandomStream) -> bool {
        let lose = if self.chain.bad { self.lose_bad } else { self.lose_good };
        let lost = lose.draw(random);
        self.chain.step(random);
        lost
    }
}
