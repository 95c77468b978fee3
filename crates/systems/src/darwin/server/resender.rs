//! A track's packets that were sent and not acknowledged, one list a track.

use std::collections::VecDeque;

use super::bandwidth::Tracker;
use super::settings::ServerSettings;

/// Packets outstanding at most. Only without congestion control can there be more; then the oldest are given
/// up.
const MOST: usize = 8192;

/// The source of a packet's payload: which access unit of the track and which of its packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    pub unit: u32,
    pub index: u32,
}

struct Outstanding {
    sequence: u16,
    piece: Piece,
    bytes: u32,
    sent: i64,
    /// The timeout when it was first sent.
    timeout: i64,
    /// Sending it later than this is of no use.
    expires: i64,
    again: bool,
    /// Counts transmissions of the track; of its last.
    order: u64,
    /// Packets acknowledged that were sent after it.
    overtaken: u32,
}

/// Why a packet is held for lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sign {
    Timeout,
    Acknowledgements(u32),
}

/// The fate of a packet that counted as lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Send it again; `cut` if the window was cut.
    Again { sequence: u16, piece: Piece, cut: bool, sign: Sign },
    /// It is given up without another try; `cut` if the window was cut.
    GivenUp { sequence: u16, cut: bool, sign: Sign },
    /// Its time is over.
    Expired { sequence: u16 },
}

/// The packets of a track that are outstanding, in the order of their sequence numbers. Payloads are not
/// kept: a packet that is sent again is made again from its access unit. Times in milliseconds.
pub struct Resender {
    list: VecDeque<Outstanding>,
    transmissions: u64,
    retransmission: bool,
    duplicate_acks: Option<u32>,
    /// No packet of the list was last sent before.
    oldest: i64,
    /// Whether some packet has been overtaken often enough.
    overtaken: bool,
}

impl Resender {
    pub fn new(settings: &ServerSettings) -> Self {
        Resender {
            list: VecDeque::new(),
            transmissions: 0,
            retransmission: settings.retransmission,
            duplicate_acks: settings.duplicate_acks,
            oldest: 0,
            overtaken: false,
        }
    }

    /// Returns whether nothing is outstanding.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds a new packet that is of use for `lifetime`; one without is not waited for.
    pub fn sent(
        &mut self,
        now: i64,
        (sequence, piece, bytes): (u16, Piece, u32),
        lifetime: i64,
        tracker: &mut Tracker,
    ) {
        self.transmissions += 1;
        if lifetime <= 0 {
            return;
        }
        if self.list.len() == MOST
            && let Some(oldest) = self.list.pop_front()
        {
            tracker.leave(oldest.bytes);
        }
        if self.list.is_empty() {
            self.oldest = now;
        }
        tracker.sent(bytes);
        self.list.push_back(Outstanding {
            sequence,
            piece,
            bytes,
            sent: now,
            timeout: tracker.timeout.current(),
            expires: now + lifetime,
            again: false,
            order: self.transmissions,
            overtaken: 0,
        });
    }

    /// Handles the acknowledgement of `sequence`.
    pub fn acknowledged(&mut self, now: i64, sequence: u16, tracker: &mut Tracker) {
        let first = self.list.front().map_or(sequence, |packet| packet.sequence);
        let ahead = sequence.wrapping_sub(first);
        let index = self.list.partition_point(|packet| packet.sequence.wrapping_sub(first) < ahead);
        let is_listed = self.list.get(index).is_some_and(|packet| packet.sequence == sequence);
        let Some(packet) = is_listed.then(|| self.list.remove(index)).flatten() else {
            tracker.acknowledged_again();
            return;
        };
        tracker.acknowledged(packet.bytes);
        if packet.again {
            // It is unknown which of its transmissions arrived (Karn): neither a round trip nor an order.
            return;
        }
        tracker.timeout.sample(now - packet.sent);
        let Some(enough) = self.duplicate_acks else { return };
        for other in self.list.iter_mut().filter(|other| other.order < packet.order) {
            other.overtaken += 1;
            self.overtaken |= other.overtaken >= enough;
        }
    }

    /// Adds to `verdicts` the fates of the packets that have waited for longer than the timeout, the newest first.
    pub fn overdue(&mut self, now: i64, tracker: &mut Tracker, verdicts: &mut Vec<Verdict>) {
        if self.list.is_empty() || now - self.oldest <= tracker.timeout.current() {
            return;
        }
        for index in (0..self.list.len()).rev() {
            // The timeout may have changed with the packet before.
            if now - self.list[index].sent > tracker.timeout.current() {
                verdicts.push(self.judge(index, now, Sign::Timeout, tracker));
            }
        }
        self.oldest = self.list.iter().map(|packet| packet.sent).min().unwrap_or(now);
    }

