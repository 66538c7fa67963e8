//! The members of an app with their uids, as the parent keeps them: one line each.

use std::collections::BTreeSet;
use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::{GzDecoder, GzEncoder};
use ring::digest::{Context, SHA256};

use super::config_map::ConfigMap;
use gantry_core::resource::{ObjectRef, is_dns_label, is_path_segment};

/// Lines of at least this many bytes are packed.
const PACKED: usize = 512 << 10;
/// An object of the API server has at most 1.5 MB, and a ConfigMap 1 MiB, of which the inventory leaves some.
const MOST: usize = 900 << 10;
/// Enough for a few hundred thousand members; no real app has more.
pub(crate) const MOST_PARTS: usize = 16;
/// No real inventory is larger; a text that unpacks to more is refused.
const MOST_UNPACKED: u64 = 64 << 20;

/// The escape for a space in a name, which RBAC names can contain. No name contains a percent sign.
const SPACE: &str = "%20";
/// What follows the uid of a member that existed before the app, and of one whose manifest keeps it.
const ADOPTED: &str = " adopted";
const KEEP: &str = " keep:";

/// One object of an app. Its uid is empty from the moment when a run records that it is going to create the object
/// until it knows the uid.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AppMember {
    /// Empty for the core group.
    pub group: String,
    /// The kind at any version.
    pub kind: String,
    /// `None` for a cluster-scoped object.
    pub namespace: Option<String>,
    /// The name of the object.
    pub name: String,
    /// Empty if the object was recorded before it was created.
    pub uid: String,
    /// Whether it existed before the app.
    pub adopted: bool,
    /// The annotation by which its last manifest keeps it in the cluster.
    pub keep: Option<String>,
}

impl AppMember {
    /// The member that this object is.
    pub fn new(object: &ObjectRef, uid: &str, adopted: bool) -> Self {
        AppMember {
            group: object.group().to_owned(),
            kind: object.kind.clone(),
            namespace: object.namespace.clone(),
            name: object.name.clone(),
            uid: uid.to_owned(),
            adopted,
            keep: None,
        }
    }

    /// Whether a run was going to create the object and did not record its uid.
    pub(crate) fn is_pending(&self) -> bool {
        self.uid.is_empty()
    }

    /// The identity of the object, regardless of its version.
    pub fn identity(&self) -> (&str, &str, Option<&str>, &str) {
        (&self.group, &self.kind, self.namespace.as_deref(), &self.name)
    }

    /// The kind as an ApplySet writes it: `Deployment.apps`, `ConfigMap`.
    pub fn group_kind(&self) -> String {
        group_kind(&self.group, &self.kind)
    }
}

/// `Deployment.apps`, `ConfigMap`.
pub fn group_kind(group: &str, kind: &str) -> String {
    if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") }
}

/// Lines of members as an object stores them: the text, and whether it is packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberLines {
    /// One line for each member, or these lines compressed and in base64.
    pub text: String,
    /// Whether the text is compressed.
    pub packed: bool,
}

/// How an inventory is stored.
#[derive(Debug, PartialEq, Eq)]
pub enum Inventory {
    /// In the record.
    Whole(MemberLines),
    /// In separate objects: see [`super::parts`].
    Split(Vec<MemberLines>),
}

const PLAIN_KEY: &str = "inventory";
const PACKED_KEY: &str = "inventory.gz";
/// The keys of `data` that can contain an inventory. If there are two, an empty one does not count.
pub(crate) const KEYS: [&str; 2] = [PLAIN_KEY, PACKED_KEY];

fn line(AppMember { group, kind, namespace, name, uid, adopted, keep }: &AppMember) -> String {
    let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    let namespace = or_dash(namespace.as_deref().unwrap_or_default());
    let adopted = if *adopted { ADOPTED } else { "" };
    let keep = keep.as_ref().map(|key| format!("{KEEP}{key}")).unwrap_or_default();
    let name = name.replace(' ', SPACE);
    format!("{} {kind} {namespace} {name} {}{adopted}{keep}\n", or_dash(group), or_dash(uid))
}

