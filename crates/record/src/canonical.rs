//! Canonical JSON: one text for equal values from any writer. RFC 8785, except that integers beyond 2^53 keep all their
//! digits (seeds have 64 bits).

use serde_json::{Number, Value};

/// Returns the canonical text of a JSON text; an error names the place where it is no JSON.
pub fn canonical_json(text: &str) -> Result<String, String> {
    let value: Value = serde_json::from_str(text).map_err(|e| format!("not JSON: {e}"))?;
    let mut out = String::with_capacity(text.len());
    put(&value, &mut out);
    Ok(out)
}

fn put(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Number(n) => put_number(n, out),
        Value::String(s) => put_string(s, out),
        Value::Array(values) => {
            out.push('[');
            for (i, value) in values.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                put(value, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            // RFC 8785 section 3.2.3 sorts by UTF-16 code units.
            members.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            out.push('{');
            for (i, (key, value)) in members.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                put_string(key, out);
                out.push(':');
                put(value, out);
            }
            out.push('}');
        }
    }
}

fn put_string(s: &str, out: &mut String) {
    // serde_json escapes exactly the characters of RFC 8785 section 3.2.2.2.
    out.push_str(&serde_json::to_string(s).expect("a string is always JSON"));
}

fn put_number(number: &Number, out: &mut String) {
    match number.as_f64() {
        Some(value) if number.is_f64() => out.push_str(&ecmascript(value)),
        _ => out.push_str(&number.to_string()),
    }
}

/// Writes a finite number by ECMA-262 section 6.1.6.1.20, Number::toString in base 10.
fn ecmascript(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let shortest = format!("{:e}", value.abs());
    let (mantissa, exponent) = shortest.split_once('e').expect("the form that {:e} has");
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    // The value is 0.digits * 10^point.
    let point = exponent.parse::<i32>().expect("the form that {:e} has") + 1;
    let count = digits.len() as i32;
    let text = if count <= point && point <= 21 {
        digits + &"0".repeat((point - count) as usize)
    } else if 0 < point && point <= 21 {
        format!("{}.{}", &digits[..point as usize], &digits[point as usize..])
    } else if -6 < point && point <= 0 {
        format!("0.{}{digits}", "0".repeat(-point as usize))
    } else {
        let sign = if point > 0 { "+" } else { "-" };
        let fraction = if count > 1 { format!(".{}", &digits[1..]) } else { String::new() };
        format!("{}{fraction}e{sign}{}", &digits[..1], (point - 1).abs())
    };
    if value < 0.0 { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples of RFC 8785 appendix B.
    #[test]
    fn numbers_as_rfc_8785() {
        for (bits, text) in [
            (0x0000_0000_0000_0000, "0"),
            (0x8000_0000_0000_0000, "0"),
            (0x0000_0000_0000_0001, "5e-324"),
            (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0x4340_0000_0000_0000, "9007199254740992"),
            (0x4430_0000_0000_0000, "295147905179352830000"),
            (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
            (0x444b_1ae4_d6e2_ef50, "1e+21"),
            (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
            (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
            (0x41b3_de43_5555_5554, "333333333.33333325"),
            (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
        ] {
            assert_eq!(ecmascript(f64::from_bits(bits)), text);
        }
    }

    #[test]
    fn equal_values_have_one_text() {
        let text = canonical_json(
            " {\"b\": [1.0, 1, 1e0, -0.0], \"a\": \"\\u00e9\\n\", \"\u{e000}\":1, \"\u{10000}\":2} ",
        );
        // A character beyond the basic plane sorts before U+E000 in UTF-16.
        assert_eq!(text.as_deref(), Ok("{\"a\":\"é\\n\",\"b\":[1,1,1,0],\"\u{10000}\":2,\"\u{e000}\":1}"));
        assert_eq!(canonical_json("18446744073709551615").as_deref(), Ok("18446744073709551615"));
        assert!(canonical_json("{").is_err_and(|e| e.contains("line 1")));
    }
}
