//! A grammar of CEL expressions over a schema, from the functions and patterns that rules of real CRDs use.

use serde_json::{Value, json};

use super::Random;
use super::rules::{NAMES, TEXTS};

/// The values that an expression can refer to.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Text,
    Int,
    Double,
    Bool,
    Either,
    Time,
    Wait,
    Bytes,
    List,
    Map,
    Object,
}

pub fn kind(schema: &Value) -> Kind {
    if schema.get("x-kubernetes-int-or-string").is_some() {
        return Kind::Either;
    }
    match (schema["type"].as_str(), schema["format"].as_str()) {
        (Some("string"), Some("date-time" | "date")) => Kind::Time,
        (Some("string"), Some("duration")) => Kind::Wait,
        (Some("string"), Some("byte")) => Kind::Bytes,
        (Some("string"), _) => Kind::Text,
        (Some("integer"), _) => Kind::Int,
        (Some("number"), _) => Kind::Double,
        (Some("boolean"), _) => Kind::Bool,
        (Some("array"), _) => Kind::List,
        _ if schema.get("additionalProperties").is_some() => Kind::Map,
        _ => Kind::Object,
    }
}

/// An expression that reaches a value, the owner and name of the field if the value is one, and the value's schema.
type Reached = (String, Option<(String, String)>, Value);

/// A grammar for the variables in scope.
pub struct Grammar {
    pub scope: Vec<(String, Value)>,
    /// The number of variables that macros have bound.
    pub bound: usize,
}

