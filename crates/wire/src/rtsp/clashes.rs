//! Header names that begin with another header's name.

/// Names of headers that either end reads or writes.
const KNOWN: [&str; 33] = [
    "Accept",
    "Allow",
    "Bandwidth",
    "Content-Base",
    "Content-Length",
    "Content-Location",
    "Content-Type",
    "CSeq",
    "Location",
    "Public",
    "Range",
    "RealChallenge1",
    "RealChallenge2",
    "RealChallenge3",
    "Require",
    "RTP-Info",
    "Server",
    "Session",
    "SetDeliveryBandwidth",
    "Speed",
    "Subscribe",
    "Supported",
    "Transport",
    "Unsubscribe",
    "Unsupported",
    "User-Agent",
    "X-Accelerate-Streaming",
    "x-Dynamic-Rate",
    "X-Notice",
    "X-Playlist-Gen-Id",
    "x-Prebuffer",
    "x-Retransmit",
    "x-Transport-Options",
];

/// Returns a head without headers with names that begin a known one's or begin with one: to `rtsp-types`
/// (0.1.3) they are the same, and it would read Accept-Language as Accept.
pub fn without_clashes(head: &[u8]) -> Vec<u8> {
    let begins = |long: &[u8], short: &[u8]| {
        long.len() > short.len() && long[..short.len()].eq_ignore_ascii_case(short)
    };
    let mut kept = true;
    let mut lines = head.split_inclusive(|&byte| byte == b'\n');
    let mut sound = lines.next().unwrap_or_default().to_vec();
    for line in lines {
        // A line that begins with a blank continues the header before it.
        if !line.starts_with(b" ") && !line.starts_with(b"\t") {
            let name = line.iter().position(|&byte| byte == b':').map(|colon| &line[..colon]);
            let clash = |known: &str| {
                name.is_some_and(|name| begins(name, known.as_bytes()) || begins(known.as_bytes(), name))
            };
            kept = !KNOWN.iter().any(|known| clash(known));
        }
        if kept {
            sound.extend(line);
        }
    }
    sound
}
