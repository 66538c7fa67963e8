//! A CRD that the API server refuses.

use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::rule::{Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "CRDInvalid",
        summary: "the API server refuses the CRD itself",
        reports: "A new or changed CRD that the API server refuses: a schema that is not structural, a pattern or CEL \
            rule that does not compile, an invalid default, a keyword that is not allowed, a wrong name. As on the \
            server, an update may keep certain errors that the live CRD already has.",
        why: "A deploy stops when the API server refuses an object. Objects that were applied before it stay, and \
            everything that needs the CRD is missing.",
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
        what_to_do: "Fix the CRD as the message says. If another project publishes it, report the error there and stay \
            on the previous version.",
        breaks: &[Breaks::Writers],
        severity: Severity::Error,
    },
    weight: Weight::Beyond { semantic: Severity::Error },
    claims: &[],
    hides_others: false,
    judge: Judge::Server,
};