    /// Adds to `verdicts` the fates of the packets that later ones have overtaken.
    pub fn overtaken(&mut self, now: i64, tracker: &mut Tracker, verdicts: &mut Vec<Verdict>) {
        let Some(enough) = self.duplicate_acks.filter(|_| std::mem::take(&mut self.overtaken)) else {
            return;
        };
        for index in (0..self.list.len()).rev() {
            if self.list[index].overtaken >= enough {
                verdicts.push(self.judge(index, now, Sign::Acknowledgements(enough), tracker));
            }
        }
    }

    fn judge(&mut self, index: usize, now: i64, sign: Sign, tracker: &mut Tracker) -> Verdict {
        let packet = &mut self.list[index];
        let (sequence, bytes, piece) = (packet.sequence, packet.bytes, packet.piece);
        if now > packet.expires {
            tracker.expired(bytes);
            self.list.remove(index);
            return Verdict::Expired { sequence };
        }
        if !self.retransmission {
            tracker.leave(bytes);
            self.list.remove(index);
            return Verdict::GivenUp { sequence, cut: tracker.lost(now), sign };
        }
        if !packet.again {
            // The only back-off there is: a sample of one and a half times the timeout.
            tracker.timeout.sample(packet.timeout * 3 / 2);
        }
        self.transmissions += 1;
        (packet.again, packet.sent, packet.order, packet.overtaken) = (true, now, self.transmissions, 0);
        Verdict::Again { sequence, piece, cut: tracker.lost(now), sign }
    }

