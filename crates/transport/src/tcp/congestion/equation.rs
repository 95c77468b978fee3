//! The throughput equation: the throughput of a conformant TCP at a loss event rate and a round-trip time (RFC 5348
//! section 3.1; Padhye, Firoiu, Towsley, Kurose, "Modeling TCP Throughput", SIGCOMM 1998).

use streamgauge_base::Duration;

/// Returns the throughput in bytes per second of a TCP with segments of `segment` bytes, round-trip time `rtt` and loss
/// event rate `p` (0 to 1, loss events per packet).
///
/// With the choices that section 3.1 recommends: a retransmission timeout of four round trips, and one packet per
/// acknowledgement (b = 1). Infinite for `p` or `rtt` of 0.
pub fn throughput(segment: u32, rtt: Duration, p: f64) -> f64 {
    f64::from(segment) / (rtt.as_secs_f64() * round_trips(p))
}

/// Returns the loss event rate at which [`throughput`] is `bytes_per_s`: its inverse, within 1e-9; 1 if it is less at
/// any rate.
pub fn loss_event_rate(segment: u32, rtt: Duration, bytes_per_s: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while high - low > 1e-9 {
        let middle = (low + high) / 2.0;
        if throughput(segment, rtt, middle) > bytes_per_s { low = middle } else { high = middle }
    }
    high
}

/// Returns the equation's denominator in round trips per packet.
fn round_trips(p: f64) -> f64 {
    let timeouts = 4.0 * (3.0 * libm::sqrt(3.0 * p / 8.0)) * p * (1.0 + 32.0 * p * p);
    libm::sqrt(2.0 * p / 3.0) + timeouts
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    #[test]
    fn the_equation_by_hand() {
        // p = 0.01, R = 0.1 s: 1 / (0.1 * 0.081650 + 0.4 * 0.183712 * 0.01 * 1.0032) = 112.33 packets per second.
        let packets = throughput(1000, RTT, 0.01) / 1000.0;
        assert!((packets - 112.33).abs() < 0.01, "{packets}");
        assert!(throughput(1000, RTT, 0.0).is_infinite());
    }

    #[test]
    fn half_a_packet_per_round_trip_is_a_loss_event_rate_of_20_64_percent() {
        // The result of Linux's CCID 3 for section 6.3.1's case of the first packet lost.
        let p = loss_event_rate(1000, RTT, 1000.0 / 0.2);
        assert!((p - 0.2064).abs() < 5e-5, "{p}");
    }

    #[test]
    fn more_loss_is_less_throughput_and_the_inverse_undoes_it() {
        let mut last = f64::INFINITY;
        for n in 1..=100 {
            let p = f64::from(n) / 100.0;
            let x = throughput(1448, RTT, p);
            assert!(x < last);
            assert!((loss_event_rate(1448, RTT, x) - p).abs() < 1e-8);
            last = x;
        }
        assert_eq!(loss_event_rate(1448, RTT, 0.0), 1.0);
    }
}
