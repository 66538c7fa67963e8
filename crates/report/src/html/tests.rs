use super::*;
use crate::samples;
use crate::surroundings::tests::write_to_text;
use gantry_core::finding::Finding;

#[test]
fn the_page_makes_no_request_and_runs_only_its_own_script() {
    for (name, report) in samples::all() {
        let page = write_to_text(&report, write);
        assert!(page.starts_with("<!DOCTYPE html><html lang=\"en\">"), "{name}");
        let policy = "content=\"default-src &#39;none&#39;; style-src &#39;sha256-";
        assert!(page.contains(&policy.replace("&#39;", "'")), "{name}: {}", &page[..600]);
        // One script, one style, and none in an attribute.
        assert_eq!((page.matches("<script").count(), page.matches("<style").count()), (1, 1), "{name}");
        let markup = without(&without(&page, "<script>", "</script>"), "<style>", "</style>");
        for tag in tags(&markup) {
            // A link leads to a place on the page.
            let tag = tag.strip_prefix("<a href=\"#").unwrap_or(tag);
            for part in [" on", " src=", " href=", " style=", " srcset=", " action=", " ping="] {
                assert!(!attributes(tag).contains(part), "{name}: {tag}");
            }
            assert!(
                !["<link", "<img", "<iframe", "<object", "<embed", "<base", "<a "]
                    .iter()
                    .any(|odd| tag.starts_with(odd)),
                "{tag}"
            );
        }
        assert!(!STYLE.contains("url(") && !STYLE.contains("@import"));
        assert!(!["fetch(", "XMLHttpRequest", "innerHTML", "eval(", "http"].iter().any(|odd| SCRIPT.contains(odd)));
    }
}

/// A hash that differs from the script's would disable it.
#[test]
fn the_hashes_of_the_policy_match_the_style_and_script_of_the_page() {
    let page = write_to_text(&samples::blocked(), write);
    let between = |from: &str, to: &str| {
        let at = page.find(from).expect("it is there") + from.len();
        page[at..at + page[at..].find(to).expect("it ends")].to_owned()
    };
    for (text, directive) in
        [(between("<style>", "</style>"), "style-src"), (between("<script>", "</script>"), "script-src")]
    {
        let hash = STANDARD.encode(digest(&SHA256, text.as_bytes()));
        assert!(page.contains(&format!("{directive} 'sha256-{hash}'")), "{directive}");
    }
}

#[test]
fn the_page_shows_everything_about_a_finding() {
    let page = write_to_text(&samples::blocked(), write);
    for part in [
        "<h1 class=\"error\">Would be blocked: 1 error. Nothing was written.</h1>",
        "data-severity=\"error\" data-rule=\"NoExistingFieldRemoved\"",
        "data-object=\"customresourcedefinition/samples.test.example.com\"",
        "<code>manifests/crd.yaml:24:17</code><pre>",
        "<span class=\"number-of-line\">25 </span>",
        "<dt>also</dt><dd>v1beta1 at <code>manifests/crd.yaml:44:17</code>",
        "<td><code>type</code></td><td class=\"removed\"><code>&quot;string&quot;</code></td><td class=\"added\"><span class=\"faint\">absent",
        "writers: the server refuses or drops what they send today",
        "<button type=\"button\" class=\"copy\" data-of=\"witness-0-0\">Copy</button><pre id=\"witness-0-0\">{\n",
        "keep spec.pollInterval in v1alpha1 and v1beta1 and mark it as deprecated",
        "About the rule: <a href=\"#rule-NoExistingFieldRemoved\">A field is removed</a>",
        "<section id=\"rule-NoExistingFieldRemoved\"><h3><code>NoExistingFieldRemoved</code></h3>",
    ] {
        assert!(page.contains(part), "{part}: {}", without(&page, "<style>", "</style>"));
    }
    let unchecked = write_to_text(&samples::could_not_check(), write);
    assert!(
        unchecked.contains("Could not be checked</h2><ul><li><b>PermissionValidation</b>: cannot ask"),
        "{unchecked}"
    );
    assert!(write_to_text(&samples::diffs(), write).contains("<h2>Changes</h2>"));
}

