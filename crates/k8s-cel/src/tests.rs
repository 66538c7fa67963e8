//! Compares this implementation with the results of the server's packages for the expressions in `tests/fixtures/cel`.

use serde_json::Value as Json;

use super::budget::CelBudget;
use super::check::{Analysis, analyze};
use super::convert::typed;
use super::environment::CelEnvironment;
use super::eval::Evaluation;
use super::fault::EvaluationError;
use super::lib_convert::text;
use super::parser::parse_in;
use super::release::KubernetesRelease;
use super::resolve::resolve;
use super::types::CelType;
use super::value::CelValue;
use crate::re2::Patterns;

/// Expressions that are undecided here. The server stops the second one as too expensive.
const UNDECIDED: &[&str] = &["double('0x1p-2')", "lists.range(1000001).size() == 1000001 || true"];

const STEPS: u64 = 1_000_000;

fn read(folder: &str, name: &str) -> String {
    let path = format!("{folder}/{name}");
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A value in the format of the tables.
fn show(value: &CelValue) -> Result<String, EvaluationError> {
    Ok(match value {
        CelValue::Uint(value) => format!("{value}u"),
        CelValue::Double(_) => format!("double {}", text(value).unwrap_or_default()),
        CelValue::String(value) => go_quote(value),
        CelValue::Bytes(bytes) => format!("bytes {}", bytes.iter().map(|b| format!("{b:02x}")).collect::<String>()),
        CelValue::Duration(nanos) => format!("duration {nanos}ns"),
        CelValue::Timestamp(time) => format!("timestamp {time}"),
        CelValue::Null => "null".to_owned(),
        CelValue::Type(name) => format!("type {name}"),
        CelValue::Optional(None) => "none".to_owned(),
        CelValue::Optional(Some(value)) => format!("optional {}", show(value)?),
        CelValue::List(list) => {
            let items = list.iter().map(part).collect::<Result<Vec<_>, _>>()?;
            format!("[{}]", items.join(", "))
        }
        CelValue::Map(map) => {
            let entry = |key: &CelValue| -> Result<String, EvaluationError> {
                let value = super::equal::find(map, key).map(|value| value.unwrap_or(CelValue::Null));
                Ok(format!("{}: {}", show(key)?, part(value)?))
            };
            let mut entries = map.keys().iter().map(entry).collect::<Result<Vec<_>, _>>()?;
            entries.sort();
            format!("{{{}}}", entries.join(", "))
        }
        CelValue::Bool(_) | CelValue::Int(_) => text(value).unwrap_or_default(),
        CelValue::Misfit(_) => "error".to_owned(),
        other => other.type_name().to_owned(),
    })
}

/// An element of a list or map: it can be a fault without making the whole value a fault.
fn part(value: Result<CelValue, EvaluationError>) -> Result<String, EvaluationError> {
    match value {
        Err(EvaluationError::Error(_)) => Ok("error".to_owned()),
        value => show(&value?),
    }
}

/// A JSON string as Go writes it.
fn go_quote(text: &str) -> String {
    let json = Json::from(text).to_string();
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// The release whose packages wrote the results into the tables.
const OF_TABLES: KubernetesRelease = KubernetesRelease::minor(36);

/// Our result for an expression, the number of steps, and the estimated maximum cost.
fn evaluate(source: &str, schema: &Json, object: &Json, optional_old: bool) -> (String, u64, String) {
    evaluate_as(OF_TABLES, source, schema, object, optional_old)
}

/// The same on a server of this release. An older one has the type checker of the tables, for it refuses many expressions.
fn evaluate_as(
    release: KubernetesRelease,
    source: &str,
    schema: &Json,
    object: &Json,
    optional_old: bool,
) -> (String, u64, String) {
    let environment = match release > OF_TABLES {
        true => CelEnvironment::of_live_expressions(release),
        false => CelEnvironment::of_new_expressions(OF_TABLES),
    };
    let of = CelType::compile_for(schema, false, environment.release());
    let parsed = parse_in(source, environment)
        .and_then(|mut expr| resolve(&mut expr, &Patterns::default())?.require_program().map(|_| expr));
    let checked =
        parsed.and_then(|expr| analyze(&expr, &of, optional_old, environment).map(|analysis| (expr, analysis)));
    let (expr, estimate) = match checked {
        Ok((_, Analysis { program_error: Some(why), .. })) => return (format!("refused: {why}"), 0, String::new()),
        Ok((expr, analysis)) => (expr, analysis.cost),
        Err(why) => return (format!("refused: {why}"), 0, String::new()),
    };
    let estimate = estimate.map_or_else(|problem| problem.text, |cost| cost.to_string());
    let mut budget = CelBudget::new(STEPS).with_release(release);
    let run = |budget: &mut CelBudget| {
        let this = typed(object, &of);
        let old = if optional_old { this.clone().map(CelValue::some) } else { this.clone() };
        let variables = vec![("self", this), ("oldSelf", old)];
        let value = Evaluation::new(variables, budget).eval(&expr)?;
        show(&value)
    };
    let said = match run(&mut budget) {
        Ok(value) => value,
        Err(EvaluationError::Error(why) | EvaluationError::Abort(why)) => format!("error: {}", why.replace('\n', " ")),
        Err(EvaluationError::Undecided(why)) => format!("undecided: {why}"),
    };
    (said, STEPS - budget.remaining(), estimate)
}

/// The number of expressions in the tables of a folder, and our differences from them.
fn differences(folder: &str) -> (usize, Vec<String>) {
    let json = |name: &str| serde_json::from_str::<Json>(&read(folder, name)).expect("JSON");
    let (schema, object) = (json("schema.json"), json("object.json"));
    let mut wrong = Vec::new();
    let mut all = 0;
    for file in std::fs::read_dir(folder).expect("the tables").flatten() {
        let name = file.file_name().to_string_lossy().into_owned();
        if !name.ends_with(".txt") {
            continue;
        }
        for line in read(folder, &name).lines() {
            let Some((source, wanted)) = line.split_once(" ⇒ ") else { continue };
            all += 1;
            let (wanted, wanted_estimate) = wanted.rsplit_once(" ≤ ").unwrap_or((wanted, ""));
            let (value, cost) = wanted.rsplit_once(" · ").unwrap_or((wanted, "0"));
            let (ours, steps, estimate) = evaluate(source, &schema, &object, name == "optional.txt");
            let agrees = match value.starts_with("refused: ") {
                // The reasons are worded differently.
                true => ours.starts_with("refused: "),
                false => ours == value || ours.starts_with("undecided: ") && UNDECIDED.contains(&source),
            };
            if !agrees {
                wrong.push(format!("{name}: {source}\n  server {value}\n  ours   {ours}"));
            } else if steps < cost.parse::<u64>().expect("a cost") {
                // A rule that is too expensive for the server must not pass here.
                wrong.push(format!("{name}: {source}\n  {steps} steps, the server counts {cost}"));
            } else if estimate != wanted_estimate {
                wrong.push(format!("{name}: {source}\n  we estimate {estimate}, the server {wanted_estimate}"));
            }
        }
    }
    (all, wrong)
}

#[test]
fn expressions_of_the_tables_have_the_results_of_the_server() {
    let (all, wrong) = differences(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/cel"));
    assert!(all > 1_000, "the tables exist");
    assert!(wrong.is_empty(), "{} of {all} differ\n{}", wrong.len(), wrong.join("\n"));
}

/// The same test for other tables: `GANTRY_CEL` names a folder with the structure of the fixtures.
#[test]
#[ignore = "reads the tables that GANTRY_CEL names"]
fn expressions_of_given_tables_have_the_results_of_the_server() {
    let folder = std::env::var("GANTRY_CEL").expect("GANTRY_CEL names a folder");
    let (all, wrong) = differences(&folder);
    assert!(all > 0, "the tables exist");
    println!("{all} expressions");
    assert!(wrong.is_empty(), "{} of {all} differ\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_name_that_is_undeclared_is_a_limit_in_a_release_that_is_newer_than_the_known_ones() {
    let of = CelType::compile(&serde_json::json!({"type": "string"}), false);
    let is_limit = |source: &str, minor| {
        let environment = CelEnvironment::of_new_expressions(KubernetesRelease::minor(minor));
        crate::compile_expression(source, &of, false, environment).expect_err("an error").is_limit
    };
    for source in ["self.shiny()", "shiny(self) == 1", "self.size(1) == 1", "self.shinyMap(x, x > 1)"] {
        assert!(!is_limit(source, 37), "{source}");
        assert!(is_limit(source, 38), "{source}");
    }
    assert!(!is_limit("self ==", 38));
    assert!(!is_limit("self.missing", 38));
}

#[test]
fn what_a_release_does_not_declare_is_refused_with_the_words_of_the_server() {
    let of = CelType::compile(&serde_json::json!({"type": "string"}), false);
    let refusal = |source: &str, environment| {
        crate::compile_expression(source, &of, false, environment).err().map(|error| error.text)
    };
    for (minor, source, words) in [
        (34, "[1].distinct() == [1]", "undeclared reference to 'distinct'"),
        (33, "[1].sortBy(i, i) == [1]", "undeclared reference to 'sortBy'"),
        (33, "isSemver(self)", "undeclared reference to 'isSemver'"),
        (32, "[1].transformList(i, v, v) == [1]", "undeclared reference to 'transformList'"),
        (32, "[1].all(i, v, v == 1)", "undeclared reference to 'all'"),
        (31, "format.dns1123Label().validate(self).hasValue()", "undeclared reference to 'format'"),
        (30, "isIP(self)", "undeclared reference to 'isIP'"),
        (29, "sets.contains([1], [1])", "undeclared reference to 'sets'"),
        (28, "quantity(self).isInteger()", "undeclared reference to 'quantity'"),
        (28, "1 < 1.5", "found no matching overload for '_<_' applied to '(int, double)'"),
        (28, "{'a': 1}.?a == 1", "unsupported syntax '.?'"),
    ] {
        let release = KubernetesRelease::minor(minor);
        let said = refusal(source, CelEnvironment::of_new_expressions(release)).unwrap_or_default();
        assert_eq!(said, words, "1.{minor}: {source}");
        let next = KubernetesRelease::minor(minor + 1);
        let said = refusal(source, CelEnvironment::of_live_expressions(next)).unwrap_or_default();
        assert!(!said.contains("undeclared") && !said.contains("unsupported"), "1.{}: {source}: {said}", minor + 1);
    }
}

/// The verdict and the estimated maximum cost of an expression in an environment, as in the table of other releases.
fn verdict(source: &str, of: &std::sync::Arc<CelType>, environment: CelEnvironment) -> String {
    let (optional_old, source) = match source.strip_prefix('?') {
        Some(source) => (true, source),
        None => (false, source),
    };
    match crate::compile_expression(source, of, optional_old, environment) {
        Ok(compiled) if compiled.program_error.is_some() => "refused".to_owned(),
        Ok(compiled) => compiled.cost.map_or_else(|problem| problem.text, |cost| cost.to_string()),
        Err(_) => "refused".to_owned(),
    }
}

/// The first release in which `oldSelf` can be an optional.
const OPTIONAL_OLD_VALUES: KubernetesRelease = KubernetesRelease::minor(30);

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");

/// The schema and the object of the tables of expressions.
fn schema_and_object() -> (Json, Json) {
    let json = |name: &str| serde_json::from_str::<Json>(&read(FIXTURES, name)).expect("JSON");
    (json("cel/schema.json"), json("cel/object.json"))
}

/// The expressions in the table of other releases, with the results of one release.
struct ReleaseTable {
    release: KubernetesRelease,
    results: Vec<(String, String)>,
}

fn tables_of_releases() -> Vec<ReleaseTable> {
    let text = read(FIXTURES, "cel-releases.txt");
    let table = |section: &str| {
        let (release, lines) = section.split_once('\n').expect("a release");
        let results = lines.lines().filter_map(|line| line.split_once(" ⇒ "));
        let results = results.map(|(source, wanted)| (source.to_owned(), wanted.to_owned())).collect();
        ReleaseTable { release: release.parse().expect("a release"), results }
    };
    text.split("\n# ").skip(1).map(table).collect()
}

#[test]
fn expressions_have_the_verdicts_estimates_and_values_of_other_releases() {
    let (schema, object) = schema_and_object();
    let tables = tables_of_releases();
    let (mut all, mut values, mut wrong) = (0, 0, Vec::new());
    let lines = tables.iter().flat_map(|table| {
        let of = CelType::compile_for(&schema, false, table.release);
        table.results.iter().map(move |(source, wanted)| (table.release, of.clone(), source, wanted))
    });
    for (release, of, source, wanted) in lines {
        let (verdicts, value) = match wanted.splitn(3, " ⇒ ").collect::<Vec<_>>()[..] {
            [new, live, value] => (format!("{new} ⇒ {live}"), Some(value)),
            _ => (wanted.clone(), None),
        };
        let (is_optional, expression) = source.strip_prefix('?').map_or((false, &**source), |source| (true, source));
        if let Some(value) = value.filter(|_| !is_optional || release >= OPTIONAL_OLD_VALUES) {
            values += 1;
            let ours = evaluate_as(release, expression, &schema, &object, is_optional).0;
            if ours != value && !(value == "error" && ours.starts_with("error: ")) {
                wrong.push(format!("{release}: {source}\n  server {value}\n  ours   {ours}"));
            }
        }
        let (new, live) = (CelEnvironment::of_new_expressions(release), CelEnvironment::of_live_expressions(release));
        let ours = format!("{} ⇒ {}", verdict(source, &of, new), verdict(source, &of, live));
        all += 1;
        if ours != verdicts {
            wrong.push(format!("{release}: {source}\n  server {verdicts}\n  ours   {ours}"));
        }
    }
    assert!(all > 100 && values > 10, "the table exists");
    assert!(wrong.is_empty(), "{} of {all} differ\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn expressions_have_another_value_in_another_release_only_where_the_table_says_so() {
    let (schema, object) = schema_and_object();
    let (mut compared, mut wrong) = (0, Vec::new());
    for ReleaseTable { release, results } in tables_of_releases() {
        let others: std::collections::BTreeSet<&str> = results.iter().map(|(source, _)| &**source).collect();
        for file in std::fs::read_dir(format!("{FIXTURES}/cel")).expect("the tables").flatten() {
            let name = file.file_name().to_string_lossy().into_owned();
            let is_optional = name == "optional.txt";
            let text = if name.ends_with(".txt") { read(FIXTURES, &format!("cel/{name}")) } else { String::new() };
            for (source, _) in text.lines().filter_map(|line| line.split_once(" ⇒ ")) {
                let listed = if is_optional { format!("?{source}") } else { source.to_owned() };
                if others.contains(&*listed) || is_optional && release < OPTIONAL_OLD_VALUES {
                    continue;
                }
                compared += 1;
                let [old, new] =
                    [release, OF_TABLES].map(|release| evaluate_as(release, source, &schema, &object, is_optional).0);
                // The words of errors and refusals differ between releases.
                let category = |said: &str| ["error: ", "refused: "].into_iter().find(|word| said.starts_with(word));
                if old != new && (category(&old).is_none() || category(&old) != category(&new)) {
                    wrong.push(format!("{release}: {source}\n  tables {new}\n  then   {old}"));
                }
            }
        }
    }
    assert!(compared > 1000, "the tables exist: {compared}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
