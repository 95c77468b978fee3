//! The rules there are, a line each.

use super::bba::{Bba0, Bba2};
use super::exoplayer::ExoPlayer;
use super::festive::Festive;
use super::fixed::Fixed;
use super::functions::{is_function, maker};
use super::gstreamer::GStreamer;
use super::harmonic::Harmonic;
use super::hlsjs::HlsJs;
use super::mpc::Mpc;
use super::panda::Panda;
use super::shaka::Shaka;
use super::vlc2::Vlc2;
use super::vlc3::{Vlc3NearOptimal, Vlc3Rate};
use super::{Rule, Tuning, dashjs, mmsys18};

/// A rule by its name.
pub struct NamedRule {
    /// Its name in scenarios.
    pub name: &'static str,
    /// The rule's effect, in a line.
    pub title: &'static str,
    /// Where it is from: the paper and its section, or the player and its version.
    pub source: &'static str,
    /// One for a session.
    pub make: fn(&Tuning) -> Box<dyn Rule>,
}

/// All of them, in the order that people read.
pub static RULES: &[NamedRule] = &[
    NamedRule {
        name: "fixed",
        title: "one level throughout",
        source: "",
        make: |tuning| Box::new(Fixed::new(tuning)),
    },
    NamedRule {
        name: "throughput",
        title: "the highest level within 0.9 of the estimated throughput, bounded while little is buffered",
        source: "Spiteri, Sitaraman, Sparacio, MMSys 2018; Sabre 09b03bb",
        make: |tuning| Box::new(mmsys18::Throughput::new(tuning)),
    },
    NamedRule {
        name: "bola",
        title: "BOLA: the level with the highest utility for the present buffer",
        source: "Spiteri, Urgaonkar, Sitaraman, INFOCOM 2016; Sabre 09b03bb",
        make: |tuning| Box::new(mmsys18::Bola::new(tuning)),
    },
    NamedRule {
        name: "bola-e",
        title: "BOLA with a placeholder for missing buffer",
        source: "Spiteri, Sitaraman, Sparacio, MMSys 2018; Sabre 09b03bb",
        make: |tuning| Box::new(mmsys18::BolaE::new(tuning)),
    },
    NamedRule {
        name: "dynamic",
        title: "throughput up to 10 s of buffer, BOLA above",
        source: "Spiteri, Sitaraman, Sparacio, MMSys 2018; Sabre 09b03bb",
        make: |tuning| Box::new(mmsys18::Dynamic::new(tuning)),
    },
    NamedRule {
        name: "dynamic-dash",
        title: "BOLA-E from above 10 s of buffer until below 5 s, else throughput",
        source: "Spiteri, Sitaraman, Sparacio, MMSys 2018; Sabre 09b03bb",
        make: |tuning| Box::new(mmsys18::DynamicDash::new(tuning)),
    },
    NamedRule {
        name: "dashjs-throughput",
        title: "dash.js's ThroughputRule, with its restraining rules",
        source: "dash.js 5.2.1, streaming/rules/abr",
        make: |tuning| Box::new(dashjs::DashJs::new(dashjs::Active::Throughput, tuning)),
    },
    NamedRule {
        name: "dashjs-bola",
        title: "dash.js's BolaRule, with its restraining rules",
        source: "dash.js 5.2.1, streaming/rules/abr",
        make: |tuning| Box::new(dashjs::DashJs::new(dashjs::Active::Bola, tuning)),
    },
    NamedRule {
        name: "dashjs-dynamic",
        title: "dash.js's default: BolaRule from 12 s of buffer until below 6 s, else ThroughputRule",
        source: "dash.js 5.2.1, streaming/rules/abr",
        make: |tuning| Box::new(dashjs::DashJs::new(dashjs::Active::Both, tuning)),
    },
    NamedRule {
        name: "l2a",
        title: "dash.js's L2ARule: weights of levels, learnt online, for low latency",
        source: "Karagkioules et al., MMSys 2020; dash.js 5.2.1, streaming/rules/abr/L2ARule.js",
        make: |tuning| Box::new(dashjs::L2a::new(tuning)),
    },
    NamedRule {
        name: "lolp",
        title: "dash.js's LoLPRule: a self-organising map of levels, for low latency",
        source: "LoL+ of Bentaleb, Akcay and Lim; dash.js 5.2.1, streaming/rules/abr/lolp",
        make: |tuning| Box::new(dashjs::LolPlus::new(tuning)),
    },
    NamedRule {
        name: "harmonic",
        title: "up to the harmonic mean of the last five segments' throughput",
        source: "rule RB of Yin et al., SIGCOMM'15, section 7",
        make: |tuning| Box::new(Harmonic::new(tuning)),
    },
    NamedRule {
        name: "hlsjs",
        title: "0.95 of the lower of two throughput averages, 0.7 upward, fetched within the buffer",
        source: "hls.js 1.7.4",
        make: |tuning| Box::new(HlsJs::new(tuning)),
    },
    NamedRule {
        name: "shaka",
        title: "0.95 of the lower of two throughput averages, checked every 8 s",
        source: "Shaka Player 5.2.12",
        make: |tuning| Box::new(Shaka::new(tuning)),
    },
    NamedRule {
        name: "exoplayer",
        title: "0.7 of a throughput median; up above 10 s of buffer, down below 25 s",
        source: "ExoPlayer 2.19.1",
        make: |tuning| Box::new(ExoPlayer::new(tuning)),
    },
    NamedRule {
        name: "gstreamer",
        title: "0.8 of the lower of the last segment's throughput and the mean of three",
        source: "GStreamer's dashdemux2, 1.22",
        make: |tuning| Box::new(GStreamer::new(tuning)),
    },
    NamedRule {
        name: "vlc-2012",
        title: "strictly below the whole session's throughput in reads; the lowest below 9 s of buffer",
        source: "VLC 2.1.0",
        make: |tuning| Box::new(Vlc2::of_2012(tuning)),
    },
    NamedRule {
        name: "vlc-2011",
        title: "as vlc-2012, without a throughput until two chunks have arrived",
        source: "VLC, revision 2a6547a of late 2011",
        make: |tuning| Box::new(Vlc2::of_2011(tuning)),
    },
    NamedRule {
        name: "vlc-3",
        title: "BOLA's scores in seconds; throughput influences levels down",
        source: "VLC 3, nearoptimal",
        make: |tuning| Box::new(Vlc3NearOptimal::new(tuning)),
    },
    NamedRule {
        name: "vlc-3-rate",
        title: "strictly below three quarters of an average that favours steady values",
        source: "VLC 3, rate",
        make: |tuning| Box::new(Vlc3Rate::new(tuning)),
    },
    NamedRule {
        name: "bba-0",
        title: "the buffer is mapped to a rate",
        source: "Huang et al., SIGCOMM'14, section 4",
        make: |tuning| Box::new(Bba0::new(tuning)),
    },
    NamedRule {
        name: "bba-2",
        title: "the buffer is mapped to segments' sizes, after a start by segments' gain of buffer",
        source: "Huang et al., SIGCOMM'14, sections 5 and 6",
        make: |tuning| Box::new(Bba2::new(tuning)),
    },
    NamedRule {
        name: "mpc",
        title: "the best plan for five segments at a predicted throughput",
        source: "Yin et al., SIGCOMM'15, section 4",
        make: |tuning| Box::new(Mpc::new(tuning)),
    },
    NamedRule {
        name: "robust-mpc",
        title: "as mpc, with the largest recent error taken off the prediction",
        source: "Yin et al., SIGCOMM'15, section 5",
        make: |tuning| Box::new(Mpc::robust(tuning)),
    },
    NamedRule {
        name: "festive",
        title: "one level at a time, if stability and efficiency gain; requests at random times",
        source: "Jiang et al., CoNEXT'12",
        make: |tuning| Box::new(Festive::new(tuning)),
    },
    NamedRule {
        name: "panda",
        title: "the throughput is probed, and the result spaces requests",
        source: "Li et al., IEEE JSAC 32(4), 2014",
        make: |tuning| Box::new(Panda::new(tuning)),
    },
];

/// The rule of that name.
pub fn rule(name: &str) -> Option<&'static NamedRule> {
    RULES.iter().find(|rule| rule.name == name)
}

/// Makes a rule for a session by its name: one of [`RULES`], or a function (`FILE.py:NAME`).
///
/// # Errors
///
/// An unknown name, with the list of known ones, or a description of the function's fault.
pub fn make(name: &str, tuning: &Tuning) -> Result<Box<dyn Rule>, String> {
    match rule(name) {
        Some(named) => Ok((named.make)(tuning)),
        None if is_function(name) => maker(name)?(name, tuning),
        None => {
            let known: Vec<_> = RULES.iter().map(|rule| rule.name).collect();
            Err(format!("no rule is called {name:?}; there are {}", known.join(", ")))
        }
    }
}

/// One level throughout: where there is but one.
pub fn fixed(tuning: &Tuning) -> Box<dyn Rule> {
    Box::new(Fixed::new(tuning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_a_name_of_its_own_and_a_line_about_it() {
        for (place, one) in RULES.iter().enumerate() {
            assert!(RULES[..place].iter().all(|other| other.name != one.name), "{}", one.name);
            assert!(!one.title.is_empty() && !one.title.ends_with('.'), "{}", one.name);
        }
    }
}
