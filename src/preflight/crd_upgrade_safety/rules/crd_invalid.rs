//! A CRD that the API server does not take.

use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::rule::{Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "CRDInvalid",
        summary: "the API server refuses the CRD itself",
        forbids: "A new or changed CRD that the API server does not take: a schema that is not structural, a pattern \
            or CEL rule that does not compile, an invalid default, a keyword that is not allowed, a wrong name. As on \
            the server, an update may keep what was wrong in the live CRD before, where the server forgives it.",
        why: "A deploy stops where the API server refuses an object. What was applied before that stays, and what \
            needs the CRD is not there.",
        example: Example::Fields {
            live: "\
name:
  type: string
",
            desired: "\
name:
  type: string
port: {}
",
        },
        what_to_do: "Fix the CRD as the message says. If somebody else publishes it, report it there and stay with the \
            version before.",
        breaks: &[Breaks::Writers],
        severity: Severity::Error,
    },
    weight: Weight::Beyond { semantic: Severity::Error },
    claims: &[],
    hides_others: false,
    judge: Judge::Server,
};
