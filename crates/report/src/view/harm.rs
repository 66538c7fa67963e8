//! The objects that suffer from what blocks, as far as objects were read to find out.

use std::collections::BTreeSet;

use crate::{ClusterReport, Outcome, Report, ReportList};
use gantry_core::finding::{CheckReport, EvidenceObject, Examined, Finding, Severity};
use gantry_core::text;

/// The most affected objects that a sentence names.
const NAMED_OBJECTS: usize = 3;

/// Who suffers from what blocks, in one target or in many clusters.
#[derive(Debug, PartialEq, Eq)]
pub struct HarmSummary {
    /// The number of objects that were read.
    read: u64,
    /// The number of these that suffer.
    pub objects: u64,
    /// The number of manifests of this deploy that suffer.
    pub manifests: u64,
    /// Some of them, as they are shown.
    examples: Vec<String>,
    /// The number of errors whose effect objects do not show.
    pub unknown: usize,
    place: HarmPlace,
}

/// Whose objects were read.
#[derive(Debug, PartialEq, Eq)]
enum HarmPlace {
    Cluster,
    Target,
    /// Many clusters: the word for one, the number of all, of those with objects that suffer, of those whose objects
    /// were read, and of those that are blocked although no object was read.
    Many {
        noun: &'static str,
        all: usize,
        affected: usize,
        examined: usize,
        unexamined: usize,
    },
}

impl HarmSummary {
    /// The sum over a report, or over the reports of many clusters. `None` if no objects were read to find out.
    pub fn new(report: &Report, list: Option<&ReportList>) -> Option<Self> {
        match list {
            Some(list) => Self::of_list(list),
            None => Self::of_report(report),
        }
    }

    fn of_report(report: &Report) -> Option<Self> {
        let coverage = report.checks.iter().flat_map(|check| &check.coverage);
        let mut harms = coverage.filter_map(|one| Some((one.read, one.harm.as_ref()?))).peekable();
        harms.peek()?;
        let place = if report.target.starts_with("kube: ") { HarmPlace::Cluster } else { HarmPlace::Target };
        let unknown = count_unexamined(report);
        let none = HarmSummary { read: 0, objects: 0, manifests: 0, examples: Vec::new(), unknown, place };
        Some(harms.fold(none, |mut sum, (read, harm)| {
            sum.read += read;
            sum.objects += harm.objects;
            sum.manifests += harm.manifests;
            sum.examples.extend(harm.examples.iter().map(name_example));
            sum
        }))
    }

    fn of_list(list: &ReportList) -> Option<Self> {
        let examine = |cluster: &ClusterReport| Self::of_report(&cluster.report);
        let is_stopped = |cluster: &&ClusterReport| {
            matches!(cluster.report.outcome, Outcome::Blocked | Outcome::Failed) && examine(cluster).is_none()
        };
        let unexamined = list.clusters.iter().filter(is_stopped).count();
        let (mut examined, mut affected, mut manifests) = (0, 0, 0);
        let mut sum: Option<Self> = None;
        for (cluster, harm) in list.clusters.iter().filter_map(|cluster| Some((cluster, examine(cluster)?))) {
            examined += 1;
            affected += usize::from(harm.objects > 0);
            // The manifests are the same for all clusters.
            manifests = manifests.max(harm.manifests);
            let name = text::sanitize(&cluster.name);
            let examples = harm.examples.iter().map(|example| format!("{} in {example}", text::cut(&name, 100)));
            let place = HarmPlace::Many { noun: list.noun(), all: list.clusters.len(), affected, examined, unexamined };
            let known = sum.take();
            sum = Some(HarmSummary {
                read: harm.read + known.as_ref().map_or(0, |known| known.read),
                objects: harm.objects + known.as_ref().map_or(0, |known| known.objects),
                manifests,
                unknown: harm.unknown.max(known.as_ref().map_or(0, |known| known.unknown)),
                examples: known.into_iter().flat_map(|known| known.examples).chain(examples).collect(),
                place,
            });
        }
        sum
    }

    /// `Hurts 2 objects of this cluster`, `No object of this cluster is affected`
    pub fn headline(&self) -> String {
        let manifests = match self.manifests {
            0 => String::new(),
            number => format!(", but {} of this deploy", count("manifest", number)),
        };
        let known = if self.unknown > 0 { "known to be " } else { "" };
        match (&self.place, self.objects) {
            (HarmPlace::Many { noun, all, affected, .. }, objects @ 1..) => {
                format!("Hurts {} in {affected} of {}", count("object", objects), text::count(*all, noun))
            }
            (HarmPlace::Many { noun, all, unexamined: 0, .. }, 0) => {
                format!("No object of {} is {known}affected{manifests}", text::count(*all, noun))
            }
            (HarmPlace::Many { noun, all, unexamined, .. }, 0) => {
                let all_of_them = text::count(*all, noun);
                let unread = format!("the objects of {unexamined} of {all_of_them} were not read");
                format!("No object is known to be affected{manifests}; {unread}")
            }
            (_, objects @ 1..) => format!("Hurts {} of {}", count("object", objects), self.place()),
            (_, 0) if self.read == 0 && self.manifests == 0 => {
                format!("No objects of the blocked kinds exist in {}", self.place())
            }
            (_, 0) => format!("No object of {} is {known}affected{manifests}", self.place()),
        }
    }

    /// Whether it is certain that no object suffers.
    pub fn is_harmless(&self) -> bool {
        let is_partial = matches!(self.place, HarmPlace::Many { unexamined: 1.., .. });
        (self.objects, self.manifests, self.unknown) == (0, 0, 0) && !is_partial
    }