#[test]
fn hostile_text_stays_text() {
    let hostile = "</script></style><script>alert(1)</script><img src=x onerror=alert(1)>\" ' & \u{1b}[2J\u{202e}\u{fdd0}\u{ffff}";
    let mut report = samples::blocked();
    report.target = hostile.into();
    report.errors.push(ErrorEntry {
        message: hostile.into(),
        source: Some(samples::source(hostile, 1, 1)),
        help: Some(hostile.into()),
        log: None,
    });
    report.checks[0].name = hostile.into();
    report.checks[0].message = Some(hostile.into());
    let finding = &mut report.checks[0].findings[0];
    *finding = Finding {
        rule: hostile.into(),
        source: Some(samples::source(hostile, 1, 1)),
        change_source: None,
        ..finding.clone()
    }
    .with(|body| {
        body.message = hostile.into();
        body.help = hostile.into();
        body.path = Some(hostile.into());
        body.version = Some(hostile.into());
        body.label = Some(hostile.into());
        body.wording = None;
    });
    finding.object.as_mut().expect("an object").name = hostile.into();
    finding.body.witnesses[0].object["spec"]["pollInterval"] = hostile.into();
    finding.body.witnesses[0].message = hostile.into();
    let page = write_to_text(&report, write);
    assert_eq!((page.matches("<script").count(), page.matches("</script").count()), (1, 1));
    assert!(!page.contains("<img") && !page.chars().any(|c| c != '\n' && text::is_hostile(c)));
    assert!(tags(&page).iter().all(|tag| !attributes(tag).contains(" onerror")));
}

#[test]
fn the_worst_of_very_many_findings_are_shown() {
    let of = |severity| {
        Finding { severity, ..samples::finding("R", severity, samples::crd("x"), "m") }
            .with(|body| body.witnesses = Vec::new())
    };
    let findings = (0..MOST).map(|_| of(Severity::Warning)).chain([of(Severity::Error), of(Severity::Error)]).collect();
    let check = samples::check("C", CheckStatus::Blocked, findings);
    let page = write_to_text(&samples::report(Outcome::Blocked, Vec::new(), vec![check]), write);
    assert_eq!(page.matches("<details class=\"finding\"").count(), MOST);
    assert_eq!(page.matches("<details class=\"finding\" data-severity=\"error\"").count(), 2);
    assert!(page.contains("2 more findings left out here: -o json has all."));
}

#[test]
fn a_rule_is_explained_once_however_many_findings_it_has() {
    let of = |number| {
        let object = samples::crd(&format!("x{number}.example.com"));
        samples::finding("NoExistingFieldRemoved", Severity::Error, object, "m")
    };
    let findings = (0..100).map(of).collect();
    let check = samples::check("CRDUpgradeSafety", CheckStatus::Blocked, findings);
    let page = write_to_text(&samples::report(Outcome::Blocked, Vec::new(), vec![check]), write);
    assert_eq!(page.matches("About the rule: <a href").count(), 100);
    assert_eq!(page.matches("NoExistingFieldRemoved: A field is removed").count(), 1);
}

#[test]
fn a_secret_is_shown_by_no_line() {
    let of_secret = |object| {
        let finding = Finding {
            source: Some(samples::source("a.yaml", 5, 5)),
            ..samples::finding("R", Severity::Error, object, "m")
        };
        let check = samples::check("C", CheckStatus::Blocked, vec![finding]);
        write_to_text(&samples::report(Outcome::Blocked, Vec::new(), vec![check]), write)
    };
    assert!(!of_secret(samples::object("v1", "Secret", Some("a"), "s")).contains("number-of-line\">"));
    assert!(of_secret(samples::object("v1", "ConfigMap", Some("a"), "s")).contains("number-of-line\">"));
}

/// The page without the text between these markers.
fn without(page: &str, from: &str, to: &str) -> String {
    let start = page.find(from).map_or(0, |at| at + from.len());
    let end = page.find(to).unwrap_or(start);
    format!("{}{}", &page[..start], &page[end..])
}

/// Every tag. In text and in attributes `<` is escaped.
fn tags(page: &str) -> Vec<&str> {
    page.match_indices('<')
        .map(|(at, _)| &page[at..=at + page[at..].find('>').unwrap_or(page.len() - at - 1)])
        .collect()
}

/// The parts of a tag outside quotes.
fn attributes(tag: &str) -> String {
    tag.split('"').step_by(2).collect()
}
