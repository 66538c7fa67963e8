//! Each kind of report as it is shown, and what must hold for every one of them.

use super::*;
use crate::problem::{Location, Problem};
use crate::report::samples;
use crate::text;

fn shown(report: &Report, options: &HumanOptions) -> String {
    let mut out = Vec::new();
    write(report, options, &samples::files(), &mut out).expect("in memory");
    String::from_utf8(out).expect("text")
}

fn plain(report: &Report) -> String {
    shown(report, &HumanOptions::default())
}

fn snapshot(name: &str, text: &str) {
    insta::with_settings!({snapshot_path => "../snapshots", prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!(name, text);
    });
}

#[test]
fn every_kind_of_report_as_it_is_shown() {
    for (name, report) in samples::all() {
        snapshot(name, &plain(&report));
    }
}

#[test]
fn verbose_shows_infos_waived_and_every_object() {
    let options = HumanOptions { verbose: true, purpose: Purpose::Check, ..HumanOptions::default() };
    snapshot("verbose", &shown(&samples::warned(), &options));
}
