//! Channels over real sockets of the loopback device.

use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;

use streamgauge_base::{Chunk, Ecn};
use streamgauge_systems::Io;

use super::*;
use crate::net::udp_listener;
use crate::reactor::Ready;
use crate::sys;

const FIRST: ChannelId = ChannelId(0);

/// Returns the events within this many ms.
fn told(reactor: &mut Reactor, within_ms: i64) -> Vec<Ready> {
    let mut ready = Vec::new();
    reactor.wait(Some(sys::monotonic_ns() + within_ms * 1_000_000), &mut ready).unwrap();
    ready
}

/// Returns a client, and its server's channels, with the client as channel 0.
fn connected() -> (TcpStream, Channels) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (socket, peer) = listener.accept().unwrap();
    socket.set_nonblocking(true).unwrap();
    let own = socket.local_addr().unwrap();
    let ports = SharedPorts::new("28980-28981".parse().unwrap(), 0);
    (client, Channels::with_stranger(TcpSocket::accepted(socket.into(), peer), own, &ports, true))
}

#[test]
fn the_end_is_told_if_a_write_finds_it_before_a_read() {
    let (client, mut channels) = connected();
    let (mut reactor, mut room) = (Reactor::new().unwrap(), Room::new());
    let opened = channels.arrival(FIRST, &mut room);
    assert!(matches!(opened, Some(Arrival::Input(Input::Opened(FIRST)))));
    channels.settle(&reactor, 7).unwrap();
    assert_eq!(told(&mut reactor, 0), []);

    // Closed so, it is reset.
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    sys::set_option(client.as_fd(), libc::SOL_SOCKET, libc::SO_LINGER, &linger).unwrap();
    drop(client);
    assert_eq!(told(&mut reactor, 60_000), [Ready::Channel { place: 7, channel: FIRST }]);
    // A timer is first, and the machine has something to send; it has read its share, too.
    assert_eq!(channels.write(FIRST, Chunk::filler(1000)), 0);
    channels.allowance = 0;
    assert!(channels.arrival(FIRST, &mut room).is_none());
    channels.settle(&reactor, 7).unwrap();
    assert!(channels.has_news());
    channels.renew();
    assert_eq!(channels.take_ready(), [FIRST]);
    let closed = channels.arrival(FIRST, &mut room);
    assert!(matches!(closed, Some(Arrival::Input(Input::Closed(FIRST, CloseReason::Reset)))));
    channels.settle(&reactor, 7).unwrap();
    assert_eq!((told(&mut reactor, 0), channels.has_news()), (vec![], false));
}

#[test]
fn a_connection_that_is_there_already_is_the_first_that_a_machine_opens() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let there = listener.local_addr().unwrap();
    let mut made = TcpSocket::connecting(there).unwrap();
    let own = made.own_address().unwrap();
    while made.news() != Some(News::Opened) {}
    made.tell_again();
    let ports = SharedPorts::new("28980-28981".parse().unwrap(), 0);
    let mut channels = Channels::with_stranger(made, own, &ports, false);
    let (mut reactor, mut room) = (Reactor::new().unwrap(), Room::new());
    let settings = streamgauge_plan::TcpSpec::default();
    let first = channels.open(&Carrier::Tcp { port: there.port(), settings: settings.clone() });
    assert_eq!(channels.port(first), Some(own.port()));
    channels.settle(&reactor, 0).unwrap();
    assert_eq!(channels.take_ready(), [first]);
    assert!(matches!(channels.arrival(first, &mut room), Some(Arrival::Input(Input::Opened(_)))));
    // The next is another.
    let second = channels.open(&Carrier::Tcp { port: there.port(), settings });
    assert_ne!(channels.port(second), channels.port(first));
    channels.settle(&reactor, 0).unwrap();
    assert_eq!(told(&mut reactor, 60_000), [Ready::Channel { place: 0, channel: second }]);
    assert!(matches!(channels.arrival(second, &mut room), Some(Arrival::Input(Input::Opened(_)))));
    assert_eq!(channels.open_streams(), 2);
    // Among strangers a listener has no peer to notify.
    let none = channels.open(&Carrier::IcmpEcho);
    assert_eq!(channels.take_refused().front().map(|(id, _)| *id), Some(none));
}

