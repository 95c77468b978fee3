//! The public server's behaviour as it runs, beside its rules.

use super::*;

fn lossy_end(settings: ServerSettings) -> Pair {
    let client = Client::new(dialogue(RELIABLE, "x-Transport-Options: late-tolerance=10\r\n"));
    // 20 s are 560 packets, with two reports among them; the last ten are lost.
    run(settings, client, pipe(|n| (552..562).contains(&n)), 20, 60)
}

#[test]
fn after_its_last_new_packet_the_public_server_repeats_nothing() {
    let pair = lossy_end(source());
    let sequences: Vec<_> = media(&pair).iter().map(|sent| sequence(&sent.datagram)).collect();
    let again = named(&pair, "rudp_retransmit").len();
    assert_eq!(sequences.len(), 560 + again);
    let last =
        media(&pair).iter().position(|sent| sequence(&sent.datagram) == sequences[0].wrapping_add(559));
    assert_eq!(last, Some(sequences.len() - 1), "the last new packet is the last");
    let goodbye = pair.sent.last().unwrap();
    assert!(rtcp::parse(goodbye.datagram.head()).any(|p| matches!(p, Ok(Packet::Bye { .. }))));
    let after_s = (goodbye.at - media(&pair)[0].at).as_secs_f64();
    assert!((19.9..20.1).contains(&after_s), "{after_s} s");
}

#[test]
fn the_rules_alone_repeat_until_the_player_has_it_all() {
    let pair = lossy_end(paper());
    let lost: Vec<_> =
        named(&pair, "rudp_retransmit").iter().map(|again| again.value.unwrap() as u16).collect();
    let first = sequence(&media(&pair)[0].datagram);
    assert!((550..560).all(|n| lost.contains(&first.wrapping_add(n))), "{lost:?}");
}

/// Seconds of lead gained in a second, with ten seeds.
fn gains(settings: &ServerSettings) -> Vec<f64> {
    let gain = |seed| {
        let client = Box::new(Client::new(dialogue(RELIABLE, "")));
        let mut pair = Pair::new(seeded(60, settings.clone(), seed), client, pipe(|_| false));
        pair.run(instant(30_000));
        let said = named(&pair, "overbuffer").into_iter().map(|e| (e.at.as_secs_f64(), e.value.unwrap()));
        let grows: Vec<_> = said.filter(|(_, lead)| (2.0..23.0).contains(lead)).collect();
        let (first, last) = (grows[0], grows[grows.len() - 1]);
        (last.1 - first.1) / (last.0 - first.0)
    };
    (1..=10).map(gain).collect()
}

fn mean(of: &[f64]) -> f64 {
    of.iter().sum::<f64>() / of.len() as f64
}

#[test]
fn the_lead_grows_as_the_public_servers_does() {
    // Measured of it on a link that holds nothing back.
    let found = gains(&attentive());
    assert!((1.36..=1.38).contains(&mean(&found)), "{found:?}");
    assert!(found.iter().all(|gain| (1.33..1.41).contains(gain)), "{found:?}");
    // Woken at each 50 ms sharp, every second wake begins a bucket: 150 ms are gained in each 100.
    let found = gains(&paper());
    assert!(found.iter().all(|gain| (1.49..=1.51).contains(gain)), "{found:?}");
}

#[test]
fn a_server_that_does_not_know_the_media_s_rate_gives_it_the_large_window() {
    for (media_rate_known, first) in [(true, 24_576.0), (false, 32_768.0)] {
        let settings = ServerSettings { media_rate_known, ..source() };
        let pair = run(settings, Client::new(dialogue(RELIABLE, "")), pipe(|_| false), 10, 2);
        assert_eq!(named(&pair, "rudp_cwnd")[0].value, Some(first));
    }
}

#[test]
fn a_busy_server_drops_acknowledgements_and_repeats_what_arrived() {
    let lost = |busy_ack_loss, repeats_after_last| {
        let settings = ServerSettings { busy_ack_loss, repeats_after_last, ..source() };
        let tolerance = "x-Transport-Options: late-tolerance=10\r\n";
        let pair = run(settings, Client::new(dialogue(RELIABLE, tolerance)), pipe(|_| false), 30, 60);
        named(&pair, "rudp_retransmit").len()
    };
    assert_eq!(lost(0.0, true), 0);
    // Out of 840 acknowledgements of a packet each; the end's are all received.
    let some = lost(0.1, true);
    assert!((60..140).contains(&some), "{some}");
    assert!(lost(0.1, false) <= some);
}

