//! Commands of gantry that a run prints. Each can be pasted: it has the flags by which the run found its cluster.

use crate::cli::{ConfigFlags, FlowArgs, IdentityArgs, KubeconfigArgs};
use gantry_core::text;
use gantry_deploy::app::App;

/// A command of gantry, word by word.
#[derive(Debug, Clone)]
pub struct NextCommand(Vec<String>);

impl NextCommand {
    /// The command with these words.
    pub fn new(words: &[&str]) -> Self {
        NextCommand([&["gantry"], words].concat().into_iter().map(str::to_owned).collect())
    }

    /// With a flag, if it has a value.
    pub fn flag(mut self, name: &str, value: Option<&str>) -> Self {
        self.0.extend(value.into_iter().flat_map(|value| [name.to_owned(), value.to_owned()]));
        self
    }

    /// With a flag for each value.
    pub fn flags<'v>(self, name: &str, values: impl Iterator<Item = &'v str>) -> Self {
        values.fold(self, |command, value| command.flag(name, Some(value)))
    }

    /// With a flag that has no value, if it is set.
    pub fn switch(mut self, name: &str, is_set: bool) -> Self {
        self.0.extend(is_set.then(|| name.to_owned()));
        self
    }

    /// With the flags of a cluster.
    pub fn on(mut self, cluster: &ClusterFlags) -> Self {
        self.0.extend_from_slice(&cluster.flags);
        self
    }
}

/// As a line for a shell.
impl std::fmt::Display for NextCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words: Vec<String> = self.0.iter().map(|word| text::shell_word(word).into_owned()).collect();
        f.write_str(&words.join(" "))
    }
}

/// The flags by which a run found its cluster and its configuration. A token is not among them.
#[derive(Debug, Clone, Default)]
pub struct ClusterFlags {
    flags: Vec<String>,
    /// The namespace of objects that name none, if a flag chose it.
    namespace: Option<String>,
}

impl ClusterFlags {
    /// Those among these flags. `context`: the cluster, if the run is on several.
    pub fn new(
        kubeconfig: &KubeconfigArgs,
        identity: &IdentityArgs,
        config: &ConfigFlags,
        context: Option<&str>,
    ) -> Self {
        let flags = NextCommand(Vec::new())
            .flag("--context", context.or(kubeconfig.context.as_deref()))
            .flag("--cluster", kubeconfig.cluster.as_deref())
            .flag("--user", kubeconfig.user.as_deref())
            .flag("--server", kubeconfig.server.as_deref())
            .flag("--kubeconfig", kubeconfig.file.as_deref().and_then(|file| file.to_str()))
            .flag("--as", identity.user.as_deref())
            .flags("--as-group", identity.groups.iter().map(String::as_str))
            .flags("-c", config.config_files.iter().filter_map(|file| file.to_str()))
            .switch("--allow-exec", config.allow_exec);
        ClusterFlags { flags: flags.0, namespace: None }
    }

    /// Those of a deploy or a check.
    pub fn of_flow(args: &FlowArgs, context: Option<&str>) -> Self {
        let flags = Self::new(&args.input.target.kubeconfig, &args.identity, &args.input.config, context);
        ClusterFlags { namespace: args.input.target.namespace.clone(), ..flags }
    }
}

/// The command that lists the revisions of an app.
pub fn history(app: &App, cluster: &ClusterFlags) -> NextCommand {
    NextCommand::new(&["history", "-a", &app.name, "-n", &app.namespace]).on(cluster)
}

/// The command that deploys manifests, in a folder that the user names, as an app.
pub fn deploy(app: &App, cluster: &ClusterFlags) -> NextCommand {
    let command = NextCommand::new(&["deploy", "-a", &app.name, "--app-namespace", &app.namespace, "-f", "DIR"]);
    command.flag("-n", cluster.namespace.as_deref()).on(cluster)
}
