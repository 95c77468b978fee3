//! A client's requests: read, checked against the path, bounded.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use streamgauge_path::Change;
use streamgauge_path::spec::{PathSpec, StageSpec};

/// Most changes accepted in a second.
pub const MOST_A_SECOND: usize = 200;
/// Most changes in a trial: each is a row of the record and a step of a scenario.
pub const MOST_IN_A_TRIAL: usize = 10_000;
const LONGEST_MARK: usize = 200;

/// A line from a client.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// The client's number, which the answer repeats.
    pub id: u64,
    /// Settings to change, all at one time.
    #[serde(default)]
    pub changes: Vec<Setting>,
    /// A word to put into the record.
    #[serde(default)]
    pub mark: Option<String>,
    /// Ends the trial.
    #[serde(default)]
    pub stop: bool,
}

/// One setting of one stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// "down" or "up".
    pub dir: String,
    /// Its name there.
    pub stage: String,
    /// The new value.
    pub change: Change,
}

/// A valid request, for the driver.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    /// The client's number.
    pub id: u64,
    /// Direction (0 down, 1 up), place of the stage in it, change.
    pub changes: Vec<(usize, usize, Change)>,
    /// A word for the record.
    pub mark: Option<String>,
    /// Ends the trial.
    pub stop: bool,
    /// Packets that the path can then hold, where room is bounded.
    pub room: Option<u64>,
}

/// Returns the number of packets that such a path can hold, if there is room for them.
pub type Room = Box<dyn Fn(&PathSpec) -> Result<u64, String> + Send>;

/// Checks requests against the path's current state.
pub struct Steering {
    path: PathSpec,
    room: Option<Room>,
    recent: Vec<Instant>,
    total: usize,
}

impl Steering {
    /// Returns the steering of a path; `room` where memory for packets is bounded.
    pub fn new(path: PathSpec, room: Option<Room>) -> Self {
        Steering { path, room, recent: Vec::with_capacity(MOST_A_SECOND), total: 0 }
    }

    /// Returns the driver's action, or the reason for a refusal.
    pub fn take(&mut self, asked: Asked, now: Instant) -> Result<Applied, String> {
        let Asked { id, changes, mark, stop } = asked;
        if changes.is_empty() && mark.is_none() && !stop {
            return Err("nothing is asked; give changes, a mark or stop".into());
        }
        if mark.as_ref().is_some_and(|mark| mark.chars().count() > LONGEST_MARK) {
            return Err(format!("the mark has more than {LONGEST_MARK} characters; shorten it"));
        }
        self.bound(changes.len() + usize::from(mark.is_some()), now)?;
        let found = changes.iter().map(|setting| self.find(setting)).collect::<Result<Vec<_>, _>>()?;
        let room = self.make_room(&found)?;
        Ok(Applied { id, changes: found, mark, stop, room })
    }

    fn bound(&mut self, more: usize, now: Instant) -> Result<(), String> {
        if self.total + more > MOST_IN_A_TRIAL {
            return Err(format!("a trial takes {MOST_IN_A_TRIAL} changes at most; start another"));
        }
        self.recent.retain(|&at| now.duration_since(at) < Duration::from_secs(1));
        if self.recent.len() + more > MOST_A_SECOND {
            return Err(format!("more than {MOST_A_SECOND} changes in a second; send fewer"));
        }
        self.recent.extend(std::iter::repeat_n(now, more));
        self.total += more;
        Ok(())
    }

    fn find(&self, setting: &Setting) -> Result<(usize, usize, Change), String> {
        let (way, stages) = match setting.dir.as_str() {
            "down" => (0, &self.path.down),
            "up" => (1, &self.path.up),
            other => return Err(format!("there is no direction {other:?}; give down or up")),
        };
        let place = stages.iter().position(|stage| stage.name == setting.stage);
        let place = place.ok_or_else(|| {
            let names: Vec<&str> = stages.iter().map(|stage| stage.name.as_str()).collect();
            format!("{} has no stage {:?}; it has {}", setting.dir, setting.stage, names.join(", "))
        })?;
        stages[place].takes(setting.change).map_err(|why| format!("{}: {why}", setting.dir))?;
        Ok((way, place, setting.change))
    }

    /// Keeps of each stage and kind of setting the one that needs most room.
    fn make_room(&mut self, found: &[(usize, usize, Change)]) -> Result<Option<u64>, String> {
        let Some(room) = &self.room else { return Ok(None) };
        let mut path = self.path.clone();
        for &(way, place, change) in found {
            let stages = if way == 0 { &mut path.down } else { &mut path.up };
            keep(&mut stages[place], change);
        }
        let most = room(&path)?;
        self.path = path;
        Ok(Some(most))
    }
}

