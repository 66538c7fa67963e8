use super::*;
use crate::surroundings::tests::write_to_text;
use crate::{Outcome, samples};
use gantry_core::finding::Finding;

#[test]
fn the_verdict_is_the_first_line() {
    for (name, report) in samples::all() {
        let text = write_to_text(&report, write);
        assert!(text.starts_with("### gantry: "), "{name}: {text}");
        assert!(text.chars().count() <= LONGEST, "{name}: {}", text.len());
        assert_eq!(text.matches("<details>").count(), text.matches("</details>").count(), "{name}: {text}");
    }
    let blocked = write_to_text(&samples::blocked(), write);
    assert!(blocked.starts_with("### gantry: Would be blocked: 1 error. Nothing was written.\n"), "{blocked}");
    for part in [
        "| `CRDUpgradeSafety` | **blocked** | 1 | 0 | 0 | 0 | 0 |",
        "<details><summary>1 <code>NoExistingFieldRemoved</code>: A field is removed</summary>",
        "- `field spec.pollInterval may not be removed from v1alpha1 and v1beta1`",
        "- in: `samples.test.example.com, v1alpha1 and v1beta1, ^.spec.pollInterval` at `manifests/crd.yaml:24:17`",
        "- next: `keep spec.pollInterval",
        "\n```yaml\n{apiVersion: test.example.com/v1alpha1",
    ] {
        assert!(blocked.contains(part), "{part}: {blocked}");
    }
}

#[test]
fn unchecked_parts_come_before_the_findings() {
    let mut report = samples::blocked();
    report.checks.extend(samples::could_not_check().checks);
    let text = write_to_text(&report, write);
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
    assert!(at("#### Not checked") < at("#### Errors"));
    assert!(at("- `PermissionValidation`: `cannot ask") < at("- `WebhookReadiness` was skipped: "));
}

fn many(errors: usize, warnings: usize) -> Report {
    let of = |severity, number: usize| {
        Finding { rule: format!("Rule{}", number % 7), severity, ..samples::removed_field("v1", number) }.with(|body| {
            body.path = Some(format!("^.spec.{}{number}", "long".repeat(30)));
            body.help = "do this\nthen that".into();
        })
    };
    let findings = (0..errors).map(|n| of(Severity::Error, n)).chain((0..warnings).map(|n| of(Severity::Warning, n)));
    let check = samples::check("CRDUpgradeSafety", CheckStatus::Blocked, findings.collect());
    samples::report(Outcome::Blocked, Vec::new(), vec![check])
}

/// How many findings are shown, in full or in a line.
fn shown(text: &str) -> usize {
    text.lines().filter(|line| line.starts_with("- ") && line.contains("^.spec.longlong")).count()
}

#[test]
fn errors_are_left_out_last_and_counted() {
    let all = write_to_text(&many(5, 20), write);
    assert_eq!((shown(&all), all.contains("left out")), (25, false), "{all}");

    let text = write_to_text(&many(20, 500), write);
    assert!((LONGEST - LONGEST / 15..=LONGEST).contains(&text.chars().count()), "{}", text.len());
    let left: usize = 520 - shown(&text);
    assert!(text.ends_with(&format!("\n{left} warnings are left out here: `-o json` and `-o html` have them all.\n")));
    assert!((0..20).all(|error| text.contains(&format!("long{error}, ")) || text.contains(&format!("long{error}`"))));

    let text = write_to_text(&many(2000, 10), write);
    assert!(text.chars().count() <= LONGEST);
    assert_eq!(shown(&text) + text.matches("#### Warnings").count(), shown(&text), "no warning before all errors");
    let left = 2000 - shown(&text);
    assert!(text.contains(&format!("\n{left} errors and 10 warnings are left out here")), "{left}");
    assert!((0..7).all(|rule| text.contains(&format!("<code>Rule{rule}</code>"))), "each rule has its first finding");
}

#[test]
fn hostile_text_is_code_and_nothing_else() {
    let hostile =
        "`` @everyone [x](https://evil.example) <script>alert(1)</script> | </details> **b** #1\n\n# h\u{1b}[2J";
    let mut report = samples::could_not_check();
    report.target = hostile.into();
    report.checks[0].name = hostile.into();
    report.checks[1].unchecked[0].message = hostile.into();
    report.errors.push(crate::ErrorEntry {
        message: hostile.into(),
        source: None,
        help: Some(hostile.into()),
        log: None,
    });
    let mut finding = samples::removed_field(hostile, 3);
    (finding.rule, finding.body.message, finding.body.path) = (hostile.into(), hostile.into(), Some(hostile.into()));
    finding.body.wording = None;
    finding.body.help = hostile.into();
    finding.source = Some(samples::source(hostile, 3, 1));
    finding.object.as_mut().unwrap().name = hostile.into();
    finding.body.witnesses[0].message = hostile.into();
    finding.body.witnesses[0].object["spec"]["pollInterval"] = hostile.into();
    report.checks[0].findings = vec![finding.clone(), Finding { severity: Severity::Waived, ..finding }];
    let text = write_to_text(&report, write);
    assert!(!text.chars().any(|c| c != '\n' && text::is_hostile(c)));
    // Outside code, none of the text may remain.
    let mut in_fence = false;
    for line in text.lines() {
        if line.starts_with("```") {
            in_fence = !in_fence;
        } else if !in_fence {
            let rest = without_code(line);
            for part in ["@everyone", "evil", "<script", "**b", "#1", "# h"] {
                assert!(!rest.contains(part), "{part} in {rest:?} of {line:?}");
            }
        }
    }
    assert_eq!(text.matches("<details>").count(), text.lines().filter(|line| *line == "</details>").count());
}

/// A line without its code spans, as CommonMark reads them, and without `<code>` of HTML.
fn without_code(line: &str) -> String {
    let (mut out, mut rest) = (String::new(), line);
    while let Some(start) = rest.find('`') {
        let ticks = rest[start..].chars().take_while(|c| *c == '`').count();
        let body = &rest[start + ticks..];
        let mut at = 0;
        let end = loop {
            let Some(next) = body[at..].find('`').map(|next| at + next) else { break None };
            let run = body[next..].chars().take_while(|c| *c == '`').count();
            if run == ticks {
                break Some(next);
            }
            at = next + run;
        };
        let Some(end) = end else { break };
        out.push_str(&rest[..start]);
        rest = &body[end + ticks..];
    }
    out.push_str(rest);
    match (out.find("<code>"), out.rfind("</code>")) {
        (Some(from), Some(to)) => format!("{}{}", &out[..from], &out[to..]),
        _ => out,
    }
}
