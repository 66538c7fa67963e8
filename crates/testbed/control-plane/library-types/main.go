// Prints the types of k8s.io/api and k8s.io/apimachinery that CRDs embed, as controller-gen turns them into schemas, in
// each release:
//
//	go run ./library-types > ../../preflight/src/crd_upgrade_safety/library/types.txt
//
// The first line has the oldest and the newest release, as minor versions: of each the first and the newest patch version
// are read, because some changes were backported. A type is a line with its name, followed by a line for each field:
//
//	NAME RELEASES TYPE [KEYWORD=JSON]...
//
// A field that changes has a line for each form. Without RELEASES it is in all releases of the table; `29-` is from 29 on,
// `29+-` from a patch version of 29 on, `-29` up to the newest of 29, and `-29.0` up to 29.0. A question mark at the end of the name stands for an optional field. A type is a list ([) or a map ({)
// of another type, the name of a struct (without its package if that is the package of the struct that has the field), or
// one of: s string, b boolean, i int32, l int64, f float, q Quantity, x IntOrString, t time, y bytes, o anything. The
// keywords of a struct itself are those of the field `=`, which has no type. The sources are parsed, not compiled.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The release that introduced what most CRDs of today were generated with.
const oldest = 17

var packages = map[string]string{
	"apps/v1":        "k8s.io/api/apps/v1",
	"autoscaling/v2": "k8s.io/api/autoscaling/v2",
	"batch/v1":       "k8s.io/api/batch/v1",
	"core/v1":        "k8s.io/api/core/v1",
	"meta/v1":        "k8s.io/apimachinery/pkg/apis/meta/v1",
	"networking/v1":  "k8s.io/api/networking/v1",
	"policy/v1":      "k8s.io/api/policy/v1",
	"rbac/v1":        "k8s.io/api/rbac/v1",
}

// The types that CRDs embed; those that they contain are found from them.
var roots = []string{
	"apps/v1.DaemonSetSpec", "apps/v1.DeploymentSpec", "apps/v1.StatefulSetSpec",
	"autoscaling/v2.HorizontalPodAutoscalerSpec", "batch/v1.CronJobSpec", "core/v1.ContainerStatus",
	"core/v1.LimitRangeSpec", "core/v1.ObjectReference", "core/v1.PersistentVolumeClaim", "core/v1.PodTemplateSpec",
	"core/v1.ResourceQuotaSpec", "core/v1.SecretReference", "core/v1.ServiceSpec", "core/v1.ServiceStatus",
	"core/v1.TypedLocalObjectReference", "meta/v1.Condition", "meta/v1.LabelSelector", "networking/v1.IngressSpec",
	"networking/v1.NetworkPolicySpec", "policy/v1.PodDisruptionBudgetSpec", "rbac/v1.PolicyRule", "rbac/v1.RoleRef",
	"rbac/v1.Subject",
}

// What controller-gen does not look into.
var known = map[string]string{
	"meta/v1.ObjectMeta": "o", "meta/v1.FieldsV1": "o", "meta/v1.Time": "t", "meta/v1.MicroTime": "t",
	"meta/v1.Duration": "s", "resource.Quantity": "q", "intstr.IntOrString": "x", "runtime.RawExtension": "o",
	"string": "s", "bool": "b", "int32": "i", "int64": "l", "int": "l", "float64": "f", "float32": "f",
}

// One release.
type library struct {
	specs map[string]*ast.TypeSpec
	docs  map[string][]string
	// By type, the names under which its file imports other packages.
	imports map[string]map[string]string
}

type field struct {
	name, form string
}

func main() {
	versions, newest := allVersions()
	// By field the releases as numbers: twice the minor version, and one more for its newest patch version.
	forms := map[string]map[field][]int{}
	for release := 2 * oldest; release <= 2*newest+1; release++ {
		lib := load(versions[release/2][release%2])
		found := map[string][]field{}
		for _, root := range roots {
			lib.describe(root, found)
		}
		for of, fields := range found {
			if forms[of] == nil {
				forms[of] = map[field][]int{}
			}
			for _, one := range fields {
				forms[of][one] = append(forms[of][one], release)
			}
		}
	}
	fmt.Println(oldest, newest)
	for _, of := range sorted(forms) {
		fmt.Println(of)
		var lines []string
		for one, releases := range forms[of] {
			for _, part := range ranges(releases, newest) {
				lines = append(lines, fmt.Sprintf("  %s%s %s", one.name, part, one.form))
			}
		}
		slices.Sort(lines)
		fmt.Println(strings.Join(lines, "\n"))
	}
}

