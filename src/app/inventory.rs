//! The members of an app with their uids, as the parent keeps them: one line each.

use std::collections::BTreeSet;
use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::{GzDecoder, GzEncoder};

use crate::resource::ObjectRef;

/// From so many bytes on the lines are packed.
const PACKED: usize = 512 << 10;
/// An object of the API server has at most 1.5 MB, of which the inventory leaves some.
const MOST: usize = 900 << 10;
/// Nobody's lines come to more; a text that unpacks to more is no inventory.
const MOST_UNPACKED: u64 = 64 << 20;

/// A space in a name, as those of RBAC may have: no name has a percent sign.
const SPACE: &str = "%20";

/// One object of an app.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// Empty for the core group.
    pub group: String,
    pub kind: String,
    pub namespace: Option<String>,
    pub name: String,
    pub uid: String,
    /// It was there before the app was.
    pub adopted: bool,
}

impl Member {
    pub fn of(object: &ObjectRef, uid: &str, adopted: bool) -> Self {
        Member {
            group: object.group().to_owned(),
            kind: object.kind.clone(),
            namespace: object.namespace.clone(),
            name: object.name.clone(),
            uid: uid.to_owned(),
            adopted,
        }
    }

    /// What makes it the same object at whatever version.
    pub fn identity(&self) -> (&str, &str, Option<&str>, &str) {
        (&self.group, &self.kind, self.namespace.as_deref(), &self.name)
    }

    /// As an ApplySet names kinds: `Deployment.apps`, `ConfigMap`.
    pub fn group_kind(&self) -> String {
        group_kind(&self.group, &self.kind)
    }
}

/// `Deployment.apps`, `ConfigMap`.
pub fn group_kind(group: &str, kind: &str) -> String {
    if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") }
}

/// What the parent keeps: the text, and whether it is packed.
#[derive(Debug, PartialEq, Eq)]
pub struct Encoded {
    pub text: String,
    pub packed: bool,
}

/// # Errors
/// More members than one object of the server can hold.
pub fn encode(members: &BTreeSet<Member>) -> Result<Encoded, String> {
    let mut text = String::new();
    for Member { group, kind, namespace, name, uid, adopted } in members {
        let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
        let namespace = or_dash(namespace.as_deref().unwrap_or_default());
        let adopted = if *adopted { " adopted" } else { "" };
        let name = name.replace(' ', SPACE);
        text.push_str(&format!("{} {kind} {namespace} {name} {uid}{adopted}\n", or_dash(group)));
    }
    if text.len() < PACKED {
        return Ok(Encoded { text, packed: false });
    }
    let mut bytes = Vec::new();
    // Neither memory nor a text in it has errors to give.
    let _ = GzEncoder::new(text.as_bytes(), Compression::default()).read_to_end(&mut bytes);
    let text = STANDARD.encode(bytes);
    match text.len() > MOST {
        true => Err(format!("its inventory of {} objects does not fit into one ConfigMap", members.len())),
        false => Ok(Encoded { text, packed: true }),
    }
}

/// # Errors
/// What is no inventory: the line that cannot be read.
pub fn decode(text: &str, packed: bool) -> Result<BTreeSet<Member>, String> {
    let unpacked;
    let text = match packed {
        false => text,
        true => {
            let bytes = STANDARD.decode(text.trim()).map_err(|_| "the inventory is not base64".to_owned())?;
            let mut out = String::new();
            let read = GzDecoder::new(&bytes[..]).take(MOST_UNPACKED + 1).read_to_string(&mut out);
            let read = read.map_err(|_| "the inventory cannot be unpacked".to_owned())?;
            if read as u64 > MOST_UNPACKED {
                return Err("the inventory is too long".to_owned());
            }
            unpacked = out;
            &unpacked
        }
    };
    text.lines()
        .enumerate()
        .map(|(index, line)| member(line).ok_or_else(|| format!("line {} of the inventory", index + 1)))
        .collect()
}

fn member(line: &str) -> Option<Member> {
    let words: Vec<&str> = line.split(' ').collect();
    let (group, kind, namespace, name, uid, adopted) = match words[..] {
        [group, kind, namespace, name, uid] => (group, kind, namespace, name, uid, false),
        [group, kind, namespace, name, uid, "adopted"] => (group, kind, namespace, name, uid, true),
        _ => return None,
    };
    let dash = |text: &str| (text != "-").then(|| text.to_owned());
    (![kind, name, uid].contains(&"")).then(|| Member {
        group: dash(group).unwrap_or_default(),
        kind: kind.to_owned(),
        namespace: dash(namespace),
        name: name.replace(SPACE, " "),
        uid: uid.to_owned(),
        adopted,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(number: usize) -> BTreeSet<Member> {
        let member = |index: usize| Member {
            group: if index.is_multiple_of(2) { String::new() } else { "apps".into() },
            kind: "Deployment".into(),
            namespace: (!index.is_multiple_of(3)).then(|| "prod".into()),
            name: format!("web:{index} x"),
            uid: format!("{index:08x}-0000-4000-8000-{index:012x}"),
            adopted: index.is_multiple_of(5),
        };
        (0..number).map(member).collect()
    }

    #[test]
    fn what_is_written_is_read_back() {
        for number in [0, 1, 7, 10_000] {
            let encoded = encode(&members(number)).unwrap();
            assert_eq!((encoded.packed, encoded.text.len() < MOST), (number > 1000, true));
            assert_eq!(decode(&encoded.text, encoded.packed), Ok(members(number)));
        }
    }

    #[test]
    fn half_an_inventory_is_an_error_and_never_a_shorter_one() {
        assert_eq!(decode("- ConfigMap prod a u\n- ConfigMap prod b\n", false), Err("line 2 of the inventory".into()));
        assert!(decode("- ConfigMap prod  u\n", false).is_err());
        assert!(decode("\n", false).is_err());
        let whole = encode(&members(10_000)).unwrap().text;
        assert!(decode(&whole[..whole.len() / 8 * 4], true).is_err());
        assert!(decode("%", true).is_err());
    }
}
