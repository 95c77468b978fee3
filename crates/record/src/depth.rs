//! How much was in a queue over time.

/// A quantity that holds between changes, in each sample of a grid.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Depth {
    /// The integral over the sample, in its unit times s.
    pub area: Vec<f64>,
    /// The least.
    pub low: Vec<f64>,
    /// The most.
    pub high: Vec<f64>,
}

impl Depth {
    fn begin(&mut self) {
        self.area.push(0.0);
        self.low.push(f64::INFINITY);
        self.high.push(f64::NEG_INFINITY);
    }

    #[inline]
    fn hold(&mut self, sample: usize, value: f64, seconds: f64) {
        // A packet that left before it arrived was never there.
        let value = value.max(0.0);
        self.area[sample] += seconds * value;
        self.low[sample] = self.low[sample].min(value);
        self.high[sample] = self.high[sample].max(value);
    }
}

/// Returns the content of a queue, by size and in packets, in each of the samples between `edges`, ascending and
/// distinct.
///
/// Packet `i` is in it from `arrived[i]`, which ascend, until `left[i]`, in ns, and has `sizes[i]`, a whole number.
/// Events at one instant have no order: the queue's content holds from after all of them. Nothing where the lengths
/// differ.
pub fn queue_depth(arrived: &[i64], left: &[i64], sizes: &[f64], edges: &[i64]) -> Option<[Depth; 2]> {
    if arrived.len() != left.len() || arrived.len() != sizes.len() {
        return None;
    }
    // Most queues let packets leave in order of arrival.
    let leaving = (!left.is_sorted()).then(|| {
        let mut order: Vec<usize> = (0..left.len()).collect();
        order.sort_by_key(|&packet| left[packet]);
        order
    });
    let (mut came, mut went) = (0, 0);
    let mut size = 0.0;
    let mut found = [Depth::default(), Depth::default()];
    for (sample, edge) in edges.windows(2).enumerate() {
        let (mut now, end) = (edge[0], edge[1]);
        let [sizes_in, packets_in] = &mut found;
        sizes_in.begin();
        packets_in.begin();
        while now < end {
            while let Some(&at) = arrived.get(came)
                && at <= now
            {
                size += sizes[came];
                came += 1;
            }
            let next_arrival = arrived.get(came).copied().unwrap_or(end);
            let mut next_departure = end;
            while went < left.len() {
                let packet = leaving.as_ref().map_or(went, |order| order[went]);
                if left[packet] > now {
                    next_departure = left[packet];
                    break;
                }
                size -= sizes[packet];
                went += 1;
            }
            let next = end.min(next_arrival).min(next_departure);
            let seconds = (next - now) as f64 / 1e9;
            sizes_in.hold(sample, size, seconds);
            packets_in.hold(sample, came as f64 - went as f64, seconds);
            now = next;
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn two_packets_of_which_the_second_leaves_first() {
        // 100 from 0 to 30 ns, 50 from 10 to 20 ns.
        let [sizes, packets] = queue_depth(&[0, 10], &[30, 20], &[100.0, 50.0], &[0, 15, 40]).unwrap();
        assert_eq!(packets.low, [1.0, 0.0]);
        assert_eq!(packets.high, [2.0, 2.0]);
        let near = |found: f64, ns: f64| assert!((found - ns * 1e-9).abs() < 1e-18, "{found} {ns}");
        near(sizes.area[0], 10.0 * 100.0 + 5.0 * 150.0);
        near(sizes.area[1], 5.0 * 150.0 + 10.0 * 100.0);
        assert_eq!((sizes.low, sizes.high), (vec![100.0, 0.0], vec![150.0, 150.0]));
    }

    #[test]
    fn lengths_that_differ_are_none() {
        assert_eq!(queue_depth(&[0], &[], &[1.0], &[0, 1]), None);
        assert_eq!(queue_depth(&[0], &[1], &[], &[0, 1]), None);
    }

    proptest! {
        /// The sum at each instant at which anything happens, with packets that left before they arrived among them.
        #[test]
        fn it_is_what_has_come_less_what_has_left(
            packets in proptest::collection::vec((0i64..900, -50i64..300, 1u32..2000), 0..60),
            cuts in proptest::collection::btree_set(0i64..1000, 2..20),
        ) {
            let mut packets = packets;
            packets.sort_by_key(|&(arrived, ..)| arrived);
            let arrived: Vec<i64> = packets.iter().map(|one| one.0).collect();
            let left: Vec<i64> = packets.iter().map(|one| one.0 + one.1).collect();
            let sizes: Vec<f64> = packets.iter().map(|one| one.2.into()).collect();
            let edges: Vec<i64> = cuts.into_iter().collect();
            let mut instants: Vec<i64> = [&arrived[..], &left, &edges].concat();
            instants.sort_unstable();
            instants.dedup();
            let found = queue_depth(&arrived, &left, &sizes, &edges).unwrap();
            let ones = vec![1.0; sizes.len()];
            for (depth, weights) in found.iter().zip([&sizes, &ones]) {
                let sum = |times: &[i64], at: i64| -> f64 {
                    times.iter().zip(weights).filter(|&(&time, _)| time <= at).map(|(_, weight)| weight).sum()
                };
                for (sample, edge) in edges.windows(2).enumerate() {
                    let (mut area, mut low, mut high) = (0.0, f64::INFINITY, f64::NEG_INFINITY);
                    for span in instants.windows(2).filter(|span| edge[0] <= span[0] && span[0] < edge[1]) {
                        let value = (sum(&arrived, span[0]) - sum(&left, span[0])).max(0.0);
                        area += value * (span[1] - span[0]) as f64 * 1e-9;
                        low = low.min(value);
                        high = high.max(value);
                    }
                    prop_assert!((depth.area[sample] - area).abs() < 1e-12);
                    prop_assert_eq!((depth.low[sample], depth.high[sample]), (low, high));
                }
            }
        }
    }
}
