//! The report as YAML (`-o yaml`): the same fields as in JSON.

use std::fmt::Write as _;
use std::io::{self, Write};

use serde::Serialize;

use super::{API_VERSION, FormatWriter};
use gantry_core::ci_log::OutputSyntax;
use gantry_core::text;

pub const WRITER: FormatWriter = FormatWriter {
    write: |report, _, out| write(report, out),
    write_list: |list, _, out| write(list, out),
    // Its escapes mean the same within quotes.
    syntax: OutputSyntax::Json,
    is_start_of_report: |head| head.starts_with(&format!("apiVersion: {API_VERSION}\nkind: Report")),
};

fn write(report: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    let report = serde_json::to_value(report).map_err(io::Error::other)?;
    // Texts with such characters are quoted, so these escapes mean the same.
    let mut yaml = String::new();
    for character in gantry_yaml::write::to_block_style(&report).chars() {
        let code = u32::from(character);
        let _ = match character {
            '\n' => yaml.write_char(character),
            hostile if text::is_hostile(hostile) && code > 0xffff => write!(yaml, "\\U{code:08x}"),
            hostile if text::is_hostile(hostile) => write!(yaml, "\\u{code:04x}"),
            harmless => yaml.write_char(harmless),
        };
    }
    out.write_all(yaml.as_bytes())
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_reader_of_yaml_finds_what_the_json_has() {
        for (name, report) in crate::samples::all() {
            let mut text = Vec::new();
            super::write(&report, &mut text).unwrap();
            let read: serde_json::Value = serde_yaml::from_slice(&text).unwrap();
            assert_eq!(read, serde_json::to_value(&report).unwrap(), "{name}");
            assert!((super::WRITER.is_start_of_report)(std::str::from_utf8(&text).unwrap()), "{name}");
        }
    }
}
