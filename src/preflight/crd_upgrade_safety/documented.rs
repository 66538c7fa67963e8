//! The one line that kapp and OLM print when a CRD upgrade is unsafe, for scripts that look for it.

/// More than this many texts are counted and not printed: some readers of this line have little room.
const PRINTED: usize = 10;

/// `validating upgrade for CRD "N" failed: CustomResourceDefinition N failed upgrade safety validation. "RULE" …`,
/// from the documented texts of the findings of one CRD.
pub fn line<'a>(crd: &str, texts: impl IntoIterator<Item = &'a str>) -> String {
    let texts: Vec<&str> = texts.into_iter().collect();
    let mut line = format!(
        "validating upgrade for CRD \"{crd}\" failed: CustomResourceDefinition {crd} failed upgrade safety validation. {}",
        texts[..texts.len().min(PRINTED)].join("; ")
    );
    if texts.len() > PRINTED {
        line.push_str(&format!("; and {} more", texts.len() - PRINTED));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_the_documented_one() {
        assert_eq!(
            line(
                "samples.test.example.com",
                [r#""NoScopeChange" validation failed: scope changed from "Namespaced" to "Cluster""#]
            ),
            "validating upgrade for CRD \"samples.test.example.com\" failed: CustomResourceDefinition \
             samples.test.example.com failed upgrade safety validation. \"NoScopeChange\" validation failed: scope \
             changed from \"Namespaced\" to \"Cluster\""
        );
    }

    #[test]
    fn the_line_stays_short() {
        let texts: Vec<String> = (0..1000).map(|i| format!("text {i}")).collect();
        let line = line("a.b", texts.iter().map(String::as_str));
        assert!(line.ends_with("; text 9; and 990 more"), "{line}");
    }
}
