//! The server's side of RTSP (RFC 2326), for any server: the target of a request, and the resources it may have.

use streamgauge_base::Chunk;
use streamgauge_wire::rtsp::{
    HeaderName, Lower, Mode, Problem, Request, Response, StatusCode, Transport, Transports, TypedHeader, Url,
    Version, names, write_response,
};

/// The answer to a request.
pub type Answer = Response<Vec<u8>>;

/// Returns an answer without anything but its status.
pub fn status(status: StatusCode) -> Answer {
    Response::builder(Version::V1_0, status).build(Vec::new())
}

/// Returns `response` with one more header.
pub fn with(mut response: Answer, name: HeaderName, value: &str) -> Answer {
    response.insert_header(name, value);
    response
}

/// Returns the answer to an unreadable request.
pub fn unreadable(problem: &Problem) -> Answer {
    let answer = status(problem.status());
    match problem.cseq {
        Some(cseq) => with(answer, names::CSEQ, &cseq.to_string()),
        None => answer,
    }
}

/// Returns the bytes of an answer, with the server's name.
pub fn written(answer: &Answer) -> Chunk {
    Chunk::bytes(write_response(&with(answer.clone(), names::SERVER, "StreamGauge")))
}

/// Refuses a request that demands an option (RFC 2326 section 12.32) unknown to `is_known`, by the names of those.
pub fn refuse_options(request: &Request<Vec<u8>>, is_known: impl Fn(&str) -> bool) -> Result<(), Answer> {
    let Some(options) = request.header(&names::REQUIRE) else { return Ok(()) };
    let unknown: Vec<_> =
        options.as_str().split(',').map(str::trim).filter(|option| !is_known(option)).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    Err(with(status(StatusCode::OptionNotSupported), names::UNSUPPORTED, &unknown.join(", ")))
}

/// Returns a header that may be missing; an unreadable one counts as missing.
pub fn header<H: TypedHeader>(request: &Request<Vec<u8>>) -> Option<H> {
    request.typed_header().ok().flatten()
}

/// Returns the asset's path, percent-decoded, and the track that a URL names, as `track_of` reads its last part.
pub fn target(url: &Url, track_of: fn(&str) -> Option<usize>) -> (String, Option<usize>) {
    let path = url.path();
    let track = path.rsplit_once('/').and_then(|(asset, last)| Some((asset, track_of(last)?)));
    let (path, track) = track.map_or((path, None), |(asset, track)| (asset, Some(track)));
    (decoded(path.trim_end_matches('/')), track)
}

/// Decodes percent-encoding (RFC 3986 section 2.1); a result that is not UTF-8 names nothing.
pub fn decoded(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let hex = |byte: u8| char::from(byte).to_digit(16);
        let escaped = match after {
            [high, low, ..] if first == b'%' => hex(*high).zip(hex(*low)),
            _ => None,
        };
        match escaped {
            Some((high, low)) => {
                bytes.push((high * 16 + low) as u8);
                rest = &after[2..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the first of a player's offers that can be granted (RFC 2326 section 12.39), where the session's other
/// tracks have `taken` these channels of the connection.
pub fn choose(offers: &Transports, taken: &[(u8, u8)]) -> Option<Transport> {
    offers.0.iter().find_map(|offer| {
        if !offer.unicast || offer.mode == Some(Mode::Record) {
            return None;
        }
        match offer.lower {
            Lower::Udp => {
                let ports = offer.client_port.filter(|(rtp, rtcp)| *rtp > 0 && *rtcp > 0)?;
                Some(Transport::udp(ports))
            }
            Lower::Tcp => {
                let is_taken =
                    |channel: u8| taken.iter().any(|(rtp, rtcp)| channel == *rtp || channel == *rtcp);
                let is_free = |&(rtp, rtcp): &(u8, u8)| rtp != rtcp && !is_taken(rtp) && !is_taken(rtcp);
                let mut pairs = (0..=u8::MAX / 2).map(|pair| (2 * pair, 2 * pair + 1));
                Some(Transport::tcp(offer.interleaved.or_else(|| pairs.find(is_free)).filter(is_free)?))
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use streamgauge_wire::rtsp::Method;

    use super::*;
    use crate::media::sdp;

    #[test]
    fn a_url_names_an_asset_and_maybe_a_track() {
        let of = |url: &str| target(&Url::parse(url).unwrap(), sdp::track_of);
        assert_eq!(of("rtsp://h/a/b.mov"), ("/a/b.mov".into(), None));
        assert_eq!(of("rtsp://h:8554/a%20b.mov/trackID=2"), ("/a b.mov".into(), Some(1)));
        assert_eq!(of("rtsp://h/a.mov/?x=1"), ("/a.mov".into(), None));
        assert_eq!(of("rtsp://h/a.mov/trackID=0"), ("/a.mov/trackID=0".into(), None));
        assert_eq!(of("rtsp://h/%zz%4"), ("/%zz%4".into(), None));
    }

    #[test]
    fn the_first_offer_that_can_be_granted_is() {
        let chosen = |offers: &str, taken: &[(u8, u8)]| choose(&offers.parse().unwrap(), taken);
        let tcp = |pair| Some(Transport::tcp(pair));
        assert_eq!(chosen("RTP/AVP;multicast,RTP/AVP/TCP;unicast", &[]), tcp((0, 1)));
        assert_eq!(chosen("RTP/AVP;unicast;client_port=5000-5001", &[]), Some(Transport::udp((5000, 5001))));
        assert_eq!(chosen("RTP/AVP;unicast", &[]), None);
        assert_eq!(chosen("RTP/AVP;unicast;client_port=0-0", &[]), None);
        let taken = [(0, 1)];
        assert_eq!(chosen("RTP/AVP/TCP;unicast", &taken), tcp((2, 3)));
        assert_eq!(chosen("RTP/AVP/TCP;interleaved=1-2", &taken), None);
        let taken = [(2, 3), (0, 9)];
        assert_eq!(chosen("RTP/AVP/TCP;unicast", &taken), tcp((4, 5)), "the first that are free");
        assert_eq!(chosen("RTP/AVP;unicast;client_port=5000-5001;mode=record", &[]), None);
    }

    #[test]
    fn a_request_for_an_option_is_refused_by_its_name() {
        let request = Request::builder(Method::Play, Version::V1_0);
        assert!(refuse_options(&request.build(Vec::new()), |_| false).is_ok());
        let request =
            Request::builder(Method::Play, Version::V1_0).header(names::REQUIRE, "known, implicit-play");
        let refused = refuse_options(&request.build(Vec::new()), |option| option == "known").unwrap_err();
        assert_eq!(refused.status(), StatusCode::OptionNotSupported);
        assert_eq!(refused.header(&names::UNSUPPORTED).unwrap().as_str(), "implicit-play");
    }
}