/// A checksum of an inventory that does not depend on the order, packing or splitting of its lines: their number, and
/// the SHA-256 of the sorted lines in hexadecimal digits.
pub(crate) fn sum(members: &BTreeSet<AppMember>) -> String {
    let lines: BTreeSet<String> = members.iter().map(line).collect();
    let mut hash = Context::new(&SHA256);
    lines.iter().for_each(|line| hash.update(line.as_bytes()));
    let mut sum = format!("{} ", lines.len());
    hash.finish().as_ref().iter().for_each(|byte| sum.push_str(&format!("{byte:02x}")));
    sum
}

/// Checks that the members match the sum.
///
/// # Errors
/// How they differ.
pub(crate) fn is_of(sum: &str, members: &BTreeSet<AppMember>) -> Result<(), String> {
    let now = self::sum(members);
    if now == sum {
        return Ok(());
    }
    let count = |sum: &str| sum.split_once(' ')?.0.parse::<usize>().ok();
    Err(match (count(&now), count(sum)) {
        (Some(now), Some(before)) if now != before => {
            format!(
                "the inventory lists {}, but had {before} when it was written",
                gantry_core::text::count(now, "object")
            )
        }
        _ => "the inventory does not list the objects that it had when it was written".to_owned(),
    })
}

impl MemberLines {
    fn of_members<'m>(members: impl IntoIterator<Item = &'m AppMember>) -> Self {
        let text: String = members.into_iter().map(line).collect();
        if text.len() < PACKED {
            return MemberLines { text, packed: false };
        }
        let mut bytes = Vec::new();
        // Reading from and writing to memory cannot fail.
        let _ = GzEncoder::new(text.as_bytes(), Compression::default()).read_to_end(&mut bytes);
        MemberLines { text: STANDARD.encode(bytes), packed: true }
    }

    /// The text in a ConfigMap; `None` if it has none.
    pub fn read(config_map: &ConfigMap) -> Option<Self> {
        let packed = config_map.value(PACKED_KEY).filter(|text| !text.is_empty());
        let text = packed.or_else(|| config_map.value(PLAIN_KEY))?.to_owned();
        Some(MemberLines { text, packed: packed.is_some() })
    }

    /// The key of `data` for it.
    pub fn key(&self) -> &'static str {
        if self.packed { PACKED_KEY } else { PLAIN_KEY }
    }
}

/// # Errors
/// More members than any app has.
pub fn encode(members: &BTreeSet<AppMember>) -> Result<Inventory, String> {
    let whole = MemberLines::of_members(members);
    if whole.text.len() <= MOST {
        return Ok(Inventory::Whole(whole));
    }
    // Some names compress better than others, so equal numbers of members may not be enough.
    for count in whole.text.len().div_ceil(MOST)..=MOST_PARTS {
        let members: Vec<&AppMember> = members.iter().collect();
        let parts = members.chunks(members.len().div_ceil(count));
        let texts: Vec<MemberLines> = parts.map(|part| MemberLines::of_members(part.iter().copied())).collect();
        if texts.iter().all(|text| text.text.len() <= MOST) {
            return Ok(Inventory::Split(texts));
        }
    }
    Err(format!("its inventory of {} objects does not fit into {MOST_PARTS} ConfigMaps", members.len()))
}

