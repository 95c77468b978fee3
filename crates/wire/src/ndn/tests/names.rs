use std::collections::BTreeMap;

use super::*;
use crate::ndn::tlv::Elements;
use crate::ndn::types::{MOST_COMPONENTS, MOST_NAME_BYTES, NAME};

#[test]
fn components_are_typed() {
    let segment = Component::segment(258);
    assert_eq!((segment.kind(), segment.value(), segment.as_segment()), (50, &[1, 2][..], Some(258)));
    assert_eq!(segment.as_version(), None);
    assert_eq!(Component::version(7).as_version(), Some(7));
    assert_eq!(Component::of(0, &b""[..]), None);
    assert_eq!(Component::of(PARAMETERS_SHA256_DIGEST, &b"short"[..]), None);
    // A number has 1, 2, 4 or 8 bytes.
    assert_eq!(Component::of(50, &[0; 3][..]).expect("any bytes").as_segment(), None);
}

#[test]
fn prefixes_share_their_bytes() {
    let whole = name("/a/b/v=1/seg=2");
    assert_eq!(whole.len(), 4);
    assert_eq!(whole.prefix(2), name("/a/b"));
    assert_eq!(whole.prefix(2).as_bytes().as_ptr(), whole.as_bytes().as_ptr());
    assert_eq!((whole.prefix(9), whole.prefix(0)), (whole.clone(), Name::root()));
    assert_eq!(whole.parent(), name("/a/b/v=1"));
    assert_eq!(Name::root().parent(), Name::root());
    assert_eq!(whole.last(), Some(Component::segment(2)));
    assert_eq!(whole.get(1), Some(Component::generic(b"b")));
    assert_eq!((whole.get(4), Name::root().last()), (None, None));
    assert!(whole.starts_with(&name("/a")) && whole.starts_with(&whole) && whole.starts_with(&Name::root()));
    assert!(!whole.starts_with(&name("/a/c")) && !name("/a").starts_with(&whole));
    assert!(!name("/ab").starts_with(&name("/a")));
    assert_eq!(whole.parent().child(Component::segment(2)), Ok(whole.clone()));
    let routes = BTreeMap::from([(name("/a/b"), 1), (name("/a"), 2)]);
    assert_eq!(routes.get(whole.prefix_bytes(2)), Some(&1));
    assert_eq!(routes.get(whole.prefix_bytes(3)), None);
}

#[test]
fn a_name_is_bounded() {
    let many = |components| std::iter::repeat_n(Component::generic(b"a"), components);
    let longest = Name::of(many(MOST_COMPONENTS)).expect("as many as there may be");
    let refused = longest.child(Component::generic(b"a"));
    assert_eq!(refused.map_err(|problem| problem.fault), Err(Fault::NameTooLong));
    assert!(Name::of([Component::generic(vec![0; MOST_NAME_BYTES - 4])]).is_ok());
    assert!(Name::of([Component::generic(vec![0; MOST_NAME_BYTES - 3])]).is_err());
    let uri = "/a".repeat(10_000);
    assert_eq!(uri.parse::<Name>().map_err(|problem| problem.fault), Err(Fault::NameTooLong));

    // 10,000 components that come from outside: more than a packet has room for, and refused before.
    let value = [8, 0].repeat(10_000);
    let elements = Elements::of_bytes(&value);
    let element = crate::ndn::tlv::Element { kind: NAME, start: 0, from: 0, to: value.len() };
    let read = Name::read(&elements, &element).map_err(|problem| problem.fault);
    assert_eq!(read, Err(Fault::NameTooLong));
}

#[test]
fn text_is_read_as_it_is_said() {
    assert_eq!(name("/"), Name::root());
    assert_eq!(name("ndn:/"), Name::root());
    assert_eq!(name("NDN://somebody/a"), name("/a"));
    assert_eq!(name("ndn://somebody"), Name::root());
    assert_eq!(name("/a/"), name("/a"));
    assert_eq!(name("/8=a"), name("/a"));
    assert_eq!(name("/50=%02"), name("/seg=2"));
    assert_eq!(name("/Z%c3%a9 +!").get(0), Some(Component::generic("Z\u{e9} +!".as_bytes())));
    assert_eq!(name("/.../....").components().map(|c| c.value().len()).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn numbers_that_could_be_shorter_keep_their_bytes() {
    let padded = Name::of([Component::of(50, &[0, 1][..]).expect("a segment")]).expect("one");
    assert_eq!(padded.to_string(), "/50=%00%01");
    assert_eq!(padded.get(0).and_then(|component| component.as_segment()), Some(1));
}

#[test]
fn what_is_no_name_is_refused() {
    let refused = |uri: &str| uri.parse::<Name>().expect_err(uri);
    for uri in ["", "a", "ndn:", "ndn:a", "http:/a", "/a//b", "/.", "/a/..", "//host//a", "/%", "/%0", "/%0g"]
    {
        refused(uri);
    }
    for uri in
        ["/x=1", "/0=a", "/65536=a", "/08=a", "/+8=a", "/seg=", "/seg=-1", "/seg=01", "/SEG=1", "/seg=1.0"]
    {
        refused(uri);
    }
    for uri in ["/seg=18446744073709551616", "/sha256digest=00", "/params-sha256=zz", "/1=abc", "/2=abc"] {
        refused(uri);
    }
    assert_eq!(
        refused("/good/seg=x").to_string(),
        "at byte 6: a component of which the number is none, or beyond 64 bits"
    );
    assert_eq!(refused("clip").to_string(), "at byte 0: a name that does not begin with '/' or 'ndn:/'");
}

proptest! {
    #[test]
    fn names_are_read_as_written(name in any_name(0)) {
        prop_assert_eq!(name.to_string().parse(), Ok(name.clone()));
        prop_assert_eq!(format!("ndn:{name}").parse(), Ok(name.clone()));
        prop_assert_eq!(Name::of(&name), Ok(name.clone()));
        prop_assert_eq!(name.components().len(), name.len());
    }

    #[test]
    fn the_order_is_canonical(one in any_name(0), other in any_name(0), shared in any_name(0)) {
        let [one, other] = [one, other].map(|name| shared.with(&name).expect("a few components"));
        let components = |name: &Name| name.components().map(Component::into_owned).collect::<Vec<_>>();
        prop_assert_eq!(one.cmp(&other), components(&one).cmp(&components(&other)));
        prop_assert_eq!(one == other, components(&one) == components(&other));
    }

    #[test]
    fn prefixes_are_the_first_components(one in any_name(0), other in any_name(0), at in 0usize..7) {
        let prefix = one.prefix(at);
        prop_assert!(one.starts_with(&prefix) && prefix <= one);
        prop_assert!(prefix.components().eq(one.components().take(at)));
        prop_assert_eq!(prefix.len(), at.min(one.len()));
        let begins = one.components().take(other.len()).eq(other.components());
        prop_assert_eq!(one.starts_with(&other), begins);
    }

    #[test]
    fn any_text_is_taken(text in "(ndn:)?[/a.=%0-9seg]{0,30}|.{0,30}") {
        if let Ok(name) = text.parse::<Name>() {
            prop_assert_eq!(name.to_string().parse(), Ok(name));
        }
    }
}
