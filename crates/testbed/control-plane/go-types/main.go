// Prints how Go reads and writes the structs that a ClusterServiceVersion contains: one line for each struct, with its
// name and its fields in the order in which Go writes them.
//
//	go run ./go-types > ../../catalog/src/render/go_types.txt
//
// A field is NAME=TYPE. A question mark at the end of the name stands for omitempty. A type is a pointer (*), a list
// ([) or a map ({) of another type, the name of a struct, or one of: s string, b boolean, i integer, f float,
// q Quantity, x IntOrString, t Time, y bytes.
package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var structs = map[string]reflect.Type{}

func main() {
	for _, root := range []any{
		appsv1.DeploymentSpec{}, admissionregistrationv1.RuleWithOperations{}, metav1.LabelSelector{}, rbacv1.PolicyRule{},
	} {
		kind(reflect.TypeOf(root))
	}
	// Describing a struct finds others.
	lines := map[string]string{}
	for len(lines) < len(structs) {
		for name, of := range structs {
			if _, done := lines[name]; !done {
				lines[name] = strings.Join(append([]string{name}, fields(of)...), " ")
			}
		}
	}
	sorted := make([]string, 0, len(lines))
	for _, line := range lines {
		sorted = append(sorted, line)
	}
	slices.Sort(sorted)
	fmt.Println(strings.Join(sorted, "\n"))
}

func fields(of reflect.Type) []string {
	var found []string
	for i := range of.NumField() {
		field := of.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if name == "" {
			found = append(found, fields(field.Type)...)
			continue
		}
		// A struct is never empty for omitempty.
		isEmptiable := field.Type.Kind() != reflect.Struct
		if strings.Contains(options, "omitzero") || strings.Contains(options, "omitempty") && isEmptiable {
			name += "?"
		}
		found = append(found, name+"="+kind(field.Type))
	}
	return found
}

func kind(of reflect.Type) string {
	switch of {
	case reflect.TypeOf(resource.Quantity{}):
		return "q"
	case reflect.TypeOf(intstr.IntOrString{}):
		return "x"
	case reflect.TypeOf(metav1.Time{}):
		return "t"
	case reflect.TypeOf([]byte{}):
		return "y"
	}
	switch of.Kind() {
	case reflect.String:
		return "s"
	case reflect.Bool:
		return "b"
	case reflect.Int32, reflect.Int64, reflect.Int:
		return "i"
	case reflect.Float64, reflect.Float32:
		return "f"
	case reflect.Pointer:
		return "*" + kind(of.Elem())
	case reflect.Slice:
		return "[" + kind(of.Elem())
	case reflect.Map:
		return "{" + kind(of.Elem())
	case reflect.Struct:
		known, found := structs[of.Name()]
		if found && known != of {
			panic("two structs are called " + of.Name())
		}
		structs[of.Name()] = of
		return of.Name()
	}
	panic(fmt.Sprintf("no word for %v", of))
}
