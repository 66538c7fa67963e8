//! The parameter and result types of functions and operators: the declarations of the API server's CEL environment.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use super::environment::{Availability, CelEnvironment};
use super::equal::find;
use super::typing::Ty;
use super::value::CelValue;

/// Generated from the server's packages; see docs/internals/testing.md.
const TEXT: &str = include_str!("signatures.txt");

/// One overload of a function.
#[derive(Debug)]
pub(crate) struct Signature {
    pub name: &'static str,
    /// The types of the parameters, the target first. Type variables are numbered from 0.
    pub args: Vec<Ty>,
    pub result: Ty,
    /// The number of type variables.
    pub variables: usize,
    /// Whether the server checks the types of the arguments before it calls the overload.
    pub is_guarded: bool,
    pub availability: Availability,
}

/// The functions that are called without checking their arguments.
const UNGUARDED: &[&str] = &["contains", "dyn", "endsWith", "flatten", "matches", "size", "sort", "startsWith", "type"];

impl Signature {
    /// Whether the server calls the overload with these arguments. For lists and maps it checks only the first
    /// element.
    pub(crate) fn fits(&self, args: &[CelValue]) -> bool {
        !self.is_guarded
            || self.args.len() == args.len() && self.args.iter().zip(args).all(|(ty, arg)| fits(ty, Some(arg)))
    }
}

/// Whether a value is accepted for a type. A value that does not match its schema is accepted only for `dyn` and type
/// variables.
fn fits(ty: &Ty, value: Option<&CelValue>) -> bool {
    let of = match ty {
        Ty::Dyn | Ty::Variable(_) => return true,
        Ty::Null | Ty::Object(_) => return false,
        Ty::Scalar(name) => return value.is_some_and(|value| value.type_name() == *name),
        Ty::Of(name, of) if value.is_some_and(|value| value.type_name() == *name) => of,
        Ty::Of(..) => return false,
    };
    match (value, &**of) {
        (Some(CelValue::List(list)), [element]) => list.len() == 0 || fits(element, list.get(0).ok().as_ref()),
        (Some(CelValue::Map(map)), [key, value]) => map.keys().first().is_none_or(|first| {
            let found = find(map, first).map(|found| found.unwrap_or(CelValue::Null));
            fits(key, Some(first)) && fits(value, found.ok().as_ref())
        }),
        _ => true,
    }
}

/// The overloads of each function by name: global ones (`name(…)`), and members (`target.name(…)`).
static SIGNATURES: LazyLock<BTreeMap<&str, [Vec<Signature>; 2]>> = LazyLock::new(|| {
    let mut all: BTreeMap<&str, [Vec<Signature>; 2]> = BTreeMap::new();
    for (name, member, signature) in TEXT.lines().filter_map(signature) {
        all.entry(name).or_default()[usize::from(member)].push(signature);
    }
    all
});

/// The overloads of a function, in the order in which they are tried.
pub(crate) fn signatures(name: &str, member: bool) -> &'static [Signature] {
    SIGNATURES.get(name).map_or(&[], |styles| &styles[usize::from(member)])
}

/// Whether a function has an overload, of any style, in this environment.
pub(crate) fn is_declared(name: &str, environment: CelEnvironment) -> bool {
    let overloads = SIGNATURES.get(name).into_iter().flatten().flatten();
    overloads.into_iter().any(|overload| environment.has(overload.availability))
}

/// Whether a macro with this number of arguments exists in this environment.
pub(crate) fn has_macro(name: &str, arguments: usize, environment: CelEnvironment) -> bool {
    MACROS.get(&(name, arguments)).is_some_and(|availability| environment.has(*availability))
}

static MACROS: LazyLock<BTreeMap<(&str, usize), Availability>> =
    LazyLock::new(|| TEXT.lines().filter_map(macro_of).collect());

/// Parses `NEW/LIVE macro name:arguments:target`.
fn macro_of(line: &'static str) -> Option<((&'static str, usize), Availability)> {
    let (availability, rest) = availability(line)?;
    let mut parts = rest.strip_prefix("macro ")?.split(':');
    Some(((parts.next()?, parts.next()?.parse().ok()?), availability))
}

