// Compiles CEL expressions with the packages that the API server of a release uses.
//
//	./run.sh ../../../k8s-cel/tests/fixtures > ../../../k8s-cel/tests/fixtures/cel-releases.txt
//
// builds it for several releases. It prints the expressions in the folder `cel` whose verdict or estimated maximum cost
// is another one than the tables there say: `EXPRESSION ⇒ NEW ⇒ LIVE`, with `refused` or the cost of a new expression,
// and of one that the live CRD has. Expressions of optional.txt begin with `?`.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

const arrow = " ⇒ "

// Known differences of gantry, which matter to no real rule.
var known = []string{
	`'\ud800'`, "string(null)", "optional.none().optMap(x, x)", "[?dyn(1)]", "true || string(dyn(int)) == ''",
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
	files, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	check(err)
	for _, file := range files {
		old, prefix := of.CelType(), ""
		if filepath.Base(file) == "optional.txt" {
			old, prefix = cel.OptionalType(of.CelType()), "?"
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
			newest := "refused"
			if !strings.HasPrefix(result, "refused") {
				newest = result[strings.LastIndex(result, " ≤ ")+len(" ≤ "):]
			}
			asNew := verdict(set.NewExpressionsEnv(), of, expression)
			asLive := verdict(set.StoredExpressionsEnv(), of, expression)
			if asNew != newest || asLive != newest {
				fmt.Println(prefix + expression + arrow + asNew + arrow + asLive)
			}
		}
	}
}

func verdict(env *cel.Env, of *apiservercel.DeclType, expression string) (said string) {
	// The server's request handler recovers from a panic too.
	defer func() {
		if recover() != nil {
			said = "refused"
		}
	}()
	ast, issues := env.Compile(expression)
	if issues != nil {
		return "refused"
	}
	if _, err := env.Program(ast, cel.CostTracking(&library.CostEstimator{})); err != nil {
		return "refused"
	}
	estimate, err := env.EstimateCost(ast, &library.CostEstimator{SizeEstimator: sizes{of}})
	check(err)
	return fmt.Sprint(estimate.Max)
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
