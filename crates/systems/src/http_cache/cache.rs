//! The machine: players' requests, and the requests to servers.

mod upstream;

use std::collections::{BTreeMap, VecDeque};

use streamgauge_base::{Chunk, Event, Instant};
use streamgauge_wire::http::{ByteRange, HttpItem, Reader, Request};

use super::answer::{self, Wanted};
use super::fetch::Fetch;
use super::object::{Object, cache_control};
use super::spec::HttpCacheSpec;
use crate::app::{App, ChannelError, ChannelId, CloseReason, Input, Io, Peer};
use crate::outbox::Outbox;

/// Most that is read or written at once.
const PIECE: u64 = 64 * 1024;

/// Requests of one player that may wait; further ones are not read until they are answered.
const MOST_WAITING: usize = 100;

/// A shared HTTP cache.
pub struct HttpCache {
    spec: HttpCacheSpec,
    port: u16,
    name: String,
    players: BTreeMap<ChannelId, Player>,
    /// By the connection that each is on.
    fetches: BTreeMap<ChannelId, Fetch>,
    /// Connections to servers that wait for a request.
    idle: BTreeMap<ChannelId, Peer>,
    objects: BTreeMap<u64, Object>,
    by_key: BTreeMap<String, u64>,
    next_object: u64,
    /// Players with answers that have just become another object's.
    moved: Vec<ChannelId>,
    uses: u64,
    out: Outbox,
}

/// A player's connection.
struct Player {
    reader: Reader,
    waiting: VecDeque<Request>,
    answer: Option<Answer>,
    /// Heads that the connection has yet to take.
    unsent: VecDeque<Chunk>,
    /// Its input is no request: it gets this status when all earlier ones are answered.
    bad: Option<u16>,
    /// Nothing more is answered.
    closes: bool,
    /// The player has finished its side.
    finished: bool,
}

/// The answer in progress.
struct Answer {
    request: Request,
    object: u64,
    /// The next byte, and behind the last, once the head is written.
    place: Option<(u64, Option<u64>)>,
    sent: u64,
    how: &'static str,
}

impl HttpCache {
    /// Returns a cache with `name` in its headers; it reaches servers at `port`.
    pub fn new(spec: HttpCacheSpec, port: u16, name: &str) -> Self {
        HttpCache {
            spec,
            port,
            name: name.into(),
            players: BTreeMap::new(),
            fetches: BTreeMap::new(),
            idle: BTreeMap::new(),
            objects: BTreeMap::new(),
            by_key: BTreeMap::new(),
            next_object: 0,
            moved: Vec::new(),
            uses: 0,
            out: Outbox::default(),
        }
    }

    /// Advances every player with an answer of `object`.
    fn serve_all(&mut self, now: Instant, object: u64, io: &mut dyn Io) {
        let theirs = |player: &Player| player.answer.as_ref().is_some_and(|answer| answer.object == object);
        let players: Vec<ChannelId> =
            self.players.iter().filter(|(_, player)| theirs(player)).map(|(&channel, _)| channel).collect();
        for player in players {
            self.serve(now, player, io);
        }
        self.tidy(now, object, io);
    }

    /// Answers a player as far as its connection and the stored bytes allow.
    fn serve(&mut self, now: Instant, channel: ChannelId, io: &mut dyn Io) {
        loop {
            let Some(player) = self.players.get_mut(&channel) else { return };
            while let Some(mut chunk) = player.unsent.pop_front() {
                let taken = io.write(channel, chunk.clone());
                if taken < chunk.len() {
                    return player.unsent.push_front(chunk.split_off(taken));
                }
            }
            if player.closes && player.answer.is_none() {
                self.players.remove(&channel);
                return io.close(channel);
            }
            if player.answer.is_some() {
                if !self.go_on(now, channel, io) {
                    return;
                }
            } else if let Some(request) = player.waiting.pop_front() {
                self.begin(now, channel, request, io);
                self.read(channel, io);
            } else if let Some(status) = player.bad.take() {
                self.refuse(now, channel, status);
            } else if player.finished {
                player.closes = true;
            } else {
                return;
            }
        }
    }

