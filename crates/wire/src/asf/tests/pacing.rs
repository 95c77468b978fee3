//! When packets are sent: the limits of the rate and of the times of media objects.

use super::super::packing::{Load, bucket_ms, least_rate_bps, pack, send_times};
use super::*;

const PREROLL_MS: u32 = 3000;

fn objects(written: &[Written]) -> Vec<MediaObject<'_>> {
    let object = |(number, one): (u32, &'_ Written)| (number, one.presentation_ms, one.is_key);
    let mut objects = Vec::new();
    for (place, one) in (0..).zip(written) {
        let (number, presentation_ms, is_key) = object((place, one));
        let data = one.data.as_slice().into();
        objects.push(MediaObject { stream: 1, number, presentation_ms, is_key, data });
    }
    objects
}

proptest! {
    #[test]
    fn packets_are_full_and_of_key_frames_alone_or_of_others(
        written in any_objects(40, 900), most_bytes in 128..1500usize,
    ) {
        let objects = objects(&written);
        let packets = pack(&objects, 0, 1, most_bytes);
        for packet in &packets {
            let is_key = packet.payloads[0].is_key;
            prop_assert!(packet.payloads.iter().all(|payload| payload.is_key == is_key));
            prop_assert!(write_packet(packet, PacketSize::Stripped).unwrap().len() <= most_bytes);
        }
        // Two that follow one another and are of a kind would not have fitted into one, but for a piece that is too short.
        for two in packets.windows(2) {
            let bytes: usize = two.iter().map(|packet| write_packet(packet, PacketSize::Stripped).unwrap().len()).sum();
            prop_assert!(two[0].is_key() != two[1].is_key() || bytes + 3 > most_bytes);
        }
    }

    #[test]
    fn no_packet_comes_too_late_and_the_rate_is_the_least(written in any_objects(40, 900)) {
        let objects = objects(&written);
        let packets = pack(&objects, 0, 1, 700);
        let loads = Load::of(&packets, PREROLL_MS);
        let rate = least_rate_bps(&loads, 1).unwrap();
        let (times, ends_ms) = send_times(&loads, rate).unwrap();
        prop_assert!(rate == 1 || send_times(&loads, rate - 1).is_none());
        prop_assert_eq!(times.len(), packets.len());
        prop_assert!(times.is_sorted());
        for (place, packet) in packets.iter().enumerate() {
            let presented = packet.payloads[0].of.unwrap().presentation_ms;
            // Not before it begins, and all of it before it is presented: the next one waits for it.
            prop_assert!(times[place] >= presented - PREROLL_MS);
            let bits = 8 * write_packet(packet, PacketSize::Stripped).unwrap().len() as u64;
            let there = f64::from(times[place]) + bits as f64 * 1000.0 / f64::from(rate);
            prop_assert!(there <= f64::from(presented) + 0.001, "{} > {}", there, presented);
            let next = times.get(place + 1).map_or(ends_ms, |&time| time);
            prop_assert!(f64::from(next) + 1.0 >= there - 1.0);
        }
    }

    /// Against the definition, step by step: the bucket's level after each media object.
    #[test]
    fn a_bucket_holds_what_comes_less_what_runs_out(written in any_objects(40, 900), rate in 1..1_000_000u32) {
        let objects = objects(&written);
        let (mut seconds, mut most, mut before) = (0f64, 0f64, 0);
        for object in &objects {
            seconds = (seconds - f64::from(object.presentation_ms - before) / 1000.0).max(0.0);
            seconds += 8.0 * object.data.len() as f64 / f64::from(rate);
            (most, before) = (most.max(seconds), object.presentation_ms);
        }
        let found = f64::from(bucket_ms(&objects, rate));
        prop_assert!((found - 1000.0 * most).abs() <= 1.001, "{} {}", found, most);
    }
}

#[test]
fn a_preroll_that_no_rate_suffices_for_is_told() {
    let late = [
        Written { stream: 1, presentation_ms: 9000, is_key: true, data: vec![0; 100] },
        Written { stream: 1, presentation_ms: 4000, is_key: false, data: vec![0; 100] },
    ];
    let objects = objects(&late);
    assert_eq!(least_rate_bps(&Load::of(&pack(&objects, 0, 1, 700), PREROLL_MS), 1), None);
    assert!(least_rate_bps(&Load::of(&pack(&objects, 0, 1, 700), 6000), 1).is_some());
}