/// Reads an inventory from its parts.
///
/// # Errors
/// Why it is not an inventory, or the line that cannot be read.
pub(crate) fn decode(texts: &[MemberLines]) -> Result<BTreeSet<AppMember>, String> {
    let (mut members, mut left) = (BTreeSet::new(), MOST_UNPACKED);
    for MemberLines { text, packed } in texts {
        let mut unpacked = String::new();
        if *packed {
            let bytes = STANDARD.decode(text.trim()).map_err(|_| "the inventory is not base64".to_owned())?;
            let read = GzDecoder::new(&bytes[..]).take(left + 1).read_to_string(&mut unpacked);
            read.map_err(|_| "the inventory cannot be unpacked".to_owned())?;
        }
        let text = if *packed { &unpacked } else { text };
        left = left.checked_sub(text.len() as u64).ok_or("the inventory is too long")?;
        for (index, line) in text.lines().enumerate() {
            members.insert(member(line).ok_or_else(|| format!("line {} of the inventory cannot be read", index + 1))?);
        }
    }
    Ok(members)
}

fn member(line: &str) -> Option<AppMember> {
    let (line, keep) = match line.split_once(KEEP) {
        Some((line, key)) if !key.is_empty() && !key.contains(' ') => (line, Some(key.to_owned())),
        Some(_) => return None,
        None => (line, None),
    };
    let (line, adopted) = line.strip_suffix(ADOPTED).map_or((line, false), |line| (line, true));
    let words: Vec<&str> = line.split(' ').collect();
    let [group, kind, namespace, name, uid] = words[..] else { return None };
    let dash = |text: &str| (text != "-").then(|| text.to_owned());
    let member = AppMember {
        group: dash(group).unwrap_or_default(),
        kind: kind.to_owned(),
        namespace: dash(namespace),
        name: name.replace(SPACE, " "),
        uid: dash(uid).unwrap_or_default(),
        adopted,
        keep,
    };
    is_valid(&member, uid).then_some(member)
}

/// Whether the line can be of an object. Anyone who may write the record could otherwise lead a user with more rights
/// to any path of the API server.
fn is_valid(AppMember { group, kind, namespace, name, .. }: &AppMember, uid: &str) -> bool {
    let is_word = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    is_group_kind(&group_kind(group, kind))
        && is_word(kind)
        && namespace.as_deref().is_none_or(is_dns_label)
        && is_path_segment(name)
        && is_word(uid)
}

