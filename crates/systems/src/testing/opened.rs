//! Connections that machines open over the pipe.

use streamgauge_base::Instant;

use super::opener::{Client, Ending, REQUEST, Server, Shared, listener};
use super::{Pair, Pipe};

fn run(client: Client, server: Server) {
    let pipe = Pipe { stream_bytes_per_s: Some(1_000_000), begins_with_stream: false, ..Pipe::default() };
    let mut pair = Pair::new(Box::new(server), Box::new(client), pipe);
    pair.run(Instant::from_nanos(20_000_000_000));
}

#[test]
fn each_connection_delivers_its_bytes_once_and_in_order() {
    for at_once in [1, 7, 40] {
        for (client, server) in [(Ending::After, Ending::First), (Ending::First, Ending::After)] {
            let seen = Shared::default();
            run(
                Client::new(40, at_once, 80, client, &seen),
                Server::new(Some(listener(80, 16)), 70_000, server, &seen),
            );
            let seen = seen.lock().unwrap();
            assert_eq!((seen.outcomes.len(), seen.accepted, seen.most_open), (40, 40, at_once));
            assert!(seen.outcomes.iter().all(|one| one.bytes == 70_000 && one.end == "finished"), "{seen:?}");
            assert_eq!(seen.asked, 40 * (REQUEST - 4));
        }
    }
}

#[test]
fn refused_and_reset_connections_are_told_as_such() {
    let seen = Shared::default();
    run(
        Client::new(3, 1, 81, Ending::After, &seen),
        Server::new(Some(listener(80, 16)), 100, Ending::First, &seen),
    );
    let outcomes = &seen.lock().unwrap().outcomes;
    assert_eq!(outcomes.len(), 3);
    assert!(outcomes.iter().all(|one| one.end.starts_with("no listener on port 81")), "{outcomes:?}");

    let seen = Shared::default();
    run(
        Client::new(3, 1, 80, Ending::After, &seen),
        Server::new(Some(listener(80, 16)), 100, Ending::Reset, &seen),
    );
    assert!(seen.lock().unwrap().outcomes.iter().all(|one| one.end == "reset"));
    assert_eq!(seen.lock().unwrap().outcomes.len(), 3);
}
