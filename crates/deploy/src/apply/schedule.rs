//! Which steps of a graph may start.

use crate::plan::graph::ApplyStep;

/// Which steps can start, and which wait for others.
pub struct Schedule {
    /// For each step, the number of steps that it still waits for.
    missing: Vec<usize>,
    /// For each step, the steps that wait until it is written.
    after_writing: Vec<Vec<usize>>,
    /// For each step, the steps that wait until it is ready.
    after_waiting: Vec<Vec<usize>>,
}

impl Schedule {
    /// Also returns the steps that can start at once.
    pub fn new(steps: &[ApplyStep]) -> (Self, Vec<usize>) {
        let (mut after_writing, mut after_waiting) = (vec![Vec::new(); steps.len()], vec![Vec::new(); steps.len()]);
        for (index, step) in steps.iter().enumerate() {
            for earlier in &step.after {
                match step.ready.contains(earlier) {
                    true => after_waiting[*earlier].push(index),
                    false => after_writing[*earlier].push(index),
                }
            }
        }
        let missing: Vec<usize> = steps.iter().map(|step| step.after.len()).collect();
        let first = (0..steps.len()).filter(|step| missing[*step] == 0).collect();
        (Schedule { missing, after_writing, after_waiting }, first)
    }

    /// Marks a step as written. Returns the steps that can start now.
    pub fn mark_written(&mut self, step: usize) -> Vec<usize> {
        let later = std::mem::take(&mut self.after_writing[step]);
        self.started(later)
    }

    /// Marks a step as ready, which is written already. Returns the steps that can start now.
    pub fn mark_ended(&mut self, step: usize) -> Vec<usize> {
        let later = std::mem::take(&mut self.after_waiting[step]);
        self.started(later)
    }

    fn started(&mut self, later: Vec<usize>) -> Vec<usize> {
        let mut can_start = later;
        can_start.retain(|later| {
            self.missing[*later] -= 1;
            self.missing[*later] == 0
        });
        can_start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_starts_when_the_last_one_that_it_waits_for_has_ended() {
        let step = |after: &[usize]| ApplyStep { after: after.to_vec(), ready: after.to_vec(), ..ApplyStep::default() };
        let (mut schedule, first) = Schedule::new(&[step(&[]), step(&[]), step(&[0, 1]), step(&[0]), step(&[2, 3])]);
        assert_eq!(first, [0, 1]);
        assert_eq!(schedule.mark_ended(0), [3]);
        assert_eq!(schedule.mark_ended(3), [0; 0]);
        assert_eq!(schedule.mark_ended(1), [2]);
        assert_eq!(schedule.mark_ended(2), [4]);
        assert_eq!(schedule.mark_ended(4), [0; 0]);
    }

    #[test]
    fn a_step_that_only_has_to_be_written_is_not_waited_for() {
        let step = |after: &[usize], ready: &[usize]| ApplyStep {
            after: after.to_vec(),
            ready: ready.to_vec(),
            ..ApplyStep::default()
        };
        let (mut schedule, _) = Schedule::new(&[step(&[], &[]), step(&[0], &[]), step(&[0, 1], &[0])]);
        assert_eq!(schedule.mark_written(0), [1]);
        assert_eq!(schedule.mark_written(1), [0; 0]);
        assert_eq!(schedule.mark_ended(0), [2]);
    }
}
