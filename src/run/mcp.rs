//! `gantry mcp`: the commands that only read, as tools of the Model Context Protocol, over standard input and output.
//! <https://modelcontextprotocol.io/specification>
//!
//! A tool makes a command line of the arguments of a call. No tool has an argument that makes a command write, run a
//! program or read another configuration, and a value cannot become a flag: it stands behind the `=` of its own.

use std::io::{BufRead, Cursor, Write};
use std::sync::{Arc, Mutex, PoisonError};

use clap::Parser;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt, transport};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};

use super::host::{Exit, Host};
use super::interrupt::interrupt;
use super::run;
use crate::cli::Cli;
use gantry_core::problem::{Error, Problem, Result, not_one_of};

/// The calls that run at the same time. Others wait.
const CALLS: usize = 4;

/// The longest answer, in bytes. More than that fills the memory of the client, and no model reads it.
const MAX_ANSWER: usize = 1 << 20;

const INSTRUCTIONS: &str = "\
Judge changes of Kubernetes manifests before anybody applies them, above all upgrades of CustomResourceDefinitions: \
check says what breaks, who is affected, and what to do next. No tool writes to a cluster or a file. \
Exit code 0: passed, perhaps with warnings. 3: blocked; do not apply these manifests. 1: could not check, which is no \
pass. 2: wrong arguments or configuration.";

