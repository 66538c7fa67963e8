//! The end of what a container wrote, which the API server has from the kubelet of its node.

use std::time::Duration;

use tokio::time::timeout;

use super::request::{Call, encode};
use super::transport::Transport;
use crate::problem::Problem;
use crate::resource::Resource;

/// A node that does not answer is not waited for any longer: a log is no more than an explanation.
const LIMIT: Duration = Duration::from_secs(10);
/// A line can have any length. What comes after so much is not read.
const MOST_BYTES: usize = 1 << 20;

/// The last lines, as bytes: nobody promises that they are text.
pub async fn tail(
    transport: &Transport,
    namespace: &str,
    pod: &str,
    container: &str,
    lines: usize,
) -> Result<Vec<u8>, Problem> {
    let pods = Resource::built_in("", "Pod", "pods", true);
    let logs = Resource::built_in("", "Pod", "pods/log", true);
    let path = pods.path(Some(&encode(namespace)), Some(&encode(pod)));
    let call = Call {
        verb: "get",
        resource: Some(&logs),
        namespace: Some(namespace),
        name: Some(pod),
        uri: format!("{path}/log?container={}&tailLines={lines}", encode(container)),
        ..Call::default()
    };
    let read = async {
        let content =
            transport.content(&call).await.map_err(|failure| failure.into_problem(&call, transport.peer()))?;
        let mut content = content.map_err(|code| Problem::new(format!("the API server answers {code}")))?;
        let mut bytes = Vec::new();
        while let Some(part) =
            transport.next_part(&mut content).await.map_err(|failure| failure.into_problem(&call, transport.peer()))?
        {
            bytes.extend_from_slice(&part);
            if bytes.len() >= MOST_BYTES {
                bytes.truncate(MOST_BYTES);
                break;
            }
        }
        Ok(bytes)
    };
    let late = || Problem::new(format!("no answer within {}s", LIMIT.as_secs()));
    timeout(LIMIT, read).await.unwrap_or_else(|_| Err(late()))
}
