//! The canonical form of quantities. Source: `k8s.io/apimachinery/pkg/api/resource/quantity.go`, `CanonicalizeBytes`.

use gantry_k8s_cel::quantity::Quantity;

/// The canonical form of a quantity; `None` if the text is not one.
pub fn canonical_quantity(text: &str) -> Option<String> {
    const WHOLE: i128 = 1_000_000_000;
    let nanos = Quantity::parse(text).ok()?.nanos();
    let is_whole = nanos % WHOLE == 0;
    let is_large = nanos.abs() >= 1024 * WHOLE;
    if text.ends_with('i') && is_whole && is_large {
        let (mut number, mut suffixes) = (nanos / WHOLE, ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].iter());
        let mut suffix = "";
        while number % 1024 == 0 {
            let Some(next) = suffixes.next() else { break };
            (number, suffix) = (number / 1024, next);
        }
        return Some(format!("{number}{suffix}"));
    }
    if nanos == 0 {
        return Some("0".to_owned());
    }
    let (mut number, mut exponent) = (nanos, -9);
    while number % 1000 == 0 && exponent < 18 {
        (number, exponent) = (number / 1000, exponent + 3);
    }
    let is_exponential = text.contains(['e', 'E']) && !text.ends_with(['e', 'E']);
    let suffix = match exponent {
        0 => String::new(),
        _ if is_exponential => format!("e{exponent}"),
        -9 => "n".to_owned(),
        -6 => "u".to_owned(),
        -3 => "m".to_owned(),
        3 => "k".to_owned(),
        6 => "M".to_owned(),
        9 => "G".to_owned(),
        12 => "T".to_owned(),
        15 => "P".to_owned(),
        _ => "E".to_owned(),
    };
    Some(format!("{number}{suffix}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The results are those of Go's library.
    #[test]
    fn quantities_have_the_form_that_go_writes() {
        for (text, canonical) in [
            ("2", "2"),
            ("0.5", "500m"),
            ("1.0", "1"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("0", "0"),
            ("0Mi", "0"),
            ("1000", "1k"),
            ("1000Mi", "1000Mi"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("512", "512"),
            ("1023Ki", "1023Ki"),
            ("0.5Ki", "512"),
            ("1e3", "1e3"),
            ("12E", "12E"),
            ("100M", "100M"),
            ("-1024Ki", "-1Mi"),
            ("64Mi", "64Mi"),
        ] {
            assert_eq!(canonical_quantity(text).as_deref(), Some(canonical), "{text}");
        }
        assert_eq!(canonical_quantity("much"), None);
    }
}
