// Evaluates CEL expressions with the packages that the API server uses.
//
//	go run ./cel-oracle ../../k8s-cel/tests/fixtures/cel
//
// rewrites each *.txt in the folder: every line `EXPRESSION ⇒ …` gets the result in the API server's environment, the
// cost and, after `≤`, the server's estimate of the maximum cost for any object. Both `self` and `oldSelf` are the
// object in object.json with the schema in schema.json. In optional.txt `oldSelf` is an optional, as it is for rules
// with `optionalOldSelf`. Lines without an expression (empty lines and comments) are kept.
//
//	go run ./cel-oracle -signatures > ../../k8s-cel/src/signatures.txt
//
// lists the functions and macros that rules can use, as declared to the type checker, and since which release.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

const arrow = " ⇒ "

func main() {
	if len(os.Args) != 2 {
		fail(fmt.Errorf("usage: cel-oracle FOLDER | -signatures"))
	}
	if os.Args[1] == "-signatures" {
		signatures()
		return
	}
	plain, optional := newOracle(os.Args[1], false), newOracle(os.Args[1], true)
	files, err := filepath.Glob(filepath.Join(os.Args[1], "*.txt"))
	check(err)
	for _, file := range files {
		oracle := plain
		if filepath.Base(file) == "optional.txt" {
			oracle = optional
		}
		text, err := os.ReadFile(file)
		check(err)
		lines := strings.Split(string(text), "\n")
		for at, line := range lines {
			expression, _, _ := strings.Cut(line, arrow)
			expression = strings.TrimSpace(expression)
			if expression == "" || strings.HasPrefix(expression, "#") {
				continue
			}
			lines[at] = expression + arrow + oracle.evaluate(expression)
		}
		check(os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o644))
	}
}

// The oldest release whose environment is known.
const oldest = 28

// What the environments of the pinned release have at any compatibility version, because it came with a version of
// cel-go and not with one of Kubernetes, and the release with that version of cel-go.
var unversioned = map[string]uint{
	"macro optFlatMap:2:true":                         29, // v0.17.7
	"list<V>.first() optional_type<V>":                33, // v0.23.2
	"list<V>.last() optional_type<V>":                 33,
	"list<optional_type<V>>.unwrapOpt() list<V>":      33,
	"optional.unwrap(list<optional_type<V>>) list<V>": 33,
}

// Prints one line for each overload: `NEW/LIVE name(args) result`, or `NEW/LIVE target.name(args) result`. A CRD can use
// it from release 1.NEW on, and a CRD whose live version has the same rule from 1.LIVE on. The overloads of a function are
// in the order in which they are tried. Macros follow: `NEW/LIVE macro name:arguments:target`.
func signatures() {
	// The default is the release before.
	newest := environment.DefaultCompatibilityVersion().Minor() + 1
	introduced := map[string]uint{}
	lines := []string{}
	for minor := uint(oldest - 1); minor <= newest; minor++ {
		lines = declarations(environment.MustBaseEnvSet(version.MajorMinor(1, minor)).NewExpressionsEnv())
		for _, line := range lines {
			if _, isKnown := introduced[line]; !isKnown {
				introduced[line] = minor
			}
			// Declared in every environment, and enabled by an option.
			if crossType.MatchString(line) {
				introduced[line] = 28
			}
		}
	}
	for _, line := range slices.Sorted(maps.Keys(removed)) {
		if removed[line] <= newest {
			introduced[line] = oldest - 1
			name, _, _ := strings.Cut(line, "(")
			next := slices.IndexFunc(lines, func(other string) bool { return strings.HasPrefix(other, name+"(") && other > line })
			if next < 0 {
				next = len(lines)
			}
			lines = slices.Insert(lines, next, line)
		}
	}
	for _, line := range lines {
		// New rules are compiled for a rollback to the release before.
		first, live := introduced[line]+1, max(introduced[line], oldest)
		if release, found := unversioned[line]; found {
			first, live = release, release
		}
		end := ""
		if release, found := removed[line]; found && release <= newest {
			end = fmt.Sprintf("/%d", release)
		}
		fmt.Printf("%d/%d%s %s\n", first, live, end, line)
	}
}

// The release that removed what a version of cel-go no longer declares.
var removed = map[string]uint{"duration(int) google.protobuf.Duration": 37}

// Comparisons of numbers of two types.
var crossType = regexp.MustCompile(`^_[<>]=?_\((int, (uint|double)|uint, (int|double)|double, (int|uint))\)`)

