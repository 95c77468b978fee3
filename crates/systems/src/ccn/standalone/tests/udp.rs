//! Faces over UDP: parts, addresses that are not proven, silence.

use super::*;

#[test]
fn over_udp_data_comes_in_parts_and_tokens_come_back() {
    let mut server = trusting().datagram_machine(Arc::new(Folder(0)), "session 1", 1);
    let mut client = Client::default();
    server.handle(Instant::ZERO, Input::Start, &mut client);
    let token: Box<[u8]> = [1, 2, 3, 4, 5, 6].into();
    let of = |name: &str| LpPacket { pit_token: Some(token.clone()), ..LpPacket::of(interest(name).write()) };
    let mut give = |server: &mut dyn Served, datagram: &Chunk| {
        server.handle(Instant::ZERO, Input::datagram(FIRST, datagram, Instant::ZERO), &mut client);
        client.pieced()
    };
    let (whole, parts) = give(server.as_mut(), &of("/clip/b/x%201.ts/seg=0").write());
    assert_eq!((whole.len(), parts, whole[0].pit_token.as_ref()), (1, 6, Some(&token)));
    assert_eq!(data(&whole[0]).content.len(), 8000);
    assert_eq!(server.plays_over(), Some("udp"));
    let (no, parts) = give(server.as_mut(), &of("/clip/none/seg=0").write());
    assert_eq!((data(&no[0]).content_type, parts, no[0].pit_token.as_ref()), (Some(3), 1, Some(&token)));
    // Bytes that are no packet are dropped, and the face stays.
    for wrong in [&b""[..], b"hello", &[5, 2, 10, 0], &[0x64, 0]] {
        assert_eq!(give(server.as_mut(), &Chunk::bytes(wrong)).1, 0, "{wrong:?}");
    }
    // An Interest may come in parts itself.
    let parts = Fragmenter::of(40, 9).cut(&of("/clip/b/x%201.ts/seg=2")).unwrap();
    let answers: Vec<_> = parts.iter().map(|part| give(server.as_mut(), part).0).collect();
    assert!(parts.len() > 1 && answers[..parts.len() - 1].iter().all(Vec::is_empty));
    assert_eq!(answers.last().unwrap()[0].pit_token.as_ref(), Some(&token));
    assert_eq!(server.counts()[..3], [("interests_received", 3), ("data_sent", 2), ("interests_refused", 1)]);
}

#[test]
fn an_address_that_is_not_proven_is_sent_no_more_than_came_from_it() {
    let mut server = clients().datagram_machine(Arc::new(Folder(0)), "session 1", 1);
    let mut client = Client::default();
    server.handle(Instant::ZERO, Input::Start, &mut client);
    let (mut came, mut sent) = (0, 0);
    let names =
        ["/clip/b/x%201.ts/seg=0", "/elsewhere/a", "/clip/none/seg=0", "/x", "/clip/b/x%201.ts/seg=1"];
    let mut proof = None;
    for name in names.iter().cycle().take(40) {
        let asked = interest(name).write();
        came += asked.len();
        server.handle(Instant::ZERO, Input::datagram(FIRST, &asked, Instant::ZERO), &mut client);
        for datagram in std::mem::take(&mut client.datagrams) {
            sent += datagram.len();
            assert!(sent <= came, "{name}");
            proof = Some(datagram);
        }
    }
    assert!(!server.is_proven() && server.plays_over().is_none());
    let Ok(Packet::Interest(asked)) = Packet::read(&proof.unwrap()) else {
        panic!("an Interest asks for it")
    };
    assert_eq!(asked.name.get(0).map(|scope| scope.value().to_vec()), Some(b"localhop".to_vec()));
    // A guess proves nothing, and neither does an Interest for that name.
    let guess = Interest { nonce: Some(1), ..Interest::of("/localhop/12345678".parse().unwrap()) };
    for wrong in [LpPacket::nack(NackReason::NoRoute, guess.write()).write(), asked.write()] {
        server.handle(Instant::ZERO, Input::datagram(FIRST, &wrong, Instant::ZERO), &mut client);
        client.datagrams.clear();
        assert!(!server.is_proven());
    }
    let nack = LpPacket::nack(NackReason::NoRoute, asked.write()).write();
    server.handle(Instant::ZERO, Input::datagram(FIRST, &nack, Instant::ZERO), &mut client);
    let (answers, _) = client.pieced();
    assert!(server.is_proven() && answers.len() == 16, "what waited is answered: {}", answers.len());
    server.handle(
        Instant::ZERO,
        Input::datagram(FIRST, &interest(names[0]).write(), Instant::ZERO),
        &mut client,
    );
    assert_eq!(client.datagrams.len(), 6);
}

#[test]
fn an_interest_that_is_as_long_as_its_answer_is_answered_at_once() {
    let mut server = clients().datagram_machine(Arc::new(Folder(0)), "session 1", 1);
    let mut client = Client::default();
    server.handle(Instant::ZERO, Input::Start, &mut client);
    let mut long = interest("/clip/none/seg=0");
    long.forwarding_hint = Some(vec![8; 400].into());
    server.handle(Instant::ZERO, Input::datagram(FIRST, &long.write(), Instant::ZERO), &mut client);
    assert_eq!((client.datagrams.len(), server.is_proven()), (1, false));
}

#[test]
fn parts_are_counted_from_a_number_that_was_drawn() {
    let (mut server, mut client) =
        (trusting().datagram_machine(Arc::new(Folder(0)), "session 1", 77), Client::default());
    server.handle(Instant::ZERO, Input::Start, &mut client);
    let asked = interest("/clip/b/x%201.ts/seg=0").write();
    server.handle(Instant::ZERO, Input::datagram(FIRST, &asked, Instant::ZERO), &mut client);
    let first = LpPacket::read(client.datagrams.swap_remove(0)).unwrap();
    assert_eq!((first.sequence, first.frag_index), (Some(77), Some(0)));
}