#[test]
fn a_second_play_is_judged_alike_whether_tracks_share_their_checks_or_not() {
    // One track, on a third of the media's 29.4 kB/s, paused and played from its start.
    let script = vec![
        request(0, "SETUP", true, "Transport: RTP/AVP/TCP;unicast;interleaved=4-5\r\n"),
        request(50, "PLAY", false, "SESSION\r\n"),
        request(8000, "PAUSE", false, "SESSION\r\n"),
        request(11_000, "PLAY", false, "SESSION\r\nRange: npt=0-\r\n"),
    ];
    let thinning = |lateness_per_session| -> Vec<(Instant, Option<f64>)> {
        let settings = ServerSettings { lateness_per_session, ..source() };
        let slow = Pipe { stream_bytes_per_s: Some(10_000), ..Pipe::default() };
        let pair = run(settings, Client::new(script.clone()), slow, 60, 14);
        named(&pair, "thinning").iter().map(|event| (event.at, event.value)).collect()
    };
    let shared = thinning(true);
    assert_eq!(shared, thinning(false));
    let again: Vec<_> = shared.into_iter().skip_while(|(at, _)| *at < instant(11_000)).collect();
    // The level is that of before the pause. The first packet is no check.
    assert_eq!(again[0].1, Some(5.0), "{again:?}");
    assert!(again[0].0 > instant(11_010), "{again:?}");
}

/// Returns when each goodbye was sent, in ms, and on which channel.
fn goodbyes(pair: &Pair) -> Vec<(u64, u32)> {
    let says = |sent: &&Sent| rtcp::parse(sent.datagram.head()).any(|p| matches!(p, Ok(Packet::Bye { .. })));
    pair.sent.iter().filter(says).map(|sent| (sent.at.as_nanos() / 1_000_000, sent.channel.0)).collect()
}

#[test]
fn a_session_says_goodbye_once_of_each_track_that_it_sent() {
    // The second of two equal tracks is set up too late to be sent.
    let mut both = (*asset(5)).clone();
    both.tracks = vec![both.tracks[0].clone(); 2];
    let told = |script: Vec<(u64, String)>| {
        let library = Arc::new(OneAsset(Arc::new(both.clone())));
        let server = DarwinServer::new(library, attentive(), "test", 1);
        let mut pair = Pair::new(Box::new(server), Box::new(Client::new(script)), pipe(|_| false));
        pair.run(instant(12_000));
        assert_eq!(statuses(&pair).last(), Some(&200));
        goodbyes(&pair)
    };
    let setup = |at, track, port, session: &str| {
        let transport = format!("Transport: RTP/AVP;unicast;client_port={port}-{}\r\n", port + 1);
        (at, format!("SETUP {URL}/trackID={track} RTSP/1.0\r\nCSEQ\r\n{transport}{session}\r\n"))
    };
    let (one, other) = (setup(0, 1, 6970, ""), setup(50, 2, 6972, "SESSION\r\n"));
    let late = setup(900, 2, 6972, "SESSION\r\n");
    let play = |at| request(at, "PLAY", false, "SESSION\r\n");
    let pause = |at| request(at, "PAUSE", false, "SESSION\r\n");
    let teardown = |at| request(at, "TEARDOWN", false, "SESSION\r\n");
    // In the middle: of both.
    assert_eq!(told(vec![one.clone(), other.clone(), play(100), teardown(1000)]), [(1000, 2), (1000, 4)]);
    // Before anything was sent: of none.
    assert_eq!(told(vec![one.clone(), other.clone(), teardown(1000)]), []);
    // Only for the one that was sent.
    assert_eq!(told(vec![one.clone(), play(100), pause(800), late, teardown(1000)]), [(1000, 2)]);
    // A goodbye sent when the media was over is not repeated.
    let over = told(vec![one, other, play(100), teardown(9000)]);
    assert!(over.len() == 2 && over.iter().all(|(at, _)| (5000..6000).contains(at)), "{over:?}");
}
