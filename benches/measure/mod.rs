//! Code shared by the benchmarks of whole processes: waiting until the server is idle, running processes, and comparing
//! the results with the budget.

pub mod process;

use std::thread;
use std::time::Duration;

pub use process::Run;

use crate::testbed::ControlPlane;

/// The budget of the last measured process.
pub struct Budget {
    /// The name of the first process, such as `list`.
    pub of: &'static str,
    /// The maximum ratio of its median to that of the first process.
    pub ratio: f64,
    /// The maximum peak memory of any of its runs, in MiB.
    pub mebibytes: f64,
}

/// Waits until the server is idle. New CRDs keep it busy for a while: it starts to serve them, and adds them to its
/// OpenAPI documents; after many writes it collects garbage and fills caches.
pub fn until_at_rest(servers: &ControlPlane) {
    let used = || {
        let (_, metrics) = servers.get("/metrics");
        let metrics = metrics.as_str().unwrap_or_default();
        let seconds = metrics.lines().find_map(|line| line.strip_prefix("process_cpu_seconds_total "));
        seconds.and_then(|seconds| seconds.parse::<f64>().ok()).expect("the server tells its processor time")
    };
    let mut before = used();
    loop {
        thread::sleep(Duration::from_secs(2));
        let now = used();
        if now - before < 0.4 {
            return;
        }
        before = now;
    }
}

/// Prints a line for each process, with its ratio to the first, and whether the last is within the budget.
pub fn tell(measured: &[(&str, &[Run])], budget: &Budget) {
    println!(
        "\n{:<14}{:>9}{:>9}{:>9}{:>12}{:>11}{:>13}",
        "",
        "min",
        "median",
        "max",
        format!("of {}", budget.of),
        "processor",
        "peak memory"
    );
    let (mut first, mut ratio, mut memory) = (None, 0.0, 0.0);
    for (what, runs) in measured {
        let walls = spread(runs, |run| run.wall);
        let processor = spread(runs, |run| run.processor)[1];
        ratio = walls[1] / *first.get_or_insert(walls[1]);
        memory = peak(runs);
        let [min, median, max] = walls.map(|wall| format!("{wall:.3} s"));
        println!("{what:<14}{min:>9}{median:>9}{max:>9}{ratio:>11.2}x{processor:>9.3} s{memory:>9.0} MiB");
    }
    let verdict = |within: bool| if within { "within" } else { "OVER" };
    let within = verdict(ratio <= budget.ratio);
    println!("\n{ratio:.2} times the {}: {within} the budget of {}", budget.of, budget.ratio);
    println!("{memory:.0} MiB: {} the budget of {} MiB", verdict(memory <= budget.mebibytes), budget.mebibytes);
}

/// Minimum, median and maximum, in seconds.
fn spread(runs: &[Run], time: impl Fn(&Run) -> Duration) -> [f64; 3] {
    let mut times: Vec<f64> = runs.iter().map(|run| time(run).as_secs_f64()).collect();
    times.sort_by(f64::total_cmp);
    [times[0], times[times.len() / 2], times[times.len() - 1]]
}

/// The maximum of their peak memory, in MiB.
fn peak(runs: &[Run]) -> f64 {
    runs.iter().map(|run| run.peak).max().unwrap_or_default() as f64 / f64::from(1 << 20)
}
