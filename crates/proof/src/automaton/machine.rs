//! One pattern as an automaton whose states are sets of positions in the pattern.

use std::collections::HashMap;
use std::rc::Rc;

use regex_syntax::hir::{Hir, HirKind, Look};

use super::SearchBudget;
use super::alphabet::{Alphabet, Letter, characters, ranges};

/// The maximum number of positions in one automaton: `(a{1000}){1000}` must not exhaust the memory.
const MAX_POSITIONS: usize = 100_000;

/// The number of positions or letters that are stored in one step.
const POSITIONS: usize = 4;

#[derive(Debug)]
enum Position {
    /// Continues at the next position on each letter of the set.
    Letters(Rc<[bool]>),
    /// Continues at all of these positions without consuming a letter.
    Jump(Vec<usize>),
    /// Continues at the next position if the assertion holds here.
    Look(Look),
    Match,
}

/// What precedes the current position in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum PrecedingText {
    Start,
    Letter { is_word: bool, is_newline: bool },
}

/// A state: an index into the machine's table.
pub type MachineState = usize;

/// A pattern that is run letter by letter. Its states are created when they are reached.
#[derive(Debug)]
pub struct Machine {
    positions: Vec<Position>,
    looks_at_words: bool,
    looks_at_lines: bool,
    /// Whether a match can begin after the start of the text.
    begins_anywhere: bool,
    states: Vec<(PrecedingText, Vec<usize>)>,
    numbers: HashMap<(PrecedingText, Vec<usize>), MachineState>,
    /// The next state by state and letter, as far as it has been computed.
    next: Vec<Vec<Option<MachineState>>>,
    at_end: Vec<Option<bool>>,
    /// For each position, the last walk that visited it; and the number of walks.
    seen: Vec<u32>,
    walks: u32,
}

impl Machine {
    /// The state in which the pattern has matched, whatever follows.
    pub const MATCHED: MachineState = 0;
    /// The state from which the pattern can never match.
    pub const FAILED: MachineState = 1;
    /// The state at the start of the text.
    pub const START: MachineState = 2;

    pub fn compile(pattern: &Hir, alphabet: &Alphabet, budget: &mut SearchBudget) -> Result<Self, String> {
        let mut builder = Builder { positions: Vec::new(), alphabet, sets: HashMap::new() };
        builder.add(pattern)?;
        builder.push(Position::Match)?;
        budget.spend(builder.positions.len() / POSITIONS)?;
        let looks = pattern.properties().look_set();
        let mut machine = Machine {
            seen: vec![0; builder.positions.len()],
            walks: 0,
            positions: builder.positions,
            looks_at_words: looks.contains(Look::WordAscii) || looks.contains(Look::WordAsciiNegate),
            looks_at_lines: looks.contains(Look::StartLF),
            begins_anywhere: !pattern.properties().look_set_prefix().contains(Look::Start),
            states: Vec::new(),
            numbers: HashMap::new(),
            next: Vec::new(),
            at_end: Vec::new(),
        };
        let letters = alphabet.letters.len();
        for (before, set) in
            [(PrecedingText::Start, vec![usize::MAX]), (PrecedingText::Start, vec![]), (PrecedingText::Start, vec![0])]
        {
            machine.number(before, set, letters);
        }
        machine.next[Self::MATCHED] = vec![Some(Self::MATCHED); letters];
        machine.next[Self::FAILED] = vec![Some(Self::FAILED); letters];
        machine.at_end[Self::MATCHED] = Some(true);
        machine.at_end[Self::FAILED] = Some(false);
        Ok(machine)
    }

    /// The state after `letter`, which is at `index` in the alphabet.
    pub fn state_after(
        &mut self,
        state: MachineState,
        index: usize,
        letter: Letter,
        budget: &mut SearchBudget,
    ) -> Result<MachineState, String> {
        if let Some(next) = self.next[state][index] {
            return Ok(next);
        }
        let (matched, reached) = self.closure(state, Some(letter));
        budget.spend(reached.len() + 1)?;
        let next = if matched {
            Self::MATCHED
        } else {
            let mut set: Vec<usize> = reached
                .into_iter()
                .filter(|position| matches!(&self.positions[*position], Position::Letters(set) if set[index]))
                .map(|position| position + 1)
                .collect();
            if self.begins_anywhere {
                set.push(0);
            }
            set.sort_unstable();
            set.dedup();
            let before = PrecedingText::Letter {
                is_word: self.looks_at_words && letter.is_word,
                is_newline: self.looks_at_lines && letter.is_newline,
            };
            // Each state stores the next state for every letter.
            let letters = self.next[state].len();
            budget.spend((letters + set.len()) / POSITIONS)?;
            if set.is_empty() { Self::FAILED } else { self.number(before, set, letters) }
        };
        self.next[state][index] = Some(next);
        Ok(next)
    }

    /// Whether the pattern matches if the text ends here.
    pub fn matches_at_end(&mut self, state: MachineState, budget: &mut SearchBudget) -> Result<bool, String> {
        if let Some(matched) = self.at_end[state] {
            return Ok(matched);
        }
        let (matched, reached) = self.closure(state, None);
        budget.spend(reached.len() + 1)?;
        self.at_end[state] = Some(matched);
        Ok(matched)
    }