    /// Advances a player's answer. False if it must wait.
    fn go_on(&mut self, now: Instant, channel: ChannelId, io: &mut dyn Io) -> bool {
        let Some(player) = self.players.get_mut(&channel) else { return false };
        let Some(answer) = &mut player.answer else { return false };
        let Some(object) = self.objects.get(&answer.object) else { return false };
        if answer.place.is_none() {
            if let Some(status) = object.failed {
                self.refuse(now, channel, status);
                return true;
            }
            if object.validating {
                return false;
            }
            let Some(begun) = answer::begin(now, &answer.request, object, &self.name) else {
                self.ask(now, channel, io);
                return false;
            };
            answer.place = Some((begun.first, begun.end));
            player.closes |= begun.closes;
            player.unsent.push_back(Chunk::bytes(begun.head.write()));
            return true;
        }
        let Some((at, end)) = &mut answer.place else { return false };
        while let Some(chunk) = object.read(*at, PIECE.min(end.map_or(u64::MAX, |end| end - *at))) {
            let (offered, taken) = (chunk.len(), io.write(channel, chunk));
            *at += taken as u64;
            answer.sent += taken as u64;
            if taken < offered {
                return false;
            }
        }
        if end.or(object.total) == Some(*at) {
            let Answer { request, object, sent, how, .. } = player.answer.take().expect("it is in hand");
            self.out.say(now, how, sent as f64, "B", request.target);
            self.tidy(now, object, io);
            return true;
        }
        if object.failed.is_some() {
            // An answer that has begun cannot end as another.
            let target = answer.request.target.clone();
            self.out.say(now, "cache_error", None, "", format!("{target}: cut off"));
            self.drop_player(now, channel, io);
            io.abort(channel);
            return false;
        }
        self.ask(now, channel, io);
        false
    }

    /// Answers a player by a status alone.
    fn refuse(&mut self, now: Instant, channel: ChannelId, status: u16) {
        let Some(player) = self.players.get_mut(&channel) else { return };
        let answer = player.answer.take();
        player.closes |= answer.as_ref().is_none_or(|answer| !answer.request.keeps_alive());
        let mut head = answer::refusal(status, &self.name);
        if player.closes {
            head.headers.add("Connection", "close");
        }
        player.unsent.push_back(Chunk::bytes(head.write()));
        let target = answer.map_or_else(String::new, |answer| format!("{}: ", answer.request.target));
        self.out.say(now, "cache_error", None, "", format!("{target}{status}"));
    }

    /// Begins a request in its turn.
    fn begin(&mut self, now: Instant, channel: ChannelId, request: Request, io: &mut dyn Io) {
        let control = cache_control(&request.headers);
        let is_shared = request.method == "GET"
            && self.spec.capacity_bytes > 0
            && !control.no_store
            && request.headers.get("Authorization").is_none();
        let key =
            is_shared.then(|| format!("{} {}", request.headers.get("Host").unwrap_or(""), request.target));
        let known = key.as_ref().and_then(|key| self.by_key.get(key)).copied();
        let mut how = "cache_miss";
        let mut object = known;
        if let Some(id) = known {
            let on_its_way = self.fetches.values().any(|fetch| fetch.object == id);
            let stored = &self.objects[&id];
            let is_fresh = now < stored.fresh_until && !control.no_cache;
            let has_tag = stored.tag().is_some();
            if is_fresh || on_its_way {
                how = if self.has_all(id, &request) { "cache_hit" } else { "cache_miss" };
                let place = answer::range(&request);
                let joins = on_its_way && self.joins(id, place);
                how = if how == "cache_miss" && joins { "cache_joined" } else { how };
            } else if has_tag && stored.failed.is_none() {
                how = "cache_validated";
            } else {
                object = None;
            }
        }
        if control.only_if_cached && how != "cache_hit" {
            let player = self.players.get_mut(&channel).expect("its request is in hand");
            player.answer = Some(Answer { request, object: u64::MAX, place: None, sent: 0, how });
            return self.refuse(now, channel, 504);
        }
        if !matches!(request.method.as_str(), "GET" | "HEAD") {
            let player = self.players.get_mut(&channel).expect("its request is in hand");
            player.answer = Some(Answer { request, object: u64::MAX, place: None, sent: 0, how });
            return self.refuse(now, channel, 501);
        }
        let object = object.unwrap_or_else(|| self.add(key));
        self.uses += 1;
        let validates = how == "cache_validated";
        if let Some(found) = self.objects.get_mut(&object) {
            found.used = self.uses;
            found.validating |= validates;
        }
        if let Some(player) = self.players.get_mut(&channel) {
            player.answer = Some(Answer { request, object, place: None, sent: 0, how });
        }
        if validates {
            self.fetch(now, channel, Wanted::Validation, io);
        }
    }

