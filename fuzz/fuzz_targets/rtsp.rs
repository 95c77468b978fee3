//! A connection of any bytes, whole and cut up, gives the same items; what is read is written and read again as the
//! same, but for blanks; headers take any value.
#![no_main]

use libfuzzer_sys::fuzz_target;
use streamgauge_base::Chunk;
use streamgauge_wire::rtsp::{
    Allow, CSeq, DeliveryBandwidth, DynamicRate, Prebuffer, Problem, Public, Range, Reader, RealChallenge1,
    RealChallenge2, RealChallenge3, RealTransports, Retransmit, RtpInfo, RtspItem, Session, Speed, Subscribe,
    TransportOptions, Transports, Unsubscribe, interleave, names, write_request, write_response,
};

fn read(pieces: impl Iterator<Item = Chunk>) -> Vec<Result<RtspItem, Problem>> {
    let mut reader = Reader::default();
    let mut items = Vec::new();
    for piece in pieces {
        reader.push(piece);
        items.extend(reader.by_ref());
    }
    items
}

macro_rules! headers {
    ($message:expr) => {
        let _ = $message.typed_header::<Allow>();
        let _ = $message.typed_header::<CSeq>();
        let _ = $message.typed_header::<Public>();
        let _ = $message.typed_header::<Session>();
        let _ = $message.typed_header::<Retransmit>();
        let _ = $message.typed_header::<DynamicRate>();
        let _ = $message.typed_header::<Speed>();
        if let Ok(Some(transports)) = $message.typed_header::<Transports>() {
            assert!(transports.0.is_empty() || transports.to_string().parse() == Ok(transports));
        }
        if let Ok(Some(transports)) = $message.typed_header::<RealTransports>() {
            assert!(transports.0.is_empty() || transports.to_string().parse() == Ok(transports));
        }
        if let Ok(Some(rules)) = $message.typed_header::<Subscribe>() {
            assert_eq!(rules.to_string().parse(), Ok(rules));
        }
        if let Ok(Some(rules)) = $message.typed_header::<Unsubscribe>() {
            assert_eq!(rules.to_string().parse(), Ok(rules));
        }
        if let Ok(Some(delivery)) = $message.typed_header::<DeliveryBandwidth>() {
            assert_eq!(delivery.to_string().parse(), Ok(delivery));
        }
        let _ = $message.typed_header::<RealChallenge1>();
        if let Ok(Some(challenge)) = $message.typed_header::<RealChallenge2>() {
            assert_eq!(challenge.to_string().parse(), Ok(challenge));
        }
        if let Ok(Some(challenge)) = $message.typed_header::<RealChallenge3>() {
            assert_eq!(challenge.to_string().parse(), Ok(challenge));
        }
        if let Ok(Some(info)) = $message.typed_header::<RtpInfo>() {
            let _ = info.to_string();
        }
        // Times are cut off where they are written, and from there on they stay.
        if let Ok(Some(range)) = $message.typed_header::<Range>() {
            let written = range.to_string();
            assert_eq!(written.parse::<Range>().expect("ours").to_string(), written);
        }
        if let Ok(Some(options)) = $message.typed_header::<TransportOptions>() {
            let written = options.to_string();
            assert_eq!(written.parse::<TransportOptions>().expect("ours").to_string(), written);
        }
        if let Ok(Some(prebuffer)) = $message.typed_header::<Prebuffer>() {
            let written = prebuffer.to_string();
            assert_eq!(written.parse::<Prebuffer>().expect("ours").to_string(), written);
        }
    };
}

fuzz_target!(|bytes: &[u8]| {
    // The first byte says how the rest is cut.
    let Some((&cut, bytes)) = bytes.split_first() else { return };
    let items = read(std::iter::once(Chunk::bytes(bytes)));
    let pieces = bytes.chunks(usize::from(cut) + 1).map(Chunk::bytes);
    assert_eq!(read(pieces), items);
    assert!(items.iter().rev().skip(1).all(|item| !matches!(item, Err(problem) if problem.is_fatal())));
    for item in items.iter().flatten() {
        if let RtspItem::Request(request) = item {
            headers!(request);
        }
        if let RtspItem::Response(response) = item {
            headers!(response);
            let chosen = response.header(&names::TRANSPORT).map(|chosen| Transports::chosen(chosen.as_str()));
            if let Some(Ok(transports)) = chosen {
                assert!(transports.0.is_empty() || transports.to_string().parse() == Ok(transports));
            }
        }
        // An empty value that was joined to another of its name is trimmed when it is read again.
        let again = rewritten(item);
        assert_eq!(rewritten(&again), again);
        assert!(matches!(item, RtspItem::Request(_) | RtspItem::Response(_)) || again == *item);
    }
});

fn rewritten(item: &RtspItem) -> RtspItem {
    let written = match item {
        RtspItem::Request(request) => Chunk::bytes(write_request(request)),
        RtspItem::Response(response) => Chunk::bytes(write_response(response)),
        RtspItem::Interleaved { channel, packet } => interleave(*channel, packet),
    };
    match &read(std::iter::once(written))[..] {
        [Ok(item)] => item.clone(),
        other => panic!("{item:?} became {other:?}"),
    }
}
