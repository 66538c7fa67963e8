use super::shown::{MOST, MOST_IN_FULL};
use super::*;
use crate::samples;
use crate::surroundings::tests::write_list_to_text;
use crate::surroundings::tests::write_to_text;
use crate::{Outcome, ReportList};
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
            let is_link = tag.starts_with("<a ") && tag.contains(" href=\"#");
            for part in [" on", " src=", " href=", " style=", " srcset=", " action=", " ping="] {
                assert!(!attributes(tag).contains(part) || is_link && part == " href=", "{name}: {tag}");
            }
            assert!(
                is_link
                    || !["<link", "<img", "<iframe", "<object", "<embed", "<base", "<a "]
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
        "<section id=\"object-1\" class=\"object\" data-object=\"customresourcedefinition/samples.test.example.com\">",
        "<details id=\"finding-1\" class=\"finding\" data-severity=\"error\" data-rule=\"NoExistingFieldRemoved\" \
            data-breaks=\"writers readers data\">",
        "<code>manifests/crd.yaml:24:17</code><pre>",
        "<span class=\"number-of-line\">25 </span>",
        "<dt>also</dt><dd>v1beta1 at <code>manifests/crd.yaml:44:17</code>",
        "<th scope=\"row\"><code>type</code></th><td class=\"removed\"><code>&quot;string&quot;</code></td><td class=\"added\"><span class=\"faint\">absent",
        "writers: the server refuses or drops what they send today",
        "<button type=\"button\" class=\"copy\" data-of=\"witness-1-0\">Copy</button><pre id=\"witness-1-0\">{\n",
        "keep spec.pollInterval in v1alpha1 and v1beta1 and mark it as deprecated",
        "About the rule: <a href=\"#rule-NoExistingFieldRemoved\">A field is removed</a>",
        "<details id=\"rule-NoExistingFieldRemoved\" class=\"rule\"><summary><code>NoExistingFieldRemoved</code>",
    ] {
        assert!(page.contains(part), "{part}: {}", without(&page, "<style>", "</style>"));
    }
    let unchecked = write_to_text(&samples::could_not_check(), write);
    assert!(
        unchecked.contains("Could not be checked</h2><ul><li><b>PermissionValidation</b>: cannot ask"),
        "{unchecked}"
    );
    assert!(write_to_text(&samples::diffs(), write).contains("<h2 id=\"changes\">Changes</h2>"));
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
    let of = |severity, rule| {
        Finding { severity, ..samples::finding(rule, severity, samples::crd("x"), "m") }
            .with(|body| body.witnesses = Vec::new())
    };
    let rare = std::iter::once(of(Severity::Info, "Rare"));
    let findings = (0..MOST).map(|_| of(Severity::Warning, "R"));
    let errors = [of(Severity::Error, "R"), of(Severity::Error, "R")];
    let few = findings.clone().take(MOST_IN_FULL).chain(rare).chain(errors.clone()).collect();
    let check = |findings| {
        let check = samples::check("C", CheckStatus::Blocked, findings);
        write_to_text(&samples::report(Outcome::Blocked, Vec::new(), vec![check]), write)
    };
    let page = check(few);
    let full = |severity: &str| page.matches(&format!("class=\"finding\" data-severity=\"{severity}\"")).count();
    assert_eq!((full("error"), full("warning"), full("info")), (2, MOST_IN_FULL, 1));
    // The last warnings have a line; the first finding of a rule is shown in full although it is the last.
    assert_eq!(page.matches("<p id=\"finding-").count(), 2);
    assert!(
        page.contains(&format!(
            "<details id=\"finding-{}\" class=\"finding\" data-severity=\"info\"",
            MOST_IN_FULL + 3
        ))
    );
    let page = check(findings.chain(errors).collect());
    assert_eq!(page.matches(" class=\"finding\" data-severity=\"").count(), MOST);
    assert_eq!(page.matches(" class=\"finding\" data-severity=\"error\"").count(), 2);
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