// ` 29-31` for each run of releases, with a space before it; empty for all releases.
func ranges(releases []int, newest int) []string {
	var parts []string
	for start := 0; start < len(releases); {
		end := start
		for end+1 < len(releases) && releases[end+1] == releases[end]+1 {
			end++
		}
		from, to := "", ""
		if releases[start] > 2*oldest {
			from = strconv.Itoa(releases[start]/2) + []string{"", "+"}[releases[start]%2]
		}
		if releases[end] < 2*newest+1 {
			to = strconv.Itoa(releases[end]/2) + []string{".0", ""}[releases[end]%2]
		}
		part := ""
		if from+to != "" {
			part = " " + from + "-" + to
		}
		parts = append(parts, part)
		start = end + 1
	}
	return parts
}

// The first and the newest patch version of each minor version that both modules have, and the newest minor version.
func allVersions() (map[int][2]string, int) {
	versions, newest := map[int][2]string{}, oldest
	others := strings.Fields(run("go", "list", "-m", "-versions", "k8s.io/apimachinery"))
	for _, version := range strings.Fields(run("go", "list", "-m", "-versions", "k8s.io/api")) {
		found := regexp.MustCompile(`^v0\.(\d+)\.\d+$`).FindStringSubmatch(version)
		if found == nil || !slices.Contains(others, version) {
			continue
		}
		minor, _ := strconv.Atoi(found[1])
		// They are in order.
		versions[minor] = [2]string{"", version}
		newest = max(newest, minor)
	}
	for minor := oldest; minor <= newest; minor++ {
		first := fmt.Sprintf("v0.%d.0", minor)
		versions[minor] = [2]string{first, cmp.Or(versions[minor][1], first)}
	}
	return versions, newest
}

func load(version string) *library {
	lib := &library{map[string]*ast.TypeSpec{}, map[string][]string{}, map[string]map[string]string{}}
	folders := map[string]string{}
	for _, module := range []string{"k8s.io/api", "k8s.io/apimachinery"} {
		var answer struct{ Dir string }
		text := run("go", "mod", "download", "-json", module+"@"+version)
		check(json.Unmarshal([]byte(text), &answer))
		folders[module] = answer.Dir
	}
	for name, path := range packages {
		module := "k8s.io/api"
		if name == "meta/v1" {
			module = "k8s.io/apimachinery"
		}
		files, err := filepath.Glob(filepath.Join(folders[module], strings.TrimPrefix(path, module), "*.go"))
		check(err)
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				lib.parse(name, file)
			}
		}
	}
	return lib
}

func (lib *library) parse(name, file string) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, nil, parser.ParseComments)
	check(err)
	imports := map[string]string{}
	for _, spec := range tree.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		local := filepath.Base(path)
		for short, full := range packages {
			if full == path {
				local = short
			}
		}
		alias := filepath.Base(path)
		if spec.Name != nil {
			alias = spec.Name.Name
		}
		imports[alias] = local
	}
	for _, declaration := range tree.Decls {
		types, ok := declaration.(*ast.GenDecl)
		if !ok || types.Tok != token.TYPE {
			continue
		}
		for _, spec := range types.Specs {
			spec := spec.(*ast.TypeSpec)
			id := name + "." + spec.Name.Name
			lib.specs[id], lib.imports[id] = spec, imports
			// Also the comments above the one that belongs to the type: markers may stand there.
			lines := append(comments(spec.Doc), comments(types.Doc)...)
			before := set.Position(types.Pos()).Line
			if types.Doc != nil {
				before = set.Position(types.Doc.Pos()).Line
			}
			for _, group := range tree.Comments {
				if set.Position(group.End()).Line == before-2 {
					lines = append(lines, comments(group)...)
				}
			}
			lib.docs[id] = lines
		}
	}
}

func comments(group *ast.CommentGroup) []string {
	var lines []string
	if group != nil {
		for _, line := range strings.Split(group.Text(), "\n") {
			lines = append(lines, strings.TrimSpace(line))
		}
		// Directives are no text.
		for _, comment := range group.List {
			lines = append(lines, strings.TrimSpace(strings.TrimPrefix(comment.Text, "//")))
		}
	}
	return lines
}

// Adds a struct and the structs that it contains.
func (lib *library) describe(id string, found map[string][]field) {
	if _, done := found[id]; done {
		return
	}
	spec, ok := lib.specs[id]
	if !ok {
		return
	}
	found[id] = nil
	fields := lib.fields(id, spec.Type.(*ast.StructType), found)
	keywords := map[string]string{}
	read(lib.docs[id], keywords)
	if len(keywords) > 0 {
		fields = append(fields, field{"=", strings.Join(words(keywords), " ")})
	}
	found[id] = fields
}

