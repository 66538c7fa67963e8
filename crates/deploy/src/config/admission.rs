//! `admission`: what the admission webhook does with the verdict about a CRD.

use wildmatch::WildMatch;

use gantry_core::options::{AdmissionMode, UnjudgedChange};

/// What the admission webhook does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmissionSettings {
    /// For CRDs that no pattern names.
    pub mode: AdmissionMode,
    /// Patterns of names and groups of CRDs, by what happens to the CRDs.
    pub scopes: Vec<(AdmissionMode, Vec<String>)>,
    /// What happens to a change that could not be judged, in the mode deny.
    pub on_timeout: UnjudgedChange,
    /// The groups of users who may accept a change.
    pub accepted_by: Vec<String>,
}

impl AdmissionSettings {
    /// What happens to the CRD of this name, such as `widgets.example.com`. Of several patterns that match it, the
    /// longest decides; of equally long ones, the strictest mode.
    pub fn mode_of(&self, crd: &str) -> AdmissionMode {
        let group = crd.split_once('.').map_or("", |(_, group)| group);
        let is_named = |pattern: &str| {
            let pattern = WildMatch::new(pattern);
            pattern.matches(crd) || pattern.matches(group)
        };
        let patterns = self.scopes.iter().flat_map(|(mode, patterns)| patterns.iter().map(move |text| (text, *mode)));
        let named = patterns.filter(|(pattern, _)| is_named(pattern));
        named.map(|(pattern, mode)| (pattern.len(), mode)).max().map_or(self.mode, |(_, mode)| mode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_pattern_decides_and_the_strictest_of_equals() {
        let scopes = [
            (AdmissionMode::Ignore, vec!["scratch.example.com", "*.dev.example.com"]),
            (AdmissionMode::Warn, vec!["example.com", "both.example.com"]),
            (AdmissionMode::Deny, vec!["widgets.example.com", "both.example.com"]),
        ];
        let scopes = scopes.map(|(mode, patterns)| (mode, patterns.into_iter().map(str::to_owned).collect())).into();
        let settings = AdmissionSettings {
            mode: AdmissionMode::Audit,
            scopes,
            on_timeout: UnjudgedChange::Deny,
            accepted_by: Vec::new(),
        };
        let modes = [
            ("widgets.example.com", AdmissionMode::Deny),
            ("gadgets.example.com", AdmissionMode::Warn),
            ("both.example.com", AdmissionMode::Deny),
            ("scratch.example.com", AdmissionMode::Ignore),
            ("widgets.dev.example.com", AdmissionMode::Ignore),
            ("widgets.example.org", AdmissionMode::Audit),
        ];
        for (crd, mode) in modes {
            assert_eq!(settings.mode_of(crd), mode, "{crd}");
        }
    }
}