/// Splits `NEW/LIVE`, or `NEW/LIVE/REMOVED`, from a line.
fn availability(line: &'static str) -> Option<(Availability, &'static str)> {
    let (releases, rest) = line.split_once(' ')?;
    let mut releases = releases.split('/').map(str::parse);
    let (for_new, for_live) = (releases.next()?.ok()?, releases.next()?.ok()?);
    Some((Availability { for_new, for_live, removed: releases.next().transpose().ok()? }, rest))
}

/// Parses `NEW/LIVE name(args) result` or `NEW/LIVE target.name(args) result`.
fn signature(line: &'static str) -> Option<(&'static str, bool, Signature)> {
    let (availability, line) = availability(line)?;
    let (call, result) = line.rsplit_once(") ")?;
    let (function, args) = call.split_once('(')?;
    let mut variables = Vec::new();
    let mut scan = SignatureScan { rest: function, variables: &mut variables };
    // A target is a type; namespaces such as `sets` are part of the name.
    let target = function.rsplit_once('.').and_then(|(target, name)| {
        let is_type = target.contains('<') || TYPES.contains(&target);
        is_type.then(|| {
            scan.rest = target;
            (scan.ty(), name)
        })
    });
    let (target, name) = match target {
        Some((target, name)) => (Some(target?), name),
        None => (None, function),
    };
    let member = target.is_some();
    let mut types: Vec<Ty> = target.into_iter().collect();
    scan.rest = args;
    while !scan.rest.is_empty() {
        types.push(scan.ty()?);
        scan.rest = scan.rest.strip_prefix(", ").unwrap_or(scan.rest);
    }
    scan.rest = result;
    let result = scan.ty()?;
    let is_guarded = !UNGUARDED.contains(&name);
    Some((name, member, Signature { name, args: types, result, variables: variables.len(), is_guarded, availability }))
}

/// The types that have member functions, except those with parameters.
const TYPES: &[&str] = &[
    "bytes",
    "dyn",
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
    "kubernetes.NamedFormat",
    "kubernetes.Quantity",
    "kubernetes.Semver",
    "kubernetes.URL",
    "net.CIDR",
    "net.IP",
    "string",
];

struct SignatureScan<'v> {
    rest: &'static str,
    variables: &'v mut Vec<&'static str>,
}

impl SignatureScan<'_> {
    fn ty(&mut self) -> Option<Ty> {
        let end = self.rest.find(['<', '>', ',']).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        let mut of = Vec::new();
        if let Some(rest) = self.rest.strip_prefix('<') {
            self.rest = rest;
            loop {
                of.push(self.ty()?);
                match self.rest.strip_prefix(", ") {
                    Some(rest) => self.rest = rest,
                    None => break,
                }
            }
            self.rest = self.rest.strip_prefix('>')?;
        }
        Some(match name {
            "dyn" => Ty::Dyn,
            "bool" | "int" | "uint" | "double" | "string" | "bytes" => Ty::Scalar(name),
            _ if name.len() == 1 => {
                let known = self.variables.iter().position(|known| *known == name);
                Ty::Variable(known.unwrap_or_else(|| {
                    self.variables.push(name);
                    self.variables.len() - 1
                }))
            }
            _ => Ty::Of(name, Arc::from(of)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_signatures_is_parsed() {
        for line in TEXT.lines() {
            assert!(signature(line).is_some() || macro_of(line).is_some(), "{line}");
        }
        let shown = |name: &str, member: bool| {
            let all = signatures(name, member).iter();
            all.map(|s| format!("{:?} {}", s.args.iter().map(ToString::to_string).collect::<Vec<_>>(), s.result))
                .collect::<Vec<_>>()
        };
        assert_eq!(shown("charAt", true), [r#"["string", "int"] string"#]);
        assert_eq!(shown("sets.contains", false), [r#"["list(_var0)", "list(_var0)"] bool"#]);
        assert_eq!(shown("getQuery", true), [r#"["kubernetes.URL"] map(string, list(string))"#]);
        assert_eq!(shown("ip", true), [r#"["net.CIDR"] net.IP"#]);
        assert_eq!(shown("orValue", true), [r#"["optional_type(_var0)", "_var0"] _var0"#]);
    }
}
