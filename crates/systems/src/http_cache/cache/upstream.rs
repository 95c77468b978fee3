//! Requests to servers, and the effect of their answers on the store.

use streamgauge_base::{Chunk, Instant};
use streamgauge_wire::http::{ContentRange, HttpItem, Reader, Request, Response};

use super::super::answer::{self, Wanted};
use super::super::fetch::Fetch;
use super::super::object::{Object, cache_control};
use super::{HttpCache, PIECE};
use crate::app::{ChannelId, CloseReason, Io, Peer};
use crate::carrier::Carrier;

impl HttpCache {
    /// Sends the server of a player's flow the request of its answer.
    pub(super) fn fetch(&mut self, now: Instant, channel: ChannelId, wanted: Wanted, io: &mut dyn Io) {
        let Some(answer) = self.players.get(&channel).and_then(|player| player.answer.as_ref()) else {
            return;
        };
        let peer = io.peer(channel).unwrap_or(Peer(0));
        let tag = self.objects[&answer.object].tag();
        let request = answer::upstream(&answer.request, &wanted, tag.as_ref(), &self.name);
        let (object, for_player) = (answer.object, channel);
        self.send(now, peer, object, for_player, request, wanted, io);
    }

    #[allow(clippy::too_many_arguments)]
    fn send(
        &mut self,
        now: Instant,
        peer: Peer,
        object: u64,
        for_player: ChannelId,
        request: Request,
        wanted: Wanted,
        io: &mut dyn Io,
    ) {
        let waiting = self.idle.iter().find(|(_, of)| **of == peer).map(|(&channel, _)| channel);
        let channel = waiting.unwrap_or_else(|| {
            io.open_to(peer, &Carrier::Tcp { port: self.port, settings: self.spec.tcp.clone() })
        });
        let reused = self.idle.remove(&channel).is_some();
        let mut reader = Reader::of_responses();
        reader.expect(&request);
        let unsent = Some(Chunk::bytes(request.write()));
        let deadline = now + self.spec.timeout;
        let mut fetch = Fetch {
            peer,
            object,
            for_player,
            request,
            wanted,
            reader,
            at: None,
            end: None,
            brings_all: false,
            skips: false,
            reused,
            answered: false,
            keeps_alive: false,
            unsent,
            deadline,
        };
        if reused {
            fetch.write(channel, io);
        }
        self.fetches.insert(channel, fetch);
    }

    /// Processes a further part of a server's answer.
    pub(super) fn fetched(&mut self, now: Instant, channel: ChannelId, io: &mut dyn Io) {
        let Some(fetch) = self.fetches.get_mut(&channel) else { return };
        let object = fetch.object;
        while let Some(chunk) = io.read(channel, PIECE as usize) {
            fetch.reader.push(chunk);
        }
        fetch.deadline = now + self.spec.timeout;
        while let Some(fetch) = self.fetches.get_mut(&channel) {
            let Some(item) = fetch.reader.next() else { break };
            fetch.answered = true;
            match item {
                Ok(HttpItem::Response(response)) if response.is_interim() => {}
                Ok(HttpItem::Response(response)) => self.head(now, channel, response),
                Ok(HttpItem::Body(chunk)) => self.body(channel, chunk),
                Ok(HttpItem::End) if fetch.at.is_none() && !fetch.skips => {} // of an interim response
                Ok(HttpItem::End) => self.end(channel, io),
                Ok(HttpItem::Request(_)) | Err(_) => self.fail(now, channel, 502, io),
            }
        }
        self.serve_all(now, object, io);
        for player in std::mem::take(&mut self.moved) {
            self.serve(now, player, io);
        }
    }

    /// Processes the head of a server's answer.
    fn head(&mut self, now: Instant, channel: ChannelId, response: Response) {
        let Some(fetch) = self.fetches.get_mut(&channel) else { return };
        fetch.keeps_alive = response.keeps_alive();
        let Some(object) = self.objects.get_mut(&fetch.object) else {
            fetch.skips = true;
            return;
        };
        if response.status == 304 && fetch.wanted == Wanted::Validation {
            fetch.skips = true;
            return object.renew(now, &response);
        }
        let length = response.headers.get("Content-Length").and_then(|length| length.trim().parse().ok());
        let length = length.filter(|_| response.headers.get("Transfer-Encoding").is_none());
        let (place, total) = match response.status {
            206 => match response.headers.get("Content-Range").map(str::parse) {
                Some(Ok(ContentRange::Part { first, last, of: Some(of) })) => {
                    (Some((first, Some(last + 1))), Some(of))
                }
                _ => (None, None),
            },
            _ => (Some((0, length)), length),
        };
        let Some((first, end)) = place else {
            (fetch.skips, object.failed) = (true, Some(502));
            return;
        };
        (fetch.at, fetch.end) = (Some(first), end);
        fetch.brings_all = response.status == 200 && fetch.wanted != Wanted::Whole;
        let id = fetch.object;
        let changed = object.head.is_some() && !object.is_of(&response, total);
        object.begin(now, &response, total);
        let control = cache_control(&response.headers);
        let is_kept = matches!(response.status, 200 | 206) && control.may_be_shared();
        if !is_kept && let Some(key) = object.key.take() {
            self.by_key.remove(&key);
        }
        if changed {
            self.cut_off(id);
        }
        if !control.may_be_shared() {
            self.part(channel, id);
        }
    }

