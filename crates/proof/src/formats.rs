//! Formats as patterns: a pattern that every string of a format matches, to compare formats with patterns.

/// A pattern that every string of the format `name` matches. Not every string that matches has the format.
pub fn pattern_of(name: &str) -> Option<&'static str> {
    Some(match name.replace('-', "").as_str() {
        "bsonobjectid" => "^[0-9a-fA-F]{24}$",
        "uuid" => "^[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}$",
        "uuid3" => "^[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?3[0-9a-fA-F]{3}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}$",
        "uuid4" => "^[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?4[0-9a-fA-F]{3}-?[89abAB][0-9a-fA-F]{3}-?[0-9a-fA-F]{12}$",
        "uuid5" => "^[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?5[0-9a-fA-F]{3}-?[89abAB][0-9a-fA-F]{3}-?[0-9a-fA-F]{12}$",
        "ssn" => "^[0-9]{3}[- ][0-9]{2}[- ][0-9]{4}$",
        "hexcolor" => "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$",
        "rgbcolor" => r"^rgb\([0-9 \t\n\f\r]+,[0-9 \t\n\f\r]+,[0-9 \t\n\f\r]+\)$",
        "byte" => "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)$",
        "date" => "^[0-9]{4}-(0[1-9]|1[0-2])-[0-3][0-9]$",
        "datetime" => "^[0-9]{4}-(0[1-9]|1[0-2])-[0-3][0-9][tT][0-2][0-9]:[0-5][0-9]:[0-5][0-9]",
        "ipv4" => r"^[0-9a-fA-F:]*[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+$",
        "ipv6" => "^[0-9a-fA-F.]*(:[0-9a-fA-F.]*){2,8}$",
        "cidr" => r"^([0-9a-fA-F.]*(:[0-9a-fA-F.]*){2,8}|[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+)/[0-9]+$",
        "mac" => "^[0-9a-fA-F:.-]{12,60}$",
        "isbn10" => r"^[\s-]*([0-9][\s-]*){9}[0-9X][\s-]*$",
        "isbn13" => r"^[\s-]*([0-9][\s-]*){13}$",
        "isbn" => r"^[\s-]*([0-9][\s-]*){9}([0-9X]|[0-9][\s-]*([0-9][\s-]*){3})[\s-]*$",
        "creditcard" => "(?s)^.*([0-9][^0-9]*){13}$",
        "email" => "(?s)^.+@.+$",
        "duration" => "[0-9]",
        "uri" => r"^(\*|/[^\x00-\x1f\x7f]*|[a-zA-Z][a-zA-Z0-9+.-]*:[^\x00-\x1f\x7f]*)$",
        // Letters and marks of every script, but no other ASCII characters.
        "hostname" => r#"^[^\x00-\x20\x7f!-#%-*,/:;?@\[\\\]_{}][^\x00-\x20\x7f!-#%-*,/:;?@\[\\\]_{}]*$"#,
        "k8sshortname" => "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        "k8slongname" => r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
        _ => return None,
    })
}

/// Whether the pattern of the format `name` is exact: every string that matches has the format.
pub fn is_exact(name: &str) -> bool {
    const EXACT: [&str; 8] = ["bsonobjectid", "uuid", "uuid3", "uuid4", "uuid5", "ssn", "hexcolor", "byte"];
    EXACT.contains(&name.replace('-', "").as_str())
}

