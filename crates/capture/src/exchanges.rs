//! Requests and their answers by sizes and times alone, for flows that TLS or QUIC encrypts.
//!
//! One end requests, the other answers. Payload of the requesting end begins an exchange, and the other's payload
//! before the next request belongs to it. Small payload does not count: acknowledgements of QUIC, window updates of
//! HTTP/2.

/// Exchanges that are kept of one flow and one asking end.
const MOST: usize = 4000;
/// A request has so many bytes at least, where its text is hidden.
const LEAST_BYTES: u32 = 64;
/// The same of a datagram: QUIC acknowledges in up to so many.
pub const LEAST_DATAGRAM: u32 = 100;

/// A request with its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exchange {
    /// When the request passed the capture (ns).
    pub at_ns: i64,
    /// Its payload.
    pub asked_bytes: u32,
    /// When the answer began and when its last byte so far passed (ns).
    pub answered_ns: Option<(i64, i64)>,
    /// Payload of the answer.
    pub bytes: u64,
}

/// The exchanges of one flow, by the end that asks.
#[derive(Clone, Debug, Default)]
pub struct Exchanges {
    /// In order.
    pub asked_by: [Vec<Exchange>; 2],
    /// Further ones, which are not kept.
    pub more: u64,
}

impl Exchanges {
    /// Takes payload that was not seen before, from end `from`. `least`: the bytes that a request has at least; 0 where
    /// its text is seen.
    pub fn take(&mut self, from: usize, bytes: u32, at_ns: i64, least: u32) {
        if let Some(exchange) = self.asked_by[1 - from].last_mut() {
            exchange.bytes += u64::from(bytes);
            let (first_ns, last_ns) = exchange.answered_ns.unwrap_or((at_ns, at_ns));
            exchange.answered_ns = Some((first_ns, last_ns.max(at_ns)));
        }
        let own = &mut self.asked_by[from];
        let is_full = own.len() >= MOST;
        match own.last_mut() {
            // A request in several segments.
            Some(open) if open.answered_ns.is_none() => {
                open.asked_bytes = open.asked_bytes.saturating_add(bytes);
            }
            _ if bytes < least => {}
            _ if is_full => self.more += 1,
            _ => own.push(Exchange { at_ns, asked_bytes: bytes, answered_ns: None, bytes: 0 }),
        }
    }

    /// The bytes that a request has at least in a protocol.
    pub fn least(protocol: Option<&str>) -> u32 {
        if matches!(protocol, Some("http" | "rtsp")) { 0 } else { LEAST_BYTES }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_payload_does_not_begin_an_exchange() {
        let mut found = Exchanges::default();
        found.take(0, 300, 10, LEAST_BYTES);
        found.take(0, 200, 11, LEAST_BYTES);
        found.take(1, 1400, 20, LEAST_BYTES);
        found.take(0, 35, 25, LEAST_BYTES);
        found.take(1, 1000, 30, LEAST_BYTES);
        found.take(0, 120, 90, LEAST_BYTES);
        let first = Exchange { at_ns: 10, asked_bytes: 500, answered_ns: Some((20, 30)), bytes: 2400 };
        let second = Exchange { at_ns: 90, asked_bytes: 120, answered_ns: None, bytes: 0 };
        assert_eq!(found.asked_by[0], [first, second]);
    }
}
