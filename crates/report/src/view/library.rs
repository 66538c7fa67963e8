//! What a new release of a library changes in the types that CRDs embed, as one: `57 of 59 errors are the embedded core/v1
//! PodTemplateSpec: k8s.io/api 0.29 → 0.31`.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::causes::GroupedFinding;
use super::groups::{Block, RuleBlocks};
use super::phrases::severity_word;
use gantry_core::finding::{Breaks, Examined, LibraryChange, Severity};
use gantry_core::text;

/// Fewer findings are shown one by one.
const FEWEST: usize = 3;
/// The maximum number of types that are named.
const NAMED: usize = 3;
const LONGEST_NAME: usize = 100;

/// The findings of one severity that one bump of a library explains, and that hurt no existing object.
pub struct LibraryBump<'a> {
    /// In the order of the report.
    pub blocks: Vec<Block<'a>>,
    /// The releases that agree with all of them.
    from: Vec<&'a str>,
    to: Vec<&'a str>,
}

/// Takes out what bumps of libraries explain, where it is more than a few findings.
pub fn take_bumps<'a>(kinds: &mut Vec<RuleBlocks<'a>>) -> Vec<LibraryBump<'a>> {
    let mut bumps: Vec<LibraryBump<'a>> = Vec::new();
    let mut bump_of: Vec<Vec<Option<usize>>> = Vec::new();
    for kind in kinds.iter() {
        let of_kind = kind.blocks.iter().map(|block| {
            let change = explained(block)?;
            let agrees = |bump: &LibraryBump<'_>| {
                common(&bump.from, &change.from).next().is_some() && common(&bump.to, &change.to).next().is_some()
            };
            let at = bumps.iter().position(agrees).unwrap_or_else(|| {
                let names = |all: &'a [String]| all.iter().map(String::as_str).collect();
                bumps.push(LibraryBump { blocks: Vec::new(), from: names(&change.from), to: names(&change.to) });
                bumps.len() - 1
            });
            let bump = &mut bumps[at];
            bump.from = common(&bump.from, &change.from).collect();
            bump.to = common(&bump.to, &change.to).collect();
            Some(at)
        });
        bump_of.push(of_kind.collect());
    }
    let mut sizes = vec![0; bumps.len()];
    for (kind, bump_of) in kinds.iter().zip(&bump_of) {
        for (block, bump) in kind.blocks.iter().zip(bump_of) {
            bump.iter().for_each(|at| sizes[*at] += block.findings());
        }
    }
    for (kind, bump_of) in kinds.iter_mut().zip(bump_of) {
        let blocks = std::mem::take(&mut kind.blocks);
        for (block, bump) in blocks.into_iter().zip(bump_of) {
            match bump.filter(|at| sizes[*at] >= FEWEST) {
                Some(at) => bumps[at].blocks.push(block),
                None => kind.blocks.push(block),
            }
        }
    }
    kinds.retain(|kind| !kind.blocks.is_empty());
    bumps.retain(|bump| !bump.blocks.is_empty());
    bumps
}

/// The change of the library that explains everything in the block, unless it hurts an existing object, which is always
/// shown.
fn explained<'a>(block: &Block<'a>) -> Option<&'a LibraryChange> {
    let changes = block.causes().flat_map(|cause| std::iter::once(cause.finding).chain(cause.others.iter().copied()));
    let mut first = None;
    for finding in changes {
        let body = &finding.body;
        let hurts = body.evidence.as_ref().is_some_and(|evidence| evidence.examined == Examined::Affected);
        if hurts || body.affected.is_some() || finding.refused_by_server {
            return None;
        }
        let change = body.library_change.as_ref()?;
        let known = first.get_or_insert(change);
        if (&known.from, &known.to) != (&change.from, &change.to) {
            return None;
        }
    }
    first
}

fn common<'l, 'a>(these: &'l [&'a str], those: &'l [String]) -> impl Iterator<Item = &'a str> + use<'l, 'a> {
    these.iter().copied().filter(|one| those.iter().any(|other| other == one))
}

impl<'a> LibraryBump<'a> {
    pub fn causes(&self) -> impl Iterator<Item = &'a GroupedFinding<'a>> {
        self.blocks.iter().flat_map(Block::causes)
    }

    /// The number of findings.
    pub fn findings(&self) -> usize {
        self.blocks.iter().map(Block::findings).sum()
    }

