use super::*;

#[test]
fn one_encoding_is_as_it_is_and_several_are_in_a_table() {
    let single = OpaqueData::of(b"VIDO".to_vec());
    assert_eq!(single.write().unwrap(), b"VIDO");
    assert_eq!(OpaqueData::read(b"VIDO"), Ok(single.clone()));
    assert_eq!(single.of_rule(5), Some(&b"VIDO"[..]));
    // Any bytes.
    for odd in [&b""[..], b"MLTI", b"MLTI\0\0\0\x01\0\0\0\0"] {
        let odd = OpaqueData::of(odd.to_vec());
        assert_eq!(OpaqueData::read(&odd.write().unwrap()), Ok(odd));
    }

    // Two rules of each of two encodings.
    let several = OpaqueData { rules: vec![0, 0, 1, 1], encodings: vec![b"low".to_vec(), b"high".to_vec()] };
    let written = several.write().unwrap();
    assert_eq!(written, b"MLTI\0\x04\0\0\0\0\0\x01\0\x01\0\x02\0\0\0\x03low\0\0\0\x04high");
    assert_eq!(OpaqueData::read(&written), Ok(several.clone()));
    assert_eq!(
        [0, 1, 2, 3, 4].map(|rule| several.of_rule(rule).unwrap()),
        [&b"low"[..], b"low", b"high", b"high", b"low"]
    );
}

#[test]
fn what_is_no_table_is_told() {
    assert_eq!(OpaqueData::default().write(), Err(OpaqueError::Empty));
    assert_eq!(OpaqueData::read(b"MLTI\0\0\0\0"), Err(OpaqueError::Empty));
    let wrong = OpaqueData { rules: vec![0, 2], encodings: vec![vec![1], vec![2]] };
    let error = OpaqueError::Rule { rule: 1, encoding: 2, encodings: 2 };
    assert_eq!(wrong.write(), Err(error));
    assert_eq!(OpaqueData::read(b"MLTI\0\x02\0\0\0\x02\0\x02\0\0\0\x01a\0\0\0\x01b"), Err(error));
    let long = OpaqueData { rules: vec![0; 65_536], encodings: vec![vec![1]] };
    assert_eq!(long.write(), Err(OpaqueError::TooMany));
    let said = OpaqueData::read(b"MLTI\0\0\0\x01\xff\xff\xff\xffab").unwrap_err().to_string();
    assert_eq!(said, "it ends at byte 14, 4294967293 B before its encodings");
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        encodings in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..20), 1..5),
        rules in proptest::collection::vec(any::<u16>(), 1..9),
    ) {
        let rules = rules.into_iter().map(|rule| rule % encodings.len() as u16).collect();
        let opaque = OpaqueData { rules, encodings };
        let bytes = opaque.write().unwrap();
        for end in 4..bytes.len() {
            prop_assert!(OpaqueData::read(&bytes[..end]).is_err());
        }
        prop_assert_eq!(OpaqueData::read(&bytes), Ok(opaque));
    }

    #[test]
    fn nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        for bytes in [bytes.clone(), [b"MLTI".to_vec(), bytes].concat()] {
            if let Ok(read) = OpaqueData::read(&bytes) {
                prop_assert!(read.encodings.iter().map(Vec::len).sum::<usize>() <= bytes.len());
                prop_assert!(read.of_rule(0).is_some());
            }
        }
    }
}
