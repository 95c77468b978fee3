//! The names of objects and kinds: 128 bits each; the first three groups are little-endian in a file.

use std::fmt;

/// A GUID, in the order of its bytes in a file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Guid(pub [u8; 16]);

impl Guid {
    /// Returns the one that is written as `8-4-4-4-12` hexadecimal digits; the last two groups are one number
    /// here.
    const fn of(first: u32, second: u16, third: u16, last: u64) -> Self {
        let ([a, b, c, d], [e, f]) = (first.to_le_bytes(), second.to_le_bytes());
        let ([g, h], [i, j, k, l, m, n, o, p]) = (third.to_le_bytes(), last.to_be_bytes());
        Guid([a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p])
    }
}

/// The known ones (ASF Specification revision 01.20.03, section 10), and their names.
macro_rules! guids {
    ($($constant:ident = $name:literal, $first:literal, $second:literal, $third:literal, $last:literal;)*) => {
        impl Guid {
            $(#[doc = concat!("The ", $name, ".")]
            pub const $constant: Guid = Guid::of($first, $second, $third, $last);)*

            /// Returns its name in the specification.
            pub fn name(self) -> Option<&'static str> {
                match self {
                    $(Guid::$constant => Some($name),)*
                    _ => None,
                }
            }
        }
    };
}

guids! {
    HEADER = "Header Object", 0x75b22630, 0x668e, 0x11cf, 0xa6d900aa0062ce6c;
    DATA = "Data Object", 0x75b22636, 0x668e, 0x11cf, 0xa6d900aa0062ce6c;
    SIMPLE_INDEX = "Simple Index Object", 0x33000890, 0xe5b1, 0x11cf, 0x89f400a0c90349cb;
    FILE_PROPERTIES = "File Properties Object", 0x8cabdca1, 0xa947, 0x11cf, 0x8ee400c00c205365;
    STREAM_PROPERTIES = "Stream Properties Object", 0xb7dc0791, 0xa9b7, 0x11cf, 0x8ee600c00c205365;
    HEADER_EXTENSION = "Header Extension Object", 0x5fbf03b5, 0xa92e, 0x11cf, 0x8ee300c00c205365;
    CONTENT_DESCRIPTION = "Content Description Object", 0x75b22633, 0x668e, 0x11cf, 0xa6d900aa0062ce6c;
    STREAM_BIT_RATES = "Stream Bitrate Properties Object", 0x7bf875ce, 0x468d, 0x11d1, 0x8d82006097c9a2b2;
    BIT_RATE_EXCLUSION = "Bitrate Mutual Exclusion Object", 0xd6e229dc, 0x35da, 0x11d1, 0x903400a0c90349be;
    EXTENDED_STREAM = "Extended Stream Properties Object", 0x14e6a5cb, 0xc672, 0x4332, 0x8399a96952065b5a;
    ADVANCED_EXCLUSION = "Advanced Mutual Exclusion Object", 0xa08649cf, 0x4775, 0x4670, 0x8a166e35357566cd;
    AUDIO = "stream type Audio Media", 0xf8699e40, 0x5b4d, 0x11cf, 0xa8fd00805f5c442b;
    VIDEO = "stream type Video Media", 0xbc19efc0, 0x5b4d, 0x11cf, 0xa8fd00805f5c442b;
    NO_CORRECTION = "error correction type No Error Correction", 0x20fb5700, 0x5b55, 0x11cf, 0xa8fd00805f5c442b;
    AUDIO_SPREAD = "error correction type Audio Spread", 0xbfc3cd50, 0x618f, 0x11cf, 0x8bb200aa00b4e220;
    EXCLUSIVE_BY_LANGUAGE = "exclusion type Language", 0xd6e22a00, 0x35da, 0x11d1, 0x903400a0c90349be;
    EXCLUSIVE_BY_BIT_RATE = "exclusion type Bitrate", 0xd6e22a01, 0x35da, 0x11d1, 0x903400a0c90349be;
    RESERVED_1 = "Reserved 1", 0xabd3d211, 0xa9ba, 0x11cf, 0x8ee600c00c205365;
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = self.name() {
            return f.write_str(name);
        }
        let [a, b, c, d, e, f_, g, h, i, j, rest @ ..] = self.0;
        let first = u32::from_le_bytes([a, b, c, d]);
        let (second, third) = (u16::from_le_bytes([e, f_]), u16::from_le_bytes([g, h]));
        write!(f, "object {first:08x}-{second:04x}-{third:04x}-{i:02x}{j:02x}-")?;
        rest.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
