//! Clients that ask, or acknowledge, more than there is to ask or acknowledge.

use streamgauge_base::Chunk;
use streamgauge_systems::Input;
use streamgauge_systems::darwin::{Preset, RTSP, ServerSettings};
use streamgauge_wire::reliable_udp::AckPacket;
use streamgauge_wire::rtcp::{self, Packet};

use crate::client::{Client, MOST_KEPT, PROBED, RELIABLE, UDP, URL};

/// Requests that may wait for the probe: 8 of 80 kB, which a vector's growth may double.
const MOST_WAITING: usize = 2 * 8 * 80_000;

#[test]
fn a_flood_of_requests_waits_outside_and_is_answered() {
    let mut client = Client::new();
    client.host.room = 0;
    let flood: String = (0..20_000).map(|_| client.text("OPTIONS", "*", "")).collect();
    let bytes = flood.len();
    client.host.to_server.push_back(Chunk::bytes(flood.into_bytes()));
    client.input(Input::Readable(RTSP));
    let kept = client.kept().saturating_sub(bytes);
    assert!(kept < 200_000, "{kept} B beside {bytes} B that wait");
    let unread: usize = client.host.to_server.iter().map(Chunk::len).sum();
    assert!(unread > bytes / 2, "{unread} of {bytes} B still wait outside");
    let mut answered = 0;
    while answered < 20_000 {
        client.host.room = 50_000;
        client.input(Input::Writable(RTSP));
        let answers = client.answers();
        assert!(!answers.is_empty() && answers.iter().all(|status| *status == 200));
        answered += answers.len();
    }
    assert!(client.kept() < 100_000, "{} B after the flood", client.kept());
}

#[test]
fn a_client_that_never_answers_the_probe_may_not_ask_for_ever() {
    let mut client = Client::new();
    client.answers_probe = false;
    let setup = client.text("SETUP", &format!("{URL}/trackID=1"), &format!("{UDP}{PROBED}"));
    assert!(client.write(setup).is_empty());
    let mut statuses = Vec::new();
    for _ in 0..20 {
        let request = client.text("SET_PARAMETER", URL, "Content-Length: 60000\r\n") + &"x".repeat(60_000);
        statuses.extend(client.write(request));
    }
    assert_eq!((statuses, client.host.closed), (vec![503], true));
    assert!(client.most < MOST_KEPT + MOST_WAITING, "{} B", client.most);
    client.host.to_server.clear();
    assert!(client.kept() < 20_000, "{} B are kept of it", client.kept());

    let mut client = Client::new();
    client.answers_probe = false;
    let setup = client.text("SETUP", &format!("{URL}/trackID=1"), &format!("{UDP}{PROBED}"));
    client.write(setup);
    client.run(200_000);
    assert!(client.host.closed, "or be silent");
}

#[test]
fn acknowledgements_of_what_was_never_sent_open_no_window_beyond_its_cap() {
    for preset in [Preset::Source, Preset::Paper] {
        let mut client = Client::playing(ServerSettings::of(preset), RELIABLE);
        for step in 1..400u64 {
            client.run(step * 25);
            let sent = client.host.sequence.expect("media has begun");
            let ahead: Vec<u16> = (1..500).map(|n| sent.wrapping_add(1000 + n)).collect();
            let acks = AckPacket::of(1, 2, &ahead).into_iter().map(Packet::Ack);
            client.rtcp(&rtcp::write(&acks.collect::<Vec<_>>()));
        }
        assert!(client.largest_window <= 65_536.0, "{} B", client.largest_window);
        assert!(client.most < MOST_KEPT, "{} B", client.most);
        assert!(client.names.iter().any(|name| name == "rudp_retransmit" || name == "rudp_expired"));
    }
}