    /// `2 of 1,234 objects of this cluster are affected: team-a/batch, team-b/nightly`
    pub fn sentence(&self) -> String {
        let (affected, manifests) = (self.objects, self.manifests);
        let place = self.place();
        let named = self.examples.len().min(NAMED_OBJECTS);
        let mut names = self.examples[..named].join(", ");
        let more = (affected + manifests).saturating_sub(named as u64);
        if more > 0 && !names.is_empty() {
            names.push_str(&format!(" and {} more", text::thousands(more)));
        }
        let but = match self.unknown {
            0 => String::new(),
            1 => "; objects do not show what 1 of the errors breaks".to_owned(),
            many => format!("; objects do not show what {many} of the errors break"),
        };
        match (affected, manifests) {
            (0, 0) if self.read == 0 => format!("no objects of the blocked kinds exist in {place}{but}"),
            (0, 0) => format!("no object of {place} is affected ({} read){but}", count("object", self.read)),
            (0, one) => format!(
                "no object of {place} is affected, but {} of this deploy: {names}{but}",
                text::count(usize::try_from(one).unwrap_or(usize::MAX), "manifest")
            ),
            (affected, _) => {
                let are = if affected == 1 { "is" } else { "are" };
                let all = count("object", self.read);
                format!("{} of {all} of {place} {are} affected: {names}{but}", text::thousands(affected))
            }
        }
    }

    fn place(&self) -> String {
        match self.place {
            HarmPlace::Cluster => "this cluster".to_owned(),
            HarmPlace::Target => "the target".to_owned(),
            HarmPlace::Many { noun, examined, .. } => text::count(examined, noun),
        }
    }
}

/// `1 object`, `1,234 objects`
fn count(word: &str, number: u64) -> String {
    format!("{} {word}{}", text::thousands(number), if number == 1 { "" } else { "s" })
}

fn name_example(object: &EvidenceObject) -> String {
    let name = match &object.namespace {
        Some(namespace) => format!("{namespace}/{}", object.name),
        None => object.name.to_string(),
    };
    let of = if object.from_manifest { " (manifest)" } else { "" };
    format!("{}{of}", text::cut(&text::sanitize(&name), 300))
}

/// The number of errors about CRDs with examined objects whose effect these objects do not show.
fn count_unexamined(report: &Report) -> usize {
    let is_shown = |finding: &Finding| match &finding.body.evidence {
        Some(evidence) => evidence.examined != Examined::No,
        // It is an error although it is proven to harm no object.
        None => finding.body.semantic.is_some_and(|semantic| semantic > Severity::Error),
    };
    let count = |check: &CheckReport| {
        let harmed = check.coverage.iter().filter(|one| one.harm.is_some());
        let covered: BTreeSet<_> = harmed.map(|one| &one.object).collect();
        let errors = check.findings.iter().filter(|finding| finding.severity == Severity::Error && !is_shown(finding));
        errors.filter(|finding| finding.object.as_ref().is_some_and(|object| covered.contains(object))).count()
    };
    report.checks.iter().map(count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    fn with_harm(objects: u64, manifests: u64) -> Report {
        let mut report = samples::evidence();
        // The error that could not be examined.
        report.checks[0].findings.remove(1);
        let harm = report.checks[0].coverage[0].harm.as_mut().expect("objects were read");
        (harm.objects, harm.manifests) = (objects, manifests);
        report
    }

    #[test]
    fn the_headline_says_what_is_known_and_not_more() {
        let headline = |report: &Report| HarmSummary::new(report, None).expect("objects were read").headline();
        assert_eq!(headline(&with_harm(1234, 1)), "Hurts 1,234 objects of this cluster");
        assert_eq!(headline(&with_harm(1, 0)), "Hurts 1 object of this cluster");
        assert_eq!(headline(&with_harm(0, 0)), "No object of this cluster is affected");
        assert_eq!(headline(&with_harm(0, 2)), "No object of this cluster is affected, but 2 manifests of this deploy");
        let mut folder = with_harm(0, 0);
        folder.target = "dir: live".into();
        assert_eq!(headline(&folder), "No object of the target is affected");
        folder.checks[0].coverage[0].read = 0;
        assert_eq!(headline(&folder), "No objects of the blocked kinds exist in the target");
        let mut unknown = samples::evidence();
        unknown.checks[0].coverage[0].harm.as_mut().expect("objects were read").objects = 0;
        unknown.checks[0].coverage[0].harm.as_mut().expect("objects were read").manifests = 0;
        assert_eq!(headline(&unknown), "No object of this cluster is known to be affected");
        assert!(!HarmSummary::new(&unknown, None).expect("objects were read").is_harmless());
        assert_eq!(HarmSummary::new(&samples::blocked(), None), None);
    }

    #[test]
    fn the_objects_of_many_clusters_are_added_up() {
        let cluster = |name: &str, objects| samples::cluster(name, with_harm(objects, 1));
        let headline = |clusters| HarmSummary::new(&samples::blocked(), Some(&ReportList::new(clusters)));
        let two = headline(vec![cluster("a", 3), cluster("b", 4), cluster("c", 0)]).expect("objects were read");
        assert_eq!(two.headline(), "Hurts 7 objects in 2 of 3 clusters");
        assert_eq!(two.manifests, 1, "all clusters get the same manifests");
        assert!(two.sentence().starts_with("7 of 3,702 objects of 3 clusters are affected: a in team-a/nightly, "));
        let unread = headline(vec![cluster("a", 0), samples::cluster("dead", samples::blocked())]);
        let unread = unread.expect("objects were read");
        let expected = "No object is known to be affected, but 1 manifest of this deploy; the objects of 1 of 2 clusters were \
            not read";
        assert_eq!(unread.headline(), expected);
        assert!(!unread.is_harmless());
    }
}
