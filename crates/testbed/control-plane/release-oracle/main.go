// Compiles CEL expressions with the packages that the API server of a release uses.
//
//	./run.sh ../../../k8s-cel/tests/fixtures > ../../../k8s-cel/tests/fixtures/cel-releases.txt
//
// builds it for several releases. It prints the expressions in the folder `cel` that the tables there judge otherwise:
// `EXPRESSION ⇒ NEW ⇒ LIVE`, with `refused` or the estimated maximum cost of a new expression, and of one that the live
// CRD has. ` ⇒ VALUE` follows if the value of the latter is another one; all errors are the same. Expressions of
// optional.txt begin with `?`.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"

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

// Known differences of gantry, which matter to no real rule.
var known = []string{
	`'\ud800'`, "string(null)", "optional.none().optMap(x, x)", "[?dyn(1)]", "true || string(dyn(int)) == ''",
	"type(optional.none())", "format.qualifiedName().validate('a/b/c')",
}

func main() {
	folder := filepath.Join(os.Args[1], "cel")
	raw, err := os.ReadFile(filepath.Join(folder, "schema.json"))
	check(err)
	var external v1.JSONSchemaProps
	check(utiljson.Unmarshal(raw, &external))
	var internal apiextensions.JSONSchemaProps
	check(v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&external, &internal, nil))
	structural, err := schema.NewStructural(&internal)
	check(err)
	of := model.SchemaDeclType(structural, false).MaybeAssignTypeName("selfType")
	raw, err = os.ReadFile(filepath.Join(folder, "object.json"))
	check(err)
	var object any
	check(utiljson.Unmarshal(raw, &object))
	self := schemacel.UnstructuredToVal(object, structural)
	files, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	check(err)
	for _, file := range files {
		old, prefix := of.CelType(), ""
		variables := map[string]any{"self": self, "oldSelf": self}
		if filepath.Base(file) == "optional.txt" {
			old, prefix = cel.OptionalType(of.CelType()), "?"
			variables["oldSelf"] = types.OptionalOf(self)
		}
		// run.sh adds an argument where a release has one.
		base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
		set, err := base.Extend(environment.VersionedOptions{
			IntroducedVersion: version.MajorMinor(1, 0),
			EnvOptions:        []cel.EnvOption{cel.Variable("self", of.CelType()), cel.Variable("oldSelf", old)},
			DeclTypes:         []*apiservercel.DeclType{of},
		})
		check(err)
		text, err := os.ReadFile(file)
		check(err)
		for _, line := range strings.Split(string(text), "\n") {
			expression, result, isExpression := strings.Cut(line, arrow)
			expression = strings.TrimSpace(expression)
			if !isExpression || strings.HasPrefix(expression, "#") || slices.Contains(known, expression) {
				continue
			}
			newest, newestValue := "refused", ""
			if !strings.HasPrefix(result, "refused") {
				result, newest = cutLast(result, " ≤ ")
				newestValue, _ = cutLast(result, " · ")
			}
			if strings.HasPrefix(newestValue, "error: ") {
				newestValue = "error"
			}
			asNew, _ := verdict(set.NewExpressionsEnv(), of, expression, variables)
			asLive, value := verdict(set.StoredExpressionsEnv(), of, expression, variables)
			line := prefix + expression + arrow + asNew + arrow + asLive
			switch {
			case asLive != "refused" && newest != "refused" && value != newestValue:
				fmt.Println(line + arrow + value)
			case asNew != newest || asLive != newest:
				fmt.Println(line)
			}
		}
	}
}

// The text before the last separator, and the one after it; all of it and nothing without a separator.
func cutLast(text, separator string) (before, after string) {
	at := strings.LastIndex(text, separator)
	if at < 0 {
		return text, ""
	}
	return text[:at], text[at+len(separator):]
}

// The estimated maximum cost of an expression, or `refused`, and its value.
func verdict(
	env *cel.Env, of *apiservercel.DeclType, expression string, variables map[string]any,
) (said, value string) {
	// The server's request handler recovers from a panic too.
	defer func() {
		switch panicked := recover() != nil; {
		case panicked && said == "":
			said = "refused"
		case panicked:
			value = "error"
		}
	}()
	ast, issues := env.Compile(expression)
	if issues != nil {
		return "refused", ""
	}
	program, err := env.Program(ast,
		cel.CostLimit(celconfig.PerCallLimit),
		cel.CostTracking(&library.CostEstimator{}),
	)
	if err != nil {
		return "refused", ""
	}
	estimate, err := env.EstimateCost(ast, &library.CostEstimator{SizeEstimator: sizes{of}})
	check(err)
	said = fmt.Sprint(estimate.Max)
	result, _, err := program.Eval(variables)
	if err != nil {
		return said, "error"
	}
	return said, show(result)
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

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
