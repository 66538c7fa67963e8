//! The report as JSON (`-o json`), and the JSON Schema that documents it.
//!
//! The bytes are a function of the report: keys are in the order of the fields, lists in the order of the run. A test
//! generates `docs/report.schema.json` from its types; `UPDATE_DOCS=1 cargo test` rewrites it.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

use super::{API_VERSION, FormatWriter, Report};
use gantry_core::ci_log::OutputSyntax;
use gantry_core::text;

pub(crate) const WRITER: FormatWriter = FormatWriter {
    write: |report, _, out| write(report, out),
    write_list: |list, _, out| write_value(list, out),
    syntax: OutputSyntax::Json,
    is_start_of_report: |head| head.starts_with(&format!("{{\n  \"apiVersion\": \"{API_VERSION}\"")),
};

/// Writes the report, indented, with a line break at its end.
pub(crate) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    write_value(report, out)
}

/// Writes any value as [`write`] does.
///
/// JSON allows most characters that control a terminal or change the direction of text. They are written as escapes,
/// which mean the same to every reader.
pub fn write_value(value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    value.serialize(&mut Serializer::with_formatter(&mut *out, EscapingFormatter(PrettyFormatter::new())))?;
    out.write_all(b"\n")
}

/// JSON text with hostile characters escaped. They occur only in strings.
pub fn harmless(json: &str) -> Cow<'_, str> {
    if json.is_ascii() && !json.contains('\u{7f}') || !json.chars().any(text::is_hostile) {
        return Cow::Borrowed(json);
    }
    let mut out = Vec::with_capacity(json.len() + 64);
    // Writing to memory does not fail.
    let _ = write_harmless(json, &mut out);
    Cow::Owned(String::from_utf8_lossy(&out).into_owned())
}

fn write_harmless<W: ?Sized + Write>(text: &str, out: &mut W) -> io::Result<()> {
    let mut rest = text;
    while let Some((at, hostile)) = rest.char_indices().find(|(_, c)| text::is_hostile(*c)) {
        out.write_all(&rest.as_bytes()[..at])?;
        for unit in hostile.encode_utf16(&mut [0; 2]) {
            write!(out, "\\u{unit:04x}")?;
        }
        rest = &rest[at + hostile.len_utf8()..];
    }
    out.write_all(rest.as_bytes())
}

/// serde_json's indentation, with hostile characters escaped.
struct EscapingFormatter<'a>(PrettyFormatter<'a>);