/// Whether every string of the format `narrow` has the format `wide`. The server ignores dashes in a name.
pub fn is_within(narrow: &str, wide: &str) -> bool {
    let (narrow, wide) = (narrow.replace('-', ""), wide.replace('-', ""));
    narrow == wide
        || matches!(
            (narrow.as_str(), wide.as_str()),
            ("uuid3" | "uuid4" | "uuid5", "uuid") | ("isbn10" | "isbn13", "isbn") | ("k8sshortname", "k8slongname")
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use gantry_k8s_cel::re2;
    use gantry_schema::enforced_format_accepts;

    /// Strings of formats.
    const TEXTS: [&str; 38] = [
        "507f1f77bcf86cd799439011",
        "123e4567-e89b-12d3-a456-426614174000",
        "123E4567e89b42d3a456426614174000",
        "123e4567-e89b-32d3-a456-426614174000",
        "123e4567-e89b-52d3-B456-426614174000",
        "123-45-6789",
        "123 45 6789",
        "#FFF",
        "abcdef",
        "rgb(0,31,255)",
        "rgb(0,  1 , 2)",
        "YQ==",
        "YWFh",
        "2024-02-29",
        "2024-01-01T23:59:59.5+99:99",
        "2024-01-01t00:00:00z",
        "1.2.3.4",
        "::ffff:1.2.3.4",
        "010.0.0.1",
        "::1",
        "fe80::1",
        "10.0.0.0/8",
        "::/0",
        "00:00:5e:00:53:01",
        "0000.5e00.5301",
        "3 401 01319 X",
        "9784873113685",
        "4220 8554 2622 2389",
        "a@b",
        "\"x y\"@z",
        "1h30m",
        "2 days",
        "http://a/b?c#d",
        "a-b.example",
        "*",
        "mailto:x?y",
        "/a b",
        "€x.éa",
    ];

    /// `text`, the same with one character replaced, and two strings that are always tried.
    fn variants(text: &str) -> impl Iterator<Item = String> {
        let characters: Vec<char> = text.chars().collect();
        let changed = (0..characters.len()).flat_map(move |at| {
            let characters = characters.clone();
            "0aA:.-é/ \n*=+_".chars().map(move |c| {
                characters.iter().enumerate().map(|(i, old)| if i == at { c } else { *old }).collect::<String>()
            })
        });
        changed.chain([text.to_owned(), String::new(), "+0".to_owned()])
    }

    #[test]
    fn every_text_of_a_format_within_another_has_both() {
        const WITHIN: [(&str, &str); 8] = [
            ("uuid3", "uuid"),
            ("uuid4", "uuid"),
            ("uuid5", "uuid"),
            ("isbn10", "isbn"),
            ("isbn13", "isbn"),
            ("k8s-short-name", "k8s-long-name"),
            ("date-time", "datetime"),
            ("datetime", "date-time"),
        ];
        for (narrow, wide) in WITHIN {
            assert!(is_within(narrow, wide), "{narrow} {wide}");
            let has = |name: &str, text: &str| enforced_format_accepts(name, text) == Some(true);
            let mut of_narrow = TEXTS.into_iter().flat_map(variants).filter(|text| has(narrow, text)).peekable();
            assert!(of_narrow.peek().is_some(), "{narrow}");
            assert_eq!(of_narrow.find(|text| !has(wide, text)), None, "{narrow} {wide}");
        }
        for (narrow, wide) in [("uuid", "uuid4"), ("k8s-long-name", "k8s-short-name"), ("date", "date-time")] {
            assert!(!is_within(narrow, wide), "{narrow} {wide}");
        }
    }

    #[test]
    fn every_text_of_a_format_matches_the_pattern_of_that_format() {
        const NAMES: [&str; 22] = [
            "bsonobjectid",
            "uuid",
            "uuid3",
            "uuid4",
            "uuid5",
            "ssn",
            "hexcolor",
            "rgbcolor",
            "byte",
            "date",
            "date-time",
            "ipv4",
            "ipv6",
            "cidr",
            "mac",
            "isbn10",
            "isbn13",
            "creditcard",
            "email",
            "duration",
            "uri",
            "hostname",
        ];
        let mut seen = 0;
        for name in NAMES {
            let pattern = re2::compile(pattern_of(name).expect(name)).expect(name);
            for text in TEXTS {
                for text in variants(text) {
                    if enforced_format_accepts(name, &text) == Some(true) {
                        seen += 1;
                        assert!(pattern.is_match(&text), "{name}: {text:?}");
                    } else if is_exact(name) {
                        assert!(!pattern.is_match(&text), "{name}: {text:?}");
                    }
                }
            }
        }
        assert!(seen > 1000, "{seen}");
    }
}
