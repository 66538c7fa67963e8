//! Label selectors in Kubernetes' own syntax: `app=web,tier in (a, b),!canary`.
//!
//! A cluster evaluates selectors itself. This parser is for targets without a server, and to reject an invalid selector
//! before the first request. The grammar and its messages are those of the API server's `labels.Parse`.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use gantry_k8s_cel::gotext::quote;
use gantry_schema::names;

/// A parsed label selector. All of its requirements must hold; an empty one selects everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedLabelSelector(Vec<LabelRequirement>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct LabelRequirement {
    key: String,
    test: LabelTest,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum LabelTest {
    Exists,
    Absent,
    /// `=`, `==`, `in`.
    In(BTreeSet<String>),
    /// `!=`, `notin`: also holds if the label is missing.
    NotIn(BTreeSet<String>),
    GreaterThan(i64),
    LessThan(i64),
}

/// Why a label selector is invalid, in the API server's own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidLabelSelector(String);

impl std::fmt::Display for InvalidLabelSelector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidLabelSelector {}

impl From<String> for InvalidLabelSelector {
    fn from(reason: String) -> Self {
        InvalidLabelSelector(reason)
    }
}

impl From<InvalidLabelSelector> for String {
    fn from(error: InvalidLabelSelector) -> Self {
        error.0
    }
}

impl ParsedLabelSelector {
    /// Parses a selector.
    ///
    /// # Errors
    /// The message of the API server.
    pub fn parse(text: &str) -> Result<Self, InvalidLabelSelector> {
        Ok(ParsedLabelSelector(SelectorParser { tokens: tokens(text), at: 0 }.selector()?))
    }

    /// Parses the `LabelSelector` of an object (`matchLabels`, `matchExpressions`).
    ///
    /// # Errors
    /// The message of the API machinery (`LabelSelectorAsSelector`).
    pub fn of_object(selector: &Value) -> Result<Self, InvalidLabelSelector> {
        let mut requirements = Vec::new();
        for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
            let value = value.as_str().unwrap_or_default().to_owned();
            refuse_label(key, std::iter::once(value.as_str()))?;
            requirements.push(LabelRequirement { key: key.clone(), test: LabelTest::In(BTreeSet::from([value])) });
        }
        for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
            let values = expression["values"].as_array().into_iter().flatten();
            let values: BTreeSet<String> = values.filter_map(Value::as_str).map(str::to_owned).collect();
            let key = expression["key"].as_str().unwrap_or_default();
            let in_order = expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let (is_empty, operator) = (values.is_empty(), expression["operator"].as_str().unwrap_or_default());
            let test = match operator {
                "In" | "NotIn" if is_empty => {
                    return Err("values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
                        .to_owned()
                        .into());
                }
                "Exists" | "DoesNotExist" if !is_empty => {
                    return Err("values: Invalid value: values set must be empty for exists and does not exist"
                        .to_owned()
                        .into());
                }
                "In" => LabelTest::In(values),
                "NotIn" => LabelTest::NotIn(values),
                "Exists" => LabelTest::Exists,
                "DoesNotExist" => LabelTest::Absent,
                _ => return Err(format!("{} is not a valid label selector operator", quote(operator)).into()),
            };
            refuse_label(key, in_order)?;
            requirements.push(LabelRequirement { key: key.to_owned(), test });
        }
        Ok(ParsedLabelSelector(requirements))
    }

    /// Whether an object with these labels (`metadata.labels`) is selected.
    pub fn matches(&self, labels: Option<&Map<String, Value>>) -> bool {
        self.selects(|key| Some(labels?.get(key)?.as_str().unwrap_or_default()))
    }

    /// Whether an object whose labels have these values is selected.
    pub fn selects<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0.iter().all(|requirement| {
            let label = label(&requirement.key);
            let number = || label.and_then(|label| label.parse::<i64>().ok());
            match &requirement.test {
                LabelTest::Exists => label.is_some(),
                LabelTest::Absent => label.is_none(),
                LabelTest::In(values) => label.is_some_and(|label| values.contains(label)),
                LabelTest::NotIn(values) => label.is_none_or(|label| !values.contains(label)),
                LabelTest::GreaterThan(bound) => number().is_some_and(|number| number > *bound),
                LabelTest::LessThan(bound) => number().is_some_and(|number| number < *bound),
            }
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SelectorToken<'a> {
    /// `=`, `==`, `!=`, `!`, `<`, `>`, `(`, `)` or `,`.
    Symbol(&'a str),
    /// Everything else, `in` and `notin` included.
    Word(&'a str),
    End,
}

impl<'a> SelectorToken<'a> {
    fn text(self) -> &'a str {
        match self {
            SelectorToken::Symbol(text) | SelectorToken::Word(text) => text,
            SelectorToken::End => "",
        }
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

/// Splits the text into tokens, longest symbol first. The last token is [`Token::End`].
fn tokens(text: &str) -> Vec<SelectorToken<'_>> {
    const SYMBOLS: [&str; 9] = ["==", "!=", "=", "!", "<", ">", "(", ")", ","];
    let is_symbol = |c: char| SYMBOLS.iter().any(|symbol| symbol.starts_with(c));
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() {
        let symbol = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol));
        let length = symbol
            .map_or_else(|| rest.find(|c| is_space(c) || is_symbol(c)).unwrap_or(rest.len()), |symbol| symbol.len());
        let (token, after) = rest.split_at(length);
        tokens.push(if symbol.is_some() { SelectorToken::Symbol(token) } else { SelectorToken::Word(token) });
        rest = after.trim_start_matches(is_space);
    }
    tokens.push(SelectorToken::End);
    tokens
}

struct SelectorParser<'a> {
    tokens: Vec<SelectorToken<'a>>,
    at: usize,
}