#[test]
fn a_peer_that_connects_and_resets_before_it_is_accepted_ends_the_channel_alone() {
    let here = Ipv4Addr::LOCALHOST;
    // Below those that the kernel chooses, as in the tests of nodes.
    let port = 28_950;
    let carrier = Carrier::Tcp { port, settings: streamgauge_plan::TcpSpec::default() };
    let begins_with = [Channel { id: FIRST, carrier }];
    let mut channels = Channels::open(AddressPair { own: here, peer: here }, true, &begins_with).unwrap();
    let (mut reactor, mut room) = (Reactor::new().unwrap(), Room::new());
    channels.settle(&reactor, 0).unwrap();

    let client = TcpStream::connect((here, port)).unwrap();
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    sys::set_option(client.as_fd(), libc::SOL_SOCKET, libc::SO_LINGER, &linger).unwrap();
    drop(client);
    assert_eq!(told(&mut reactor, 60_000), [Ready::Channel { place: 0, channel: FIRST }]);
    let opened = channels.arrival(FIRST, &mut room);
    assert!(matches!(opened, Some(Arrival::Input(Input::Opened(FIRST)))));
    assert!(channels.list[&FIRST].watched.is_none(), "the listener is closed");
    let readable = channels.arrival(FIRST, &mut room);
    assert!(matches!(readable, Some(Arrival::Input(Input::Readable(FIRST)))));
    assert!(channels.read(FIRST, 1).is_none());
    let closed = channels.arrival(FIRST, &mut room);
    assert!(matches!(closed, Some(Arrival::Input(Input::Closed(FIRST, CloseReason::Reset)))));
    assert!(channels.arrival(FIRST, &mut room).is_none());
    channels.settle(&reactor, 0).unwrap();
}

#[test]
fn a_listener_that_found_no_room_is_watched_again_after_a_time() {
    let here = Ipv4Addr::LOCALHOST;
    let carrier =
        Carrier::Listener { port: 28_951, settings: streamgauge_plan::TcpSpec::default(), backlog: 8 };
    let begins_with = [Channel { id: FIRST, carrier }];
    let mut channels = Channels::open(AddressPair { own: here, peer: here }, true, &begins_with).unwrap();
    let (mut reactor, mut room) = (Reactor::new().unwrap(), Room::new());
    channels.settle(&reactor, 0).unwrap();
    let mut clients = Vec::new();
    for errno in [nix::Error::EMFILE, nix::Error::ENFILE, nix::Error::ENOMEM, nix::Error::ENOBUFS] {
        clients.push(TcpStream::connect((here, 28_951)).unwrap());
        assert_eq!(told(&mut reactor, 60_000), [Ready::Channel { place: 0, channel: FIRST }]);
        assert!(channels.accept(FIRST, Err(errno)).is_none());
        channels.settle(&reactor, 0).unwrap();
        assert_eq!(told(&mut reactor, 0), [], "{errno}");
        reactor.wait(channels.settles_again_ns(), &mut Vec::new()).unwrap();
        channels.settle(&reactor, 0).unwrap();
        assert_eq!(channels.settles_again_ns(), None);
        assert_eq!(told(&mut reactor, 0), [Ready::Channel { place: 0, channel: FIRST }], "{errno}");
        assert!(matches!(
            channels.arrival(FIRST, &mut room),
            Some(Arrival::Input(Input::Accepted { on: FIRST, .. }))
        ));
    }
}

