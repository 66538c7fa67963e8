//! The lines that kapp and OLM print when a CRD upgrade is unsafe, for scripts that look for them.

/// The maximum number of texts printed for one CRD; the rest are only counted, because some consumers of these lines
/// have little room.
const PRINTED: usize = 10;

/// The lines for one CRD, from the documented texts of its findings.
///
/// kapp, and OLM as documented, quote the name of the rule and print everything on one line: `validating upgrade for
/// CRD "N" failed: CustomResourceDefinition N failed upgrade safety validation. "RULE" …`. crdify, and OLM v1 since it
/// uses crdify, print a line for each finding: `validating upgrade for CRD "N": v1: ^.spec.x: type: …`.
pub fn lines(crd: &str, texts: &[&str]) -> Vec<String> {
    let (quoted, plain): (Vec<&str>, Vec<&str>) = texts.iter().partition(|text| text.starts_with('"'));
    let mut lines: Vec<String> =
        plain.iter().take(PRINTED).map(|text| format!("validating upgrade for CRD \"{crd}\": {text}")).collect();
    if plain.len() > PRINTED {
        lines.push(format!("validating upgrade for CRD \"{crd}\": and {} more", plain.len() - PRINTED));
    }
    if !quoted.is_empty() {
        lines.push(line(crd, &quoted));
    }
    lines
}

fn line(crd: &str, texts: &[&str]) -> String {
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
    fn the_line_of_a_finding_is_that_of_the_tool() {
        assert_eq!(
            lines(
                "samples.test.example.com",
                &[r#""NoScopeChange" validation failed: scope changed from "Namespaced" to "Cluster""#]
            ),
            ["validating upgrade for CRD \"samples.test.example.com\" failed: CustomResourceDefinition \
             samples.test.example.com failed upgrade safety validation. \"NoScopeChange\" validation failed: scope \
             changed from \"Namespaced\" to \"Cluster\""]
        );
    }

    #[test]
    fn the_line_of_a_finding_is_bounded() {
        let texts: Vec<String> = (0..1000).map(|i| format!("\"Rule\" text {i}")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let lines = lines("a.b", &texts);
        assert!(lines.len() == 1 && lines[0].ends_with("; \"Rule\" text 9; and 990 more"), "{lines:?}");
    }

    #[test]
    fn findings_of_crdify_have_a_line_each() {
        let texts: Vec<String> = (0..12).map(|i| format!("v1: ^.spec.f{i}: type: text")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let lines = lines("a.b", &texts);
        assert_eq!(lines[0], "validating upgrade for CRD \"a.b\": v1: ^.spec.f0: type: text");
        assert_eq!((lines.len(), lines[10].as_str()), (11, "validating upgrade for CRD \"a.b\": and 2 more"));
    }
}
