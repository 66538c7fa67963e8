//! interim
use crate::target::TargetSpec;
use std::path::PathBuf;
use std::time::Duration;
pub struct Settings {
    pub target: TargetSpec,
    pub context: Option<String>,
    pub kubeconfig: Option<PathBuf>,
    pub namespace: Option<String>,
    pub field_manager: String,
    pub force_conflicts: bool,
    pub warn_only: bool,
    pub request_timeout: Option<Duration>,
    pub established_timeout: Duration,
}