#[test]
fn who_is_silent_over_udp_has_gone_after_a_minute() {
    let mut server = clients().datagram_machine(Arc::new(Folder(0)), "session 1", 1);
    let mut client = Client::default();
    let (start, minute) = (Instant::from_nanos(5), Duration::from_secs(60));
    server.handle(start, Input::Start, &mut client);
    assert_eq!(server.poll_timeout(), Some(start + minute));
    let heard = start + Duration::from_secs(59);
    server.handle(heard, Input::datagram(FIRST, &interest("/clip/x").write(), heard), &mut client);
    // Such bytes are no sign of life.
    server.handle(
        heard + Duration::from_secs(30),
        Input::datagram(FIRST, &Chunk::bytes(*b"hello"), heard),
        &mut client,
    );
    assert_eq!(server.poll_timeout(), Some(heard + minute));
    server.handle(heard + minute, Input::Timeout, &mut client);
    assert!(client.closed && server.has_lost_its_client() && server.poll_timeout().is_none());
    server.handle(
        heard + minute,
        Input::datagram(FIRST, &interest("/clip/x").write(), heard + minute),
        &mut client,
    );

    let known = Server::of::<CcnServerSettings>();
    let preset = known.preset("ndn-today").unwrap();
    let sooner = known.open(preset, Some(Duration::from_secs(7))).map_err(|(_, why)| why).unwrap();
    let mut server = sooner.datagram_machine(Arc::new(Folder(0)), "session 1", 1);
    server.handle(Instant::ZERO, Input::Start, &mut client);
    assert_eq!(server.poll_timeout(), Some(Instant::ZERO + Duration::from_secs(7)));
}

#[test]
fn a_datagram_begins_a_face_if_it_is_an_interest_or_a_part() {
    assert!(Server::of::<CcnServerSettings>().facts.datagrams);
    let clients = clients();
    let token: Box<[u8]> = [7; 4].into();
    let asked = LpPacket {
        pit_token: Some(token.clone()),
        ..LpPacket::of(interest("/clip/b/x%201.ts/seg=2").write())
    };
    for begins in [asked.write(), Fragmenter::of(36, 0).cut(&asked).unwrap().swap_remove(1)] {
        assert!(clients.begins(&begins));
    }
    let answer = Data::of("/clip/x".parse().unwrap(), Chunk::bytes(*b"x")).write();
    let back = LpPacket::nack(NackReason::NoRoute, interest("/clip/x").write()).write();
    for other in [answer, back, Chunk::bytes(*b"hello"), Chunk::default(), Chunk::bytes([0x64, 0])] {
        assert!(!clients.begins(&other), "{other:?}");
        assert!(clients.turn_away_datagram(&Chunk::bytes(*b"hello")).is_none());
    }
    assert!(clients.turn_away_datagram(&asked.write()).is_none(), "it would be longer than what was asked");
    let nack = LpPacket::read(trusting().turn_away_datagram(&asked.write()).unwrap()).unwrap();
    assert_eq!((nack.nack, nack.pit_token), (Some(NackReason::Congestion), Some(token)));
}

#[test]
fn the_player_s_face_may_be_over_udp() {
    let player = Player::of::<CcnPlayerSettings>();
    assert_eq!(
        (player.facts.transports, player.facts.without_connection),
        (&["tcp", "udp"][..], &["udp"][..])
    );
    let open = || {
        let settings = player.preset("dashjs", "udp").unwrap();
        player.open(settings, "ndn://h:7000/clip/manifest.mpd", false, 1).map_err(|(_, why)| why).unwrap()
    };
    let (mut playing, mut client) = (open(), Client::default());
    playing.handle(Instant::ZERO, Input::Start, &mut client);
    assert!(matches!(client.opened[..], [Carrier::Udp { port: 7000, .. }]));
    let (packets, _) = client.pieced();
    let Ok(Packet::Interest(first)) = Packet::read(packets[0].fragment.as_ref().unwrap()) else { panic!() };
    assert_eq!(first.name, "/clip/manifest.mpd/32=metadata".parse::<Name>().unwrap());
    assert_eq!(playing.carried_by(), "NDN (UDP face)");
    let none = Data { content_type: Some(3), ..Data::of(first.name, Chunk::default()) };
    playing.handle(Instant::ZERO, Input::datagram(FIRST, &none.write(), Instant::ZERO), &mut client);
    assert_eq!(playing.refused(), Some(404));

    // A face that could not be opened is down, and is opened again over UDP for later requests.
    let (mut playing, mut client) = (open(), Client::default());
    playing.handle(Instant::ZERO, Input::Start, &mut client);
    client.datagrams.clear();
    playing.handle(
        Instant::ZERO,
        Input::Refused(FIRST, &ChannelError::NoListener { port: 7000 }),
        &mut client,
    );
    let said: Vec<_> = std::iter::from_fn(|| playing.poll_event()).collect();
    assert!(said.iter().any(|event| event.name == "face_down" && event.reason.contains("7000")));
    playing.handle(Instant::ZERO, Input::Timeout, &mut client);
    assert!(client.datagrams.is_empty() && client.opened.len() == 1);
    while client.opened.len() == 1 {
        let at = playing.poll_timeout().unwrap();
        playing.handle(at, Input::Timeout, &mut client);
    }
    assert!(matches!(client.opened[1], Carrier::Udp { port: 7000, .. }) && !client.datagrams.is_empty());
}