    /// The CRDs: the name of the only one, or their number.
    pub fn crds(&self) -> String {
        let mut names: Vec<&str> =
            self.causes().filter_map(|cause| Some(&*cause.finding.object.as_ref()?.name)).collect();
        names.sort_unstable();
        names.dedup();
        match names[..] {
            [only] => text::cut(&text::sanitize(only), LONGEST_NAME).into_owned(),
            _ => text::count(names.len(), "CRD"),
        }
    }

    /// The block that stands for all: one that loses data if there is any, and that has an object as its proof.
    pub fn worst(&self) -> Option<&Block<'a>> {
        let rank = |block: &&Block<'a>| {
            let of_breaks = |breaks: &Breaks| match breaks {
                Breaks::Data => 0,
                Breaks::StoredObjects => 1,
                Breaks::Writers => 2,
                Breaks::Readers => 3,
                Breaks::Behaviour => 4,
            };
            let breaks = block.causes().flat_map(|cause| cause.breaks()).map(|breaks| of_breaks(&breaks)).min();
            let has_witness = block.causes().any(|cause| !cause.finding.body.witnesses.is_empty());
            (block.causes().all(GroupedFinding::breaks_nothing), breaks.unwrap_or(5), !has_witness)
        };
        self.blocks.iter().min_by_key(rank)
    }

    /// `57 of 59 errors are the embedded core/v1 PodTemplateSpec: k8s.io/api 0.29 → 0.31`, of `total` findings of the
    /// severity.
    pub fn sentence(&self, severity: Severity, total: usize) -> String {
        let of = match self.findings() {
            all if all == total => format!("all {all} {}s are", severity_word(severity)),
            some => format!("{some} of {} are", text::count(total, severity_word(severity))),
        };
        format!("{of} {}", self.describe(self.causes()))
    }

    /// `the embedded core/v1 PodTemplateSpec: k8s.io/api 0.29 → 0.31`, of some of its findings.
    pub fn describe<'c>(&self, causes: impl Iterator<Item = &'c GroupedFinding<'c>>) -> String {
        let mut types: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
        for change in causes.filter_map(|cause| cause.finding.body.library_change.as_ref()) {
            types.entry(&change.embedded).or_insert((0, &change.module)).0 += 1;
        }
        let mut types: Vec<(&str, (usize, &str))> = types.into_iter().collect();
        types.sort_by_key(|(_, (findings, _))| Reverse(*findings));
        let module = types.first().map(|(_, (_, module))| *module).unwrap_or_default();
        let names: Vec<&str> = types.iter().map(|(name, _)| *name).collect();
        let names = match &names[..] {
            [] => String::new(),
            [only] => (*only).to_owned(),
            [all @ .., last] if names.len() <= NAMED => format!("{} and {last}", all.join(", ")),
            many => format!("{} and {} other types", many[..NAMED - 1].join(", "), many.len() - NAMED + 1),
        };
        let bump = format!("{} {}", module, self.releases().unwrap_or_default());
        let line = format!("the embedded {names}: {}", bump.trim_end());
        text::sanitize(&line).into_owned()
    }

    fn releases(&self) -> Option<String> {
        releases(&self.from, &self.to)
    }
}

/// `k8s.io/api 0.29 → 0.31: core/v1 PodTemplateSpec at ^.spec.template`
pub fn describe(change: &LibraryChange) -> String {
    let names = |all: &'_ [String]| all.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
    let (from, to) = (names(&change.from), names(&change.to));
    let releases = releases(&from.lines().collect::<Vec<_>>(), &to.lines().collect::<Vec<_>>());
    let releases = releases.map(|releases| format!(" {releases}")).unwrap_or_default();
    let short = |name: &str| text::cut(&text::sanitize(name), LONGEST_NAME).into_owned();
    format!("{}{releases}: {} at {}", short(&change.module), short(&change.embedded), text::sanitize(&change.path))
}

/// `0.29 → 0.31`; `None` if the releases of a side are no range.
fn releases(from: &[&str], to: &[&str]) -> Option<String> {
    Some(format!("{} → {}", range(from)?, range(to)?))
}

/// `0.29`, `0.29–0.30`
fn range(releases: &[&str]) -> Option<String> {
    let minor = |release: &str| release.rsplit('.').next()?.parse::<u64>().ok();
    let minors: Vec<u64> = releases.iter().filter_map(|release| minor(release)).collect();
    let is_range = minors.len() == releases.len() && minors.windows(2).all(|pair| pair[0] + 1 == pair[1]);
    match (releases, is_range) {
        ([only], true) => Some((*only).to_owned()),
        ([first, .., last], true) => Some(format!("{first}–{last}")),
        _ => None,
    }
}
