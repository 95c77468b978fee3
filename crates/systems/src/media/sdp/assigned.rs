//! Payload types that need no `rtpmap` (RFC 3551 section 6, tables 4 and 5).

/// Returns the encoding, the clock rate and the channels that a payload type has by itself.
pub fn encoding(payload_type: u8) -> Option<(&'static str, u32, u8)> {
    Some(match payload_type {
        0 => ("PCMU", 8_000, 1),
        3 => ("GSM", 8_000, 1),
        4 => ("G723", 8_000, 1),
        5 => ("DVI4", 8_000, 1),
        6 => ("DVI4", 16_000, 1),
        7 => ("LPC", 8_000, 1),
        8 => ("PCMA", 8_000, 1),
        // It samples at 16 kHz, and its clock is 8 kHz (RFC 3551 section 4.5.2).
        9 => ("G722", 8_000, 1),
        10 => ("L16", 44_100, 2),
        11 => ("L16", 44_100, 1),
        12 => ("QCELP", 8_000, 1),
        13 => ("CN", 8_000, 1),
        14 => ("MPA", 90_000, 1),
        15 => ("G728", 8_000, 1),
        16 => ("DVI4", 11_025, 1),
        17 => ("DVI4", 22_050, 1),
        18 => ("G729", 8_000, 1),
        25 => ("CelB", 90_000, 1),
        26 => ("JPEG", 90_000, 1),
        28 => ("nv", 90_000, 1),
        31 => ("H261", 90_000, 1),
        32 => ("MPV", 90_000, 1),
        33 => ("MP2T", 90_000, 1),
        34 => ("H263", 90_000, 1),
        _ => return None,
    })
}
