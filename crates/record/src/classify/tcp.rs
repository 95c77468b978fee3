//! TCP: which bytes a connection has sent before.

use streamgauge_base::TcpFlags;

pub const FIN: TcpFlags = 1;
pub const SYN: TcpFlags = 2;
pub const RST: TcpFlags = 4;

/// Connections remembered per flow and direction; a browser opens six to a host.
const REMEMBERED: usize = 32;

/// The connections of one flow in one direction, the last used first.
#[derive(Default)]
pub struct Connections(Vec<Connection>);

struct Connection {
    id: u32,
    /// The sequence number after the last one sent.
    next: u32,
}

/// `a` comes before `b` in sequence space (RFC 9293 section 3.4).
fn before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() < 0
}

impl Connections {
    /// A segment is sent; true if some of it was sent before.
    pub fn sent(&mut self, id: u32, seq: u32, payload_bytes: u32, flags: TcpFlags) -> bool {
        if flags & RST != 0 {
            return false;
        }
        let controls = u32::from(flags & SYN != 0) + u32::from(flags & FIN != 0);
        let length = payload_bytes.wrapping_add(controls);
        let end = seq.wrapping_add(length);
        let Some(at) = self.0.iter().position(|c| c.id == id) else {
            self.0.truncate(REMEMBERED - 1);
            self.0.insert(0, Connection { id, next: end });
            return false;
        };
        if at > 0 {
            self.0[..=at].rotate_right(1);
        }
        let next = &mut self.0[0].next;
        let again = length > 0 && before(seq, *next);
        // A SYN elsewhere in sequence space opens a new connection between the same ports.
        if flags & SYN != 0 && seq.wrapping_add(1) != *next {
            *next = end;
            return false;
        }
        if before(*next, end) {
            *next = end;
        }
        again
    }
}
