//! Any datagram, real or with filler behind it, is media, a tunnel's packet or a fault; what is read is written and read again as
//! the same. RTCP has a target of its own.
#![no_main]

use libfuzzer_sys::fuzz_target;
use streamgauge_base::Chunk;
use streamgauge_wire::rist::{Body, Data, Gre, NackRange};

fuzz_target!(|bytes: &[u8]| {
    // The first byte says how much filler comes behind the rest.
    let Some((&filler, bytes)) = bytes.split_first() else { return };
    let datagram = Chunk::with_filler(bytes, filler.into());
    if let Ok(data) = Data::parse(&datagram) {
        let written = data.write();
        assert_eq!(Data::parse(&written), Ok(data));
        assert!(written.len() <= datagram.len());
        if filler == 0 {
            assert_eq!(Data::parse(Body::from(bytes)), Ok(data));
        }
    }
    if let Ok(gre) = Gre::parse(&datagram) {
        let written = gre.write();
        assert_eq!(Gre::parse(&written), Ok(gre));
        assert!(written.len() <= datagram.len());
    }
    let sequences: Vec<u16> = bytes.as_chunks().0.iter().map(|pair| u16::from_be_bytes(*pair)).collect();
    let named: Vec<u16> = NackRange::of(&sequences).into_iter().flat_map(NackRange::sequences).collect();
    assert_eq!(named, sequences);
});
