//! How far ahead of its time media may be sent.

use super::millis;
use super::settings::ServerSettings;

/// The player has not announced how much it can hold.
const UNLIMITED: i64 = -1;

/// When a packet may be sent: at its transmit time, or up to a lead that grows at a rate of its own. Times in
/// milliseconds, sizes in bytes.
pub struct Overbuffer {
    enabled: bool,
    interval: i64,
    free: i64,
    max_ahead: i64,
    rate: f64,
    /// Bytes that the player can hold, by its last report.
    window: i64,
    /// Sent since that report.
    sent: i64,
    bucket: Option<i64>,
    previous_bucket: i64,
    ahead: i64,
    previous_ahead: i64,
}

impl Overbuffer {
    pub fn new(settings: &ServerSettings) -> Self {
        let interval = millis(settings.send_interval);
        Overbuffer {
            enabled: settings.overbuffering && interval > 0,
            interval: if interval > 0 { interval } else { 200 },
            free: millis(settings.free_send_ahead),
            max_ahead: millis(settings.max_send_ahead),
            rate: settings.overbuffer_rate.max(1.0),
            window: UNLIMITED,
            sent: 0,
            bucket: None,
            previous_bucket: 0,
            ahead: 0,
            previous_ahead: 0,
        }
    }

    /// Makes every packet from now on wait for its time.
    pub fn disable(&mut self) {
        self.enabled = false;
    }

    /// Returns whether media may be sent ahead of its time.
    pub fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Begins the player's buffer anew, with nothing sent ahead.
    pub fn restart(&mut self) {
        (self.bucket, self.previous_bucket, self.ahead, self.previous_ahead) = (None, 0, 0, 0);
    }

    /// Handles the player's report of the bytes it can hold; a report without the value means no limit.
    pub fn reported(&mut self, bytes: Option<u32>) {
        // The field of all ones is the public server's mark of no limit.
        self.window = bytes.filter(|bytes| *bytes != u32::MAX).map_or(UNLIMITED, i64::from);
        self.sent = 0;
    }

    /// Counts `bytes` that were sent.
    pub fn sent(&mut self, bytes: u32) {
        self.sent += i64::from(bytes);
    }

    /// Returns `None` if a packet of `bytes` with transmit time `due` may be sent now, else when to ask again.
    pub fn wait(&mut self, due: i64, now: i64, bytes: u32) -> Option<i64> {
        if self.bucket.is_none_or(|begun| now - begun > self.interval) {
            self.previous_bucket = self.bucket.unwrap_or(now - self.interval);
            self.bucket = Some(now);
            self.previous_ahead = self.ahead;
        }
        if due <= now + self.interval || (self.enabled && due <= now + self.interval + self.free) {
            return None;
        }
        if !self.enabled || self.window == 0 {
            return Some(due);
        }
        if self.window != UNLIMITED && 5 * i64::from(bytes) > self.window - self.sent {
            return Some(now + 5 * self.interval);
        }
        if due - now > self.max_ahead {
            return Some(due - self.max_ahead + self.interval);
        }
        self.ahead = due - now;
        if self.ahead < self.previous_ahead {
            return None;
        }
        let growth = ((now - self.previous_bucket) as f64 * (self.rate - 1.0)) as i64;
        if self.ahead - self.previous_ahead > growth {
            self.ahead = self.previous_ahead + growth;
            return Some(now + self.interval);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::Preset;
    use super::*;

    /// Returns the media time sent after each second, of packets of 10 ms each, on a network without limit.
    fn sent_after(overbuffer: &mut Overbuffer, seconds: i64) -> Vec<i64> {
        let (mut now, mut due) = (0, 0);
        let mut sent = Vec::new();
        for second in 1..=seconds {
            while now < second * 1000 {
                match overbuffer.wait(due, now, 400) {
                    None => {
                        overbuffer.sent(400);
                        due += 10;
                    }
                    Some(again) => {
                        assert!(again > now, "waiting takes time");
                        now = again;
                    }
                }
            }
            sent.push(due);
        }
        sent
    }

    fn overbuffer() -> Overbuffer {
        Overbuffer::new(&ServerSettings::of(Preset::Source))
    }

    #[test]
    fn a_second_at_once_then_twice_the_rate_until_25_s_ahead_then_the_rate() {
        let sent = sent_after(&mut overbuffer(), 60);
        // Seen of the public server on a fat link: the first second about 3 times the rate, then 2.0 to 2.4.
        assert!((2000..=3300).contains(&sent[0]), "{sent:?}");
        let rate = |from: usize, to: usize| (sent[to] - sent[from]) as f64 / ((to - from) * 1000) as f64;
        assert!((1.9..=2.4).contains(&rate(1, 20)), "{} {sent:?}", rate(1, 20));
        assert!((0.99..=1.01).contains(&rate(30, 59)), "{}", rate(30, 59));
        let ahead = sent[59] - 60_000;
        assert!((24_900..=25_100).contains(&ahead), "{ahead}");
    }

    #[test]
    fn disabled_every_packet_waits_for_its_time_in_steps_of_50_ms() {
        let mut off = overbuffer();
        off.disable();
        let sent = sent_after(&mut off, 20);
        assert!((0..).zip(&sent).all(|(s, sent)| (*sent - (s + 1) * 1000).abs() <= 60), "{sent:?}");
        let settings = ServerSettings { send_interval: streamgauge_base::Duration::ZERO, ..source() };
        assert!(!Overbuffer::new(&settings).is_enabled());
        let settings = ServerSettings { overbuffering: false, ..source() };
        assert!(!Overbuffer::new(&settings).is_enabled());
    }

    fn source() -> ServerSettings {
        ServerSettings::of(Preset::Source)
    }

    #[test]
    fn the_players_buffer_bounds_what_is_sent_until_its_next_report() {
        let mut overbuffer = overbuffer();
        overbuffer.reported(Some(10_000));
        // 400 B are sent while five of them fit; those within 1,050 ms of their time always are.
        let mut sent = 0;
        while overbuffer.wait(1060, 0, 400).is_none_or(|again| again == 50) && sent < 100_000 {
            overbuffer.sent(400);
            sent += 400;
        }
        assert_eq!(sent, 8400);
        assert_eq!(overbuffer.wait(1060, 0, 400), Some(250));
        assert_eq!(overbuffer.wait(1050, 0, 400), None);
        overbuffer.reported(Some(0));
        assert_eq!(overbuffer.wait(5000, 0, 400), Some(5000), "room for nothing: at its time");
        overbuffer.reported(None);
        assert_eq!(overbuffer.wait(5000, 0, 400), Some(50), "no word of room is room for all");
        assert_eq!(overbuffer.wait(40_000, 0, 400), Some(40_000 - 25_000 + 50));
    }
}
