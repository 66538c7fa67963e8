// Prints when Kubernetes' own kinds are deprecated and removed, with one line for each kind and version that has an
// end of life: group/version, kind, the release that deprecates it, the first release that no longer serves it, and
// the apiVersion and kind to use instead. A dash stands for a value that does not exist or is not recorded.
//
//	go run ./api-lifecycle > ../../../src/preflight/api_availability/lifecycle.txt
//
// The releases are the source of the API server's own warnings. Kinds that exist only in requests (reviews, evictions)
// are omitted, because they are never deployed.
package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	apiregistrationv1beta1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1beta1"
)

// Kinds whose types have been removed from the source.
// Source: https://kubernetes.io/docs/reference/using-api/deprecation-guide/
var gone = []string{
	"auditregistration.k8s.io/v1alpha1 AuditSink - 1.19 -",
	"autoscaling/v2beta1 HorizontalPodAutoscaler 1.22 1.25 autoscaling/v2 HorizontalPodAutoscaler",
	"autoscaling/v2beta2 HorizontalPodAutoscaler 1.23 1.26 autoscaling/v2 HorizontalPodAutoscaler",
	"batch/v2alpha1 CronJob - 1.21 batch/v1 CronJob",
	"extensions/v1beta1 PodSecurityPolicy - 1.16 -",
	"policy/v1beta1 PodSecurityPolicy 1.21 1.25 -",
	"settings.k8s.io/v1alpha1 PodPreset - 1.20 -",
}

var requests = []string{"List", "Review", "Rollback", "Scale", "Eviction"}

type deprecated interface{ APILifecycleDeprecated() (major, minor int) }
type removed interface{ APILifecycleRemoved() (major, minor int) }
type replaced interface {
	APILifecycleReplacement() schema.GroupVersionKind
}

var types = scheme.Scheme

func main() {
	for _, add := range []func(*runtime.Scheme) error{
		apiextensionsv1.AddToScheme, apiextensionsv1beta1.AddToScheme,
		apiregistrationv1.AddToScheme, apiregistrationv1beta1.AddToScheme,
	} {
		if err := add(types); err != nil {
			panic(err)
		}
	}
	lines := gone
	for kind, of := range types.AllKnownTypes() {
		object := reflect.New(of).Interface()
		deprecation, ok := object.(deprecated)
		if !ok || slices.ContainsFunc(requests, func(end string) bool { return strings.HasSuffix(kind.Kind, end) }) {
			continue
		}
		removal, replacement := "-", "-"
		if object, ok := object.(removed); ok {
			removal = release(object.APILifecycleRemoved())
		}
		if successor, ok := successor(kind); ok {
			replacement = successor.GroupVersion().String() + " " + successor.Kind
		}
		since := release(deprecation.APILifecycleDeprecated())
		lines = append(lines, fmt.Sprintf("%s %s %s %s %s", kind.GroupVersion(), kind.Kind, since, removal, replacement))
	}
	slices.Sort(lines)
	fmt.Println(strings.Join(lines, "\n"))
}

// The recorded replacement, or else the best version of the same kind; followed until it has no end of life itself.
func successor(kind schema.GroupVersionKind) (schema.GroupVersionKind, bool) {
	object, err := types.New(kind)
	if err != nil {
		return kind, false
	}
	if object, ok := object.(replaced); ok {
		next := object.APILifecycleReplacement()
		next.Kind = strings.TrimSuffix(next.Kind, "List")
		if further, ok := successor(next); ok {
			return further, true
		}
		return next, true
	}
	if _, ends := object.(removed); !ends {
		return kind, false
	}
	best := kind
	for _, of := range types.PrioritizedVersionsForGroup(kind.Group) {
		candidate := of.WithKind(kind.Kind)
		if types.Recognizes(candidate) && version.CompareKubeAwareVersionStrings(of.Version, best.Version) > 0 {
			best = candidate
		}
	}
	return best, best != kind
}

func release(major, minor int) string {
	if major == 0 {
		return "-"
	}
	return fmt.Sprintf("%d.%d", major, minor)
}
