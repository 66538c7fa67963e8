//! Counts agreements and differences with the server.

use std::collections::{BTreeMap, BTreeSet};

use gantry_k8s_cel::KubernetesRelease;
use gantry_schema::crd::validate;
use serde_json::Value;

use super::Answer;

#[derive(Default)]
pub struct Tally {
    pub taken: usize,
    pub refused: usize,
    messages: usize,
    /// The server's own code failed.
    unanswered: usize,
    /// Refused for the cost of their rules, among other things.
    costly: usize,
    /// Refused for the total cost of rules, but the messages name different rules of the same cost.
    ties: usize,
    undecided: usize,
    /// Refused by both, but the server's message is not compared.
    other_words: usize,
    disagreements: Vec<String>,
}

/// Messages that are not compared: for a default, the server quotes Go's reason why its metadata cannot be decoded; and
/// it repeats that a rule does not compile at each default that the rule applies to.
const OTHER_WORDS: [&str; 3] = ["json: cannot unmarshal ", "parsing time ", "rule compile error: "];

impl Tally {
    pub fn compare(
        &mut self,
        what: &str,
        release: KubernetesRelease,
        (new, old): (&Value, Option<&Value>),
        answer: Answer,
    ) {
        let answer = match answer {
            Ok((200 | 201 | 422, answer)) => answer,
            other => {
                // The server's code fails on a version with selectable fields whose schema it cannot read, and on some
                // rules below a list or map of untyped parts.
                let text = new["spec"].to_string();
                let is_known =
                    ["selectableFields", "x-kubernetes-validations"].iter().any(|field| text.contains(field));
                assert!(is_known, "{what}: {other:?}\n  new {}\n  old {}", new["spec"], old.unwrap_or(&Value::Null));
                self.unanswered += 1;
                return;
            }
        };
        let outcome = validate(new, old, release).unwrap_or_else(|problem| panic!("{problem}: {new}"));
        self.undecided += usize::from(!outcome.undecided.is_empty());
        let mut balances: BTreeMap<(String, String, String), i32> = BTreeMap::new();
        for error in &outcome.refusals {
            let key = (error.path.clone(), error.kind.reason().to_owned(), comparable(&error.body()));
            let balance = balances.entry(key).or_default();
            // The server reports an error in the metadata of an update several times.
            *balance = if error.path.starts_with("metadata.") { 1 } else { *balance + 1 };
        }
        let causes = answer["details"]["causes"].as_array().cloned().unwrap_or_default();
        let has_other_words = |cause: &Value| {
            let message = cause["message"].as_str().unwrap_or_default();
            OTHER_WORDS.iter().any(|words| message.contains(words))
        };
        if causes.iter().any(has_other_words) && !outcome.refusals.is_empty() {
            self.other_words += 1;
            self.refused += 1;
            return;
        }
        let mut is_costly = false;
        let mut metadata = BTreeSet::new();
        for cause in &causes {
            let text = |key: &str| cause[key].as_str().unwrap_or_default();
            if text("field").starts_with("metadata.") && !metadata.insert(cause.to_string()) {
                continue;
            }
            is_costly |= text("message").contains("exceeds budget");
            let key = (text("field").to_owned(), text("reason").to_owned(), comparable(text("message")));
            *balances.entry(key).or_default() -= 1;
        }
        self.costly += usize::from(is_costly);
        self.messages += causes.len();
        *(if causes.is_empty() { &mut self.taken } else { &mut self.refused }) += 1;
        self.ties += usize::from(without_ties(&mut balances));
        for ((field, reason, message), balance) in balances.into_iter().filter(|(_, balance)| *balance != 0) {
            let who = if balance > 0 { "only we say" } else { "only the server says" };
            let old = old.map(|old| old["spec"].to_string()).unwrap_or_default();
            self.disagreements
                .push(format!("{what}: {who} {field}: {reason} {message}\n  new {}\n  old {old}", new["spec"]));
        }
    }

    pub fn judge(&self, what: &str) {
        println!(
            "{what}: {} taken, {} refused in {} messages; {} too costly ({} ties), {} not answered, {} undecided, {} of \
             other words; {} disagreements",
            self.taken,
            self.refused,
            self.messages,
            self.costly,
            self.ties,
            self.unanswered,
            self.undecided,
            self.other_words,
            self.disagreements.len()
        );
        // The first line of every difference, and the CRDs of some.
        let shown = |all: &[String]| {
            let lines = all.iter().take(300).filter_map(|one| one.lines().next());
            let whole = all.iter().take(5).map(String::as_str);
            lines.chain(whole).collect::<Vec<_>>().join("\n")
        };
        assert!(self.disagreements.is_empty(), "{}", shown(&self.disagreements));
        // A CRD without an answer agrees with any result, so their number is limited.
        assert!(self.unanswered <= (self.taken + self.refused) / 20, "{} not answered", self.unanswered);
    }
}

/// If rules have the same cost, the server names any four. Removes these from the balances if both sides name equally
/// many.
fn without_ties(balances: &mut BTreeMap<(String, String, String), i32>) -> bool {
    let is_named = |message: &str| message.starts_with("contributed to estimated rule cost total");
    let named = balances.iter().filter(|((_, _, message), balance)| is_named(message) && **balance != 0);
    let balances_of: Vec<i32> = named.map(|(_, balance)| *balance).collect();
    let is_tie = !balances_of.is_empty() && balances_of.iter().sum::<i32>() == 0;
    if is_tie {
        balances.retain(|(_, _, message), _| !is_named(message));
    }
    is_tie
}

/// A message without the parts that are not compared: the reason why a CEL expression is invalid, and Go's own messages
/// about certificates and undecodable metadata.
fn comparable(message: &str) -> String {
    let cut = ["compilation failed: ", "instantiation failed: ", "failed to parse certificate: "];
    let end = cut.iter().filter_map(|text| message.find(text).map(|at| at + text.len())).min();
    let message = end.map_or(message, |end| &message[..end]);
    // In versions that are quoted as a whole, defaults are quoted in their decoded form.
    match message.strip_prefix("Invalid value: [{\"Name\":") {
        Some(quoted) => format!("versions: {}", quoted.rsplit("}]: ").next().unwrap_or_default()),
        None => message.to_owned(),
    }
}
