//! Parses an expression.
//!
//! The grammar is small, and this parser exists because it must not crash the process: the nesting depth is limited,
//! and anything that can be repeated without nesting is parsed in a loop.

use super::ast::{BinaryOperator, Expr, Literal, SelectionStep};
use super::environment::{CelEnvironment, QUOTED_NAMES};
use super::lexer::{CelToken, TokenKind, tokens};
use super::macros;
use super::problem::{ExpressionError, ExpressionResult};
use super::types::RESERVED;

/// The maximum nesting of brackets, calls and macros. The rules of real CRDs stay below twenty.
const MAX_DEPTH: usize = 64;
/// The maximum number of selections in one path.
const MAX_STEPS: usize = 256;
/// The API server's limit on the length of an expression.
const MAX_CHARS: usize = 100_000;

/// The precedences below the unary operators, from loosest to tightest.
const BINARY: &[&[(&str, BinaryOperator)]] = &[
    &[
        ("==", BinaryOperator::Equal),
        ("!=", BinaryOperator::NotEqual),
        ("<", BinaryOperator::Less),
        ("<=", BinaryOperator::LessEqual),
        (">", BinaryOperator::Greater),
        (">=", BinaryOperator::GreaterEqual),
        ("in", BinaryOperator::In),
    ],
    &[("+", BinaryOperator::Add), ("-", BinaryOperator::Subtract)],
    &[("*", BinaryOperator::Multiply), ("/", BinaryOperator::Divide), ("%", BinaryOperator::Modulo)],
];

/// [`parse`] in an environment, which might lack the syntax of quoted names.
pub(crate) fn parse_in(source: &str, environment: CelEnvironment) -> ExpressionResult<Expr> {
    match !environment.has(QUOTED_NAMES) && has_quoted_names(source) {
        true => Err("unsupported syntax: '`'".to_owned().into()),
        false => parse(source),
    }
}

/// Parses `source`; the error includes the position.
pub(crate) fn parse(source: &str) -> ExpressionResult<Expr> {
    if source.chars().count() > MAX_CHARS {
        return Err(ExpressionError::limit(format!("the expression is longer than {MAX_CHARS} characters")));
    }
    let mut parser = CelParser { tokens: tokens(source)?, at: 0, depth: 0 };
    let expr = parser.expression()?;
    match parser.tokens.get(parser.at) {
        None => Ok(expr),
        Some(token) => Err(format!("unexpected {} at byte {}", describe(&token.kind), token.at).into()),
    }
}

/// Whether a field name of the expression is in backquotes.
fn has_quoted_names(source: &str) -> bool {
    let is_quoted = |token: &CelToken| matches!(token.kind, TokenKind::QuotedName(_));
    source.contains('`') && tokens(source).is_ok_and(|tokens| tokens.iter().any(is_quoted))
}

fn describe(kind: &TokenKind) -> String {
    match kind {
        TokenKind::Ident(name) | TokenKind::QuotedName(name) => format!("{name:?}"),
        TokenKind::Mark(mark) => format!("{mark:?}"),
        TokenKind::Literal(_) | TokenKind::MinInt => "literal".to_owned(),
    }
}

struct CelParser {
    tokens: Vec<CelToken>,
    at: usize,
    depth: usize,
}

impl CelParser {
    fn peek(&self) -> Option<&TokenKind> {
        self.tokens.get(self.at).map(|token| &token.kind)
    }

    fn is(&self, mark: &str) -> bool {
        matches!(self.peek(), Some(TokenKind::Mark(found)) if *found == mark)
    }

    fn accept(&mut self, mark: &str) -> bool {
        let found = self.is(mark);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, mark: &str) -> ExpressionResult<()> {
        if self.accept(mark) { Ok(()) } else { Err(self.unexpected(&format!("{mark:?}")).into()) }
    }

    fn unexpected(&self, wanted: &str) -> String {
        match self.tokens.get(self.at) {
            Some(token) => format!("expected {wanted}, found {} at byte {}", describe(&token.kind), token.at),
            None => format!("expected {wanted}, found the end of the expression"),
        }
    }

