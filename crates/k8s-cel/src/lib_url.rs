//! URLs.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::budget::CelBudget;
use super::fault::EvaluationError;
use super::library::{Function, OverloadResult};
use super::value::{CelMap, CelValue, MapKey};
use crate::golang::url::{Url, UrlComponent, check_request, unescape};

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

fn url<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    let [CelValue::String(text)] = args else { return None };
    let parsed = check_request(text).and_then(|()| Ok(Url::parse(text)?));
    Some(budget.take(text.len() as u64 / 10).and_then(|()| match parsed {
        Ok(url) => Ok(CelValue::Url(Rc::new(url))),
        Err(why) => Err(EvaluationError::error(format!("URL parse error during conversion from string: {why}"))),
    }))
}

fn is_url<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    let [CelValue::String(text)] = args else { return None };
    Some(budget.take(text.len() as u64 / 10).map(|()| CelValue::Bool(check_request(text).is_ok())))
}

fn part<'a>(args: &[CelValue<'a>], pick: fn(&Url) -> &str) -> OverloadResult<'a> {
    let [CelValue::Url(url)] = args else { return None };
    Some(Ok(CelValue::from(pick(url))))
}

fn scheme<'a>(args: &[CelValue<'a>], _: &mut CelBudget) -> OverloadResult<'a> {
    part(args, |url| &url.scheme)
}

fn host<'a>(args: &[CelValue<'a>], _: &mut CelBudget) -> OverloadResult<'a> {
    part(args, |url| &url.host)
}

fn hostname<'a>(args: &[CelValue<'a>], _: &mut CelBudget) -> OverloadResult<'a> {
    part(args, |url| url.host_and_port().0)
}

fn port<'a>(args: &[CelValue<'a>], _: &mut CelBudget) -> OverloadResult<'a> {
    part(args, |url| url.host_and_port().1)
}

fn escaped_path<'a>(args: &[CelValue<'a>], _: &mut CelBudget) -> OverloadResult<'a> {
    part(args, |url| &url.path)
}

fn query<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    let [CelValue::Url(url)] = args else { return None };
    let query = url.query.as_deref().unwrap_or_default();
    let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        // Parts that cannot be decoded are omitted.
        if let (Ok(name), Ok(value)) = (unescape(name, UrlComponent::Query), unescape(value, UrlComponent::Query)) {
            values.entry(name).or_default().push(value);
        }
    }
    let map = values
        .into_iter()
        .map(|(name, values)| (MapKey::String(name.clone()), (CelValue::from(name), CelValue::strings(values))))
        .collect();
    Some(budget.take(query.len() as u64 / 10).map(|()| CelValue::Map(CelMap::Values(Rc::new(map)))))
}
