//! Traces: one of each format read, every refusal, and no text that breaks the reader.

mod common;

use common::*;
use proptest::prelude::*;
use streamgauge_base::{BitRate, Direction, Duration, StageId};
use streamgauge_path::Path;
use streamgauge_path::spec::{Limit, RateSpec, ShaperSpec};
use streamgauge_path::trace::{Samples, Trace, TraceFormat};

fn read(text: &str) -> Trace {
    Trace::parse(text, None).unwrap()
}

fn rates(trace: &Trace) -> Vec<(u64, u64)> {
    let Samples::Rates(rates) = &trace.samples else { panic!("opportunities") };
    rates.iter().map(|(at, rate)| (at.as_nanos() / 1_000_000, rate.as_bps())).collect()
}

#[test]
fn mahimahi() {
    let trace = read("0\n2\n2\n\n# a comment\n7\r\n");
    assert_eq!(trace.format, TraceFormat::Mahimahi);
    assert_eq!((trace.len(), trace.duration), (4, ms(7)));
    let RateSpec::Opportunities(rate) = trace.rate(None).unwrap() else { panic!() };
    assert_eq!((rate.times, rate.bytes, rate.period), (vec![ms(0), ms(2), ms(2), ms(7)], 1504, ms(7)));
    assert_eq!(trace.mean(), BitRate::from_bps(4 * 1504 * 8 * 1000 / 7));
}

#[test]
fn csv_by_the_units_of_its_header() {
    for (text, expected) in [
        ("time_s,rate_mbps\n0,1.5\n0.25,0\n1,3\n", vec![(0, 1_500_000), (250, 0), (1000, 3_000_000)]),
        ("t (ms),place,Throughput [kbit/s]\n100,x,64\n600,y,128\n", vec![(0, 64_000), (500, 128_000)]),
        ("time_s,rate_kbit_s\n0,5\n2,7\n", vec![(0, 5_000), (2000, 7_000)]),
        ("rate_bps,seconds\n9,3\n10,5\n", vec![(0, 9), (2000, 10)]),
        ("0,1000\n10,2000\n", vec![(0, 1000), (10_000, 2000)]),
    ] {
        let trace = read(text);
        assert_eq!((trace.format, rates(&trace)), (TraceFormat::Csv, expected), "{text}");
    }
    // The last holds as long as the one before it; the mean is over time, not over lines.
    let trace = read("time_s,rate_bps\n0,100\n3,400\n4,100\n");
    assert_eq!((trace.duration, trace.mean()), (ms(5000), bps((3 * 100 + 400 + 100) / 5)));
    assert_eq!(read("time_s,rate_bps\n7,100\n").duration, ms(1000));
}

#[test]
fn pensieve_takes_a_rate_for_the_time_before_its_line() {
    let trace = read("0.5 9.9\n1.5\t2.0\n4.0 0.25\n");
    assert_eq!(trace.format, TraceFormat::Pensieve);
    assert_eq!((rates(&trace), trace.duration), (vec![(0, 2_000_000), (1000, 250_000)], ms(3500)));
}

#[test]
fn byte_logs_of_norway_and_ghent() {
    // The examples on the data sets' own pages.
    let norway = "1289406399 549692 59.851754 10.781778 248069 1008\n1289406400 550772 59.851864 10.781833 191698 1080\n";
    let ghent = "1453121790686 39287 51.0386528885778 3.73220785642186 2493100 1000\n\
                 1453121791687 40288 51.0386532820580 3.73222847166054 2763504 1001\n\
                 1453121792686 41287 51.0386553301824 3.73225142858955 2728896 0999\n";
    let trace = read(norway);
    assert_eq!(trace.format, TraceFormat::ByteLog);
    assert_eq!((rates(&trace), trace.duration), (vec![(0, 1_968_802), (1008, 1_419_985)], ms(2088)));
    let trace = read(ghent);
    assert_eq!(rates(&trace), [(0, 19_944_800), (1000, 22_085_946), (2001, 21_853_021)]);
    assert_eq!(trace.duration, ms(3000));
}

