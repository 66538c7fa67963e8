//! From text to nodes: the parser's events in one flat list.
//!
//! Aliases are kept as references, so the memory for a document is proportional to its length, regardless of its
//! expansion. [`super::decode`] expands them within a budget.

use std::borrow::Cow;
use std::collections::HashMap;

use libyaml_safer::{Event, EventData, ScalarStyle};

use super::document::{NodeStart, RawYamlNode, YamlDocument, YamlNodeKind, error_at, too_deep};
use super::libyaml::{explain, parser, place, trim_added_break};
use super::limits::{MAX_BYTES, MAX_DEPTH, MAX_NODES};
use super::{YamlError, block, flow, guard};

/// Reads one document; `None` if it is empty.
pub(super) fn compose(text: &str) -> Result<Option<YamlDocument<'_>>, YamlError> {
    match block::compose(text).or_else(|| flow::compose(text)) {
        Some(document) => Ok(Some(document)),
        None => compose_any(text),
    }
}

/// Reads one document of any style with libyaml.
pub(super) fn compose_any(text: &str) -> Result<Option<YamlDocument<'static>>, YamlError> {
    if text.len() > MAX_BYTES {
        return Err(YamlError {
            line: 1,
            column: 1,
            message: format!("a document can have at most {MAX_BYTES} bytes"),
        });
    }
    guard::check(text)?;
    let composer = Composer { nodes: Vec::new(), open: Vec::new(), anchors: HashMap::new(), last_end: 0 };
    composer.run(text)
}

struct Composer {
    nodes: Vec<RawYamlNode<'static>>,
    /// The collections that are still open.
    open: Vec<u32>,
    anchors: HashMap<String, u32>,
    /// The end of the last scalar, alias or bracket.
    last_end: u32,
}

impl Composer {
    fn run(mut self, text: &str) -> Result<Option<YamlDocument<'static>>, YamlError> {
        let mut parser = parser(text);
        let mut documents = 0;
        loop {
            let event = parser.parse().map_err(|error| explain(&error, text))?;
            match event.data {
                EventData::StreamEnd => break,
                EventData::DocumentStart { version_directive, .. } => {
                    if version_directive.is_some_and(|version| (version.major, version.minor) != (1, 1)) {
                        let message =
                            "kubectl reads YAML 1.1 and refuses any other %YAML version: remove the directive";
                        return Err(error_at(place(&event), message.into()));
                    }
                    documents += 1;
                    if documents > 1 {
                        let message = "a second document starts here, where only one is expected".to_owned();
                        return Err(error_at(place(&event), message));
                    }
                }
                EventData::StreamStart { .. } | EventData::DocumentEnd { .. } => {}
                _ => self.add_node(event, text)?,
            }
        }
        Ok(YamlDocument::from_nodes(self.nodes))
    }

    fn add_node(&mut self, event: Event, text: &str) -> Result<(), YamlError> {
        let at = place(&event);
        let end = (event.end_mark.index as usize).min(text.len()) as u32;
        let index = self.nodes.len() as u32;
        if self.nodes.len() >= MAX_NODES {
            return Err(error_at(at, format!("the document has more than {MAX_NODES} values")));
        }
        match event.data {
            EventData::Scalar { anchor, tag, mut value, plain_implicit, style, .. } => {
                if matches!(style, ScalarStyle::Literal | ScalarStyle::Folded) {
                    trim_added_break(text, at.start as usize, end as usize, &mut value);
                }
                self.record_anchor(anchor, index);
                let tag = tag.map(String::into_boxed_str);
                let kind = YamlNodeKind::Scalar { value: Cow::Owned(value), tag, plain: plain_implicit };
                self.last_end = end;
                self.nodes.push(RawYamlNode { kind, at, end });
            }
            EventData::Alias { anchor } => {
                let Some(&target) = self.anchors.get(&anchor) else {
                    return Err(error_at(
                        at,
                        format!("the alias *{0} has no anchor &{0} before it", shorten_anchor(&anchor)),
                    ));
                };
                if self.open.contains(&target) {
                    return Err(error_at(at, format!("the anchor &{} contains itself", shorten_anchor(&anchor))));
                }
                self.last_end = end;
                self.nodes.push(RawYamlNode { kind: YamlNodeKind::Alias { target }, at, end });
            }
            EventData::SequenceStart { anchor, .. } => self.open(anchor, YamlNodeKind::Sequence { next: 0 }, at)?,
            EventData::MappingStart { anchor, .. } => self.open(anchor, YamlNodeKind::Mapping { next: 0 }, at)?,
            EventData::SequenceEnd | EventData::MappingEnd => self.close(index, &event.start_mark, end),
            _ => {}
        }
        Ok(())
    }

    fn record_anchor(&mut self, anchor: Option<String>, index: u32) {
        if let Some(anchor) = anchor {
            self.anchors.insert(anchor, index);
        }
    }

    fn open(&mut self, anchor: Option<String>, kind: YamlNodeKind<'static>, at: NodeStart) -> Result<(), YamlError> {
        let index = self.nodes.len() as u32;
        self.record_anchor(anchor, index);
        self.open.push(index);
        if self.open.len() > MAX_DEPTH {
            return Err(error_at(at, too_deep()));
        }
        self.nodes.push(RawYamlNode { kind, at, end: at.start });
        Ok(())
    }

    fn close(&mut self, next_index: u32, start: &libyaml_safer::Mark, end: u32) {
        let Some(opened) = self.open.pop() else { return };
        // A flow collection ends with its bracket. A block collection has no end marker, so use the end of its last
        // child.
        if u64::from(end) > start.index {
            self.last_end = end;
        }
        let raw = &mut self.nodes[opened as usize];
        raw.end = self.last_end.max(raw.end);
        match &mut raw.kind {
            YamlNodeKind::Sequence { next } | YamlNodeKind::Mapping { next } => *next = next_index,
            _ => {}
        }
    }
}

/// A shortened anchor name: it consists of letters and digits, but its length is unlimited.
fn shorten_anchor(anchor: &str) -> &str {
    anchor.get(..60).unwrap_or(anchor)
}
