//! A connection of any bytes, whole and cut up, gives the same messages, of requests and of responses; heads that are
//! read are written and read again as the same; headers take any value.
#![no_main]

use libfuzzer_sys::fuzz_target;
use streamgauge_base::Chunk;
use streamgauge_wire::http::{
    CacheControl, ContentRange, EntityTag, Fault, HttpHeaders, HttpItem, Ranges, Reader, TagCondition,
};

/// Neighbouring bytes of a body are joined.
fn read(mut reader: Reader, pieces: impl Iterator<Item = Chunk>) -> Vec<Result<HttpItem, Fault>> {
    let mut items: Vec<Result<HttpItem, Fault>> = Vec::new();
    let mut take = |item| match (items.last_mut(), item) {
        (Some(Ok(HttpItem::Body(before))), Ok(HttpItem::Body(more))) => {
            *before = Chunk::bytes([before.head(), more.head()].concat());
        }
        (_, item) => items.push(item),
    };
    for piece in pieces {
        reader.push(piece);
        for item in reader.by_ref() {
            take(item);
        }
    }
    if let Some(item) = reader.finish() {
        take(item);
    }
    items
}

fn written_again<T: std::str::FromStr + ToString + PartialEq>(text: &str) {
    if let Ok(value) = text.parse::<T>() {
        assert!(value.to_string().parse().is_ok_and(|again: T| again == value), "{text:?}");
    }
}

fn headers(headers: &HttpHeaders) {
    for (_, value) in headers.iter() {
        written_again::<Ranges>(value);
        written_again::<ContentRange>(value);
        written_again::<EntityTag>(value);
        written_again::<TagCondition>(value);
        written_again::<CacheControl>(value);
        if let Ok(ranges) = value.parse::<Ranges>() {
            for (first, last) in ranges.0.iter().filter_map(|range| range.within(1000)) {
                assert!(first <= last && last < 1000);
            }
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    // The first byte says how the rest is cut.
    let Some((&cut, bytes)) = bytes.split_first() else { return };
    for reader in [Reader::of_requests(), Reader::of_responses()] {
        let items = read(reader.clone(), std::iter::once(Chunk::bytes(bytes)));
        let pieces = bytes.chunks(usize::from(cut) + 1).map(Chunk::bytes);
        assert_eq!(read(reader.clone(), pieces), items);
        for item in items.iter().flatten() {
            let head = match item {
                HttpItem::Request(request) => {
                    headers(&request.headers);
                    request.write()
                }
                HttpItem::Response(response) => {
                    headers(&response.headers);
                    response.write()
                }
                _ => continue,
            };
            assert_eq!(
                read(reader.clone(), std::iter::once(Chunk::bytes(head))).first(),
                Some(&Ok(item.clone()))
            );
        }
    }
});