    /// Cuts off the players that have begun to get the old resource, which has changed: they cannot be given
    /// the new.
    fn cut_off(&mut self, object: u64) {
        let gone = self.next_object;
        self.next_object += 1;
        let mut any = false;
        for (&channel, player) in &mut self.players {
            if let Some(answer) = &mut player.answer
                && answer.object == object
                && answer.place.is_some()
            {
                (answer.object, any) = (gone, true);
                self.moved.push(channel);
            }
        }
        if any {
            let mut changed = Object::new(None);
            changed.failed = Some(502);
            self.objects.insert(gone, changed);
        }
    }

    /// Parts the answer on `channel`, which is for its own player alone (RFC 9111 section 4): the others ask
    /// for themselves.
    fn part(&mut self, channel: ChannelId, object: u64) {
        let first = self.fetches[&channel].for_player;
        let others: Vec<ChannelId> = self
            .players
            .iter()
            .filter(|(at, player)| {
                let waits =
                    player.answer.as_ref().is_some_and(|one| one.object == object && one.place.is_none());
                waits && **at != first
            })
            .map(|(&at, _)| at)
            .collect();
        for other in others {
            let own = self.add(None);
            if let Some(answer) = self.players.get_mut(&other).and_then(|player| player.answer.as_mut()) {
                (answer.object, answer.how) = (own, "cache_miss");
                self.moved.push(other);
            }
        }
    }

    fn body(&mut self, channel: ChannelId, chunk: Chunk) {
        let Some(fetch) = self.fetches.get_mut(&channel).filter(|fetch| !fetch.skips) else { return };
        let (Some(at), Some(object)) = (&mut fetch.at, self.objects.get_mut(&fetch.object)) else { return };
        let bytes = chunk.len() as u64;
        object.store(*at, chunk);
        *at += bytes;
    }

    /// Completes a server's answer.
    fn end(&mut self, channel: ChannelId, io: &mut dyn Io) {
        let Some(fetch) = self.fetches.remove(&channel) else { return };
        if let Some(object) = self.objects.get_mut(&fetch.object).filter(|_| !fetch.skips) {
            object.total = object.total.or(fetch.at);
        }
        if fetch.keeps_alive {
            self.idle.insert(channel, fetch.peer);
        } else {
            io.close(channel);
        }
    }

    /// Fails the request on `channel`: players get this status.
    pub(super) fn fail(&mut self, now: Instant, channel: ChannelId, status: u16, io: &mut dyn Io) {
        let Some(fetch) = self.fetches.remove(&channel) else { return };
        io.abort(channel);
        if fetch.reused && !fetch.answered && status != 504 {
            // The server had closed it meanwhile (RFC 9112 section 9.3.1).
            return self.send(
                now,
                fetch.peer,
                fetch.object,
                fetch.for_player,
                fetch.request,
                fetch.wanted,
                io,
            );
        }
        if let Some(object) = self.objects.get_mut(&fetch.object) {
            (object.failed, object.validating) = (Some(status), false);
            if let Some(key) = object.key.take() {
                self.by_key.remove(&key);
            }
        }
        self.serve_all(now, fetch.object, io);
    }

    /// Handles the close of a connection that is no player's.
    pub(super) fn server_closed(
        &mut self,
        now: Instant,
        channel: ChannelId,
        why: CloseReason,
        io: &mut dyn Io,
    ) {
        self.fetched(now, channel, io);
        if self.idle.remove(&channel).is_some() {
            return io.close(channel);
        }
        let Some(fetch) = self.fetches.get_mut(&channel) else { return io.close(channel) };
        let object = fetch.object;
        match (why, fetch.reader.finish()) {
            (CloseReason::Finished, Some(Ok(HttpItem::End))) => {
                fetch.keeps_alive = false;
                self.end(channel, io);
                self.serve_all(now, object, io);
            }
            (CloseReason::TimedOut, _) => self.fail(now, channel, 504, io),
            _ => self.fail(now, channel, 502, io),
        }
    }
}