    /// Forgets all packets, each as if it were acknowledged.
    pub fn clear(&mut self, tracker: &mut Tracker) {
        for packet in self.list.drain(..) {
            tracker.acknowledged(packet.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::settings::Preset;
    use super::*;

    const PIECE: Piece = Piece { unit: 0, index: 0 };

    struct Track {
        tracker: Tracker,
        resender: Resender,
        verdicts: Vec<Verdict>,
    }

    fn track(settings: &ServerSettings) -> Track {
        let mut tracker = Tracker::new(settings);
        tracker.open(288_000, settings);
        Track { tracker, resender: Resender::new(settings), verdicts: Vec::new() }
    }

    impl Track {
        fn send(&mut self, now: i64, sequence: u16, lifetime: i64) {
            self.resender.sent(now, (sequence, PIECE, 1000), lifetime, &mut self.tracker);
        }

        fn ack(&mut self, now: i64, sequence: u16) {
            self.resender.acknowledged(now, sequence, &mut self.tracker);
        }

        fn overdue(&mut self, now: i64) -> Vec<Verdict> {
            self.resender.overdue(now, &mut self.tracker, &mut self.verdicts);
            std::mem::take(&mut self.verdicts)
        }

        fn overtaken(&mut self, now: i64) -> Vec<Verdict> {
            self.resender.overtaken(now, &mut self.tracker, &mut self.verdicts);
            std::mem::take(&mut self.verdicts)
        }
    }

    fn again(sequence: u16, cut: bool, sign: Sign) -> Verdict {
        Verdict::Again { sequence, piece: PIECE, cut, sign }
    }

    fn source() -> ServerSettings {
        ServerSettings::of(Preset::Source)
    }

    #[test]
    fn packets_come_again_after_the_timeout_newest_first_and_cut_once() {
        let mut track = track(&source());
        for sequence in 65_534..65_538u32 {
            track.send(i64::from(sequence) - 65_534, sequence as u16, 5000);
        }
        track.ack(50, 0);
        assert_eq!(track.tracker.in_flight(), 3000);
        assert_eq!(track.overdue(600), [], "600 ms are not more than 600 ms");
        let found = track.overdue(604);
        let timeout = Sign::Timeout;
        // Its resending is a sample of 900 ms, which makes the timeout 1006 ms before the next is looked at.
        assert_eq!(found, [again(1, true, timeout)]);
        assert_eq!(track.tracker.in_flight(), 3000, "sent again is not sent anew");
        let found = track.overdue(2300);
        assert_eq!(
            found,
            [again(1, true, timeout), again(65_535, false, timeout), again(65_534, false, timeout)]
        );
    }

    #[test]
    fn many_later_acknowledgements_change_nothing_in_the_source() {
        let mut track = track(&source());
        (0..20).for_each(|sequence| track.send(0, sequence, 5000));
        (1..20).for_each(|sequence| track.ack(30, sequence));
        assert_eq!(track.overtaken(30), []);
        assert_eq!(track.overdue(599), []);
        assert_eq!(track.overdue(606), [again(0, true, Sign::Timeout)]);
    }

    #[test]
    fn three_later_acknowledgements_are_a_loss_in_the_paper() {
        let mut track = track(&ServerSettings::of(Preset::Paper));
        (0..9).for_each(|sequence| track.send(0, sequence, 5000));
        track.ack(30, 1);
        track.ack(30, 2);
        track.ack(31, 2);
        assert_eq!(track.overtaken(31), [], "a repeated acknowledgement is no third packet");
        track.ack(32, 3);
        let sign = Sign::Acknowledgements(3);
        assert_eq!(track.overtaken(32), [again(0, true, sign)]);
        (4..9).for_each(|sequence| track.ack(40, sequence));
        assert_eq!(track.overtaken(40), [], "those were sent before the second transmission");
        (9..12).for_each(|sequence| track.send(50, sequence, 5000));
        (9..12).for_each(|sequence| track.ack(80, sequence));
        assert_eq!(track.overtaken(80), [again(0, false, sign)], "cut just before");
        assert_eq!(track.overdue(330), []);
        assert_eq!(track.overdue(331), [again(0, true, Sign::Timeout)], "or 250 ms");
    }

    #[test]
    fn an_expired_packet_opens_the_window_and_cuts_nothing() {
        let mut track = track(&source());
        track.send(0, 7, 500);
        let window = track.tracker.window();
        assert_eq!(track.overdue(601), [Verdict::Expired { sequence: 7 }]);
        assert_eq!((track.tracker.window(), track.tracker.in_flight()), (window + 1000, 0));
        track.ack(700, 7);
        assert!(track.resender.is_empty());
        track.send(800, 8, 0);
        assert!(track.resender.is_empty() && track.tracker.in_flight() == 0, "too late to wait for");
    }

    #[test]
    fn without_retransmission_a_lost_packet_is_given_up_and_still_cuts() {
        let mut track = track(&ServerSettings { retransmission: false, ..source() });
        track.send(0, 7, 5000);
        let sign = Sign::Timeout;
        assert_eq!(track.overdue(601), [Verdict::GivenUp { sequence: 7, cut: true, sign }]);
        assert_eq!(track.tracker.in_flight(), 0);
    }

    #[test]
    fn only_packets_sent_once_measure_the_round_trip() {
        let mut track = track(&source());
        track.send(0, 1, 5000);
        track.ack(700, 1);
        assert_eq!(track.tracker.timeout.unclamped(), 700);
        track.send(1000, 2, 50_000);
        assert_eq!(track.overdue(1701).len(), 1);
        let after_resend = track.tracker.timeout.unclamped();
        track.ack(9000, 2);
        assert_eq!(track.tracker.timeout.unclamped(), after_resend);
    }

    #[test]
    fn the_list_is_bounded_where_no_window_binds() {
        let mut track = track(&ServerSettings { congestion_control: false, ..source() });
        (0..60_000u16).for_each(|sequence| track.send(0, sequence, 50_000));
        assert_eq!(track.resender.list.len(), MOST);
        assert_eq!(track.tracker.in_flight(), MOST as u32 * 1000);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Send(i64),
        Ack(u16),
        Wait(i64),
    }

    proptest! {
        #[test]
        fn what_is_in_flight_is_what_is_listed(
            steps in prop::collection::vec(prop_oneof![
                3 => (-200i64..3000).prop_map(Step::Send),
                3 => (0u16..40).prop_map(Step::Ack),
                2 => (1i64..400).prop_map(Step::Wait),
            ], 1..300),
            paper: bool, retransmission: bool, first in any::<u16>(),
        ) {
            let preset = if paper { Preset::Paper } else { Preset::Source };
            let mut track = track(&ServerSettings { retransmission, ..ServerSettings::of(preset) });
            let (mut now, mut next) = (0, first);
            for step in steps {
                match step {
                    Step::Send(lifetime) if !track.tracker.is_full() => {
                        track.send(now, next, lifetime);
                        next = next.wrapping_add(1);
                    }
                    Step::Send(_) => {}
                    Step::Ack(back) => track.ack(now, next.wrapping_sub(back)),
                    Step::Wait(for_ms) => {
                        now += for_ms;
                        let timeout = track.tracker.timeout.current();
                        let due = track.resender.list.iter().any(|packet| now - packet.sent > timeout);
                        let mut found = track.overtaken(now);
                        let overtaken = found.len();
                        found.extend(track.overdue(now));
                        prop_assert!(overtaken == 0 || paper);
                        prop_assert!(!due || !found.is_empty(), "a due packet was missed");
                        for verdict in found {
                            prop_assert_eq!(matches!(verdict, Verdict::Again { .. }), retransmission
                                && !matches!(verdict, Verdict::Expired { .. }));
                        }
                    }
                }
                let listed: u32 = track.resender.list.iter().map(|packet| packet.bytes).sum();
                prop_assert_eq!(track.tracker.in_flight(), listed);
                let order = |packet: &Outstanding| packet.sequence.wrapping_sub(first);
                prop_assert!(track.resender.list.iter().map(order).is_sorted());
            }
            track.resender.clear(&mut track.tracker);
            prop_assert_eq!(track.tracker.in_flight(), 0);
        }
    }
}