#[test]
fn cork_skips_rows_without_a_download() {
    let text = "Timestamp,Longitude,Speed,DL_bitrate,UL_bitrate,State\n\
                2019.12.16_13.40.04,-8.5,0,0,0,I\n\
                2019.12.16_23.59.58,-8.5,0,4000,10,D\n\
                2019.12.16_23.59.58,-8.5,0,5000,20,D\n\
                2019.12.17_00.00.00,-8.5,0,6000,30,D\n";
    let trace = read(text);
    assert_eq!((trace.format, trace.duration), (TraceFormat::Ucc, ms(4000)));
    assert_eq!(rates(&trace), [(0, 5_000_000), (2000, 6_000_000)]);
    let up = Trace::parse(text, Some(TraceFormat::UccUp)).unwrap();
    assert_eq!(rates(&up), [(0, 20_000), (2000, 30_000)]);
    // Over a leap day, and over none.
    for (from, to, days) in
        [("2020.02.28", "2020.03.01", 2), ("2019.02.28", "2019.03.01", 1), ("2019.12.31", "2020.01.01", 1)]
    {
        let text = format!("Timestamp,DL_bitrate\n{from}_00.00.00,1\n{to}_00.00.00,2\n");
        assert_eq!(rates(&read(&text))[1].0, days * 86_400_000, "{from}");
    }
}

#[test]
fn a_trace_that_is_repeated_goes_on_where_it_ended() {
    let trace = read("time_s,rate_bps\n0,100\n3,400\n");
    let RateSpec::Steps(steps) = trace.rate(Some(Duration::from_secs(13))).unwrap() else { panic!() };
    let seconds: Vec<_> =
        steps.iter().map(|(at, rate)| (at.as_nanos() / 1_000_000_000, rate.as_bps())).collect();
    assert_eq!(seconds, [(0, 100), (3, 400), (6, 100), (9, 400), (12, 100), (15, 400)]);
    let RateSpec::Steps(once) = trace.rate(None).unwrap() else { panic!() };
    assert_eq!(once.len(), 2);
    assert!(trace.rate(Some(Duration::MAX)).unwrap_err().to_string().contains("more than 1000000 steps"));
}

#[test]
fn columns_are_found_by_their_names_and_units() {
    let expected = [(0, 1_500_000), (500, 200_000)];
    for text in [
        "time_s,rate_kbps\n0,1500\n0.5,200\n",
        "\u{feff}time_s,rate_kbps\r\n\r\n0,1500\r\n0.5,200\r\n",
        "time_ms;rtt_ms;buffer_s;rate (Mbit/s)\n0;30;1;1.5\n500;30;2;0.2\n",
        "seconds\tkbit/s\n0\t1500\n0.5\t200\n",
        "\"t [ms]\",\"throughput [bit/s]\"\n\"0\",\"1500000\"\n\"500\",\"200000\"\n",
        "video_kbps,bandwidth_kbps,timestamp_ms\n1,1500,17000\n1,200,17500\n",
        "time_us,rate_kBps\n0,187.5\n500000,25\n",
        "time (ns),rate (bytes/s)\n0,187500\n500000000,25000\n",
        "Time_S,Bits per second\n0,1500000\n0.5,200000\n",
        "0,1500000\n0.5,200000\n",
        "0;1500000\n0.5;200000\n",
    ] {
        assert_eq!(rates(&read(text)), expected.map(|(ms, bps)| (ms, bps)), "{text:?}");
    }
}

#[test]
fn numbers_without_units_that_look_of_others_are_doubted() {
    for (text, expected) in [
        ("0,2500\n1,3100\n", "If they are kbit/s, begin the file"),
        ("0,2500000\n100000,3100000\n", "lines are 100000 s apart"),
        ("0 250000\n1 310000\n2 1\n", "If they are kbit/s, write csv"),
        ("0 0.0025\n1 0.0031\n", "too little for a link"),
        ("0 2.5\n1000 3.1\n2000 3.1\n", "If they are ms, write csv"),
    ] {
        let doubt = read(text).doubt();
        assert!(doubt.as_ref().is_some_and(|doubt| doubt.contains(expected)), "{text:?}: {doubt:?}");
    }
    for text in [
        "time_s,rate_bps\n0,2500\n1,3100\n",
        "0,2500000\n1,3100000\n",
        "0 2.5\n1 3.1\n",
        "9\n32\n",
        "1 1 1 1 1000 1\n2 2 1 1 1000 1000\n",
    ] {
        assert_eq!(read(text).doubt(), None, "{text:?}");
    }
}