    /// Runs `parse` one level deeper.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> ExpressionResult<T>) -> ExpressionResult<T> {
        if self.depth == MAX_DEPTH {
            return Err(ExpressionError::limit(format!("the expression nests deeper than {MAX_DEPTH} levels")));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    fn expression(&mut self) -> ExpressionResult<Expr> {
        self.nested(|parser| {
            let mut cases = Vec::new();
            loop {
                let value = parser.disjunction()?;
                if !parser.accept("?") {
                    return Ok(match cases.is_empty() {
                        true => value,
                        false => Expr::Conditional { cases, otherwise: Box::new(value) },
                    });
                }
                let then = parser.nested(Self::disjunction)?;
                parser.expect(":")?;
                cases.push((value, then));
            }
        })
    }

    fn disjunction(&mut self) -> ExpressionResult<Expr> {
        self.joined("||", Self::conjunction, Expr::Or)
    }

    fn conjunction(&mut self) -> ExpressionResult<Expr> {
        self.joined("&&", |parser| parser.binary(BINARY), Expr::And)
    }

    fn joined(
        &mut self,
        mark: &str,
        operand: fn(&mut Self) -> ExpressionResult<Expr>,
        join: fn(Vec<Expr>) -> Expr,
    ) -> ExpressionResult<Expr> {
        let first = operand(self)?;
        if !self.is(mark) {
            return Ok(first);
        }
        let mut operands = vec![first];
        while self.accept(mark) {
            operands.push(operand(self)?);
        }
        Ok(join(operands))
    }

    fn binary(&mut self, levels: &[&[(&str, BinaryOperator)]]) -> ExpressionResult<Expr> {
        let Some((level, tighter)) = levels.split_first() else { return self.unary() };
        let first = self.binary(tighter)?;
        let mut rest = Vec::new();
        while let Some(operator) = self.operator(level) {
            rest.push((operator, self.binary(tighter)?));
        }
        Ok(if rest.is_empty() { first } else { Expr::Binary { first: Box::new(first), rest } })
    }

    fn operator(&mut self, level: &[(&str, BinaryOperator)]) -> Option<BinaryOperator> {
        let word = match self.peek()? {
            TokenKind::Mark(mark) => mark,
            TokenKind::Ident(name) => name.as_str(),
            _ => return None,
        };
        let (_, operator) = level.iter().find(|(known, _)| *known == word)?;
        let operator = *operator;
        self.at += 1;
        Some(operator)
    }

    fn unary(&mut self) -> ExpressionResult<Expr> {
        let mut nots = 0;
        while self.accept("!") {
            nots += 1;
        }
        if nots > 0 {
            let operand = self.postfix()?;
            return Ok(if nots % 2 == 0 { operand } else { Expr::Not(Box::new(operand)) });
        }
        let mut minuses = 0;
        while self.accept("-") {
            minuses += 1;
        }
        if minuses == 0 {
            return self.postfix();
        }
        // A single sign belongs to the literal: otherwise the smallest integer could not be written. Repeated signs do
        // not.
        let negative = match self.peek() {
            _ if minuses > 1 => None,
            Some(TokenKind::MinInt) => Some(Literal::Int(i64::MIN)),
            Some(TokenKind::Literal(Literal::Int(value))) => Some(Literal::Int(-value)),
            Some(TokenKind::Literal(Literal::Double(value))) => Some(Literal::Double(-value)),
            _ => None,
        };
        if let Some(literal) = negative {
            self.at += 1;
            return self.selections(Expr::Literal(literal));
        }
        let operand = self.postfix()?;
        Ok(if minuses % 2 == 0 { operand } else { Expr::Negate(Box::new(operand)) })
    }

    fn postfix(&mut self) -> ExpressionResult<Expr> {
        let primary = self.primary()?;
        self.selections(primary)
    }

    fn selections(&mut self, mut expr: Expr) -> ExpressionResult<Expr> {
        let depth = self.depth;
        loop {
            if self.is("{")
                && let Some(name) = type_name(&expr)
            {
                return Err(message_literal(&name));
            }
            if self.accept(".") {
                let optional = self.accept("?");
                let is_quoted = matches!(self.peek(), Some(TokenKind::QuotedName(_)));
                let name = self.field_name()?;
                if !optional && !is_quoted && self.is("(") {
                    // Each call nests the chain before it.
                    self.depth += 1;
                    if self.depth > MAX_DEPTH {
                        return Err(ExpressionError::limit(format!("more than {MAX_DEPTH} calls in one chain")));
                    }
                    let args = self.arguments()?;
                    expr = macros::member_call(expr, name, args)?;
                } else {
                    expr = extend(expr, SelectionStep::Field { name, optional })?;
                }
            } else if self.accept("[") {
                let optional = self.accept("?");
                let index = self.expression()?;
                self.expect("]")?;
                expr = extend(expr, SelectionStep::Index { index, optional })?;
            } else {
                self.depth = depth;
                return Ok(expr);
            }
        }
    }

    fn field_name(&mut self) -> ExpressionResult<String> {
        match self.peek() {
            Some(TokenKind::QuotedName(name)) => {
                let name = name.clone();
                self.at += 1;
                Ok(name)
            }
            // These four are never identifiers; other reserved words can be field names.
            Some(TokenKind::Ident(name)) if !matches!(name.as_str(), "in" | "true" | "false" | "null") => {
                let name = name.clone();
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.unexpected("a name").into()),
        }
    }

    fn arguments(&mut self) -> ExpressionResult<Vec<Expr>> {
        self.expect("(")?;
        let mut args = Vec::new();
        if self.accept(")") {
            return Ok(args);
        }
        loop {
            args.push(self.expression()?);
            if self.accept(")") {
                return Ok(args);
            }
            self.expect(",")?;
        }
    }

    fn primary(&mut self) -> ExpressionResult<Expr> {
        if self.accept("(") {
            let inner = self.expression()?;
            self.expect(")")?;
            return Ok(inner);
        }
        if self.accept("[") {
            return self.list();
        }
        if self.accept("{") {
            return self.map();
        }
        // A leading dot makes a name absolute, but every name is absolute anyway.
        let absolute = self.accept(".");
        match self.peek().cloned() {
            Some(TokenKind::Literal(literal)) if !absolute => {
                self.at += 1;
                Ok(Expr::Literal(literal))
            }
            Some(TokenKind::Ident(name)) => {
                let word = match name.as_str() {
                    "true" => Some(Literal::Bool(true)),
                    "false" => Some(Literal::Bool(false)),
                    "null" => Some(Literal::Null),
                    _ => None,
                };
                if let (Some(word), false) = (word, absolute) {
                    self.at += 1;
                    return Ok(Expr::Literal(word));
                }
                if RESERVED.contains(&name.as_str()) {
                    return Err(self.unexpected("a name").into());
                }
                self.at += 1;
                if self.is("(") {
                    let args = self.arguments()?;
                    return macros::global_call(name, args);
                }
                Ok(Expr::Variable(name))
            }
            _ => Err(self.unexpected("an expression").into()),
        }
    }

    fn list(&mut self) -> ExpressionResult<Expr> {
        let mut items = Vec::new();
        while !self.accept("]") {
            let optional = self.accept("?");
            items.push((self.expression()?, optional));
            if !self.is("]") {
                self.expect(",")?;
            }
        }
        Ok(Expr::List(items))
    }

    fn map(&mut self) -> ExpressionResult<Expr> {
        let mut entries = Vec::new();
        while !self.accept("}") {
            let optional = self.accept("?");
            let key = self.expression()?;
            self.expect(":")?;
            entries.push((key, self.expression()?, optional));
            if !self.is("}") {
                self.expect(",")?;
            }
        }
        Ok(Expr::Map(entries))
    }
}

/// The name in front of the braces of a message literal: `google.protobuf.Struct`.
fn type_name(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Variable(name) => Some(name.clone()),
        Expr::Path { root, steps } => {
            let Expr::Variable(name) = &**root else { return None };
            let names = steps.iter().map(|step| match step {
                SelectionStep::Field { name, optional: false } => Some(name.as_str()),
                _ => None,
            });
            let names: Option<Vec<&str>> = std::iter::once(Some(name.as_str())).chain(names).collect();
            Some(names?.join("."))
        }
        _ => None,
    }
}