    /// Returns a new object, found by `key` from now on.
    fn add(&mut self, key: Option<String>) -> u64 {
        let id = self.next_object;
        self.next_object += 1;
        if let Some(before) = key.as_ref().and_then(|key| self.by_key.insert(key.clone(), id)) {
            if self.is_used(before) {
                self.objects.entry(before).and_modify(|object| object.key = None);
            } else {
                self.objects.remove(&before);
            }
        }
        self.objects.insert(id, Object::new(key));
        id
    }

    /// Returns whether all that `request` asks for is stored.
    fn has_all(&self, object: u64, request: &Request) -> bool {
        let object = &self.objects[&object];
        let Some(total) = object.total.filter(|_| object.head.is_some()) else { return false };
        match answer::range(request).map(|range| range.within(total)) {
            None => object.covered_to(0) >= total,
            Some(None) => true,
            Some(Some((first, last))) => object.covered_to(first) > last,
        }
    }

    /// Returns whether a running fetch brings the first missing byte of that range.
    fn joins(&self, id: u64, range: Option<ByteRange>) -> bool {
        let object = &self.objects[&id];
        let first = match (range, object.total) {
            (Some(range), Some(total)) => range.within(total).map_or(0, |(first, _)| first),
            (Some(ByteRange::From(first, _)), None) => first,
            _ => 0,
        };
        let at = object.covered_to(first);
        self.fetches.values().any(|fetch| fetch.object == id && fetch.brings(at))
    }

    /// Requests the bytes that a player's answer lacks from the server, unless they are on their way.
    fn ask(&mut self, now: Instant, channel: ChannelId, io: &mut dyn Io) {
        let Some(answer) = self.players.get(&channel).and_then(|player| player.answer.as_ref()) else {
            return;
        };
        let (id, object) = (answer.object, &self.objects[&answer.object]);
        let on_its_way = |at| self.fetches.values().any(|fetch| fetch.object == id && fetch.brings(at));
        let wanted = match answer.place {
            // Nothing is known of it: the first answer reveals the place of its bytes.
            None if self.fetches.values().any(|fetch| fetch.object == id) => return,
            None => answer::range(&answer.request).map_or(Wanted::Whole, Wanted::Part),
            Some((at, _)) if on_its_way(at) => return,
            Some((at, end)) => {
                let gap = object.next_after(at).into_iter().chain(end).min();
                let whole = at == 0 && (gap.is_none() || gap == object.total);
                if whole { Wanted::Whole } else { Wanted::Part(ByteRange::From(at, gap.map(|end| end - 1))) }
            }
        };
        self.fetch(now, channel, wanted, io);
    }

    /// Returns whether some player is being answered out of it.
    fn is_used(&self, object: u64) -> bool {
        self.players.values().any(|player| player.answer.as_ref().is_some_and(|one| one.object == object))
    }

