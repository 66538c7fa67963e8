//! URLs.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::budget::Budget;
use super::fault::{Fault, Result};
use super::library::Function;
use super::value::{Key, Map, Value};
use crate::golang::url::{Part, Url, check_request, unescape};

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::global("url", 1, url),
    Function::global("isURL", 1, is_url),
    Function::member("getScheme", 1, scheme),
    Function::member("getHost", 1, host),
    Function::member("getHostname", 1, hostname),
    Function::member("getPort", 1, port),
    Function::member("getEscapedPath", 1, escaped_path),
    Function::member("getQuery", 1, query),
];

type Answer<'a> = Option<Result<Value<'a>>>;

fn url<'a>(args: &[Value<'a>], budget: &mut Budget) -> Answer<'a> {
    let [Value::String(text)] = args else { return None };
    let parsed = check_request(text).and_then(|()| Url::parse(text));
    Some(budget.take(text.len() as u64 / 10).and_then(|()| match parsed {
        Ok(url) => Ok(Value::Url(Rc::new(url))),
        Err(why) => Err(Fault::error(format!("URL parse error during conversion from string: {why}"))),
    }))
}

fn is_url<'a>(args: &[Value<'a>], budget: &mut Budget) -> Answer<'a> {
    let [Value::String(text)] = args else { return None };
    Some(budget.take(text.len() as u64 / 10).map(|()| Value::Bool(check_request(text).is_ok())))
}

fn part<'a>(args: &[Value<'a>], pick: fn(&Url) -> &str) -> Answer<'a> {
    let [Value::Url(url)] = args else { return None };
    Some(Ok(Value::from(pick(url))))
}

fn scheme<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    part(args, |url| &url.scheme)
}

fn host<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    part(args, |url| &url.host)
}

fn hostname<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    part(args, |url| url.host_and_port().0)
}

fn port<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    part(args, |url| url.host_and_port().1)
}

fn escaped_path<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    part(args, |url| &url.path)
}

fn query<'a>(args: &[Value<'a>], budget: &mut Budget) -> Answer<'a> {
    let [Value::Url(url)] = args else { return None };
    let query = url.query.as_deref().unwrap_or_default();
    let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        // Parts that cannot be decoded are omitted.
        if let (Ok(name), Ok(value)) = (unescape(name, Part::Query), unescape(value, Part::Query)) {
            values.entry(name).or_default().push(value);
        }
    }
    let map = values
        .into_iter()
        .map(|(name, values)| (Key::String(name.clone()), (Value::from(name), Value::strings(values))))
        .collect();
    Some(budget.take(query.len() as u64 / 10).map(|()| Value::Map(Map::Values(Rc::new(map)))))
}