impl<'a> SelectorParser<'a> {
    fn peek(&self) -> SelectorToken<'a> {
        self.tokens.get(self.at).copied().unwrap_or(SelectorToken::End)
    }

    fn next(&mut self) -> SelectorToken<'a> {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn selector(mut self) -> Result<Vec<LabelRequirement>, String> {
        let mut requirements = Vec::new();
        loop {
            match self.peek() {
                SelectorToken::End => return Ok(requirements),
                SelectorToken::Word(_) | SelectorToken::Symbol("!") => {}
                other if requirements.is_empty() => {
                    return Err(format!("found '{}', expected: !, identifier, or 'end of string'", other.text()));
                }
                other => return Err(format!("found '{}', expected: identifier after ','", other.text())),
            }
            let requirement = self.requirement().map_err(|error| format!("unable to parse requirement: {error}"))?;
            requirements.push(requirement);
            match self.next() {
                SelectorToken::End => return Ok(requirements),
                SelectorToken::Symbol(",") if self.peek() == SelectorToken::End => {
                    return Err("found '', expected: identifier after ','".into());
                }
                SelectorToken::Symbol(",") => {}
                other => return Err(format!("found '{}', expected: ',' or 'end of string'", other.text())),
            }
        }
    }

    fn requirement(&mut self) -> Result<LabelRequirement, String> {
        let is_absent = self.peek() == SelectorToken::Symbol("!");
        if is_absent {
            self.next();
        }
        let SelectorToken::Word(key) = self.next() else {
            let found = self.tokens[self.at - 1].text();
            return Err(format!("found '{found}', expected: identifier"));
        };
        refuse("<nil>", key, &names::qualified(key))?;
        let ends = matches!(self.peek(), SelectorToken::End | SelectorToken::Symbol(","));
        let test = match (is_absent, ends) {
            (true, _) => LabelTest::Absent,
            (false, true) => LabelTest::Exists,
            (false, false) => self.test(key)?,
        };
        Ok(LabelRequirement { key: key.to_owned(), test })
    }

    fn test(&mut self, key: &str) -> Result<LabelTest, String> {
        let operator = self.next().text();
        let values = match operator {
            "in" | "notin" => self.values()?,
            "=" | "==" | "!=" | ">" | "<" => BTreeSet::from([self.value()?]),
            other => return Err(format!("found '{other}', expected: in, notin, =, ==, !=, gt, lt")),
        };
        let number = |values: &BTreeSet<String>| {
            let value = values.first().map_or("", String::as_str);
            let not_one = "for 'Gt', 'Lt' operators, the value must be an integer";
            value.parse::<i64>().map_err(|_| format!("values[0]: Invalid value: {value:?}: {not_one}"))
        };
        let test = match operator {
            ">" => LabelTest::GreaterThan(number(&values)?),
            "<" => LabelTest::LessThan(number(&values)?),
            _ => {
                for (index, value) in values.iter().enumerate() {
                    refuse(&format!("values[{index}][{key}]"), value, &names::label_value(value))?;
                }
                if matches!(operator, "!=" | "notin") { LabelTest::NotIn(values) } else { LabelTest::In(values) }
            }
        };
        Ok(test)
    }

    /// One value, which can be missing: `a=` means the empty value.
    fn value(&mut self) -> Result<String, String> {
        match self.peek() {
            SelectorToken::End | SelectorToken::Symbol(",") => Ok(String::new()),
            SelectorToken::Word(word) => {
                self.next();
                Ok(word.to_owned())
            }
            other => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }

    /// A list in parentheses. A missing value is the empty value.
    fn values(&mut self) -> Result<BTreeSet<String>, String> {
        let open = self.next();
        if open != SelectorToken::Symbol("(") {
            return Err(format!("found '{}' expected: '('", open.text()));
        }
        let mut values = BTreeSet::new();
        loop {
            match self.peek() {
                SelectorToken::Word(word) => {
                    self.next();
                    values.insert(word.to_owned());
                }
                SelectorToken::Symbol("," | ")") => {
                    values.insert(String::new());
                }
                other => return Err(format!("found '{}', expected: ',', ')' or identifier", other.text())),
            }
            match self.next() {
                SelectorToken::Symbol(",") => {}
                SelectorToken::Symbol(")") => return Ok(values),
                other => return Err(format!("found '{}', expected: ',' or ')'", other.text())),
            }
        }
    }
}