func declarations(env *cel.Env) (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(env.Functions())) {
		// Internal functions of macros, and old names of operators.
		if strings.Contains(name, "strictly_false") || name == "in" || name == "_in_" {
			continue
		}
		for _, overload := range env.Functions()[name].OverloadDecls() {
			args := []string{}
			for _, arg := range overload.ArgTypes() {
				args = append(args, typeText(arg))
			}
			target := ""
			if overload.IsMemberFunction() {
				target, args = args[0]+".", args[1:]
			}
			line := target + name + "(" + strings.Join(args, ", ") + ") " + typeText(overload.ResultType())
			// Rules of a CRD have no authorizer.
			if !strings.Contains(line, "kubernetes.authorization") {
				lines = append(lines, line)
			}
		}
	}
	macros := []string{}
	for _, macro := range env.Macros() {
		macros = append(macros, "macro "+macro.MacroKey())
	}
	slices.Sort(macros)
	return append(lines, macros...)
}

func typeText(t *types.Type) string {
	if t.Kind() == types.DynKind {
		return "dyn"
	}
	params := []string{}
	for _, param := range t.Parameters() {
		params = append(params, typeText(param))
	}
	if len(params) == 0 {
		return t.TypeName()
	}
	return t.TypeName() + "<" + strings.Join(params, ", ") + ">"
}

type oracle struct {
	env           *cel.Env
	self, oldSelf ref.Val
	of            *apiservercel.DeclType
}

// The size limits of the schema's values, as the server passes them to cel-go's estimator.
type sizes struct {
	of *apiservercel.DeclType
}

func (s sizes) EstimateSize(node checker.AstNode) *checker.SizeEstimate {
	if len(node.Path()) == 0 {
		return nil
	}
	at := s.of
	for _, step := range node.Path()[1:] {
		switch field, isField := at.Fields[step]; {
		case step == "@items" || step == "@values":
			at = at.ElemType
		case step == "@keys":
			at = at.KeyType
		case isField:
			at = field.Type
		default:
			return nil
		}
		if at == nil {
			return nil
		}
	}
	return &checker.SizeEstimate{Max: uint64(at.MaxElements)}
}

func (sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

func newOracle(folder string, isOptional bool) oracle {
	var external v1.JSONSchemaProps
	read(filepath.Join(folder, "schema.json"), &external)
	var internal apiextensions.JSONSchemaProps
	check(v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&external, &internal, nil))
	structural, err := schema.NewStructural(&internal)
	check(err)
	var object any
	read(filepath.Join(folder, "object.json"), &object)

	of := model.SchemaDeclType(structural, false).MaybeAssignTypeName("selfType")
	self := schemacel.UnstructuredToVal(object, structural)
	oldSelf, oldType := self, of.CelType()
	if isOptional {
		oldSelf, oldType = types.OptionalOf(self), types.NewOptionalType(of.CelType())
	}
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []cel.EnvOption{cel.Variable("self", of.CelType()), cel.Variable("oldSelf", oldType)},
		DeclTypes:         []*apiservercel.DeclType{of},
	})
	check(err)
	return oracle{env: set.NewExpressionsEnv(), self: self, oldSelf: oldSelf, of: of}
}

func (o oracle) evaluate(expression string) (said string) {
	// The server's request handler recovers from a panic too.
	defer func() {
		if panicked := recover(); panicked != nil {
			said = "refused: panic: " + oneLine(fmt.Sprint(panicked))
		}
	}()
	ast, issues := o.env.Compile(expression)
	if issues != nil {
		first, _, _ := strings.Cut(issues.String(), "\n")
		_, text, _ := strings.Cut(first, ": ")
		_, text, _ = strings.Cut(text, ": ")
		return "refused: " + text
	}
	program, err := o.env.Program(ast,
		cel.CostLimit(celconfig.PerCallLimit),
		cel.CostTracking(&library.CostEstimator{}),
	)
	if err != nil {
		return "refused: " + oneLine(err.Error())
	}
	estimate, err := o.env.EstimateCost(ast, &library.CostEstimator{SizeEstimator: sizes{o.of}})
	check(err)
	value, details, err := program.Eval(map[string]any{"self": o.self, "oldSelf": o.oldSelf})
	if err != nil {
		return fmt.Sprintf("error: %s ≤ %d", oneLine(err.Error()), estimate.Max)
	}
	return fmt.Sprintf("%s · %d ≤ %d", show(value), *details.ActualCost(), estimate.Max)
}

func oneLine(text string) string {
	return strings.ReplaceAll(text, "\n", " ")
}

func read(file string, into any) {
	text, err := os.ReadFile(file)
	check(err)
	check(utiljson.Unmarshal(text, into))
}

func check(err error) {
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