impl Grammar {
    /// Everything that is reachable from the variables by fields: expression, the expression before the last field,
    /// schema.
    fn paths(&self) -> Vec<Reached> {
        let mut found: Vec<Reached> =
            self.scope.iter().map(|(name, schema)| (name.clone(), None, schema.clone())).collect();
        let mut at = 0;
        while at < found.len() {
            let (path, _, schema) = found[at].clone();
            for (name, child) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
                let escaped = NAMES.iter().find(|known| known.0 == name).map_or(name.as_str(), |known| known.1);
                found.push((format!("{path}.{escaped}"), Some((path.clone(), escaped.to_owned())), child.clone()));
            }
            at += 1;
        }
        found
    }

    fn path(&self, random: &mut Random, wanted: Kind) -> Option<(String, Value)> {
        let fitting: Vec<_> = self.paths().into_iter().filter(|(.., schema)| kind(schema) == wanted).collect();
        (!fitting.is_empty()).then(|| {
            let (path, _, schema) = random.pick(&fitting).clone();
            (path, schema)
        })
    }

    /// The scope with an additional variable.
    fn with(&self, schema: &Value) -> (String, Grammar) {
        let name = format!("v{}", self.bound);
        let mut scope = self.scope.clone();
        scope.push((name.clone(), schema.clone()));
        (name, Grammar { scope, bound: self.bound + 1 })
    }

    pub fn boolean(&self, random: &mut Random, depth: usize) -> String {
        if depth > 0 {
            let next = |random: &mut Random| self.boolean(random, depth - 1);
            match random.below(9) {
                0 => return format!("({} && {})", next(random), next(random)),
                1 => return format!("({} || {})", next(random), next(random)),
                2 => return format!("!({})", next(random)),
                3 => return format!("({} ? {} : {})", next(random), next(random), next(random)),
                4 | 5 => {
                    if let Some(text) = self.guarded(random, depth) {
                        return text;
                    }
                }
                6 => {
                    if let Some(text) = self.quantified(random, depth) {
                        return text;
                    }
                }
                _ => {}
            }
        }
        self.test(random, depth.saturating_sub(1))
    }

    /// A test of a field that first checks whether the field is present.
    fn guarded(&self, random: &mut Random, depth: usize) -> Option<String> {
        let fields: Vec<_> =
            self.paths().into_iter().filter_map(|(path, owner, schema)| Some((path, owner?, schema))).collect();
        if fields.is_empty() {
            return None;
        }
        let (path, (owner, name), schema) = random.pick(&fields).clone();
        let inner = Grammar { scope: vec![(path, schema)], bound: self.bound };
        let test = inner.test(random, depth.saturating_sub(1));
        Some(match random.below(4) {
            0 => format!("has({owner}.{name})"),
            1 => format!("(!has({owner}.{name}) || {test})"),
            2 => format!("{owner}.?{name}.hasValue()"),
            _ => format!("(has({owner}.{name}) ? {test} : true)"),
        })
    }

    fn quantified(&self, random: &mut Random, depth: usize) -> Option<String> {
        let (path, schema) =
            if random.chance(75) { self.path(random, Kind::List)? } else { self.path(random, Kind::Map)? };
        let is_list = kind(&schema) == Kind::List;
        let element = if is_list { schema["items"].clone() } else { json!({"type": "string"}) };
        let (name, inner) = self.with(&element);
        let body = inner.boolean(random, depth - 1);
        Some(match random.below(8) {
            0 => format!("{path}.exists({name}, {body})"),
            1 => format!("{path}.exists_one({name}, {body})"),
            2 => format!("{path}.filter({name}, {body}).size() < {}", random.below(4)),
            3 => format!("{path}.all(i, {name}, {})", self.two(random, &schema, is_list, &name, depth)),
            4 => format!("{path}.map({name}, {body}).exists(w, w)"),
            5 => format!(
                "{path}.transformList(i, {name}, {}).size() > 0",
                self.two(random, &schema, is_list, &name, depth)
            ),
            _ => format!("{path}.all({name}, {body})"),
        })
    }

    /// A condition on index and element, or key and value.
    fn two(&self, random: &mut Random, schema: &Value, is_list: bool, name: &str, depth: usize) -> String {
        let value = if is_list { &schema["items"] } else { &schema["additionalProperties"] };
        let mut scope = self.scope.clone();
        scope.push((name.to_owned(), value.clone()));
        let first = if is_list { format!("i < {}", random.below(4)) } else { "i != 'a'".to_owned() };
        let body = Grammar { scope, bound: self.bound + 1 }.test(random, depth - 1);
        format!("({first} || {body})")
    }

    /// A condition without logical operators.
    fn test(&self, random: &mut Random, depth: usize) -> String {
        let text = |random: &mut Random| self.text(random, depth);
        let order = *random.pick(&["==", "!=", "<", "<=", ">", ">="]);
        let equality = *random.pick(&["==", "!="]);
        // A rule that sees both usually compares them.
        if self.twins().len() > 1 && random.chance(25) {
            return self.compared(random);
        }
        match random.below(28) {
            0..=3 => format!("{} {order} {}", self.int(random, depth), self.int(random, depth)),
            4 => format!(
                "{} {} {}",
                self.double(random, depth),
                random.pick(&["<", "<=", ">", ">="]),
                self.number(random, depth)
            ),
            5 | 6 => format!("{} {equality} {}", text(random), text(random)),
            7 => format!("{} {order} {}", text(random), text(random)),
            8 => format!("{}.{}({})", text(random), random.pick(&["startsWith", "endsWith", "contains"]), text(random)),
            9 => format!("{}.matches('{}')", text(random), random.pick(&["^[a-z]+$", "[0-9]", "^$", ".b", "(?i)A"])),
            10 => format!("{} in ['a', 'abc', {}]", text(random), text(random)),
            11 => format!("{}({})", random.pick(&["isIP", "isCIDR", "isURL", "isQuantity", "isSemver"]), text(random)),
            12 => {
                format!("quantity({}).{}(quantity('1'))", text(random), random.pick(&["isLessThan", "isGreaterThan"]))
            }
            13 => format!("url({}).getScheme() == 'https'", text(random)),
            14 => format!("ip({}).family() == 4", text(random)),
            15 => format!("cidr('10.0.0.0/8').containsIP({})", text(random)),
            16 => format!(
                "!format.{}().validate({}).hasValue()",
                random.pick(&["dns1123Label", "qualifiedName", "uri", "labelValue"]),
                text(random)
            ),
            17 => format!(
                "semver({}, true).{}(semver('1.2.0'))",
                text(random),
                random.pick(&["isLessThan", "isGreaterThan"])
            ),
            18 => match self.path(random, Kind::Bool) {
                Some((path, _)) => path,
                None => random.pick(&["true", "false"]).to_string(),
            },
            19 | 20 => match self.path(random, Kind::Either) {
                Some((path, _)) => match random.below(5) {
                    0 => format!("{path} == {}", random.below(5)),
                    1 => format!("{path} == {}", text(random)),
                    2 => format!("(type({path}) == int ? {path} > 1 : {path}.endsWith('%'))"),
                    3 => format!("{path}.contains('a')"),
                    _ => format!("{path} {order} 1"),
                },
                None => "1 == 1".to_owned(),
            },
            21 => match self.path(random, Kind::Time) {
                Some((path, _)) => format!("{path} {order} timestamp('2024-01-01T00:00:00Z')"),
                None => format!("timestamp({} + 'Z') {order} timestamp(0)", text(random)),
            },
            22 => match self.path(random, Kind::Wait) {
                Some((path, _)) => format!("{path} {order} duration('1h')"),
                None => format!("duration({} + 's') {order} duration('1ms')", text(random)),
            },
            23 => match self.path(random, Kind::Bytes) {
                Some((path, _)) => format!("{path} {order} b'a'"),
                None => format!("bytes({}).size() {order} 1", text(random)),
            },
            24 => match self.path(random, Kind::List) {
                Some((path, schema)) => self.about_list(random, &path, &schema, depth),
                None => "[1, 2].isSorted()".to_owned(),
            },
            25 => match self.path(random, Kind::Map) {
                Some((path, _)) => format!("({} in {path})", text(random)),
                None => "{'a': 1} == {'a': 1}".to_owned(),
            },
            26 => self.compared(random),
            _ => format!(
                "sets.{}([{}], ['a', 'b'])",
                random.pick(&["contains", "equivalent", "intersects"]),
                text(random)
            ),
        }
    }

    /// The variables with the same schema as the first: `self`, and `oldSelf` if it exists.
    fn twins(&self) -> Vec<&(String, Value)> {
        self.scope.iter().filter(|(_, schema)| self.scope.first().is_some_and(|(_, first)| first == schema)).collect()
    }

    /// A comparison of the same path in two variables, such as `self` and `oldSelf`.
    fn compared(&self, random: &mut Random) -> String {
        let (first, schema) = random.pick(&self.scope).clone();
        let same: Vec<_> = self.scope.iter().filter(|(_, other)| *other == schema).collect();
        let (second, _) = *random.pick(&same);
        let below = Grammar { scope: vec![(String::new(), schema)], bound: 0 }.paths();
        let (tail, _, schema) = random.pick(&below).clone();
        let (one, other) = (format!("{first}{tail}"), format!("{second}{tail}"));
        let equality = *random.pick(&["==", "!="]);
        match (kind(&schema), random.below(9)) {
            (Kind::List, 0) => format!("{one} + {other} {equality} {one}"),
            (Kind::List, 1) => format!("{one} + {other} {equality} {other} + {one}"),
            (Kind::List, 2) => format!("{one}.all(e, e in {other})"),
            (Kind::List, 3) => format!("{one}.all(e, {other}.exists(f, e == f))"),
            (Kind::List, 4) => format!("sets.equivalent({one}, {other})"),
            (Kind::List, 5) => format!("({one} + {other})[{}] {equality} {other}[0]", random.below(3)),
            (Kind::Map, 0 | 1) => format!("{one}.all(e, e in {other} && {one}[e] == {other}[e])"),
            (Kind::Map, 2) => format!("{one}.all(e, v, {other}[?e] == optional.of(v))"),
            _ => format!("{one} {equality} {other}"),
        }
    }

    fn about_list(&self, random: &mut Random, path: &str, schema: &Value, depth: usize) -> String {
        let items = &schema["items"];
        match kind(items) {
            Kind::Int => match random.below(6) {
                0 => format!("{path}.sum() > {}", self.int(random, depth)),
                1 => format!("{path}.max() < {}", self.int(random, depth)),
                2 => format!("{path}.isSorted()"),
                3 => format!("{} in {path}", self.int(random, depth)),
                4 => format!("{path}.sort() == {path}"),
                _ => format!("{path} + [1, 2] == {path}"),
            },
            Kind::Text => match random.below(6) {
                0 => format!("{} in {path}", self.text(random, depth)),
                1 => format!("{path}.indexOf({}) > 0", self.text(random, depth)),
                2 => format!("{path}.join(',').size() > 3"),
                3 => format!("sets.contains({path}, ['a'])"),
                4 => format!("{path}.distinct().size() == {path}.size()"),
                _ => format!("{path} == ['a', 'b']"),
            },
            _ => match random.below(5) {
                0 => format!("{path}.size() > 1 && {path}[0] == {path}[1]"),
                1 => format!("{path}[0] in {path}"),
                2 => format!("{path}[?1].hasValue()"),
                3 => format!("{path}.first().hasValue()"),
                _ => format!("{path} == {path}.reverse()"),
            },
        }
    }

    fn int(&self, random: &mut Random, depth: usize) -> String {
        if random.chance(50)
            && let Some((path, _)) = self.path(random, Kind::Int)
        {
            return path;
        }
        if depth == 0 {
            return (random.below(6) as i64 - 2).to_string();
        }
        match random.below(10) {
            0 => format!(
                "({} {} {})",
                self.int(random, depth - 1),
                random.pick(&["+", "-", "*", "/", "%"]),
                self.int(random, depth - 1)
            ),
            1 | 2 => format!("size({})", self.text(random, depth - 1)),
            3 => match self.path(random, Kind::List) {
                Some((path, _)) => format!("{path}.size()"),
                None => "[1].size()".to_owned(),
            },
            4 => format!("int({})", self.text(random, depth - 1)),
            5 => format!("{}.indexOf('b')", self.text(random, depth - 1)),
            6 => match self.path(random, Kind::Map) {
                Some((path, _)) => format!("size({path})"),
                None => "2".to_owned(),
            },
            7 => match self.path(random, Kind::Time) {
                Some((path, _)) => format!("{path}.getFullYear()"),
                None => "2024".to_owned(),
            },
            8 => format!("({} ? 1 : 0)", self.boolean(random, depth - 1)),
            _ => random.below(50).to_string(),
        }
    }

    fn double(&self, random: &mut Random, depth: usize) -> String {
        match self.path(random, Kind::Double) {
            Some((path, _)) => path,
            None if random.chance(50) => format!("double({})", self.int(random, depth)),
            None => "1.5".to_owned(),
        }
    }

    fn number(&self, random: &mut Random, depth: usize) -> String {
        if random.chance(50) { self.int(random, depth) } else { "0.5".to_owned() }
    }

    pub fn text(&self, random: &mut Random, depth: usize) -> String {
        if random.chance(65)
            && let Some((path, _)) = self.path(random, Kind::Text)
        {
            return path;
        }
        if depth == 0 || random.chance(40) {
            return format!("'{}'", random.pick(&TEXTS));
        }
        let inner = self.text(random, depth - 1);
        match random.below(14) {
            0 => format!("{inner}.lowerAscii()"),
            1 => format!("{inner}.upperAscii()"),
            2 => format!("{inner}.trim()"),
            3 => format!("{inner}.substring({})", random.below(3)),
            4 => format!("{inner}.replace('a', 'x')"),
            5 => format!("string({})", self.int(random, depth - 1)),
            6 => format!("({inner} + {})", self.text(random, depth - 1)),
            7 => format!("{inner}.split('.')[{}]", random.below(2)),
            8 => format!("{inner}.find('[a-z]+')"),
            9 => format!("({} ? {inner} : 'no')", self.boolean(random, depth - 1)),
            10 => format!("'%s-%d'.format([{inner}, {}])", self.int(random, depth - 1)),
            11 => match self.path(random, Kind::List) {
                Some((path, schema)) if kind(&schema["items"]) == Kind::Text => format!("{path}[{}]", random.below(3)),
                _ => inner,
            },
            12 => match self.path(random, Kind::Map) {
                Some((path, schema)) if kind(&schema["additionalProperties"]) == Kind::Text => {
                    format!("{path}[?'a'].orValue({inner})")
                }
                _ => inner,
            },
            _ => format!("{inner}.charAt({})", random.below(3)),
        }
    }
}