/// The manifests and the target of a call.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct ManifestsCall {
    /// Files or folders with manifests, which are read recursively
    files: Vec<String>,
    /// The text of manifests, as YAML or JSON
    manifests: Option<String>,
    /// What to compare with: kube, the cluster of the kubeconfig (default); dir:PATH, a folder of manifests that
    /// represents a cluster; git:REVISION[:PATH], the manifests of a commit
    target: Option<String>,
    /// The context of the kubeconfig
    context: Option<String>,
    /// The namespace of objects whose manifest has none
    namespace: Option<String>,
    /// Files with values, if files are Helm charts (a folder with Chart.yaml, a .tgz file, oci://REGISTRY/CHART)
    values: Vec<String>,
    /// Values for the charts: KEY=VALUE
    set: Vec<String>,
    /// The name of the release that the charts are rendered as
    release: Option<String>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct DiffCall {
    #[serde(flatten)]
    input: ManifestsCall,
    /// Show what helm upgrade would change with the chart in files; release names the deployed release
    as_helm: bool,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct CheckCall {
    #[serde(flatten)]
    input: ManifestsCall,
    /// Run exactly these checks: the tool rules lists them. By default CRDUpgradeSafety and CustomResourceValidation run
    preflight: Vec<String>,
    /// Whose verdict counts: documented (default), semantic (what provably breaks objects), evidence (what breaks
    /// objects of this cluster), kapp, olm-v1, olm-classic, crdify
    preset: Option<String>,
    /// The release of Kubernetes that a dir: or git: target stands for: 1.30
    kube_version: Option<String>,
    /// Foretell what helm upgrade does with the chart in files, instead of a deploy; release names the deployed release
    as_helm: bool,
    /// The whole report as JSON, with every finding, instead of text
    json: bool,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct RulesCall {
    /// A check or a rule to explain: what it reports, why, and what to do. Without a name, all are listed
    name: Option<String>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[cfg(feature = "olm")]
struct CatalogCall {
    /// A file or folder with a file-based catalog. Without it, the ClusterCatalogs of the cluster are read
    catalog: Option<String>,
    /// The package. Without it, all packages are listed
    package: Option<String>,
    /// The installed version or bundle, to see the possible upgrades
    from: Option<String>,
    /// The version or bundle to upgrade to: the answer is the shortest path
    to: Option<String>,
    /// The context of the kubeconfig
    context: Option<String>,
}

/// A command line, and the text of its standard input.
#[derive(Debug, Default)]
struct ToolCommand {
    arguments: Vec<String>,
    stdin: Option<String>,
    /// Whether it prints a JSON document, which stands alone in the answer.
    is_json: bool,
}

impl ToolCommand {
    fn new(command: &str) -> Self {
        ToolCommand { arguments: vec!["gantry".into(), command.into()], ..ToolCommand::default() }
    }

    /// Adds a flag with a value, in one word: a value that begins with a dash stays a value.
    fn flag(mut self, flag: &str, values: impl IntoIterator<Item = String>) -> Self {
        self.arguments.extend(values.into_iter().map(|value| format!("{flag}={value}")));
        self
    }

    fn foretelling_helm(mut self, as_helm: bool) -> Self {
        self.arguments.extend(as_helm.then(|| "--as-helm".to_owned()));
        self
    }

    fn printing_json(mut self) -> Self {
        self.arguments.push("--output=json".to_owned());
        self.is_json = true;
        self
    }

    /// Adds values that no flag names.
    fn values(mut self, values: impl IntoIterator<Item = String>) -> Self {
        self.arguments.push("--".into());
        self.arguments.extend(values);
        self
    }

    fn manifests(self, call: ManifestsCall) -> std::result::Result<Self, String> {
        let ManifestsCall { files, manifests, target, context, namespace, values, set, release } = call;
        if files.iter().any(|file| file == "-") {
            return Err("standard input belongs to the protocol: give the text of manifests as manifests".into());
        }
        if files.is_empty() && manifests.is_none() {
            return Err("files or manifests is required".into());
        }
        let text = manifests.iter().map(|_| "-".to_owned());
        let command = self
            .flag("--file", files.into_iter().chain(text))
            .flag("--target", target)
            .flag("--context", context)
            .flag("--namespace", namespace)
            .flag("--values", values)
            .flag("--set", set)
            .flag("--release", release);
        Ok(ToolCommand { stdin: manifests, ..command })
    }
}

/// A tool: how it is described, and the command line of a call.
struct ToolEntry {
    name: &'static str,
    about: &'static str,
    schema: fn() -> Value,
    command: fn(JsonObject) -> std::result::Result<ToolCommand, String>,
}

const TOOLS: &[ToolEntry] = &[
    ToolEntry {
        name: "check",
        about: "Checks manifests against a cluster, a folder or a commit, without writing: which changes of CRDs break \
                objects, clients or data, each with a proof and a next step",
        schema: schema_of::<CheckCall>,
        command: |arguments| {
            let CheckCall { input, preflight, preset, kube_version, as_helm, json } = parse(arguments)?;
            let command = ToolCommand::new("check")
                .manifests(input)?
                .flag("--kapp-lines", ["never".to_owned()])
                .foretelling_helm(as_helm)
                .flag("--preflight", preflight)
                .flag("--preset", preset)
                .flag("--kube-version", kube_version);
            Ok(if json { command.printing_json() } else { command })
        },
    },
    ToolEntry {
        name: "diff",
        about: "Shows what a deploy of manifests would change in each object, line by line, without writing",
        schema: schema_of::<DiffCall>,
        command: |arguments| {
            let DiffCall { input, as_helm } = parse(arguments)?;
            Ok(ToolCommand::new("diff").manifests(input)?.foretelling_helm(as_helm))
        },
    },
    ToolEntry {
        name: "permissions",
        about: "Prints the minimal RBAC that a deploy of manifests needs, as manifests",
        schema: schema_of::<ManifestsCall>,
        command: |arguments| ToolCommand::new("permissions").manifests(parse(arguments)?),
    },
    ToolEntry {
        name: "rules",
        about: "Lists the checks and their rules, or explains one: what it reports, why, and what to do",
        schema: schema_of::<RulesCall>,
        command: |arguments| Ok(ToolCommand::new("rules").values(parse::<RulesCall>(arguments)?.name)),
    },
    #[cfg(feature = "olm")]
    ToolEntry {
        name: "catalog",
        about: "Shows an operator catalog of Operator Lifecycle Manager: packages, channels, versions, and the shortest \
                upgrade path between two versions",
        schema: schema_of::<CatalogCall>,
        command: |arguments| {
            let CatalogCall { catalog, package, from, to, context } = parse(arguments)?;
            Ok(ToolCommand::new("catalog")
                .flag("--catalog", catalog.map(|path| format!("catalog={path}")))
                .flag("--from", from)
                .flag("--to", to)
                .flag("--context", context)
                .values(package))
        },
    },
];

fn schema_of<T: JsonSchema>() -> Value {
    schemars::schema_for!(T).to_value()
}

/// The arguments of a call. Each must be one that the schema describes: a misspelt one would be ignored.
fn parse<T: DeserializeOwned + JsonSchema>(arguments: JsonObject) -> std::result::Result<T, String> {
    let schema = schema_of::<T>();
    let known = schema["properties"].as_object();
    let is_unknown = |name: &&String| known.is_none_or(|known| !known.contains_key(*name));
    if let Some(name) = arguments.keys().find(is_unknown) {
        let names: Vec<&str> = known.into_iter().flat_map(|known| known.keys()).map(String::as_str).collect();
        return Err(not_one_of(name, &names));
    }
    serde_json::from_value(Value::Object(arguments)).map_err(|error| error.to_string())
}

/// Serves the tools until standard input ends or the user interrupts.
pub async fn serve(host: &mut Host) -> Result<String> {
    let stop = host.stop.clone();
    let server = McpServer { host: Mutex::new(host.for_cluster()), calls: Arc::new(Semaphore::new(CALLS)) };
    let failed = |error: &dyn std::fmt::Display| {
        Error::failed(
            Problem::new(format!("the client does not speak the Model Context Protocol: {error}"))
                .help("gantry mcp is started by an editor or an agent, which sends requests to its standard input"),
        )
    };
    let service = tokio::select! {
        service = server.serve(transport::stdio()) => service.map_err(|error| failed(&error))?,
        () = interrupt(&stop) => return Ok(String::new()),
    };
    tokio::select! {
        ended = service.waiting() => ended.map(|_| String::new()).map_err(|error| failed(&error)),
        () = interrupt(&stop) => Ok(String::new()),
    }
}

struct McpServer {
    /// What the runs of the calls inherit.
    host: Mutex<Host>,
    calls: Arc<Semaphore>,
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("gantry", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> std::result::Result<ListToolsResult, ErrorData> {
        let tool = |entry: &ToolEntry| {
            let schema = (entry.schema)().as_object().cloned().unwrap_or_default();
            let hints = ToolAnnotations::new().read_only(true);
            Tool::new(entry.name, entry.about, schema).with_annotations(hints)
        };
        Ok(ListToolsResult { tools: TOOLS.iter().map(tool).collect(), ..ListToolsResult::default() })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> std::result::Result<CallToolResponse, ErrorData> {
        let Some(tool) = TOOLS.iter().find(|tool| tool.name == request.name) else {
            let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
            return Err(ErrorData::invalid_params(
                format!("there is no such tool; there are {}", names.join(", ")),
                None,
            ));
        };
        let refused = |why: String| Ok(CallToolResult::error(vec![ContentBlock::text(why)]).into());
        let command = match (tool.command)(request.arguments.unwrap_or_default()) {
            Ok(command) => command,
            Err(why) => return refused(why),
        };
        let Ok(_permit) = self.calls.acquire().await else { return refused("gantry ends".into()) };
        let (interrupted, stop) = watch::channel(false);
        let (output, problems) = (CutOutput::default(), CutOutput::default());
        let ToolCommand { arguments, stdin, is_json } = command;
        let host = self.host_of_call(stdin, (&output, &problems), stop);
        let running = tokio::task::spawn_blocking(move || Handle::current().block_on(run_command(&arguments, host)));
        tokio::pin!(running);
        let exit = tokio::select! {
            exit = &mut running => exit,
            () = context.ct.cancelled() => {
                let _ = interrupted.send(true);
                running.await
            }
        };
        let (exit, usage) = exit.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let printed = output.text();
        let is_document = is_json && exit != Exit::Usage && !printed.is_empty();
        let text = if is_document { printed } else { printed + &problems.text() + &usage };
        let mut result = match exit {
            Exit::Failed | Exit::Usage => CallToolResult::error(vec![ContentBlock::text(text)]),
            _ => CallToolResult::success(vec![ContentBlock::text(text)]),
        };
        result.structured_content = Some(json!({"exitCode": exit as u8, "cut": output.is_cut() || problems.is_cut()}));
        Ok(result.into())
    }
}

impl McpServer {
    fn host_of_call(
        &self,
        stdin: Option<String>,
        (output, problems): (&CutOutput, &CutOutput),
        stop: watch::Receiver<bool>,
    ) -> Host {
        let host = self.host.lock().unwrap_or_else(PoisonError::into_inner);
        let read = |text: String| -> Box<dyn BufRead + Send> { Box::new(Cursor::new(text)) };
        Host {
            stdin: stdin.map(read),
            stdout: Box::new(output.clone()),
            stderr: Box::new(problems.clone()),
            stop,
            ..host.for_cluster()
        }
    }
}

/// Runs a command line. The text is why it is none.
async fn run_command(arguments: &[String], mut host: Host) -> (Exit, String) {
    host.arguments = arguments.to_vec();
    match Cli::try_parse_from(arguments) {
        Ok(cli) => (Box::pin(run(cli, &mut host)).await, String::new()),
        Err(error) => (Exit::Usage, error.to_string()),
    }
}

/// Output that keeps the first [`MAX_ANSWER`] bytes.
#[derive(Debug, Default, Clone)]
struct CutOutput(Arc<Mutex<Captured>>);

#[derive(Debug, Default)]
struct Captured {
    text: Vec<u8>,
    is_cut: bool,
}

impl CutOutput {
    fn is_cut(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_cut
    }

    fn text(&self) -> String {
        let captured = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&captured.text).into_owned();
        let rest = if captured.is_cut { "\n… the rest is left out: check fewer manifests at once\n" } else { "" };
        text + rest
    }
}

impl Write for CutOutput {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut captured = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = bytes.len().min(MAX_ANSWER - captured.text.len());
        captured.text.extend_from_slice(&bytes[..kept]);
        captured.is_cut |= kept < bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
