//! Players of HTTP are answered out of named data.

use super::*;

#[test]
fn the_proxy_asks_beneath_its_url_and_again_when_its_face_is_gone() {
    let proxy = Proxy::of::<CcnProxySettings>();
    for preset in proxy.facts.presets {
        assert!(proxy.open(proxy.preset(preset).unwrap(), "ndn://h/clip", 1).is_ok(), "{preset}");
    }
    let settings = proxy.preset("ndn-today").unwrap();
    let mut wrong = settings.clone();
    wrong["interest_tries"] = json!(0);
    assert_eq!(proxy.open(wrong, "ndn://h/clip", 1).err().unwrap().0, Some("interest_tries"));

    let mut running = proxy.open(settings, "ndn://h:7000/clip/a", 1).map_err(|(_, why)| why).unwrap();
    let (second, mut player) = (Duration::from_secs(1), Two::default());
    running.handle(Instant::ZERO, Input::Start, &mut player);
    assert!(matches!(player.opened[..], [Carrier::Tcp { port: 7000, .. }]));
    running.handle(Instant::ZERO, Input::Opened(FIRST), &mut player);
    let accepted = Input::Accepted { channel: PLAYER, on: ChannelId(98) };
    running.handle(Instant::ZERO, accepted, &mut player);
    player.ask(running.as_mut(), Instant::ZERO, "GET /b.mpd HTTP/1.1\r\nHost: h\r\n\r\n");
    let asked = player.packets();
    assert!(asked.iter().any(|name| name.starts_with(&"/clip/a/b.mpd".parse().unwrap())), "{asked:?}");

    // A request without a producer is refused at once, and a later one has another connection tried.
    running.handle(Instant::ZERO, Input::Closed(FIRST, CloseReason::Reset), &mut player);
    let nobody = crate::app::ChannelError::Host("nobody".into());
    let later = Instant::ZERO + second * 5;
    running.handle(later, Input::Timeout, &mut player);
    assert_eq!(player.opened.len(), 2);
    running.handle(later, Input::Refused(ChannelId(1), &nobody), &mut player);
    assert!(player.answer().starts_with("HTTP/1.1 502"));
    player.ask(running.as_mut(), later, "GET /c.mpd HTTP/1.1\r\nHost: h\r\n\r\n");
    assert!(player.answer().starts_with("HTTP/1.1 502") && player.opened.len() == 2);
    player.ask(running.as_mut(), later + second, "GET /c.mpd HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!((player.opened.len(), player.answer().as_str()), (3, ""));
    let told = std::iter::from_fn(|| running.next_answered()).map(|one| (one.path, one.status, one.bytes));
    let told: Vec<_> = told.collect();
    assert_eq!(told, [("/b.mpd".into(), Some(502), 0), ("/c.mpd".into(), Some(502), 0)]);
}

#[test]
fn a_request_has_to_be_whole_in_time_and_a_quiet_connection_ends() {
    let proxy = Proxy::of::<CcnProxySettings>();
    let settings = proxy.preset("ndn-today").unwrap();
    let at = |s: u64| Instant::ZERO + Duration::from_secs(s);
    let asks = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";
    for (said, is_answered, ends) in [
        (vec![], false, 30),
        (vec![(0, "GET /a"), (29, "b")], false, 30),
        // Its Interests expire, and it is notified.
        (vec![(0, asks)], true, 75),
        (vec![(0, asks), (60, "G"), (80, "E")], true, 90),
    ] {
        let mut running = proxy.open(settings.clone(), "ndn://h/clip", 1).map_err(|(_, why)| why).unwrap();
        let mut player = Two::default();
        running.handle(at(0), Input::Start, &mut player);
        running.handle(at(0), Input::Opened(FIRST), &mut player);
        running.handle(at(0), Input::Accepted { channel: PLAYER, on: ChannelId(98) }, &mut player);
        let (mut said, mut now, mut answered) = (VecDeque::from(said), 0, 0);
        while !player.is_aborted {
            while let Some((_, text)) = said.pop_front_if(|(when, _)| *when == now) {
                player.ask(running.as_mut(), at(now), text);
            }
            if running.poll_timeout().is_some_and(|due| due <= at(now)) {
                running.handle(at(now), Input::Timeout, &mut player);
            }
            if answered == 0 && !player.answered.is_empty() {
                answered = now;
            }
            now += 1;
            assert!(now < 200, "it is never closed");
        }
        assert_eq!(player.answered.is_empty(), !is_answered);
        assert_eq!(now - 1, if ends == 75 { answered + 75 } else { ends });
    }
}

#[test]
fn who_takes_its_answers_more_slowly_than_a_modem_is_closed() {
    let proxy = Proxy::of::<CcnProxySettings>();
    let at = |s: u64| Instant::ZERO + Duration::from_secs(s);
    for (bytes_a_second, ends) in [(0, 30..=30), (1, 30..=30), (99, 30..=30), (200, 75..=180)] {
        let settings = proxy.preset("ndn-today").unwrap();
        let mut running = proxy.open(settings, "ndn://h/clip", 1).map_err(|(_, why)| why).unwrap();
        let mut player = Two { room: Some(0), ..Two::default() };
        running.handle(at(0), Input::Start, &mut player);
        running.handle(at(0), Input::Opened(FIRST), &mut player);
        running.handle(at(0), Input::Accepted { channel: PLAYER, on: ChannelId(98) }, &mut player);
        // Each is refused at once, in some 200 B.
        player.ask(running.as_mut(), at(0), &"PUT /a HTTP/1.1\r\nHost: h\r\n\r\n".repeat(40));
        let mut now = 0;
        while !player.is_aborted {
            now += 1;
            assert!(now < 200, "{bytes_a_second}: it is never closed");
            player.room = Some(bytes_a_second);
            running.handle(at(now), Input::Writable(PLAYER), &mut player);
            if running.poll_timeout().is_some_and(|due| due <= at(now)) {
                running.handle(at(now), Input::Timeout, &mut player);
            }
        }
        assert!(ends.contains(&now), "{bytes_a_second} B/s: closed after {now} s");
        let broken = std::iter::from_fn(|| running.next_answered()).filter(|one| !one.whole).count();
        assert_eq!(broken, usize::from(bytes_a_second < 200));
    }
}

const PLAYER: ChannelId = ChannelId(99);

/// A player's connection, and those to others.
#[derive(Default)]
struct Two {
    asks: VecDeque<Chunk>,
    answered: Vec<u8>,
    sent: Vec<u8>,
    opened: Vec<Carrier>,
    is_aborted: bool,
    /// Bytes that the player takes before it is looked at again; all if None.
    room: Option<usize>,
}

impl Io for Two {
    fn open(&mut self, carrier: &Carrier) -> ChannelId {
        self.opened.push(carrier.clone());
        ChannelId(self.opened.len() as u32 - 1)
    }
    fn send_as(&mut self, _: ChannelId, _: Chunk, _: crate::Envelope) {}
    fn write(&mut self, channel: ChannelId, chunk: Chunk) -> usize {
        if channel != PLAYER {
            self.sent.extend(chunk.head());
            return chunk.len();
        }
        let taken = chunk.len().min(self.room.unwrap_or(usize::MAX));
        self.room = self.room.map(|room| room - taken);
        self.answered.extend(&chunk.head()[..taken]);
        taken
    }
    fn read(&mut self, channel: ChannelId, _: usize) -> Option<Chunk> {
        self.asks.pop_front().filter(|_| channel == PLAYER)
    }
    fn close(&mut self, _: ChannelId) {}
    fn abort(&mut self, channel: ChannelId) {
        self.is_aborted |= channel == PLAYER;
    }
    fn port(&self, _: ChannelId) -> Option<u16> {
        None
    }
    fn direct(&mut self, _: ChannelId, _: u16) {}
}

impl Two {
    fn ask(&mut self, proxy: &mut dyn App, now: Instant, request: &str) {
        self.asks.push_back(Chunk::bytes(request.as_bytes().to_vec()));
        proxy.handle(now, Input::Readable(PLAYER), self);
    }

    fn answer(&mut self) -> String {
        String::from_utf8(std::mem::take(&mut self.answered)).unwrap()
    }

    /// Returns the names of the sent Interests.
    fn packets(&mut self) -> Vec<Name> {
        let mut reader = Reader::default();
        reader.push(Chunk::bytes(std::mem::take(&mut self.sent)));
        reader
            .map(|packet| {
                match Packet::read(LpPacket::read(packet.unwrap()).unwrap().fragment.as_ref().unwrap()) {
                    Ok(Packet::Interest(interest)) => interest.name,
                    other => panic!("{other:?}"),
                }
            })
            .collect()
    }
}
