//! Writes transport streams for tests.

/// A transport stream as it is written.
#[derive(Default)]
pub struct Muxer {
    pub bytes: Vec<u8>,
    counters: std::collections::BTreeMap<u16, u8>,
}

pub const PMT: u16 = 0x1000;
pub const VIDEO: u16 = 0x100;
pub const SOUND: u16 = 0x101;

/// Bit by bit, as the standard writes it.
fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        for bit in (0..8).rev() {
            let top = (crc >> 31) ^ u32::from(byte >> bit & 1);
            crc = (crc << 1) ^ if top == 1 { 0x04c1_1db7 } else { 0 };
        }
    }
    crc
}

pub fn section(table: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len() + 9;
    let mut bytes = vec![table, 0xb0 | (length >> 8) as u8, length as u8, 0, 1, 0xc1, 0, 0];
    bytes.extend(content);
    bytes.extend(checksum(&bytes).to_be_bytes());
    bytes
}

impl Muxer {
    /// A packet of `pid` with this payload, stuffed in its adaptation field.
    pub fn packet(&mut self, pid: u16, begins: bool, payload: &[u8]) {
        let counter = self.counters.entry(pid).or_default();
        let stuffed = 184 - payload.len();
        let control = if stuffed > 0 { 0x30 } else { 0x10 };
        let start = if begins { 0x40 } else { 0 };
        self.bytes.extend([0x47, start | (pid >> 8) as u8, pid as u8, control | *counter]);
        *counter = (*counter + 1) & 0x0f;
        if stuffed > 0 {
            self.bytes.push((stuffed - 1) as u8);
            self.bytes.extend((1..stuffed).map(|at| if at == 1 { 0 } else { 0xff }));
        }
        self.bytes.extend(payload);
    }

    /// A section, with the pointer in front.
    pub fn table(&mut self, pid: u16, section: &[u8]) {
        let bytes = [&[0], section].concat();
        for (place, part) in bytes.chunks(184).enumerate() {
            self.packet(pid, place == 0, part);
        }
    }

    /// Both tables, of one program with these streams: type, PID and descriptors.
    pub fn tables(&mut self, streams: &[(u8, u16, &[u8])]) {
        self.table(0, &section(0, &[0, 1, 0xe0 | (PMT >> 8) as u8, PMT as u8]));
        let mut content = vec![0xe1, 0, 0xf0, 0];
        for (kind, pid, descriptors) in streams {
            content.extend([*kind, 0xe0 | (pid >> 8) as u8, *pid as u8, 0xf0, descriptors.len() as u8]);
            content.extend(*descriptors);
        }
        self.table(PMT, &section(2, &content));
    }

    /// A PES packet with this time stamp.
    pub fn pes(&mut self, pid: u16, stamp: Option<u64>, payload: &[u8]) {
        let id = if pid == VIDEO { 0xe0 } else { 0xc0 };
        let mut bytes = vec![0, 0, 1, id, 0, 0, 0x80, 0, 0];
        if let Some(stamp) = stamp {
            (bytes[7], bytes[8]) = (0x80, 5);
            let part = |shift: u32, bits: u64| (stamp >> shift & bits) as u8;
            bytes.extend([
                0x21 | part(30, 7) << 1,
                part(22, 0xff),
                part(15, 0x7f) << 1 | 1,
                part(7, 0xff),
                part(0, 0x7f) << 1 | 1,
            ]);
        }
        bytes.extend(payload);
        for (place, part) in bytes.chunks(184).enumerate() {
            self.packet(pid, place == 0, part);
        }
    }
}

/// Returns an access unit of H.264 of this many bytes, with a delimiter or without.
pub fn unit(bytes: usize, delimited: bool) -> Vec<u8> {
    let mut unit = if delimited { vec![0, 0, 0, 1, 9, 0xf0] } else { Vec::new() };
    unit.extend([0, 0, 0, 1, 0x65]);
    unit.resize(bytes.max(unit.len()), 0xaa);
    unit
}