impl Formatter for EscapingFormatter<'_> {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        write_harmless(fragment, out)
    }

    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_array(out)
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array(out)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(out, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array_value(out)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object(out)
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object(out)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(out, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object_value(out)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object_value(out)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;
    use crate::{KIND, LIST_KIND, ReportList, samples};

    /// The JSON Schema (draft 2020-12) of what [`write`] writes.
    fn schema() -> Value {
        finished(schemars::schema_for!(Report).to_value(), "gantry report", KIND)
    }

    /// The JSON Schema of the reports of many clusters.
    fn schema_of_list() -> Value {
        let mut schema =
            finished(schemars::schema_for!(ReportList).to_value(), "gantry reports of clusters", LIST_KIND);
        let report = schema["$defs"]["Report"].take();
        schema["$defs"]["Report"] = with_constants(report, KIND);
        schema
    }

    fn finished(generated: Value, title: &str, kind: &str) -> Value {
        // The most important fields come first.
        let mut schema = json!({"$schema": null, "title": title, "description": null});
        if let (Some(schema), Value::Object(generated)) = (schema.as_object_mut(), generated) {
            schema.extend(generated.into_iter().filter(|(key, _)| key != "title"));
        }
        with_constants(schema, kind)
    }

    /// The values of two fields that are strings in the types.
    fn with_constants(mut schema: Value, kind: &str) -> Value {
        for (name, value) in [("apiVersion", API_VERSION), ("kind", kind)] {
            let description = schema["properties"][name]["description"].take();
            schema["properties"][name] = json!({"description": description, "const": value});
        }
        schema
    }

    fn as_text(report: &Report) -> String {
        let mut out = Vec::new();
        write(report, &mut out).expect("in memory");
        String::from_utf8(out).expect("JSON is text")
    }

    #[test]
    fn the_documented_schemas_are_fresh() {
        for (file, schema) in [("report.schema.json", schema()), ("report-list.schema.json", schema_of_list())] {
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(file);
            let fresh = format!("{schema:#}\n");
            if std::env::var_os("UPDATE_DOCS").is_some() {
                std::fs::write(&path, &fresh).expect("docs/ can be written");
            }
            let written = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(written == fresh, "docs/{file} is stale: run UPDATE_DOCS=1 cargo test -p gantry-report json");
        }
    }

    /// Every field of the schema has a description.
    #[test]
    fn every_property_and_every_value_is_described() {
        // The second schema has all definitions of the first.
        let schema = schema_of_list();
        let mut bare = Vec::new();
        let definitions =
            schema["$defs"].as_object().expect("definitions").iter().map(|(name, of)| (name.as_str(), of));
        for (name, definition) in definitions.chain([("ReportList", &schema)]) {
            let is_bare = |schema: &Value| schema["description"].as_str().is_none_or(|text| text.len() < 3);
            let properties = definition["properties"].as_object().into_iter().flatten();
            bare.extend(properties.filter(|(_, of)| is_bare(of)).map(|(key, _)| format!("{name}.{key}")));
            let values = definition["oneOf"].as_array().into_iter().flatten();
            bare.extend(values.filter(|of| is_bare(of)).map(|value| format!("{name} {}", value["const"])));
            // Values without a description are listed together.
            let listed = |of: &Value| of.get("enum").is_some();
            let values = definition["oneOf"].as_array().into_iter().flatten().chain([definition]);
            bare.extend(values.filter(|of| listed(of)).map(|of| format!("{name} {}", of["enum"])));
        }
        assert!(bare.is_empty(), "document these in src/report, src/finding or src/diff: {bare:#?}");
    }

    /// Without parts that only the human output has.
    fn as_data(mut report: Report) -> Report {
        for finding in report.checks.iter_mut().flat_map(|check| &mut check.findings) {
            finding.body.wording = None;
        }
        report
    }

    #[test]
    fn every_sample_follows_the_schema_and_reads_back() {
        let validator = jsonschema::validator_for(&schema()).expect("the schema is one");
        for (name, report) in samples::all() {
            let text = as_text(&report);
            let value: Value = serde_json::from_str(&text).expect("JSON");
            let errors: Vec<String> =
                validator.iter_errors(&value).map(|error| format!("{}: {error}", error.instance_path())).collect();
            assert!(errors.is_empty(), "{name}: {errors:#?}");
            assert_eq!(serde_json::from_str::<Report>(&text).expect("a report"), as_data(report), "{name}");
        }
    }

    #[test]
    fn reports_of_clusters_follow_their_schema_and_read_back() {
        let validator = jsonschema::validator_for(&schema_of_list()).expect("the schema is one");
        let mut list = samples::list();
        let mut out = Vec::new();
        write_value(&list, &mut out).expect("in memory");
        let value: Value = serde_json::from_slice(&out).expect("JSON");
        let errors: Vec<String> =
            validator.iter_errors(&value).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(errors.is_empty(), "{errors:#?}");
        assert!(!jsonschema::validator_for(&schema()).expect("the schema is one").is_valid(&value));
        list.clusters.iter_mut().for_each(|cluster| cluster.report = as_data(cluster.report.clone()));
        assert_eq!(serde_json::from_slice::<ReportList>(&out).expect("a list"), list);
    }

    #[test]
    fn the_schema_refuses_what_is_no_report() {
        let validator = jsonschema::validator_for(&schema()).expect("the schema is one");
        let good = serde_json::to_value(samples::blocked()).expect("a value");
        assert!(validator.is_valid(&good));
        for (pointer, wrong) in [
            ("/kind", json!("Reports")),
            ("/apiVersion", json!("v1")),
            ("/outcome", json!("Blocked")),
            ("/summary/errors", json!(-1)),
            ("/checks/0/status", json!("ok")),
            ("/checks/0/findings/0/breaks", json!(["stored_objects"])),
            ("/changes/0/object/name", json!(null)),
        ] {
            let mut bad = good.clone();
            *bad.pointer_mut(pointer).expect(pointer) = wrong;
            assert!(!validator.is_valid(&bad), "{pointer}");
        }
    }

    /// Users depend on these names, so renaming a field is a breaking change.
    #[test]
    fn the_field_names_are_the_contract() {
        fn names(value: &Value, into: &mut BTreeSet<String>) {
            match value {
                Value::Object(map) => map.iter().for_each(|(key, value)| {
                    into.insert(key.clone());
                    // The fields of witness objects are not part of the format.
                    if key != "object" && key != "oldObject" {
                        names(value, into);
                    }
                }),
                Value::Array(items) => items.iter().for_each(|item| names(item, into)),
                _ => {}
            }
        }
        let mut seen = BTreeSet::new();
        for (_, report) in samples::all() {
            names(&serde_json::to_value(report).expect("a value"), &mut seen);
        }
        let expected = "action adopted affected affectedManifests affectedObjects apiVersion approximate breaks bundle catalog changes channel channels checks column container count coverage created deleted deletedByOlm desired diff documented edges \
            error errors evidence examined examples explain extensions fact file findings fromManifest harm help image infos installed installedByOlm is keyword kind known label line lines live log managers manifests message mode name namespace needsApproval notWritten notices \
            object objects of oldObject omitted orphaned outcome package path pinned pod proven read replaced resolved result rule schemaChanges semantic severity skipped source status subresource subscriptions summary \
            suppressed target text then unchanged unchecked unlisted updated value verdict version waived warnings witnesses";
        assert_eq!(seen.into_iter().collect::<Vec<_>>().join(" "), expected);
    }

    #[test]
    fn the_values_are_the_contract() {
        use crate::Outcome;
        use gantry_core::finding::{Action, Breaks, Severity, Verdict, WitnessVerdict};
        fn said<T: serde::Serialize>(values: &[T]) -> String {
            serde_json::to_string(values).expect("JSON").replace(['[', ']', '"'], "").replace(',', " ")
        }
        use Outcome::{Blocked, Deployed, Failed, Planned, Unchanged};
        assert_eq!(said(&[Deployed, Unchanged, Planned, Blocked, Failed]), "deployed unchanged planned blocked failed");
        let actions = [
            Action::Create,
            Action::Update,
            Action::Adopt,
            Action::Replace,
            Action::Unchanged,
            Action::Delete,
            Action::Orphan,
            Action::Skip,
            Action::InstalledByOlm,
            Action::Unknown,
        ];
        assert_eq!(said(&actions), "create update adopt replace unchanged delete orphan skip installedByOlm unknown");
        let severities = [Severity::Error, Severity::Warning, Severity::Info, Severity::Waived, Severity::Known];
        assert_eq!(said(&severities), "error warning info waived known");
        let breaks = [Breaks::StoredObjects, Breaks::Writers, Breaks::Readers, Breaks::Data, Breaks::Behaviour];
        assert_eq!(said(&breaks), "storedObjects writers readers data behaviour");
        use Verdict::{DataLoss, Equal, Incomparable, Narrowing, Undecided, Widening};
        let verdicts = [Equal, Widening, Narrowing, Incomparable, DataLoss, Undecided];
        assert_eq!(said(&verdicts), "equal widening narrowing incomparable dataLoss undecided");
        use WitnessVerdict::{Accepted, Defaulted, Pruned, Refused};
        assert_eq!(said(&[Accepted, Refused, Pruned, Defaulted]), "accepted refused pruned defaulted");
    }

    #[test]
    fn control_characters_in_json_are_escaped_without_changing_values() {
        let mut report = samples::blocked();
        report.target =
            (0..=0xff).chain([0x202e, 0x2066, 0xfeff, 0xe0041, 0x1f680]).filter_map(char::from_u32).collect();
        let written = as_text(&report);
        assert!(!written.chars().any(|c| c != '\n' && text::is_hostile(c)), "{written:?}");
        assert!(
            written.contains("\\u001b") && written.contains("\\u202e") && written.contains("\\udb40\\udc41"),
            "{written}"
        );
        assert!(written.contains('\u{1f680}'));
        assert_eq!(serde_json::from_str::<Report>(&written).expect("a report"), as_data(report));
    }

    #[test]
    fn the_same_report_gives_the_same_bytes() {
        assert_eq!(as_text(&samples::blocked()), as_text(&samples::blocked()));
        assert!(as_text(&samples::blocked()).ends_with("}\n"));
    }
}
