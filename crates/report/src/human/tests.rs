//! Snapshots of each kind of report, and properties of all of them.

use super::*;
use crate::{ErrorEntry, Outcome, samples};
use gantry_core::finding::{Action, Severity};
use gantry_core::problem::{Location, Problem};
use gantry_core::text;

fn shown(report: &Report, options: &HumanOptions) -> String {
    let mut out = Vec::new();
    write(report, options, &samples::files(), &mut out).expect("in memory");
    String::from_utf8(out).expect("text")
}

fn plain(report: &Report) -> String {
    shown(report, &HumanOptions::default())
}

fn snapshot(name: &str, text: &str) {
    let folder = "../snapshots";
    insta::with_settings!({snapshot_path => folder, prepend_module_to_snapshot => false, omit_expression => true}, {
        // Starts with a blank line, because insta would otherwise strip the text's own first one.
        insta::assert_snapshot!(name, format!("\n{text}"));
    });
}

/// Text without the escapes for colour; any other escape stays.
fn without_colour(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once('m') {
            Some((codes, rest)) if codes.chars().all(|c| c.is_ascii_digit() || c == ';') => out.push_str(rest),
            _ => out.push_str(&format!("\u{1b}[{part}")),
        }
    }
    out
}

#[test]
fn every_kind_of_report_is_shown_as_in_its_snapshot() {
    for (name, report) in samples::all() {
        snapshot(name, &plain(&report));
    }
}

#[test]
fn verbose_shows_infos_waived_and_every_object() {
    let options = HumanOptions { verbose: true, purpose: ReportPurpose::Check, ..HumanOptions::default() };
    snapshot("verbose", &shown(&samples::warned(), &options));
    let all = shown(&samples::hundreds(), &options);
    assert!((0..300).all(|i| all.contains(&format!(", ^.spec.field{i}\n"))), "verbose leaves nothing out");
}

#[test]
fn quiet_prints_nothing_for_a_success_and_everything_for_a_block() {
    let options = HumanOptions { quiet: true, ..HumanOptions::default() };
    for report in [samples::deployed(), samples::unchanged(), samples::planned()] {
        assert_eq!(shown(&report, &options), "");
    }
    let blocked = shown(&samples::blocked(), &options);
    assert!(!blocked.contains("Plan") && blocked.starts_with("error[NoExistingFieldRemoved]"), "{blocked}");
    assert!(blocked.ends_with("Blocked: 1 error. Nothing was written.\n"), "{blocked}");
    assert!(!shown(&samples::warned(), &options).contains("warning["));
}

#[test]
fn no_report_gets_a_control_character_to_the_terminal() {
    for (name, report) in samples::all() {
        for (color, verbose) in [(false, false), (false, true), (true, false), (true, true)] {
            let text = shown(&report, &HumanOptions { color, verbose, ..HumanOptions::default() });
            let text = if color { without_colour(&text) } else { text };
            let bad = text.chars().find(|c| *c != '\n' && text::is_hostile(*c));
            assert_eq!(bad, None, "{name}: {text}");
        }
    }
    // The hostile text contains "Nothing to do", which must not start a line.
    let text = plain(&samples::hostile());
    assert!(!text.lines().any(|line| line.starts_with("Nothing to do")), "{text}");
}

