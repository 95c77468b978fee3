//! Indices of files.

use super::*;

/// A sidx of version 1 with these references: bytes and ticks of a second of 1000.
pub fn sidx(first_offset: u64, references: &[(u32, u32)]) -> Vec<u8> {
    let mut content = vec![1, 0, 0, 0, 0, 0, 0, 1];
    content.extend(1000u32.to_be_bytes());
    content.extend(40u64.to_be_bytes());
    content.extend(first_offset.to_be_bytes());
    content.extend([0, 0]);
    content.extend((references.len() as u16).to_be_bytes());
    for (bytes, ticks) in references {
        content.extend([bytes.to_be_bytes(), ticks.to_be_bytes(), 0x9000_0000u32.to_be_bytes()].concat());
    }
    [&((content.len() + 8) as u32).to_be_bytes()[..], b"sidx", &content].concat()
}

#[test]
fn offsets_count_from_behind_the_index() {
    let index = sidx(10, &[(100, 2000), (50, 1000)]);
    let free = [0, 0, 0, 8, b'f', b'r', b'e', b'e'];
    let bytes = [&free[..], &index, &[1, 2, 3]].concat();
    let segments = read_index(&bytes, 700, "http://origin.example/v.mp4", &Window::default()).unwrap();
    let behind = 700 + 8 + index.len() as u64 + 10;
    let found: Vec<_> = segments.iter().map(|one| (one.number, one.address.range.unwrap())).collect();
    assert_eq!(found, [(1, (behind, behind + 99)), (2, (behind + 100, behind + 149))]);
    assert_eq!(told(&segments), [(0, 2000, "/v.mp4"), (2000, 1000, "/v.mp4")]);
}

#[test]
fn what_is_no_index_is_refused() {
    let refused = |bytes: &[u8], first: u64| {
        let Err(error) = read_index(bytes, first, "http://origin.example/v.mp4", &Window::default()) else {
            panic!("it is read")
        };
        error.to_string()
    };
    let usual = sidx(0, &[(100, 2000), (50, 1000)]);
    for end in 0..usual.len() {
        assert!(refused(&usual[..end], 0).contains("no whole one"), "{end}");
    }
    // More entries than there are.
    let mut many = usual.clone();
    many[39] = 3;
    assert!(refused(&many, 0).contains("cut short"));
    let mut no_scale = usual.clone();
    no_scale[16..20].fill(0);
    assert!(refused(&no_scale, 0).contains("timescale is 0"));
    assert!(refused(&sidx(0, &[(0x8000_0010, 1)]), 0).contains("entry 1 leads to another index"));
    assert!(refused(&sidx(0, &[(1, 1), (0, 1)]), 0).contains("entry 2 has no bytes"));
    assert!(refused(&sidx(u64::MAX, &[(1, 1)]), 0).contains("beyond all bytes"));
    assert!(refused(&usual, u64::MAX).contains("beyond all bytes"));
    assert!(refused(b"", 0).contains("no whole one"));
}