#[test]
fn each_refusal_says_where_what_and_what_to_do() {
    for (format, text, expected) in [
        (None, "", "the trace is empty; expected at least one line of data"),
        (None, "\n  \n# only this\n", "the trace is empty"),
        (None, "1 2 3\n", "line 1: 3 columns are no known format. Expected one number (mahimahi)"),
        (None, "5\n4\n", "line 2: its time is not later than that of the line before. Sort the lines"),
        (None, "0\n0\n", "the last opportunity is at 0 ms"),
        (
            None,
            "1\n2.5\n",
            "line 2: the time of an opportunity (mahimahi) is \"2.5\"; expected a whole number of at least 0",
        ),
        (None, "-1\n", "line 1: the time of an opportunity (mahimahi) is \"-1\""),
        (None, "\u{0}\u{1}\u{2}\n", "line 1: the time of an opportunity (mahimahi) is \"\\0\\u{1}\\u{2}\""),
        (None, "99999999999\n", "line 1: an opportunity after more than 30 days"),
        (
            None,
            "time,rate\n0,1\n",
            "line 1: \"time,rate\": no column's name has a unit of time; expected one such as time_s",
        ),
        (None, "time_s,rate\n0,1\n", "line 1: \"time_s,rate\": no column's name has a unit of rate"),
        (
            None,
            "time_s,a_bps,b_bps\n",
            "line 1: no column is called a rate; rename the intended one (\"a_bps\", \"b_bps\"), such as rate_bps",
        ),
        (
            None,
            "rtt_ms,kbps\n",
            "line 1: no column is called a time; rename the intended one (\"rtt_ms\"), such as time_s or time_ms",
        ),
        (None, "buffer_s,rate_kbps\n", "line 1: no column is called a time; rename the intended one"),
        (
            None,
            "time_s,video_kbps\n",
            "line 1: no column is called a rate; rename the intended one (\"video_kbps\")",
        ),
        (
            None,
            "time_s,elapsed_ms,rate_bps\n",
            "line 1: \"time_s\", \"elapsed_ms\" may each be the time; remove or rename all but the intended one",
        ),
        (None, "time_s,dl_kbps,ul_kbps\n", "line 1: \"dl_kbps\", \"ul_kbps\" may each be the rate"),
        (
            None,
            "TIME_S,RATE_KBPS\n",
            "line 1: column \"RATE_KBPS\": its unit may be bits or bytes; write kbit/s",
        ),
        (
            None,
            "time_s rate_kbps\n0 1\n",
            "line 1: \"time_s rate_kbps\" is a header with spaces between columns",
        ),
        (None, "time_s;rate_mbps\n0;1,5\n", "line 2: \"1,5\" has a decimal comma; write a point"),
        (None, "0,5;1\n", "line 1: \"0,5\" has a decimal comma; write a point"),
        (None, "time_s,rate_bps\n", "the trace is empty"),
        (None, "time_s,rate_bps\n0,1\n0,2\n", "line 3: its time is not later"),
        (None, "time_s,rate_bps\n5,1\n4,2\n", "line 3: its time is not later"),
        (None, "time_s,rate_bps\n0,-1\n", "line 2: the rate is -1; expected a finite number of at least 0"),
        (None, "time_s,rate_bps\n0,NaN\n", "line 2: the rate is NaN"),
        (None, "time_s,rate_bps\n0,inf\n", "line 2: the rate is inf"),
        (None, "time_s,rate_bps\n-1,1\n", "line 2: the time is -1"),
        (None, "time_s,rate_bps\n0,1,2\n", "line 2: \"0,1,2\" has 3 columns; expected 2"),
        (None, "time_s,rate_bps\n0,0\n1,0\n", "every rate is 0, so nothing would ever leave"),
        (
            None,
            "time_s,rate_gbps\n0,1001\n",
            "line 2: a rate of 1.001e3 x 1e9 bit/s is above 1 Tbit/s; check the unit",
        ),
        (
            None,
            "time_s,rate_bps\n0,1\n2592001,1\n",
            "line 3: more than 30 days from the trace's start; check the unit",
        ),
        (None, "time_s,rate_bps\n1e300,1\n", "line 2: more than 30 days"),
        (None, "0.5 1\n", "fewer than two lines; expected at least two (pensieve)"),
        (None, "1 1\n1 2\n", "line 2: its time is not later"),
        (None, "1 1\n2 x\n", "line 2: the rate in Mbit/s is \"x\"; expected a number, such as 2.5"),
        (None, "1 1 1 1 1 0\n", "line 1: 0 ms since the line before"),
        (None, "1 1 1 1 1 1\n1 1 1 1 1 1\n", "line 2: its time is not later"),
        (None, "1 1 1 1 -1 1\n", "line 1: the number of bytes is \"-1\""),
        (None, "1 1 1 east 1 1\n", "line 1: the position is \"east\""),
        (
            None,
            "Timestamp,DL_bitrate\n2019.13.01_00.00.00,1\n",
            "line 2: \"2019.13.01_00.00.00\" is no time; expected such as 2018.01",
        ),
        (None, "Timestamp,DL_bitrate\n5319.01.01_00.00.00,1\n", "line 2: \"5319.01.01_00.00.00\" is no time"),
        (None, "Timestamp,DL_bitrate\n2019.01.01_00.00.00,-\n", "line 2: the bit rate in kbit/s is \"-\""),
        (
            None,
            "Timestamp,DL_bitrate\n2019.01.02_00.00.00,1\n2019.01.01_00.00.00,1\n",
            "line 3: its time is not later",
        ),
        (
            Some(TraceFormat::Ucc),
            "a,b\n",
            "line 1: \"a,b\" is no header (ucc); expected columns Timestamp and DL_bitrate",
        ),
        (
            Some(TraceFormat::Pensieve),
            "1\n",
            "line 1: \"1\"; expected a time in s and a rate in Mbit/s (pensieve)",
        ),
        (Some(TraceFormat::ByteLog), "1\n", "line 1: \"1\"; expected six columns (byte_log)"),
    ] {
        let message = Trace::parse(text, format).unwrap_err().to_string();
        assert!(message.starts_with(expected), "{text:?}: {message}");
        assert!(!message.contains('\n') && message.len() < 250, "{message}");
    }
}