#[test]
fn a_coloured_report_has_the_same_text() {
    for (name, report) in samples::all() {
        let coloured = shown(&report, &HumanOptions { color: true, ..HumanOptions::default() });
        assert!(coloured.contains("\u{1b}["), "{name}");
        let stripped: Vec<String> = without_colour(&coloured).lines().map(|line| line.trim_end().to_owned()).collect();
        assert_eq!(stripped, plain(&report).lines().collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn the_output_is_bounded_and_counts_what_it_leaves_out() {
    for report in [samples::hundreds(), samples::many_objects()] {
        let text = plain(&report);
        assert!(text.lines().count() < 300 && text.len() < 20_000, "{} lines", text.lines().count());
        assert!(text.contains("(-v lists all)") || text.contains("Not every finding is shown: -v"), "{text}");
        // All warnings are left out before any error.
        assert!(!text.contains("warning["), "{text}");
    }
    let mut long = samples::blocked();
    for finding in &mut long.checks[0].findings {
        finding.body.message = "x ".repeat(40_000);
        finding.body.help = "y ".repeat(40_000);
        finding.body.path = Some("z".repeat(40_000));
        finding.body.label = Some("l".repeat(40_000));
    }
    assert!(plain(&long).len() < 10_000, "{}", plain(&long).len());
}

#[test]
fn the_plan_names_every_kind_and_lists_few_objects() {
    let kinds: Vec<String> = (0..40).map(|number| format!("Kind{number}")).collect();
    let change = |kind: &String| samples::change(Action::Update, samples::object("a/v1", kind, None, "x"), 1);
    let report = samples::report(Outcome::Planned, kinds.iter().map(change).collect(), Vec::new());
    let text = plain(&report);
    let summary: Vec<&str> = text.lines().skip(1).take_while(|line| !line.is_empty()).collect();
    let summary = summary.join(" ");
    assert!(summary.starts_with("Plan     update    40 (1 Kind0,"), "{summary}");
    assert!(kinds.iter().all(|kind| summary.contains(&format!("1 {kind}"))) && !summary.contains('…'), "{summary}");
    assert!(!text.contains("kind0.a/x"), "{text}");
    let verbose = shown(&report, &HumanOptions { verbose: true, ..HumanOptions::default() });
    assert!((0..40).all(|number| verbose.contains(&format!("update    kind{number}.a/x\n"))), "{verbose}");
}

#[test]
fn the_plan_names_deleted_objects_beside_many_others() {
    let of = |action, kind: &str, numbers: std::ops::Range<usize>| {
        let object = |number| samples::object("a/v1", kind, None, &format!("x{number}"));
        numbers.map(|number| samples::change(action, object(number), 1)).collect::<Vec<_>>()
    };
    let text = |parts: &[Vec<_>]| plain(&samples::report(Outcome::Planned, parts.concat(), Vec::new()));
    let few =
        text(&[of(Action::Create, "New", 0..8), of(Action::Replace, "Old", 0..1), of(Action::Delete, "Old", 1..2)]);
    assert!(few.contains("replace   old.a/x0\n") && few.contains("delete    old.a/x1\n"), "{few}");
    assert!(!few.contains("new.a/"), "{few}");
    let many = text(&[of(Action::Delete, "Old", 0..60)]);
    assert!(many.contains("delete    old.a/x49\n         … and 10 more (-v lists all)\n"), "{many}");
    assert!(!many.contains("old.a/x50"), "{many}");
}

#[test]
fn every_error_is_shown_before_any_warning() {
    let text = plain(&samples::upgrade());
    let last_error = text.rfind("error[").expect("errors");
    let first_warning = text.find("warning[").expect("warnings");
    assert!(last_error < first_warning, "{text}");
    for line in [
        "crd.yaml:28  gadgets.test.example.com, v1, ^.spec.mode: enum added: \"a\", \"b\"\n",
        "crd.yaml:28  gadgets.test.example.com, gizmos.test.example.com, v1, ^.spec.other: enum added: \"a\", \"b\"\n",
        "crd.yaml:28  widgets.test.example.com, v1, ^.spec.size: enum added: \"a\", \"b\"\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(text.ends_with("Nothing was written.\n"), "the verdict is the last line: {text}");
}

#[test]
fn the_suggested_waiver_is_valid() {
    let text = plain(&samples::blocked());
    let lines = text.lines().skip_while(|line| !line.contains("waivers: ")).take_while(|line| !line.is_empty());
    let yaml = lines.map(str::trim).collect::<Vec<_>>().join(" ");
    let read: serde_json::Value = serde_yaml::from_str(&yaml).expect("YAML");
    let expected = serde_json::json!({"waivers": [{
        "rule": "NoExistingFieldRemoved", "object": "samples.test.example.com", "path": "^.spec.pollInterval",
        "reason": "why this is fine here",
    }]});
    assert_eq!(read, expected);
}

#[test]
fn waivers_are_offered_for_all_errors_at_a_place() {
    let of = |rule: &str| gantry_core::finding::Finding { rule: rule.into(), ..samples::removed_field("v1", 24) };
    let affected = |path: &str| {
        samples::removed_field("v1", 24).with(|body| {
            body.path = Some(path.into());
            body.caused_by = vec!["^.spec.c".into()];
        })
    };
    let offered = |findings: Vec<gantry_core::finding::Finding>| {
        let check = samples::check("CRDUpgradeSafety", gantry_core::finding::CheckStatus::Blocked, findings);
        let text = plain(&samples::report(Outcome::Blocked, Vec::new(), vec![check]));
        let lines: Vec<&str> =
            text.lines().skip_while(|line| !line.contains("waivers:")).take_while(|line| !line.is_empty()).collect();
        let column = lines[0].find("waivers:").expect("the first line");
        let yaml = lines.iter().map(|line| &line[column..]).collect::<Vec<_>>().join("\n");
        let read: serde_json::Value = serde_yaml::from_str(&yaml).unwrap_or_else(|error| panic!("{error}: {yaml}"));
        let waivers = read["waivers"].as_array().expect("a list").clone();
        let word = |waiver: &serde_json::Value, key: &str| waiver[key].as_str().unwrap_or_default().to_owned();
        waivers.iter().map(|waiver| (word(waiver, "rule"), word(waiver, "path"))).collect::<Vec<_>>()
    };
    let path = || "^.spec.pollInterval".to_owned();
    assert_eq!(offered(vec![of("A"), of("B")]), [("A".into(), path()), ("B".into(), path())]);
    let rule = || "NoExistingFieldRemoved".to_owned();
    assert_eq!(
        offered(vec![affected("^.spec"), affected("^.spec.a")]),
        [(rule(), "^.spec".into()), (rule(), "^.spec.a".into())]
    );
}

#[test]
fn few_warnings_are_listed_beside_errors() {
    let warning = |number: u32| {
        gantry_core::finding::Finding { severity: Severity::Warning, ..samples::removed_field("v1", 24) }
            .with(|body| body.path = Some(format!("^.spec.f{number}")))
    };
    let listed = |error: bool| {
        let mut findings: Vec<_> = (0..20).map(warning).collect();
        findings.extend(error.then(|| samples::removed_field("v1", 24)));
        let check = samples::check("CRDUpgradeSafety", gantry_core::finding::CheckStatus::Warned, findings);
        let text = plain(&samples::report(Outcome::Planned, Vec::new(), vec![check]));
        text.lines().filter(|line| line.contains(", v1, ^.spec.f") && line.contains(".yaml:24  ")).count()
    };
    assert_eq!((listed(false), listed(true)), (8, 3));
}

#[test]
fn notes_are_wrapped_at_the_width() {
    for width in [60, 80, 100] {
        let text = shown(&samples::warned(), &HumanOptions { width, ..HumanOptions::default() });
        let notes = text.lines().skip_while(|line| !line.starts_with("warning")).filter(|line| line.starts_with("  "));
        let widest = notes.map(text::width).max().unwrap_or(0);
        assert!(widest <= width && widest > width - 15, "{widest} of {width}");
    }
}

#[test]
fn the_summary_of_a_check_says_that_a_deploy_would_be_blocked() {
    let last = |purpose| {
        let text = shown(&samples::blocked(), &HumanOptions { purpose, ..HumanOptions::default() });
        text.lines().last().map(str::to_owned)
    };
    assert_eq!(last(ReportPurpose::Deploy).as_deref(), Some("Blocked: 1 error. Nothing was written."));
    assert_eq!(last(ReportPurpose::DryRun).as_deref(), Some("Would be blocked: 1 error. Nothing was written."));
    assert_eq!(last(ReportPurpose::Check).as_deref(), Some("Would be blocked: 1 error. Nothing was written."));
}

#[test]
fn values_of_secrets_are_not_shown() {
    let at = |line, column| Location { file: "secret.yaml".into(), line, column };
    let problems = |place| {
        let mut out = Vec::new();
        let options = HumanOptions::default();
        write_problems(&[Problem::new("broken").at(place)], &options, &samples::files(), &mut out).expect("in memory");
        String::from_utf8(out).expect("text")
    };
    assert_eq!(problems(at(4, 13)), "error: broken\n --> secret.yaml:4:13\n");
    assert_eq!(problems(at(5, 3)), "error: broken\n --> secret.yaml:5:3\n");
    assert!(problems(at(8, 3)).contains("8 |   bad: 1"), "the next document is no Secret");

    let mut report = samples::blocked();
    let finding = &mut report.checks[0].findings[0];
    finding.object = Some(samples::object("v1", "Secret", Some("prod"), "login"));
    finding.source = Some(at(4, 3).into());
    let text = plain(&report);
    assert!(text.contains("secret.yaml:4:3") && !text.contains("hunter2") && !text.contains("kind: Secret"), "{text}");
}

#[test]
fn problems_are_shown_as_in_the_snapshot() {
    let at = |file: &str, line, column| Location { file: file.into(), line, column };
    let problems = [
        Problem::new("unknown preflight check \"CRDUpgradeSaftey\" specified").help("did you mean CRDUpgradeSafety?"),
        Problem::new("unknown key `mod`").at(at("manifests/crd.yaml", 28, 19)).help("did you mean `mode`?"),
        Problem::new("no such file").at(at("missing/", 0, 0)),
        Problem::new("a document without kind").at(at("-", 3, 0)),
        Problem::new("a value that ends nowhere").at(at("one-line.json", 1, 10_009)),
    ];
    let mut out = Vec::new();
    write_problems(&problems, &HumanOptions::default(), &samples::files(), &mut out).expect("in memory");
    snapshot("problems", &String::from_utf8(out).expect("text"));
}

#[test]
fn the_first_of_many_problems_are_shown_and_the_rest_is_counted() {
    let at = |number| Location { file: format!("{}.yaml", number / 2), line: 1, column: 0 };
    let problems: Vec<Problem> = (0..600).map(|number| Problem::new("broken").at(at(number))).collect();
    let shown = |verbose| {
        let mut out = Vec::new();
        let options = HumanOptions { verbose, ..HumanOptions::default() };
        write_problems(&problems, &options, &samples::files(), &mut out).expect("in memory");
        String::from_utf8(out).expect("text")
    };
    let (short, long) = (shown(false), shown(true));
    assert_eq!((short.matches("error: broken").count(), long.matches("error: broken").count()), (20, 600));
    let last = "\n… and 580 more errors in 290 files: -v shows all of them, -o json has them as data.\n";
    assert!(short.ends_with(last) && !long.contains('…'), "{short}");
}

#[test]
fn a_failure_before_the_plan_is_short() {
    let mut report = samples::report(crate::Outcome::Failed, Vec::new(), Vec::new());
    report.target = String::new();
    report.errors = vec![ErrorEntry::from(&Problem::new("no kubeconfig").help("set KUBECONFIG"))];
    assert_eq!(plain(&report), "error: no kubeconfig\n  = help: set KUBECONFIG\n\nFailed. Nothing was written.\n");
}

#[test]
fn the_enclosing_key_is_shown_and_the_lines_between_are_not_lost() {
    let excerpt = |line, column| {
        let mut report = samples::blocked();
        report.checks[0].findings[0].source =
            Some(gantry_core::finding::Source { file: "manifests/crd.yaml".into(), line, column: Some(column) });
        let text = plain(&report);
        let lines = text.lines().skip_while(|line| !line.contains("-->")).skip(1);
        lines.take_while(|line| !line.contains("= in")).map(|line| format!("{line}\n")).collect::<String>()
    };
    assert_eq!(
        excerpt(28, 19),
        "25 |                 replicas:
...
28 |                   minimum: 2
   |                   ^^^^^^^ the live CRD has pollInterval here (string)
"
    );
    let near = excerpt(27, 19);
    assert!(near.contains("26 |                   type: integer\n27 |"), "{near}");
    assert!(!excerpt(24, 17).contains("properties"), "a key that only structures says nothing");
}

#[test]
fn the_hint_at_an_explanation_is_shown_once() {
    let mut report = samples::blocked();
    let options = HumanOptions { verbose: true, ..HumanOptions::default() };
    // Two findings: what they say differs, the rule does not.
    report.checks[0].findings[1].body.wording = None;
    assert_eq!(shown(&report, &options).matches("error[NoExistingFieldRemoved]").count(), 2);
    assert_eq!(shown(&report, &options).matches("gantry rules NoExistingFieldRemoved").count(), 1);
    // Not every name has an explanation.
    report.checks[0].findings.iter_mut().for_each(|finding| finding.body.explain = None);
    assert_eq!(shown(&report, &options).matches("gantry rules").count(), 0);
}

#[test]
fn each_breakage_names_who_breaks_and_how() {
    let mut report = samples::warned();
    let finding = &mut report.checks[0].findings[0];
    finding.severity = Severity::Error;
    use gantry_core::finding::Breaks::{Behaviour, Data, Readers, StoredObjects, Writers};
    finding.body.breaks = vec![StoredObjects, Writers, Readers, Data, Behaviour];
    let text = plain(&report);
    for who in ["stored objects: ", "writers: ", "readers: ", "data: ", "behaviour: "] {
        assert!(text.contains(who), "{who}");
    }
}

#[test]
fn first_lines_are_wrapped_at_words_on_a_terminal_only() {
    for wraps_titles in [false, true] {
        let text = shown(&samples::warned(), &HumanOptions { width: 40, wraps_titles, ..HumanOptions::default() });
        let titles = text.lines().filter(|line| line.starts_with("error[") || line.starts_with("warning["));
        let longest = titles.map(str::len).max().unwrap_or_default();
        assert_eq!(longest <= 40, wraps_titles, "{text}");
    }
}

#[test]
fn many_changes_that_affect_no_object_are_one_line() {
    let mut report = samples::evidence();
    let findings = &mut report.checks[0].findings;
    let harmless = findings.iter().find(|finding| finding.severity == Severity::Warning).expect("one").clone();
    findings.extend((0..4).map(|number| {
        harmless.clone().with(|body| {
            body.path = Some(format!("^.spec.more{number}"));
            body.message = format!("field spec.more{number} may not be removed from v1");
        })
    }));
    let text = shown(&report, &HumanOptions::default());
    let line = "warning: 5 changes of samples.test.example.com would block, but affect none of 1,234 objects";
    assert!(text.contains(line) && !text.contains("spec.more1"), "{text}");
    let verbose = shown(&report, &HumanOptions { verbose: true, ..HumanOptions::default() });
    assert!(verbose.contains("spec.more1") && !verbose.contains("would block, but"), "{verbose}");
}