    /// Drops unused data, and data beyond the capacity.
    fn tidy(&mut self, now: Instant, id: u64, io: &mut dyn Io) {
        if self.is_used(id) {
            return;
        }
        let idle: Vec<ChannelId> =
            self.fetches.iter().filter(|(_, fetch)| fetch.object == id).map(|(&at, _)| at).collect();
        for channel in idle {
            self.fetches.remove(&channel);
            io.abort(channel);
        }
        if self.objects.get(&id).is_some_and(|object| object.key.is_none() || object.head.is_none()) {
            self.forget(id);
        }
        let mut kept: u64 = self.objects.values().map(Object::stored).sum();
        while kept > self.spec.capacity_bytes {
            let free = self.objects.iter().filter(|(id, _)| !self.is_used(**id));
            let Some((&oldest, object)) = free.min_by_key(|(_, object)| object.used) else { return };
            let bytes = object.stored();
            let key = object.key.clone().unwrap_or_default();
            self.out.say(now, "cache_evicted", bytes as f64, "B", key);
            kept -= bytes;
            self.forget(oldest);
        }
    }

    fn forget(&mut self, id: u64) {
        if let Some(Object { key: Some(key), .. }) = self.objects.remove(&id)
            && self.by_key.get(&key) == Some(&id)
        {
            self.by_key.remove(&key);
        }
    }

    /// Drops a player that has left.
    fn drop_player(&mut self, now: Instant, channel: ChannelId, io: &mut dyn Io) {
        if let Some(answer) = self.players.remove(&channel).and_then(|player| player.answer) {
            self.tidy(now, answer.object, io);
        }
    }

    /// Reads a player's requests.
    fn read(&mut self, channel: ChannelId, io: &mut dyn Io) {
        let Some(player) =
            self.players.get_mut(&channel).filter(|player| !player.closes && player.bad.is_none())
        else {
            return;
        };
        while player.waiting.len() < MOST_WAITING {
            match player.reader.next() {
                Some(Ok(HttpItem::Request(request))) => player.waiting.push_back(request),
                Some(Ok(_)) => {}
                Some(Err(fault)) => {
                    player.bad = Some(fault.status());
                    return;
                }
                None => match io.read(channel, PIECE as usize) {
                    Some(chunk) => player.reader.push(chunk),
                    None => return,
                },
            }
        }
    }
}

impl App for HttpCache {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Accepted { channel, .. } => {
                let player = Player {
                    reader: Reader::of_requests(),
                    waiting: VecDeque::new(),
                    answer: None,
                    unsent: VecDeque::new(),
                    bad: None,
                    closes: false,
                    finished: false,
                };
                self.players.insert(channel, player);
            }
            Input::Opened(channel) => {
                if let Some(fetch) = self.fetches.get_mut(&channel) {
                    fetch.write(channel, io);
                }
            }
            Input::Readable(channel) if self.players.contains_key(&channel) => {
                self.read(channel, io);
                self.serve(now, channel, io);
            }
            Input::Readable(channel) => self.fetched(now, channel, io),
            Input::Writable(channel) if self.players.contains_key(&channel) => self.serve(now, channel, io),
            Input::Writable(channel) => {
                if let Some(fetch) = self.fetches.get_mut(&channel) {
                    fetch.write(channel, io);
                }
            }
            Input::Closed(channel, why) => match self.players.get_mut(&channel) {
                Some(player) if why == CloseReason::Finished => {
                    player.finished = true;
                    self.read(channel, io);
                    self.serve(now, channel, io);
                }
                Some(_) => self.drop_player(now, channel, io),
                None => self.server_closed(now, channel, why, io),
            },
            Input::Refused(channel, why) => {
                let status = if matches!(why, ChannelError::TimedOut { .. }) { 504 } else { 502 };
                self.fail(now, channel, status, io);
            }
            Input::Timeout => {
                let late = self.fetches.iter().filter(|(_, fetch)| fetch.deadline <= now);
                let late: Vec<ChannelId> = late.map(|(&channel, _)| channel).collect();
                for channel in late {
                    self.fail(now, channel, 504, io);
                }
            }
            Input::Start | Input::Datagram { .. } | Input::Pause | Input::Resume | Input::Stop => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.fetches.values().map(|fetch| fetch.deadline).min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.out.next()
    }
}