#[test]
fn each_number_of_the_matrix_is_that_of_the_findings_it_leads_to() {
    for (name, report) in samples::all() {
        let page = write_to_text(&report, write);
        let sections: Vec<&str> = page.split("<section id=\"object-").skip(1).collect();
        for link in page.split("<a class=\"cell ").skip(1) {
            let value = |attribute: &str| {
                let value = link.split_once(&format!(" {attribute}=\"")).expect("the attribute").1;
                value.split('"').next().expect("it ends")
            };
            let number: usize = link
                .split('>')
                .nth(1)
                .and_then(|text| text.strip_suffix("</a"))
                .expect("text")
                .parse()
                .expect("a number");
            let object = format!("data-object=\"{}\"", value("data-for"));
            let section = sections.iter().find(|section| section.contains(&object)).expect("the object is on the page");
            let findings: Vec<&str> = section.split(" class=\"finding\"").skip(1).collect();
            let is_counted = |finding: &&&str| {
                let breaks = finding.split_once("data-breaks=\"").expect("who is affected").1.split('"').next();
                breaks.expect("it ends").split(' ').any(|party| party == value("data-breaks"))
            };
            assert_eq!(findings.iter().filter(is_counted).count(), number, "{name}: {link:.300}");
            assert!(section.contains(&format!("id=\"{}\"", &value("href")[1..])), "{name}");
        }
    }
    let page = write_to_text(&samples::blocked(), write);
    for party in ["writers", "readers", "data"] {
        let label = format!("aria-label=\"1 error: {party} of samples.test.example.com\"");
        assert!(page.contains(&label), "{party}");
    }
    assert_eq!(page.matches("<a class=\"cell ").count(), 3);
    assert!(page.contains("<th scope=\"col\" class=\"count\">stored objects</th>"));
}

#[test]
fn the_sentence_about_objects_comes_first() {
    let page = write_to_text(&samples::evidence(), write);
    let header =
        "<header><h1 class=\"error\">Hurts 4 objects of this cluster</h1><p class=\"verdict error\">Would be blocked: ";
    assert!(page.contains(header), "{}", without(&page, "<style>", "</style>"));
    let mut report = samples::evidence();
    report.checks[0].findings[0].body.breaks = vec![gantry_core::finding::Breaks::Data];
    let matrix = write_to_text(&report, write);
    assert!(
        matrix.contains("<td class=\"count\"><b class=\"error\">4</b></td></tr>")
            && matrix.contains(">objects hurt</th>")
    );
    report.checks[0].findings.remove(1);
    report.checks[0].coverage[0].harm = Some(gantry_core::finding::Harm::default());
    let page = write_to_text(&report, write);
    assert!(page.contains("<h1 class=\"passed\">No object of this cluster is affected</h1>"));
}

#[test]
fn the_header_has_the_facts_of_the_run() {
    let mut report = samples::blocked();
    report.kubernetes_release = Some("1.36".into());
    let page = write_to_text(&report, write);
    for fact in [
        "<dt>Command</dt><dd><code>gantry check -f manifests</code></dd>",
        "<dt>Target</dt><dd><code>kube: staging (https://10.0.0.1:6443)</code></dd>",
        "<dt>Manifests</dt><dd><code>manifests/app.yaml</code></dd>",
        "<dt>Kubernetes</dt><dd>1.36</dd>",
        "<dt>Time</dt><dd>2026-11-28 22:05 UTC</dd>",
    ] {
        assert!(page.contains(fact), "{fact}");
    }
}

#[test]
fn the_presets_are_in_one_row() {
    let report = Report { preset: Some("documented".into()), ..samples::blocked() };
    let page = write_to_text(&report, write);
    let row = "<tr><td><b class=\"error\">blocks</b>: 1 error</td><td><b class=\"error\">blocks</b>: 1 error</td>\
        <td><span class=\"faint\">not known</span></td>";
    assert!(page.contains(row), "{page}");
    assert!(page.contains("<th scope=\"col\">documented<span class=\"chip\">this run</span></th>"));
    assert!(page.contains(
        "the verdict of evidence, kapp, olm-v1, crdify. To see it, run the command again with <code>--preset evidence"
    ));
    assert!(!write_to_text(&samples::blocked(), write).contains("id=\"presets\""));
}

#[test]
fn the_schema_of_a_crd_is_a_tree_of_the_branches_with_findings() {
    let at = |path: &str, severity| {
        let mut finding = samples::removed_field("v1", 24);
        finding.severity = severity;
        finding.body.wording = None;
        finding.body.message = path.into();
        finding.body.path = Some(path.into());
        finding
    };
    let paths = ["^.spec.a.b.first", "^.spec.a.b.list.items.x", "^.spec.a.b.list", "^.status"];
    let findings = paths.map(|path| at(path, Severity::Error)).into_iter().chain([at("^.spec.z", Severity::Warning)]);
    let check = samples::check("CRDUpgradeSafety", CheckStatus::Blocked, findings.collect());
    let page = write_to_text(&samples::report(Outcome::Blocked, Vec::new(), vec![check]), write);
    let tree = page.split_once("<ul class=\"tree\">").expect("a tree").1.split("</details>").next().expect("it ends");
    let fields: Vec<(usize, &str)> = tree
        .match_indices("<code class=\"field\">")
        .map(|(at, tag)| {
            let depth = tree[..at].matches("<ul>").count() - tree[..at].matches("</ul>").count();
            (depth, tree[at + tag.len()..].split('<').next().expect("text"))
        })
        .collect();
    let expected = [(0, "spec"), (1, "a.b"), (2, "first"), (2, "list"), (3, "items.x"), (1, "z"), (0, "status")];
    assert_eq!(fields, expected);
    assert!(tree.contains("<span class=\"faint\">3 errors, 1 warning</span>"), "{tree}");
    assert!(tree.contains("<span class=\"chip error\">drops values</span><span><a class=\"error\" href=\"#finding-1\">error NoExistingFieldRemoved</a>"));
    assert_eq!(tree.matches("<table class=\"keywords\">").count(), 5);
}

