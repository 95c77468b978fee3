//! Any input, in any order.

use proptest::prelude::*;
use streamgauge_systems::Input;
use streamgauge_systems::darwin::{Preset, ServerSettings};
use streamgauge_wire::reliable_udp::{AckPacket, ClientReport};
use streamgauge_wire::rtcp::{self, Packet};

use crate::client::{Client, MOST_KEPT, PROBED, RELIABLE, UDP, URL};

/// A datagram of RTCP, well-formed, damaged or rubbish.
fn datagram() -> impl Strategy<Value = Vec<u8>> {
    let ack = (any::<u16>(), prop::collection::vec(any::<u32>(), 0..40)).prop_map(|(base, mask)| {
        rtcp::write(&[Packet::Ack(AckPacket { receiver_ssrc: 1, stream_ssrc: 2, base, mask })])
    });
    let report = any::<(Option<u32>, Option<u16>)>().prop_map(|(overbuffer_window, loss_percent_256)| {
        let report = ClientReport { overbuffer_window, loss_percent_256, ..ClientReport::default() };
        rtcp::write(&[Packet::ReceiverReport { ssrc: 1, blocks: Vec::new() }, Packet::ClientReport(report)])
    });
    let bye = Just(rtcp::write(&[Packet::Bye { sources: vec![1] }]));
    let rubbish = prop::collection::vec(any::<u8>(), 0..80);
    let sound = prop_oneof![4 => ack, 2 => report, 1 => bye, 1 => rubbish];
    (sound, any::<prop::sample::Index>(), prop_oneof![3 => Just(0u8), 1 => any::<u8>()]).prop_map(
        |(mut bytes, at, flip)| {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] ^= flip;
            }
            bytes
        },
    )
}

/// Returns a piece of a client's input; `SESSION` becomes the session's id.
fn piece() -> impl Strategy<Value = String> {
    let method = prop::sample::select(vec![
        "OPTIONS",
        "DESCRIBE",
        "SETUP",
        "PLAY",
        "PAUSE",
        "TEARDOWN",
        "GET_PARAMETER",
        "SET_PARAMETER",
        "FOO",
    ]);
    let url = prop::sample::select(vec![
        URL,
        "rtsp://server/clip.mov/trackID=1",
        "rtsp://server/clip.mov/trackID=2",
        "*",
    ]);
    let headers = prop::collection::vec(
        prop::sample::select(vec![
            UDP,
            RELIABLE,
            PROBED,
            "SESSION",
            "SESSION",
            "SESSION",
            "Transport: RTP/AVP/TCP;interleaved=0-1\r\n",
            "Range: npt=10-\r\n",
            "Range: npt=30-20\r\n",
            "Range: npt=59-\r\n",
            "Speed: 0.001\r\n",
            "Speed: 4\r\n",
            "x-Transport-Options: late-tolerance=0\r\n",
            "x-Prebuffer: maxtime=9\r\n",
            "Content-Length: 3\r\n\r\nabc",
        ]),
        0..4,
    );
    let request = (method, url, headers).prop_map(|(method, url, headers)| {
        format!("{method} {url} RTSP/1.0\r\nCSeq: 1\r\n{}\r\n", headers.concat())
    });
    let rest =
        prop::sample::select(vec!["RTSP/1.0 200 OK\r\n\r\n", "\r\n", "$\u{1}\0\u{4}abcd", "junk\r\n\r\n"]);
    prop_oneof![8 => request, 1 => rest.prop_map(str::to_owned)]
}

#[derive(Clone, Debug)]
enum Step {
    Write(String),
    Datagram(Vec<u8>),
    Wait(u64),
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// For any input in any order, the server answers in RTSP, keeps within its bound, and does not spin.
    #[test]
    fn takes_anything_in_any_order(
        paper: bool, answers_probe: bool,
        steps in prop::collection::vec(prop_oneof![
            4 => piece().prop_map(Step::Write), 3 => datagram().prop_map(Step::Datagram),
            3 => (1u64..4000).prop_map(Step::Wait),
        ], 1..60),
    ) {
        let preset = if paper { Preset::Paper } else { Preset::Source };
        let mut client = Client::of(ServerSettings::of(preset));
        client.answers_probe = answers_probe;
        let mut ms = 0;
        for step in steps {
            match step {
                Step::Write(text) if !client.host.closed => {
                    let text = text.replace("SESSION", &client.session);
                    client.write(text);
                }
                Step::Write(_) => {}
                Step::Datagram(bytes) => client.rtcp(&bytes),
                Step::Wait(more) => {
                    ms += more;
                    client.run(ms);
                    client.answers();
                }
            }
        }
        prop_assert!(client.most < MOST_KEPT, "{} B", client.most);
        prop_assert!(client.largest_window <= 65_536.0);
        client.input(Input::Stop);
        client.answers();
        prop_assert!(client.kept() < 40_000, "{} B are kept at the end", client.kept());
    }
}
