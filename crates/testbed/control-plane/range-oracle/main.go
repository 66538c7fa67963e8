// Evaluates version ranges with the libraries that OLM uses.
//
//	go run ./range-oracle < requests > answers
//
// Each line of the input is `{"language": "masterminds" | "blang", "range": "…", "versions": ["…"]}`. The
// corresponding line of the output is `{"error": "…"}` if the range is invalid, otherwise `{"matches": [true, …]}`,
// with `null` for an invalid version or if the library panics.
// With `"language": "version"` the output shows how the library parses and orders versions: `{"read": [{"text": "…"} |
// {"error": "…"}], "order": [-1 | 0 | 1, …]}`. Each version is compared with the previous one; the order is 0 if
// either is invalid.
//
//	go run ./range-oracle -table ../../catalog/src/ranges.jsonl
//
// rewrites a file of such inputs: each line gets its output.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	masterminds "github.com/Masterminds/semver/v3"
	blang "github.com/blang/semver/v4"
)

// A line of a table: an input with its output.
type row struct {
	question
	answer
}

type question struct {
	Language string   `json:"language"`
	Range    string   `json:"range,omitempty"`
	Versions []string `json:"versions,omitempty"`
}

type version struct {
	Text  string `json:"text,omitempty"`
	Error string `json:"error,omitempty"`
}

type answer struct {
	Error   string    `json:"error,omitempty"`
	Matches []*bool   `json:"matches,omitempty"`
	Read    []version `json:"read,omitempty"`
	Order   []int     `json:"order,omitempty"`
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "-table" {
		fillIn(os.Args[2])
		return
	}
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 1 {
			var question question
			check(json.Unmarshal(line, &question))
			text, err := json.Marshal(question.answer())
			check(err)
			_, err = out.Write(append(text, '\n'))
			check(err)
			// A client that writes one line at a time waits for the answer.
			if lines.Buffered() == 0 {
				check(out.Flush())
			}
		}
		if err != nil {
			check(out.Flush())
			return
		}
	}
}

func fillIn(file string) {
	text, err := os.ReadFile(file)
	check(err)
	filled := bytes.Buffer{}
	rows := json.NewEncoder(&filled)
	rows.SetEscapeHTML(false)
	for line := range bytes.Lines(text) {
		var question question
		check(json.Unmarshal(line, &question))
		check(rows.Encode(row{question, question.answer()}))
	}
	check(os.WriteFile(file, filled.Bytes(), 0o644))
}

func (q question) answer() answer {
	var matches func(string) *bool
	switch q.Language {
	case "masterminds":
		constraint, err := masterminds.NewConstraint(q.Range)
		if err != nil {
			return answer{Error: err.Error()}
		}
		matches = func(text string) *bool {
			version, err := masterminds.NewVersion(text)
			if err != nil {
				return nil
			}
			found := constraint.Check(version)
			return &found
		}
	case "blang":
		accepts, err := blang.ParseRange(q.Range)
		if err != nil {
			return answer{Error: err.Error()}
		}
		matches = func(text string) *bool {
			version, err := blang.Parse(text)
			if err != nil {
				return nil
			}
			return called(accepts, version)
		}
	case "version":
		return q.order()
	default:
		check(fmt.Errorf("unknown language %q", q.Language))
	}
	found := answer{}
	for _, text := range q.Versions {
		found.Matches = append(found.Matches, matches(text))
	}
	return found
}

// The library returns a nil function for an empty group of comparisons, so the call can panic.
func called(accepts blang.Range, version blang.Version) (found *bool) {
	defer func() { _ = recover() }()
	result := accepts(version)
	return &result
}

func (q question) order() answer {
	found := answer{}
	var before *blang.Version
	for at, text := range q.Versions {
		order := 0
		parsed, err := blang.Parse(text)
		if err != nil {
			found.Read = append(found.Read, version{Error: err.Error()})
		} else {
			found.Read = append(found.Read, version{Text: parsed.String()})
			if before != nil {
				order = before.Compare(parsed)
			}
		}
		if at > 0 {
			found.Order = append(found.Order, order)
		}
		before = nil
		if err == nil {
			before = &parsed
		}
	}
	return found
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