#[test]
fn absurd_lengths_are_refused() {
    let long = format!("time_s,rate_bps\n0,{}\n", "9".repeat(5000));
    assert!(Trace::parse(&long, None).unwrap_err().to_string().starts_with("line 2: 5002 bytes long"));
    let many = "1\n".repeat(Trace::MOST_SAMPLES + 1);
    let message = Trace::parse(&many, None).unwrap_err().to_string();
    assert_eq!(message, "line 1000001: more than 1000000 samples; cut the trace up");
    assert!(Trace::parse(&many[2..], None).is_ok());
    let huge = " ".repeat(Trace::LONGEST_TEXT + 1);
    assert!(Trace::parse(&huge, None).unwrap_err().to_string().contains("cut it up"));
}

#[test]
fn formats_by_name() {
    for format in TraceFormat::ALL {
        assert_eq!(format.to_string().parse(), Ok(format));
    }
    let message = "hsdpa".parse::<TraceFormat>().unwrap_err().to_string();
    assert_eq!(
        message,
        "no trace format is called \"hsdpa\"; expected mahimahi, csv, pensieve, byte_log, ucc, ucc_up"
    );
}

fn almost_a_trace() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        "[0-9]{1,4}",
        "[0-9]{1,3}(\\.[0-9]{1,2})?,[0-9]{1,4}",
        "[0-9]{1,2}\\.[0-9] [0-9]\\.[0-9]{1,3}",
        "[0-9]{3} [0-9]{1,3} 1\\.5 2\\.5 [0-9]{1,5} [0-9]{1,4}",
        Just("time_s,rate_mbps".to_owned()),
        Just("Timestamp,DL_bitrate,State".to_owned()),
        "2019\\.0[1-9]\\.[0-2][0-9]_[01][0-9]\\.[0-5][0-9]\\.[0-5][0-9],[0-9]{1,4},[DI]",
        "\\PC{0,12}",
    ];
    prop::collection::vec(line, 0..8).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Any trace that can be read makes a path, in every format that it is forced to be.
    #[test]
    fn what_is_read_can_be_run(text in almost_a_trace(), forced in prop::option::of(0..6usize)) {
        let Ok(trace) = Trace::parse(&text, forced.map(|index| TraceFormat::ALL[index])) else { return Ok(()) };
        prop_assert!(trace.duration > Duration::ZERO && !trace.is_empty());
        for lasts in [None, Some(trace.duration * 3)] {
            let rate = trace.rate(lasts).unwrap();
            let stage = shaped(rate, ShaperSpec::Serial, Limit::Packets(10));
            prop_assert!(Path::new(&[stage], StageId(0), 1, Direction::Down).is_ok(), "{:?}", trace);
        }
        prop_assert!(trace.mean() <= Trace::HIGHEST || matches!(trace.samples, Samples::Opportunities(_)));
    }

    #[test]
    fn a_csv_written_is_the_csv_read(gaps in prop::collection::vec((1..100_000u64, 0..10_000_000u64), 1..50)) {
        prop_assume!(gaps.iter().any(|gap| gap.1 > 0));
        let mut at = 0;
        let expected: Vec<_> = gaps.iter().map(|&(gap, rate)| { let now = at; at += gap; (now, rate) }).collect();
        let lines: Vec<_> = expected.iter().map(|(at, rate)| format!("{at},{rate}")).collect();
        let text = format!("time_ms,rate_bps\n{}\n", lines.join("\n"));
        prop_assert_eq!(rates(&read(&text)), expected);
    }
}
