use super::*;

fn all(bytes: &[u8]) -> Vec<Result<Item, Problem>> {
    let mut reader = Reader::default();
    reader.push(Chunk::bytes(bytes));
    reader.collect()
}

#[test]
fn requests_and_responses_are_read() {
    let items =
        all(b"\r\nOPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\nRTSP/1.0 200 OK\nCseq: 2\nContent-length: 3\n\nabc");
    let [Ok(Item::Request(request)), Ok(Item::Response(response))] = &items[..] else { panic!("{items:?}") };
    assert_eq!(
        (request.method(), request.typed_header::<CSeq>().unwrap().map(|c| *c)),
        (&Method::Options, Some(1))
    );
    assert_eq!((response.status(), &response.body()[..]), (StatusCode::Ok, &b"abc"[..]));
}
