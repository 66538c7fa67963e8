//! Searches the product of all automata of a query.

use std::collections::{HashMap, VecDeque};

use super::alphabet::Alphabet;
use super::machine::{Machine, MachineState};
use super::{SearchBudget, StringQuery, parse};

/// The maximum length of a string that is built.
const LONGEST: u64 = 2 << 20;
/// The steps to parse a pattern, in addition to its length.
const READ: usize = 100;
/// The maximum number of patterns in a query.
const MAX_PATTERNS: usize = 500;
/// The maximum number of product states, and of machine states in them: all are kept in memory.
const MAX_STATES: usize = 500_000;
const MAX_PARTS: usize = 4_000_000;

/// A shortest string that fits the query, or `None` if there is none.
///
/// # Errors
/// Why the answer is unknown: an unsupported pattern, or a limit.
pub fn find(query: &StringQuery<'_>, budget: &mut SearchBudget) -> Result<Option<String>, String> {
    if query.max.is_some_and(|max| max < query.min) {
        return Ok(None);
    }
    if query.min > LONGEST {
        return Err("a string too long to build".to_owned());
    }
    // Without patterns, only the length matters.
    if query.all.is_empty() && query.none.is_empty() {
        let length = usize::try_from(query.min).unwrap_or(usize::MAX);
        budget.spend(length)?;
        return Ok(Some("a".repeat(length)));
    }
    let written = || query.all.iter().chain(&query.none);
    if written().count() > MAX_PATTERNS {
        return Err("too many patterns to compare at once".to_owned());
    }
    budget.spend(written().map(|pattern| READ + pattern.len()).sum())?;
    let patterns = written().map(|pattern| parse(pattern)).collect::<Result<Vec<_>, _>>()?;
    let alphabet = Alphabet::from_patterns(&patterns, budget)?;
    let machines = patterns.iter().map(|pattern| Machine::compile(pattern, &alphabet, budget));
    let machines = machines.collect::<Result<Vec<_>, _>>()?;
    let mut product = Product { alphabet, machines, wanted: query.all.len(), budget };
    product.find(query.min, query.max)
}

/// A state of each machine.
type States = Box<[MachineState]>;

/// How a state was reached: the index of the previous state, and the letter.
type SearchStep = (usize, usize);

struct Product<'b> {
    alphabet: Alphabet,
    machines: Vec<Machine>,
    /// The first `wanted` machines must match, the others must not.
    wanted: usize,
    budget: &'b mut SearchBudget,
}

impl Product<'_> {
    fn find(&mut self, min: u64, max: Option<u64>) -> Result<Option<String>, String> {
        let start: States = vec![Machine::START; self.machines.len()].into();
        // Every state with the step that reached it; the steps are traced back at the end.
        let mut reached: Vec<(States, Option<SearchStep>)> = vec![(start, None)];
        // Up to the minimum length, a state counts once for each length.
        let mut layer = 0..1;
        for _ in 0..min {
            let next = reached.len();
            let mut seen = HashMap::new();
            for from in layer {
                self.follow(from, &mut reached, &mut seen)?;
            }
            layer = next..reached.len();
        }
        // After that, the first visit of a state is the shortest.
        let mut seen: HashMap<States, ()> = layer.clone().map(|place| (reached[place].0.clone(), ())).collect();
        let mut todo: VecDeque<(usize, u64)> = layer.map(|place| (place, min)).collect();
        while let Some((place, length)) = todo.pop_front() {
            if self.fits(&reached[place].0.clone())? {
                return Ok(Some(self.spell_text(&reached, place)));
            }
            if max.is_none_or(|max| length < max) {
                let next = reached.len();
                self.follow(place, &mut reached, &mut seen)?;
                todo.extend((next..reached.len()).map(|place| (place, length + 1)));
            }
        }
        Ok(None)
    }

    /// Adds all unseen states that are one letter further.
    fn follow(
        &mut self,
        from: usize,
        reached: &mut Vec<(States, Option<SearchStep>)>,
        seen: &mut HashMap<States, ()>,
    ) -> Result<(), String> {
        let states = reached[from].0.clone();
        for index in 0..self.alphabet.letters.len() {
            self.budget.spend(1)?;
            let Some(next) = self.states_after(&states, index)? else { continue };
            if !seen.contains_key(&next) {
                if reached.len() >= MAX_STATES || reached.len() * states.len() >= MAX_PARTS {
                    return Err("the patterns are too large to compare".to_owned());
                }
                seen.insert(next.clone(), ());
                reached.push((next, Some((from, index))));
            }
        }
        Ok(())
    }

    /// The states after a letter, or `None` if no continuation can fit.
    fn states_after(&mut self, states: &[MachineState], index: usize) -> Result<Option<States>, String> {
        let letter = self.alphabet.letters[index];
        let mut next = Vec::with_capacity(states.len());
        for (number, (machine, state)) in self.machines.iter_mut().zip(states).enumerate() {
            let after = machine.state_after(*state, index, letter, self.budget)?;
            let lost = if number < self.wanted { Machine::FAILED } else { Machine::MATCHED };
            if after == lost {
                return Ok(None);
            }
            next.push(after);
        }
        Ok(Some(next.into()))
    }

    fn fits(&mut self, states: &[MachineState]) -> Result<bool, String> {
        for (number, (machine, state)) in self.machines.iter_mut().zip(states).enumerate() {
            if machine.matches_at_end(*state, self.budget)? != (number < self.wanted) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn spell_text(&self, reached: &[(States, Option<SearchStep>)], place: usize) -> String {
        let mut letters = Vec::new();
        let mut step = reached[place].1;
        while let Some((before, index)) = step {
            letters.push(self.alphabet.letters[index].shown);
            step = reached[before].1;
        }
        letters.iter().rev().collect()
    }
}
