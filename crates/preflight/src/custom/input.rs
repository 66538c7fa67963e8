//! Writes the plan as a program reads it: a `ResourceList` of the KRM functions specification, and the live objects.
//!
//! It is written piece by piece, so that a large plan is not in memory twice. The values of Secrets are left out.

use std::borrow::Cow;
use std::io;

use serde_json::{Value, json};
use tokio::io::{AsyncWrite, AsyncWriteExt};

use crate::Context;
use gantry_core::resource::RawObject;
use gantry_core::secret;
use gantry_deploy::plan::Change;

/// Writes the input of one program. `function_config` is the `functionConfig` of its check.
pub async fn write(
    context: &Context<'_>,
    function_config: Option<&Value>,
    mut to: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut text = String::from(r#"{"apiVersion":"config.kubernetes.io/v1","kind":"ResourceList""#);
    if let Some(config) = function_config {
        text.push_str(&format!(r#","functionConfig":{config}"#));
    }
    text.push_str(r#","items":["#);
    to.write_all(text.as_bytes()).await?;
    for (index, change) in context.plan.changes.iter().enumerate() {
        separate(index, &mut to).await?;
        to.write_all(without_secrets(change, change.desired_json()).as_bytes()).await?;
    }
    let target = Value::from(context.target.describe());
    let text = format!(r#"],"plan":{{"target":{target},"redact":{},"changes":["#, context.redact);
    to.write_all(text.as_bytes()).await?;
    for (index, change) in context.plan.changes.iter().enumerate() {
        separate(index, &mut to).await?;
        let at = change.desired.origin.location();
        let (action, object) = (json!(change.action), json!(change.desired.object));
        let source = json!({"file": at.file, "line": at.line});
        let text = format!(r#"{{"action":{action},"object":{object},"source":{source},"live":"#);
        to.write_all(text.as_bytes()).await?;
        let live = change.live.as_ref().map_or("null".into(), |live| without_secrets(change, live.raw.json()));
        to.write_all(live.as_bytes()).await?;
        to.write_all(b"}").await?;
    }
    to.write_all(b"]}}\n").await?;
    to.shutdown().await
}

async fn separate(index: usize, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    match index {
        0 => Ok(()),
        _ => to.write_all(b",\n").await,
    }
}

fn without_secrets<'a>(change: &Change, json: Cow<'a, str>) -> Cow<'a, str> {
    if !change.desired.object.is_secret() {
        return json;
    }
    let mut object = RawObject::new(&*json).value();
    secret::hide_values(&mut object);
    object.to_string().into()
}
