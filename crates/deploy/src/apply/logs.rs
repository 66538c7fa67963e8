//! The last log lines of a container, which often show why a Pod does not run.

use crate::readiness;
use gantry_cluster::{ObjectToRead, Target};
use gantry_core::problem::{Log, Problem};
use gantry_core::resource::{ObjectRef, Resource};
use gantry_core::text;

/// The maximum number of lines that are shown, and of characters per line.
const LINES: usize = 10;
const LONGEST: usize = 400;

/// The last log lines of the container that keeps a Pod from being ready. `None` if it wrote nothing, or never ran.
///
/// # Errors
/// The Pod or its log cannot be read.
pub async fn read_last_lines(pod: &ObjectRef, target: &Target) -> Result<Option<Log>, Problem> {
    let unread = |problem: Problem| {
        let message = format!("the log of {pod} cannot be read: {}", problem.message);
        Problem { message, ..problem }
    };
    let wanted =
        ObjectToRead { resource: Resource::built_in("", "Pod", "pods", true).into(), object: pod.clone().into() };
    let read =
        target.read_each(&[wanted], &|_, _| ()).await.map_err(|error| unread(Problem::new(error.to_string())))?;
    let Some(live) = read.into_iter().next().unwrap_or(Ok(None)).map_err(unread)? else { return Ok(None) };
    let Some(container) = readiness::logging_container(&live.raw.value()) else { return Ok(None) };
    let namespace = pod.namespace.as_deref().unwrap_or_default();
    let bytes = target.log(namespace, &pod.name, &container, LINES).await.map_err(unread)?;
    let lines = last_lines(&bytes);
    let log = Log { pod: pod.name.clone(), container: text::sanitize(&container).into_owned(), lines };
    Ok((!log.lines.is_empty()).then_some(log))
}

/// Makes the text safe for a terminal.
fn last_lines(bytes: &[u8]) -> Vec<String> {
    let mut lines: Vec<&[u8]> =
        bytes.rsplit(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).take(LINES).collect();
    lines.reverse();
    let show = |line: &[u8]| {
        // A character takes at most four bytes.
        let line = String::from_utf8_lossy(&line[..line.len().min(4 * LONGEST)]);
        let line = line.trim_end().replace('\t', "    ");
        text::sanitize(&text::cut(&line, LONGEST)).into_owned()
    };
    lines.into_iter().map(show).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_of_a_log_are_bounded_and_escaped() {
        let text = (0..30).map(|number| format!("line {number}\n\n")).collect::<String>();
        let lines = last_lines(text.as_bytes());
        assert_eq!((lines.len(), lines[0].as_str(), lines[9].as_str()), (10, "line 20", "line 29"));
        assert_eq!(last_lines(b"\ta\x1b[2Jb\r\n\xff\xfe"), ["    a\\u{1b}[2Jb", "\u{fffd}\u{fffd}"]);
        let long = last_lines("ä".repeat(1 << 20).as_bytes());
        assert_eq!((long.len(), long[0].chars().count()), (1, LONGEST));
        assert!(last_lines(b" \n\n").is_empty());
    }
}