#[test]
fn a_large_tree_is_folded() {
    let tree = |report| {
        write_to_text(&report, write).split_once("<details class=\"schema\"").expect("a tree").1.starts_with(" open")
    };
    assert_eq!((tree(samples::blocked()), tree(samples::hundreds())), (true, false));
}

#[test]
fn the_grid_of_a_fleet_shows_each_crd_in_each_cluster() {
    let mut list = samples::list();
    list.clusters[0].wave = Some(1);
    list.clusters[0].report.kubernetes_release = Some("1.30".into());
    let page = write_list_to_text(&list, |list, around, out| (WRITER.write_list)(list, around, out));
    let grid = page.split_once("<table class=\"fleet\">").expect("a grid").1.split("</table>").next().expect("it ends");
    let rows: Vec<String> =
        grid.split("<tr>").skip(2).map(|row| without_tags(&row.replace("</td>", "|").replace("</th>", "|"))).collect();
    assert_eq!(
        rows,
        [
            "prod-1|1|1.30|A 2 errors|",
            "prod-2||–|A 2 errors|",
            "dead||–|not checked|",
            "dev||–|A no findings|",
            "test||–|B no findings|",
        ]
    );
    assert!(grid.contains(
        "<th scope=\"col\" class=\"crd\"><a href=\"#object-1\">samples.<wbr>test.<wbr>example.<wbr>com</a></th>"
    ));
    let same = ReportList::new(list.clusters[..2].to_vec());
    let page = write_list_to_text(&same, |list, around, out| (WRITER.write_list)(list, around, out));
    assert!(!page.contains("class=\"chip\">A"), "a letter says nothing if all have the same");
}

#[test]
fn the_path_of_an_extension_marks_what_is_installed_next() {
    let page = write_to_text(&samples::planned(), write);
    for path in [
        "<ol class=\"path\"><li><code>1.0.0</code> <span class=\"faint\">installed</span></li><li class=\"next\"><code>2.0.0</code> \
         <span>next</span></li><li><code>3.0.0</code> <span class=\"faint\">then</span></li></ol>",
        "<span>next (replaces)</span>",
        "<p class=\"error\">Does not resolve: expected 1 OperatorGroup in the namespace, found 2</p>",
    ] {
        assert!(page.contains(path), "{path}: {page}");
    }
}

#[test]
fn links_headings_and_tables_can_be_used_without_seeing_the_page() {
    for (name, report) in samples::all() {
        let page = write_to_text(&report, write);
        let ids: Vec<&str> = values(&page, "id").collect();
        let unique: std::collections::BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(unique.len(), ids.len(), "{name}");
        let places = values(&page, "href").map(|href| &href[1..]).chain(values(&page, "aria-labelledby"));
        let places = places.chain(values(&page, "data-of"));
        places.for_each(|place| assert!(unique.contains(place), "{name}: {place}"));
        let levels = page.match_indices("<h").filter_map(|(at, _)| page[at + 2..].chars().next()?.to_digit(10));
        let levels: Vec<u32> = levels.collect();
        assert_eq!((levels[0], levels.iter().filter(|level| **level == 1).count()), (1, 1), "{name}");
        assert!(levels.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{name}: {levels:?}");
        for tag in tags(&page).into_iter().filter(|tag| tag.starts_with("<th") && !tag.starts_with("<thead")) {
            assert!(tag.contains("scope=\"col\"") || tag.contains("scope=\"row\""), "{name}: {tag}");
        }
        for tag in tags(&page).into_iter().filter(|tag| tag.contains("tabindex=")) {
            assert!(tag.contains("aria-label="), "{name}: {tag}");
        }
    }
}

/// WCAG 2.2, 1.4.3: text needs a contrast of 4.5 to what is behind it.
#[test]
fn all_text_can_be_read_in_both_colour_schemes() {
    let schemes: Vec<&str> = STYLE.split(":root {").skip(1).collect();
    assert_eq!(schemes.len(), 2);
    for (scheme, colours) in ["light", "dark"].iter().zip(&schemes) {
        let luminance = |name: &str| {
            let at = colours.split_once(&format!("--{name}: #")).unwrap_or_else(|| panic!("{name} in {scheme}")).1;
            let hex = at.split(';').next().expect("it ends");
            let hex =
                if hex.len() == 3 { hex.chars().flat_map(|digit| [digit, digit]).collect() } else { hex.to_owned() };
            let part = |at: usize| {
                let part = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).expect("a colour")) / 255.0;
                if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
            };
            0.2126 * part(0) + 0.7152 * part(2) + 0.0722 * part(4)
        };
        let contrast = |text: &str, back: &str| {
            let (text, back) = (luminance(text), luminance(back));
            (text.max(back) + 0.05) / (text.min(back) + 0.05)
        };
        let pairs =
            ["text", "faint", "link", "error", "warning", "info", "good"].map(|text| [(text, "back"), (text, "panel")]);
        let behind_text = ["mark", "removed", "added"].map(|back| ("text", back));
        for (text, back) in pairs.into_iter().flatten().chain(behind_text) {
            let contrast = contrast(text, back);
            assert!(contrast >= 4.5, "{scheme}: {text} on {back}: {contrast:.2}");
        }
    }
}

