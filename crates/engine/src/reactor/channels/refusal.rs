//! Why a connection was not made, in a machine's words.

use streamgauge_systems::ChannelError;

/// Returns why one to `port` was not.
pub fn refusal(error: nix::Error, port: u16) -> ChannelError {
    match error {
        nix::Error::ECONNREFUSED | nix::Error::ECONNRESET => ChannelError::NoListener { port },
        nix::Error::ETIMEDOUT => ChannelError::TimedOut { port },
        nix::Error::EADDRNOTAVAIL | nix::Error::EADDRINUSE => {
            let (first, last) = local_ports().unwrap_or((32_768, 60_999));
            ChannelError::NoPort { first, last }
        }
        error => ChannelError::Host(format!("connect to port {port} of the other end: {}", error.desc())),
    }
}

/// Returns the range that the kernel chooses ports from.
fn local_ports() -> Option<(u16, u16)> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut numbers = text.split_whitespace().map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}
