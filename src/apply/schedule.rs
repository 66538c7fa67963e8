//! Which steps of a graph may start.

use crate::plan::graph::Step;

/// Which steps can start, and which wait for others.
pub struct Schedule {
    /// For each step, the number of unfinished steps that it waits for.
    missing: Vec<usize>,
    /// For each step, the steps that wait for it.
    later: Vec<Vec<usize>>,
}

impl Schedule {
    /// Also returns the steps that can start at once.
    pub fn new(steps: &[Step]) -> (Self, Vec<usize>) {
        let mut later = vec![Vec::new(); steps.len()];
        for (index, step) in steps.iter().enumerate() {
            step.after.iter().for_each(|earlier| later[*earlier].push(index));
        }
        let missing: Vec<usize> = steps.iter().map(|step| step.after.len()).collect();
        let first = (0..steps.len()).filter(|step| missing[*step] == 0).collect();
        (Schedule { missing, later }, first)
    }

    /// Marks a step as finished. Returns the steps that can start now.
    pub fn ended(&mut self, step: usize) -> Vec<usize> {
        let later = std::mem::take(&mut self.later[step]);
        later
            .into_iter()
            .filter(|later| {
                self.missing[*later] -= 1;
                self.missing[*later] == 0
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_starts_when_the_last_one_that_it_waits_for_has_ended() {
        let step = |after: &[usize]| Step { after: after.to_vec(), ..Step::default() };
        let (mut schedule, first) = Schedule::new(&[step(&[]), step(&[]), step(&[0, 1]), step(&[0]), step(&[2, 3])]);
        assert_eq!(first, [0, 1]);
        assert_eq!(schedule.ended(0), [3]);
        assert_eq!(schedule.ended(3), [0; 0]);
        assert_eq!(schedule.ended(1), [2]);
        assert_eq!(schedule.ended(2), [4]);
        assert_eq!(schedule.ended(4), [0; 0]);
    }
}