func (lib *library) fields(id string, of *ast.StructType, found map[string][]field) []field {
	home, _, _ := strings.Cut(id, ".")
	var fields []field
	for _, one := range of.Fields.List {
		tag := ""
		if one.Tag != nil {
			text, _ := strconv.Unquote(one.Tag.Value)
			tag = reflect.StructTag(text).Get("json")
		}
		name, options, _ := strings.Cut(tag, ",")
		if name == "-" {
			continue
		}
		if name == "" {
			inner, _, _ := lib.resolve(id, one.Type)
			fields = append(fields, lib.fields(inner, lib.specs[inner].Type.(*ast.StructType), found)...)
			continue
		}
		doc := append(comments(one.Doc), comments(one.Comment)...)
		inner, form, keywords := lib.resolve(id, one.Type)
		isOptional := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		for _, line := range doc {
			switch line {
			case "+optional", "+kubebuilder:validation:Optional":
				isOptional = true
			case "+required", "+kubebuilder:validation:Required":
				isOptional = false
			}
		}
		if isOptional {
			name += "?"
		}
		if inner != "" {
			lib.describe(inner, found)
			form += strings.TrimPrefix(inner, home+".")
		}
		read(doc, keywords)
		form = strings.Join(append([]string{form}, words(keywords)...), " ")
		fields = append(fields, field{name, form})
	}
	return fields
}

// The keywords, each as a word.
func words(keywords map[string]string) []string {
	var words []string
	for _, keyword := range sorted(keywords) {
		words = append(words, keyword+"="+keywords[keyword])
	}
	return words
}

// The struct that a type ends in, if any, the form of what leads to it, and the keywords that the types set on the node
// of the field. The type is written in the file of the type `home`.
func (lib *library) resolve(home string, of ast.Expr) (string, string, map[string]string) {
	switch of := of.(type) {
	case *ast.StarExpr:
		return lib.resolve(home, of.X)
	case *ast.ArrayType:
		if name, ok := of.Elt.(*ast.Ident); ok && name.Name == "byte" {
			return "", "y", map[string]string{}
		}
		inner, form, _ := lib.resolve(home, of.Elt)
		return inner, "[" + form, map[string]string{}
	case *ast.MapType:
		inner, form, _ := lib.resolve(home, of.Value)
		return inner, "{" + form, map[string]string{}
	case *ast.SelectorExpr:
		return lib.named(lib.imports[home][of.X.(*ast.Ident).Name] + "." + of.Sel.Name)
	case *ast.Ident:
		if _, isBuiltIn := known[of.Name]; isBuiltIn {
			return lib.named(of.Name)
		}
		home, _, _ = strings.Cut(home, ".")
		return lib.named(home + "." + of.Name)
	}
	panic(fmt.Sprintf("no word for %T", of))
}

func (lib *library) named(id string) (string, string, map[string]string) {
	if form, found := known[id]; found {
		return "", form, map[string]string{}
	}
	spec, found := lib.specs[id]
	if !found {
		return "", "o", map[string]string{}
	}
	keywords := map[string]string{}
	if _, isStruct := spec.Type.(*ast.StructType); isStruct {
		return id, "", keywords
	}
	read(lib.docs[id], keywords)
	inner, form, own := lib.resolve(id, spec.Type)
	for keyword, value := range own {
		keywords[keyword] = cmp.Or(keywords[keyword], value)
	}
	return inner, form, keywords
}

var marker = regexp.MustCompile(`^\+(?:kubebuilder:validation:|kubebuilder:)?(\w+)(?:=(.*))?$`)

// The keywords that controller-gen writes for markers.
func read(lines []string, keywords map[string]string) {
	keys := []string{}
	for _, line := range lines {
		found := marker.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		name, value := found[1], found[2]
		set := func(keyword, json string) { keywords[keyword] = strings.ReplaceAll(json, " ", `\u0020`) }
		text := func(keyword string) {
			var plain string
			if strings.HasPrefix(value, "`") {
				plain = strings.Trim(value, "`")
			} else if json.Unmarshal([]byte(value), &plain) != nil {
				plain = value
			}
			quoted, _ := json.Marshal(plain)
			set(keyword, string(quoted))
		}
		switch name {
		case "default":
			var parsed any
			if json.Unmarshal([]byte(value), &parsed) == nil {
				set("default", value)
			}
		case "listType":
			text("x-kubernetes-list-type")
		case "listMapKey":
			if !slices.Contains(keys, value) {
				keys = append(keys, value)
			}
		case "structType", "mapType":
			text("x-kubernetes-map-type")
		case "nullable":
			set("nullable", "true")
		case "MaxLength", "MinLength", "MaxItems", "MinItems", "Maximum", "Minimum":
			set(strings.ToLower(name[:1])+name[1:], value)
		case "Pattern", "Format":
			text(strings.ToLower(name))
		case "Enum":
			quoted, _ := json.Marshal(strings.Split(value, ";"))
			set("enum", string(quoted))
		}
	}
	if len(keys) > 0 {
		quoted, _ := json.Marshal(keys)
		keywords["x-kubernetes-list-map-keys"] = strings.ReplaceAll(strings.ReplaceAll(string(quoted), `\"`, ""), " ", "")
	}
}

func sorted[V any](of map[string]V) []string {
	keys := make([]string, 0, len(of))
	for key := range of {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func run(name string, arguments ...string) string {
	command := exec.Command(name, arguments...)
	command.Stderr = os.Stderr
	text, err := command.Output()
	check(err)
	return string(text)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
