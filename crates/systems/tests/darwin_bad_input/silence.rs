//! Clients that receive nothing, send nothing, or are gone.

use streamgauge_base::Chunk;
use streamgauge_systems::darwin::{Preset, RTSP, ServerSettings};
use streamgauge_systems::{CloseReason, Input};

use crate::client::{Client, MOST_KEPT, PROBED, RELIABLE, URL};

#[test]
fn a_client_that_never_acknowledges_is_bounded_and_forgotten() {
    let mut client = Client::playing(ServerSettings::of(Preset::Source), RELIABLE);
    client.run(10_000);
    let early = client.host.media;
    assert!((10..300).contains(&early), "{early} packets");
    client.run(300_000);
    assert!(client.host.closed && client.names.iter().any(|name| name == "session_timeout"));
    assert!(client.most < MOST_KEPT, "{} B", client.most);
    assert!(client.kept() < 20_000, "{} B are kept of it", client.kept());
}

#[test]
fn who_vanishes_leaves_nothing_behind() {
    for settings in [ServerSettings::of(Preset::Source), ServerSettings::of(Preset::Paper)] {
        for setup in [PROBED, RELIABLE, ""] {
            let mut client = Client::playing(settings.clone(), setup);
            client.run(3_000);
            client.host.to_server.push_back(Chunk::bytes(*b"SET_PARAMETER * RTSP/1.0\r\nContent-Length: 9"));
            client.input(Input::Readable(RTSP));
            client.input(Input::Closed(RTSP, CloseReason::Reset));
            let sent = client.host.media;
            client.run(300_000);
            assert_eq!(client.host.media, sent);
            assert!(client.kept() < 20_000, "{} B are kept of it", client.kept());
        }
    }
}

#[test]
fn a_connection_that_takes_nothing_stops_its_media_and_ends() {
    let mut client = Client::new();
    assert_eq!(client.setup("Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n"), 200);
    client.host.room = 3_000;
    assert_eq!(client.play(""), 200);
    client.run(300_000);
    assert!(client.host.closed);
    assert!(client.most < MOST_KEPT, "{} B", client.most);
}

#[test]
fn a_pause_behind_media_that_waits_for_the_connection_is_a_pause() {
    let mut client = Client::new();
    assert_eq!(client.setup("Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n"), 200);
    assert_eq!(client.play(""), 200);
    client.host.room = 3_000;
    client.run(2_000);
    let session = client.session.clone();
    let pause = client.text("PAUSE", URL, &session);
    assert!(client.write(pause).is_empty(), "its answer waits too");
    client.host.room = 1_000_000;
    client.input(Input::Writable(RTSP));
    assert_eq!(client.answers(), [200]);
    let room = client.host.room;
    client.run(10_000);
    assert_eq!(client.host.room, room, "and then nothing is sent");
}
