//! Independent losses.

use streamgauge_base::RandomStream;

use crate::chance::Chance;

/// Loses each packet with the same probability, independently: one draw a packet.
#[derive(Clone, Debug)]
pub(super) struct Bernoulli {
    lose: Chance,
}

impl Bernoulli {
    pub fn new(probability: f64) -> Self {
        Bernoulli { lose: Chance::new(probability) }
    }

    #[inline]
    pub fn loses(&mut self, random: &mut RandomStream) -> bool {
        self.lose.draw(random)
    }
}