/// Whether this can be a kind as [`group_kind`] writes it.
pub(crate) fn is_group_kind(text: &str) -> bool {
    let is_word = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    text.split('.').all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(number: usize) -> BTreeSet<AppMember> {
        let member = |index: usize| AppMember {
            group: if index.is_multiple_of(2) { String::new() } else { "apps".into() },
            kind: "Deployment".into(),
            namespace: (!index.is_multiple_of(3)).then(|| "prod".into()),
            name: format!("web:{index} x"),
            uid: format!("{index:08x}-0000-4000-8000-{index:012x}"),
            adopted: index.is_multiple_of(5),
            keep: index.is_multiple_of(7).then(|| "helm.sh/resource-policy".into()),
        };
        (0..number).map(member).collect()
    }

    fn whole(members: &BTreeSet<AppMember>) -> MemberLines {
        match encode(members).unwrap() {
            Inventory::Whole(text) => text,
            Inventory::Split(_) => panic!("too many"),
        }
    }

    #[test]
    fn an_inventory_that_is_written_is_read_back() {
        for number in [0, 1, 7, 10_000] {
            let text = whole(&members(number));
            assert_eq!((text.packed, text.text.len() < MOST), (number > 1000, true));
            assert_eq!(decode(&[text]), Ok(members(number)));
        }
    }

    /// With names that do not compress.
    fn long(number: usize) -> BTreeSet<AppMember> {
        let name = |member: &AppMember| {
            let hash = ring::digest::digest(&ring::digest::SHA512, member.name.as_bytes());
            hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
        };
        members(number).into_iter().map(|member| AppMember { name: name(&member), ..member }).collect()
    }

    #[test]
    fn an_inventory_that_is_too_large_is_split_the_same_way_every_time() {
        let members = long(20_000);
        let Ok(Inventory::Split(texts)) = encode(&members) else { panic!("not split") };
        assert!(texts.len() > 1 && texts.iter().all(|text| text.text.len() <= MOST), "{}", texts.len());
        assert_eq!(encode(&members), Ok(Inventory::Split(texts.clone())));
        assert_eq!(decode(&texts).as_ref(), Ok(&members));
        assert!(decode(&texts[1..]).unwrap().len() < members.len());
        let many = encode(&long(200_000)).unwrap_err();
        assert_eq!(many, "its inventory of 200000 objects does not fit into 16 ConfigMaps");
    }

    /// The same as `sort | sha256sum`.
    #[test]
    fn a_sum_is_that_of_the_lines_whatever_their_order() {
        let two = decode(&[MemberLines {
            text: "apps Deployment web b u\n- ConfigMap - a v adopted\n".into(),
            packed: false,
        }]);
        let of_two = sum(&two.unwrap());
        assert_eq!(of_two, "2 df04cbca279207e8225ce9b8eb420e4bc21c597d222c76dbb9c5c804b6c3e475");
        assert_eq!(sum(&BTreeSet::new()), "0 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        let many = members(7);
        let Inventory::Whole(text) = encode(&many).unwrap() else { panic!("too many") };
        let backwards: String = text.text.lines().rev().map(|line| format!("{line}\n")).collect();
        let backwards = decode(&[MemberLines { text: backwards, packed: false }]).unwrap();
        assert_eq!(is_of(&sum(&many), &backwards), Ok(()));
        let fewer = members(6);
        assert_eq!(
            is_of(&sum(&many), &fewer).unwrap_err(),
            "the inventory lists 6 objects, but had 7 when it was written"
        );
        let adopted = many.iter().map(|member| AppMember { adopted: true, ..member.clone() }).collect();
        let others = "the inventory does not list the objects that it had when it was written";
        for sum in [&*sum(&adopted), "7", "", "x y"] {
            assert_eq!(is_of(sum, &many).unwrap_err(), others, "{sum}");
        }
    }

    #[test]
    fn an_inventory_line_that_would_lead_to_another_path_is_refused() {
        let decode = |line: &str| decode(&[MemberLines { text: format!("{line}\n"), packed: false }]);
        for line in [
            "- ConfigMap prod a u",
            "- ConfigMap prod a -",
            "rbac.authorization.k8s.io ClusterRole - system:a%20b u adopted",
            "shop.example.com Shop prod a 0f-1 keep:helm.sh/resource-policy",
        ] {
            assert!(decode(line).is_ok(), "{line}");
        }
        for line in [
            "- ConfigMap prod ../../services/x/proxy u",
            "- ConfigMap prod a/b u",
            "- ConfigMap prod .. u",
            "- ConfigMap prod a%2fb u",
            "- ConfigMap prod a%252fb u",
            "- ConfigMap prod/pods/x a u",
            "- ConfigMap .. a u",
            "- Config/Map prod a u",
            "- .. prod a u",
            "../v1 ConfigMap prod a u",
            "g/v1 ConfigMap prod a u",
            ".. ConfigMap prod a u",
            "- ConfigMap prod a ../u",
            "- ConfigMap prod a u,v",
        ] {
            assert!(decode(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_cut_off_inventory_is_an_error_and_not_a_shorter_inventory() {
        let decode = |text: &str, packed| decode(&[MemberLines { text: text.to_owned(), packed }]);
        assert_eq!(
            decode("- ConfigMap prod a u\n- ConfigMap prod b\n", false),
            Err("line 2 of the inventory cannot be read".into())
        );
        assert!(decode("- ConfigMap prod  u\n", false).is_err());
        assert!(decode("\n", false).is_err());
        for end in [" adopte", " adopted ", " keep:", " keep", " adopted adopted", " keep:a adopted"] {
            assert!(decode(&format!("- ConfigMap prod a u{end}\n"), false).is_err(), "{end}");
        }
        let whole = whole(&members(10_000)).text;
        assert!(decode(&whole[..whole.len() / 8 * 4], true).is_err());
        assert!(decode("%", true).is_err());
    }
}