#[test]
fn datagrams_to_a_stranger_go_from_a_port_that_the_kernel_chooses() {
    let here = IpAddr::from(Ipv4Addr::LOCALHOST);
    let [there, other] = [(); 2].map(|()| UdpSocket::bind((here, 0)).unwrap());
    let port = there.local_addr().unwrap().port();
    let ports = SharedPorts::new("28980-28981".parse().unwrap(), 0);
    let mut channels = Channels::to_stranger(here, here, &ports);
    let (mut reactor, mut room) = (Reactor::new().unwrap(), Room::new());
    let channel = channels.open(&Carrier::Udp { port, ecn: Ecn::NotEct });
    let own = channels.port(channel).unwrap();
    assert_ne!(own, port);
    channels.send(channel, Chunk::bytes(*b"there?"));
    let mut bytes = [0; 10];
    assert_eq!(there.recv_from(&mut bytes).unwrap(), (6, SocketAddr::new(here, own)));
    // Another port of the same host is another stranger.
    other.send_to(b"me", (here, own)).unwrap();
    there.send_to(b"yes", (here, own)).unwrap();
    channels.settle(&reactor, 3).unwrap();
    assert_eq!(told(&mut reactor, 60_000), [Ready::Channel { place: 3, channel }]);
    assert!(
        matches!(channels.arrival(channel, &mut room), Some(Arrival::Datagram(_, came)) if came.bytes.head() == b"yes")
    );
    assert!(channels.arrival(channel, &mut room).is_none());
    // After a first arrival the peer may be silent, and return.
    drop(there);
    channels.send(channel, Chunk::bytes(*b"gone?"));
    assert_eq!(told(&mut reactor, 60_000), [Ready::Channel { place: 3, channel }]);
    assert!(channels.arrival(channel, &mut room).is_none());
    assert_eq!((channels.port(channel), channels.counts().datagrams_received), (Some(own), 1));
}

#[test]
fn a_host_that_says_that_nobody_is_there_refuses_the_channel() {
    let here = IpAddr::from(Ipv4Addr::LOCALHOST);
    let port = UdpSocket::bind((here, 0)).unwrap().local_addr().unwrap().port();
    let ports = SharedPorts::new("28980-28981".parse().unwrap(), 0);
    let mut channels = Channels::to_stranger(here, here, &ports);
    let (mut reactor, mut room) = (Reactor::new().unwrap(), Room::new());
    let channel = channels.open(&Carrier::Udp { port, ecn: Ecn::NotEct });
    channels.settle(&reactor, 0).unwrap();
    channels.send(channel, Chunk::filler(100));
    assert_eq!(told(&mut reactor, 60_000), [Ready::Channel { place: 0, channel }]);
    let refused = channels.arrival(channel, &mut room);
    assert!(matches!(refused, Some(Arrival::Refused(ChannelError::NoListener { port: of })) if of == port));
    assert!(channels.port(channel).is_none() && channels.arrival(channel, &mut room).is_none());
    channels.settle(&reactor, 0).unwrap();
    assert_eq!(told(&mut reactor, 0), []);
}

#[test]
fn a_client_s_datagrams_are_channel_0() {
    let here = IpAddr::from(Ipv4Addr::LOCALHOST);
    let client = UdpSocket::bind((here, 0)).unwrap();
    let (own, peer) = (SocketAddr::new(here, 28_961), client.local_addr().unwrap());
    let ports = SharedPorts::new("28980-28981".parse().unwrap(), 0);
    let udp = Udp::connected(udp_listener::connected(own, peer, &mut [0; 9]).unwrap().0, peer).unwrap();
    let mut channels = Channels::of_client(udp, here, here, &ports);
    let mut room = Room::new();
    client.send_to(b"hello", own).unwrap();
    assert!(
        matches!(channels.arrival(FIRST, &mut room), Some(Arrival::Datagram(_, came)) if came.bytes.head() == b"hello")
    );
    channels.send(FIRST, Chunk::bytes(*b"welcome"));
    let mut bytes = [0; 10];
    assert_eq!(client.recv_from(&mut bytes).unwrap(), (7, own));
    assert!(!channels.is_finished(FIRST));
    channels.abort(FIRST);
    assert!(channels.is_finished(FIRST));
}