/// A line of 8 MB takes a second if it is walked once, and hours if it is walked for each finding.
#[test]
fn thousands_of_findings_in_one_line_are_written_in_linear_time() {
    const FINDINGS: usize = 5000;
    let line = format!(
        "[{}]",
        "{\"kind\": \"Sample\", \"spec\": {\"name\": \"ä\"}},\n".replace('\n', " ").repeat(FINDINGS * 36)
    );
    let step = line.chars().count() / FINDINGS;
    let source = std::sync::Arc::new(gantry_core::manifest::ManifestSource::new("a.json", line));
    let of = |number: usize| Finding {
        source: Some(samples::source("a.json", 1, number * step + 1)),
        ..samples::finding(&format!("Rule{number}"), Severity::Error, samples::crd(&format!("x{number}")), "m")
    };
    let check = samples::check("C", CheckStatus::Blocked, (0..FINDINGS).map(of).collect());
    let report = samples::report(Outcome::Blocked, Vec::new(), vec![check]);
    let begun = std::time::Instant::now();
    let page = crate::surroundings::tests::write_with_sources(&report, &crate::human::Sources::new([source]), write);
    let took = begun.elapsed();
    assert_eq!(page.matches("<span class=\"number-of-line\">").count(), FINDINGS);
    assert!(took.as_secs() < 60, "{took:?}");
}

#[test]
fn a_megabyte_of_text_is_cut() {
    let long = "<script>\u{202e}".repeat(100_000);
    let mut report = samples::blocked();
    report.target = long.clone();
    report.preset = Some(long.clone());
    report.changes[0].source = Some(samples::source(&long, 1, 1));
    let finding = &mut report.checks[0].findings[0];
    finding.object.as_mut().expect("an object").name = long.clone();
    finding.rule = long.clone();
    finding.body.wording = None;
    finding.body.path = Some(format!("^.{long}"));
    finding.body.message = long.clone();
    finding.body.version = Some(long.clone());
    finding.body.witnesses[0].object["spec"]["pollInterval"] = long.clone().into();
    finding.body.schema_changes[0].keyword = long.clone();
    let page = write_to_text(&report, write);
    assert!(page.len() < 200_000, "{}", page.len());
    assert_eq!(page.matches("<script").count(), 1);
    assert!(!page.chars().any(|c| c != '\n' && text::is_hostile(c)));

    let mut list = samples::list();
    list.clusters[0].name = long.clone();
    list.clusters[0].live_crds = Some(crate::LiveCrds::from([(long.clone(), Some(long.clone()))]));
    list.clusters[0].report.kubernetes_release = Some(long.clone());
    list.clusters[0].report.extensions = samples::planned().extensions;
    let extension = &mut list.clusters[0].report.extensions[0];
    (extension.name, extension.package, extension.error) = (long.clone(), long.clone(), Some(long.clone()));
    extension.path = vec![long; 50];
    let page =
        write_list_to_text(&ReportList::new(list.clusters), |list, around, out| (WRITER.write_list)(list, around, out));
    assert!(page.len() < 300_000, "{}", page.len());
    assert_eq!(page.matches("<script").count(), 1);
    assert!(!page.chars().any(|c| c != '\n' && text::is_hostile(c)));
}

/// The values of an attribute.
fn values<'a>(page: &'a str, attribute: &str) -> impl Iterator<Item = &'a str> {
    let start = format!(" {attribute}=\"");
    let tags = tags(page).into_iter().filter(|tag| !tag.starts_with("<meta"));
    tags.filter_map(move |tag| tag.split_once(&start)?.1.split('"').next())
}

fn without_tags(text: &str) -> String {
    text.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text)).collect()
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