    fn number(&mut self, before: PrecedingText, set: Vec<usize>, letters: usize) -> MachineState {
        let key = (before, set);
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let number = self.states.len();
        self.states.push(key.clone());
        self.numbers.insert(key, number);
        self.next.push(vec![None; letters]);
        self.at_end.push(None);
        number
    }

    /// All positions that are reached without consuming a letter if `next` follows, and whether one of them is a match.
    fn closure(&mut self, state: MachineState, next: Option<Letter>) -> (bool, Vec<usize>) {
        self.walks += 1;
        let (before, set) = &self.states[state];
        let mut todo = set.clone();
        let mut reached = Vec::new();
        while let Some(position) = todo.pop() {
            if std::mem::replace(&mut self.seen[position], self.walks) == self.walks {
                continue;
            }
            match &self.positions[position] {
                Position::Match => return (true, reached),
                Position::Letters(_) => reached.push(position),
                Position::Jump(targets) => todo.extend(targets),
                Position::Look(look) if holds(*look, *before, next) => todo.push(position + 1),
                Position::Look(_) => {}
            }
        }
        (false, reached)
    }
}

fn holds(look: Look, before: PrecedingText, next: Option<Letter>) -> bool {
    let word_before = matches!(before, PrecedingText::Letter { is_word: true, .. });
    let word_next = next.is_some_and(|letter| letter.is_word);
    match look {
        Look::Start => before == PrecedingText::Start,
        Look::End => next.is_none(),
        Look::StartLF => matches!(before, PrecedingText::Start | PrecedingText::Letter { is_newline: true, .. }),
        Look::EndLF => next.is_none_or(|letter| letter.is_newline),
        Look::WordAscii => word_before != word_next,
        Look::WordAsciiNegate => word_before == word_next,
        // The alphabet refuses all other assertions.
        _ => false,
    }
}

struct Builder<'a> {
    positions: Vec<Position>,
    alphabet: &'a Alphabet,
    /// The letters of each class that was added: a repeated class is added many times.
    sets: HashMap<*const Hir, Rc<[bool]>>,
}

impl Builder<'_> {
    fn push(&mut self, position: Position) -> Result<usize, String> {
        if self.positions.len() >= MAX_POSITIONS {
            return Err("the pattern is too large to compare".to_owned());
        }
        self.positions.push(position);
        Ok(self.positions.len() - 1)
    }

    /// Adds the positions of `pattern`. Its end continues at the position that is added next.
    fn add(&mut self, pattern: &Hir) -> Result<(), String> {
        match pattern.kind() {
            HirKind::Empty => {}
            HirKind::Literal(literal) => {
                for character in characters(&literal.0)? {
                    self.push(Position::Letters(self.alphabet.members(&[character]).into()))?;
                }
            }
            HirKind::Class(class) => {
                let letters = match self.sets.get(&std::ptr::from_ref(pattern)) {
                    Some(known) => Rc::clone(known),
                    None => self.alphabet.members(&ranges(class)?).into(),
                };
                self.sets.insert(std::ptr::from_ref(pattern), Rc::clone(&letters));
                self.push(Position::Letters(letters))?;
            }
            HirKind::Look(look) => {
                self.push(Position::Look(*look))?;
            }
            HirKind::Capture(capture) => self.add(&capture.sub)?,
            HirKind::Concat(parts) => {
                for part in parts {
                    self.add(part)?;
                }
            }
            HirKind::Alternation(parts) => self.add_alternation(parts)?,
            HirKind::Repetition(repetition) => self.add_repetition(&repetition.sub, repetition.min, repetition.max)?,
        }
        Ok(())
    }

    fn add_alternation(&mut self, parts: &[Hir]) -> Result<(), String> {
        let fork = self.push(Position::Jump(Vec::new()))?;
        let mut starts = Vec::with_capacity(parts.len());
        let mut ends = Vec::with_capacity(parts.len());
        for part in parts {
            starts.push(self.positions.len());
            self.add(part)?;
            ends.push(self.push(Position::Jump(Vec::new()))?);
        }
        self.positions[fork] = Position::Jump(starts);
        let end = self.positions.len();
        for position in ends {
            self.positions[position] = Position::Jump(vec![end]);
        }
        Ok(())
    }

    fn add_repetition(&mut self, sub: &Hir, min: u32, max: Option<u32>) -> Result<(), String> {
        for _ in 0..min {
            self.add(sub)?;
        }
        let Some(max) = max else {
            let fork = self.push(Position::Jump(Vec::new()))?;
            self.add(sub)?;
            self.push(Position::Jump(vec![fork]))?;
            self.positions[fork] = Position::Jump(vec![fork + 1, self.positions.len()]);
            return Ok(());
        };
        let mut forks = Vec::new();
        for _ in min..max {
            forks.push(self.push(Position::Jump(Vec::new()))?);
            self.add(sub)?;
        }
        let end = self.positions.len();
        for fork in forks {
            self.positions[fork] = Position::Jump(vec![fork + 1, end]);
        }
        Ok(())
    }
}