fn keep(stage: &mut StageSpec, change: Change) {
    let same = |one: &Change| std::mem::discriminant(one) == std::mem::discriminant(&change);
    let larger = match change {
        Change::Rate(rate) => {
            !stage.changes.iter().any(|(_, one)| matches!(one, Change::Rate(r) if *r >= rate))
        }
        Change::Delay(time) => {
            !stage.changes.iter().any(|(_, one)| matches!(one, Change::Delay(t) if *t >= time))
        }
        Change::Jitter(time) => {
            !stage.changes.iter().any(|(_, one)| matches!(one, Change::Jitter(t) if *t >= time))
        }
        // Limits of different units do not compare: each counts.
        Change::Limit(_) => !stage.changes.iter().any(|(_, one)| *one == change),
        Change::On(_) | Change::Ecn(_) | Change::Loss(_) => false,
    };
    if larger {
        if !matches!(change, Change::Limit(_)) {
            stage.changes.retain(|(_, one)| !same(one));
        }
        stage.changes.push((streamgauge_base::Duration::ZERO, change));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn steering(room: Option<Room>) -> Steering {
        let path = serde_json::from_value(json!({
            "down": [{"name": "loss", "kind": {"loss": {"model": {"bernoulli": {"probability": 0.0}}}}},
                     {"name": "bottleneck", "kind": {"bottleneck": {"rate": {"constant": 1_000_000},
                      "queue": {"droptail": {"bytes": 9000}}}}}],
            "up": [{"name": "delay", "kind": {"delay": {"delay": 0, "steps": []}}}]}));
        Steering::new(path.unwrap(), room)
    }

    fn asked(dir: &str, stage: &str, change: serde_json::Value) -> Asked {
        let one = json!({"id": 1, "changes": [{"dir": dir, "stage": stage, "change": change}]});
        serde_json::from_value(one).unwrap()
    }

    #[test]
    fn what_makes_sense_is_found_and_what_does_not_is_refused_by_name() {
        let mut steering = steering(None);
        let now = Instant::now();
        let found = steering.take(asked("down", "bottleneck", json!({"rate": 500_000})), now).unwrap();
        assert_eq!(found.changes.len(), 1);
        assert_eq!((found.changes[0].0, found.changes[0].1), (0, 1));
        for (dir, stage, change, why) in [
            ("side", "delay", json!({"delay": 1}), "no direction"),
            ("up", "bottleneck", json!({"rate": 1}), "it has delay"),
            ("up", "delay", json!({"rate": 1}), "expected a bottleneck"),
            ("down", "loss", json!({"loss": 1.5}), "between 0 and 1"),
            ("down", "bottleneck", json!({"ecn": true}), "manages itself"),
            ("down", "bottleneck", json!({"limit": {"bytes": 1}}), "less than any packet"),
            ("up", "delay", json!({"delay": u64::MAX / 4}), "at most an hour"),
        ] {
            let said = steering.take(asked(dir, stage, change), now).unwrap_err();
            assert!(said.contains(why), "{said:?} has no {why:?}");
        }
        let nothing = serde_json::from_value(json!({"id": 1})).unwrap();
        assert!(steering.take(nothing, now).unwrap_err().contains("nothing is asked"));
    }

    #[test]
    fn changes_are_bounded_by_the_second() {
        let mut steering = steering(None);
        let now = Instant::now();
        let one = || asked("down", "bottleneck", json!({"rate": 500_000}));
        assert!((0..MOST_A_SECOND).all(|_| steering.take(one(), now).is_ok()));
        assert!(steering.take(one(), now).unwrap_err().contains("send fewer"));
        assert!(steering.take(one(), now + Duration::from_secs(1)).is_ok());
    }

    #[test]
    fn a_path_that_there_is_no_room_for_is_refused_and_forgotten() {
        let room: Room = Box::new(|path| {
            let most = streamgauge_path::most_packets(&path.down, 1000);
            if most > 1000 { Err(format!("{most} packets do not fit")) } else { Ok(most) }
        });
        let mut steering = steering(Some(room));
        let now = Instant::now();
        let limit = |bytes: u64| asked("down", "bottleneck", json!({"limit": {"bytes": bytes}}));
        let small = steering.take(limit(18_000), now).unwrap().room.unwrap();
        assert!(steering.take(limit(1_000_000_000), now).unwrap_err().contains("do not fit"));
        // Packets from an earlier, longer queue may still be inside.
        assert_eq!(steering.take(limit(9_000), now).unwrap().room, Some(small));
    }
}