/// The messages that the server knows, all in the package `google.protobuf`.
const MESSAGES: &[&str] = &[
    "Any",
    "BoolValue",
    "BytesValue",
    "DoubleValue",
    "Duration",
    "Empty",
    "FloatValue",
    "Int32Value",
    "Int64Value",
    "ListValue",
    "StringValue",
    "Struct",
    "Struct.FieldsEntry",
    "Timestamp",
    "UInt32Value",
    "UInt64Value",
    "Value",
];

fn message_literal(name: &str) -> ExpressionError {
    match name.strip_prefix("google.protobuf.") {
        Some(message) if MESSAGES.contains(&message) => {
            ExpressionError::limit(format!("message literals such as {name}{{}} are not supported"))
        }
        _ => format!("undeclared reference to '{name}'").into(),
    }
}

/// Appends a selection to `expr` if it is a path, or begins a path.
fn extend(expr: Expr, step: SelectionStep) -> ExpressionResult<Expr> {
    match expr {
        Expr::Path { steps, .. } if steps.len() == MAX_STEPS => {
            Err(ExpressionError::limit(format!("more than {MAX_STEPS} selections in one path")))
        }
        Expr::Path { root, mut steps } => {
            steps.push(step);
            Ok(Expr::Path { root, steps })
        }
        root => Ok(Expr::Path { root: Box::new(root), steps: vec![step] }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_the_server_knows_is_a_limit_and_any_other_is_refused() {
        let problem = |source: &str| parse(source).map(drop).map_err(|problem| (problem.text, problem.is_limit));
        let limit = |name: &str| Err((format!("message literals such as {name}{{}} are not supported"), true));
        assert_eq!(problem("google.protobuf.Struct{} == {}"), limit("google.protobuf.Struct"));
        assert_eq!(problem("1 == .google.protobuf.Int32Value{value: 1}"), limit("google.protobuf.Int32Value"));
        for name in ["google.protobuf.FieldMask", "google.protobuf", "Struct", "self.x"] {
            assert_eq!(problem(&format!("{name}{{}} == 1")), Err((format!("undeclared reference to '{name}'"), false)));
        }
        assert_eq!(problem("{'a': 1}{} == 1"), Err(("unexpected \"{\" at byte 8".to_owned(), false)));
    }
}
