//! The end of a container's log, which the API server gets from the kubelet of its node.

use std::time::Duration;

use tokio::time::timeout;

use super::request::{ApiRequest, encode};
use super::transport::Transport;
use gantry_core::problem::Problem;
use gantry_core::resource::Resource;

/// The time limit for an unresponsive node: a log is only additional information.
const LIMIT: Duration = Duration::from_secs(10);
/// The maximum number of bytes that are read, because a line can have any length.
const MAX_BYTES: usize = 1 << 20;

/// The last lines, as bytes: a log is not necessarily text.
pub async fn read_tail(
    transport: &Transport,
    namespace: &str,
    pod: &str,
    container: &str,
    lines: usize,
) -> Result<Vec<u8>, Problem> {
    let pods = Resource::built_in("", "Pod", "pods", true);
    let logs = Resource::built_in("", "Pod", "pods/log", true);
    let path = pods.path(Some(namespace), Some(pod));
    let call = ApiRequest {
        verb: "get",
        resource: Some(&logs),
        namespace: Some(namespace),
        name: Some(pod),
        uri: format!("{path}/log?container={}&tailLines={lines}", encode(container)),
        ..ApiRequest::default()
    };
    let read = async {
        let content =
            transport.content(&call).await.map_err(|failure| failure.into_problem(&call, transport.peer()))?;
        let mut content = content.map_err(|code| Problem::new(format!("the API server responded with {code}")))?;
        let mut bytes = Vec::new();
        while let Some(part) =
            transport.next_part(&mut content).await.map_err(|failure| failure.into_problem(&call, transport.peer()))?
        {
            bytes.extend_from_slice(&part);
            if bytes.len() >= MAX_BYTES {
                bytes.truncate(MAX_BYTES);
                break;
            }
        }
        Ok(bytes)
    };
    let late = || Problem::new(format!("no answer within {}s", LIMIT.as_secs()));
    timeout(LIMIT, read).await.unwrap_or_else(|_| Err(late()))
}