/// The errors of a key and of its values, in the words of the API machinery (`NewRequirement`).
fn refuse_label<'v>(key: &str, values: impl Iterator<Item = &'v str>) -> Result<(), String> {
    let of_key = refuse("key", key, &names::qualified(key));
    let of_values = values
        .enumerate()
        .map(|(index, value)| refuse(&format!("values[{index}][{key}]"), value, &names::label_value(value)));
    let wrong: Vec<String> = std::iter::once(of_key).chain(of_values).filter_map(Result::err).collect();
    match wrong.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
}

fn refuse(path: &str, value: &str, reasons: &[String]) -> Result<(), String> {
    if reasons.is_empty() {
        return Ok(());
    }
    // `labels.Parse` joins the examples differently from the validation of an object's labels.
    let reasons = reasons.join("; ").replace(",  or ", ", or ");
    Err(format!("{path}: Invalid value: {value:?}: {reasons}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn selects(selector: &str, labels: &Value) -> bool {
        ParsedLabelSelector::parse(selector).unwrap_or_else(|e| panic!("{selector}: {e}")).matches(labels.as_object())
    }

    #[test]
    fn requirements_hold_as_on_the_server() {
        let labels = json!({"app": "web", "n": "10", "empty": ""});
        for selector in [
            "",
            " ",
            "app",
            "app=web",
            "app == web",
            "app!=db",
            "missing!=db",
            "app in (db, web)",
            "app notin (db)",
            "missing notin (db)",
            "!missing",
            "! missing",
            "n>9",
            "n<11",
            "empty=",
            "empty",
            "empty in ()",
            "app in (,web)",
            "app=web,n>9,!missing",
            "in!=x",
            "app in (in,web)",
        ] {
            assert!(selects(selector, &labels), "{selector}");
        }
        for selector in [
            "app=db",
            "app!=web",
            "app in (db)",
            "app notin (db,web)",
            "!app",
            "missing",
            "n>10",
            "n<10",
            "app>1",
            "missing>1",
            "empty!=",
            "app=web,missing",
            "app=",
            "missing=",
        ] {
            assert!(!selects(selector, &labels), "{selector}");
        }
        assert!(selects("!a", &Value::Null) && !selects("a", &Value::Null));
    }

    #[test]
    fn the_labels_of_a_selector_of_an_object_are_validated() {
        let value = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
            must start and end with an alphanumeric character";
        let expression =
            |key: &str, values: Value| json!({"matchExpressions": [{"key": key, "operator": "In", "values": values}]});
        for (selector, starts) in [
            (expression("name", json!(["&v"])), format!("values[0][name]: Invalid value: \"&v\": {value}")),
            (json!({"matchLabels": {"name": "&v"}}), format!("values[0][name]: Invalid value: \"&v\": {value}")),
            (expression("bad key!", json!(["v"])), "key: Invalid value: \"bad key!\": name part must".to_owned()),
            (expression("", json!(["v"])), "key: Invalid value: \"\": name part must be non-empty".to_owned()),
            (expression("a/b/c", json!(["v"])), "key: Invalid value: \"a/b/c\": a valid label key must".to_owned()),
            (expression("-", json!(["v", "-"])), "[key: Invalid value: \"-\": name part must".to_owned()),
            (json!({"matchExpressions": [{"key": "", "operator": "Exists"}]}), "key: Invalid value: \"\"".to_owned()),
        ] {
            let said = ParsedLabelSelector::of_object(&selector).expect_err("it is refused").to_string();
            assert!(said.starts_with(&starts), "{selector}: {said}");
        }
        assert!(ParsedLabelSelector::of_object(&expression("a.io/b", json!(["", "v"]))).is_ok());
    }

    #[test]
    fn a_mistyped_selector_has_the_error_of_the_server() {
        for (selector, message) in [
            ("app web", "unable to parse requirement: found 'web', expected: in, notin, =, ==, !=, gt, lt"),
            ("app=web=db", "found '=', expected: ',' or 'end of string'"),
            ("=web", "found '=', expected: !, identifier, or 'end of string'"),
            ("app,", "found '', expected: identifier after ','"),
            ("app,,b", "found ',', expected: identifier after ','"),
            ("app in web", "unable to parse requirement: found 'web' expected: '('"),
            ("app in (web", "unable to parse requirement: found '', expected: ',' or ')'"),
            ("!", "unable to parse requirement: found '', expected: identifier"),
            (
                "a>x",
                "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer",
            ),
        ] {
            assert_eq!(ParsedLabelSelector::parse(selector), Err(message.to_owned().into()), "{selector}");
        }
        for selector in ["-a=b", "a/b/c", "a=b c", "a=-", "a in (x y)", "(a)", "a=(b)", "ä=b", "a={}"] {
            assert!(ParsedLabelSelector::parse(selector).is_err(), "{selector}");
        }
    }
}
