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
    Function::member("getScheme", 1, |args, _| part(args, |url| &url.scheme)),
    Function::member("getHost", 1, |args, _| part(args, |url| &url.host)),
    Function::member("getHostname", 1, |args, _| part(args, |url| url.host_and_port().0)),
    Function::member("getPort", 1, |args, _| part(args, |url| url.host_and_port().1)),
    Function::member("getEscapedPath", 1, |args, _| part(args, |url| &url.path)),
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
