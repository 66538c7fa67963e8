// Computes the API server's response to CustomResourceDefinitions with the server's own packages, without a server.
//
//	go run ./crd-oracle < requests > answers
//
// Each line of the input is `{"new": CRD}` for a create, or `{"new": CRD, "old": CRD}` for an update. The
// corresponding line of the output is a Status like the server's, without its constant fields: `{"code": 200}`,
// `{"code": 422, "details": {"causes": […]}}`, 400 if the CRD cannot be decoded, and 500 with the location if the
// server's code panics.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

type question struct {
	New json.RawMessage `json:"new"`
	Old json.RawMessage `json:"old"`
}

type answer struct {
	Code    int32                 `json:"code"`
	Message string                `json:"message,omitempty"`
	Details *metav1.StatusDetails `json:"details,omitempty"`
}

var (
	scheme   = runtime.NewScheme()
	decoder  runtime.Decoder
	strategy interface {
		rest.RESTCreateStrategy
		rest.RESTUpdateStrategy
	}
)

func main() {
	install.Install(scheme)
	decoder = serializer.NewCodecFactory(scheme).UniversalDecoder(apiextensions.SchemeGroupVersion)
	strategy = customresourcedefinition.NewStrategy(scheme)
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 1 {
			var asked question
			if err := json.Unmarshal(line, &asked); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			said, _ := json.Marshal(judge(asked))
			fmt.Fprintf(out, "%s\n", said)
			out.Flush()
		}
		if err != nil {
			return
		}
	}
}

func judge(asked question) (said answer) {
	defer func() {
		if panicked := recover(); panicked != nil {
			said = answer{Code: http.StatusInternalServerError, Message: fmt.Sprintf("%v at %s", panicked, place())}
		}
	}()
	ctx := request.WithRequestInfo(request.NewDefaultContext(), &request.RequestInfo{
		APIGroup: "apiextensions.k8s.io", APIVersion: "v1", Resource: "customresourcedefinitions",
	})
	ctx = request.WithNamespace(ctx, "")
	crd, err := decode(asked.New)
	if err != nil {
		return answer{Code: http.StatusBadRequest, Message: err.Error()}
	}
	if len(asked.Old) == 0 || string(asked.Old) == "null" {
		if meta, metaErr := apimeta.Accessor(crd); metaErr == nil {
			rest.FillObjectMetaSystemFields(meta)
		}
		err = rest.BeforeCreate(strategy, ctx, crd)
	} else {
		old, decodeErr := decode(asked.Old)
		if decodeErr != nil {
			return answer{Code: http.StatusBadRequest, Message: "old: " + decodeErr.Error()}
		}
		err = rest.BeforeUpdate(strategy, ctx, crd, old)
	}
	if err == nil {
		return answer{Code: http.StatusOK}
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return answer{Code: http.StatusInternalServerError, Message: err.Error()}
	}
	of := status.Status()
	return answer{Code: of.Code, Message: of.Message, Details: of.Details}
}

func decode(text []byte) (runtime.Object, error) {
	decoded, _, err := decoder.Decode(text, nil, nil)
	return decoded, err
}

// Returns the first location in the server's packages below the panic.
func place() string {
	var found string
	lines := strings.Split(string(debug.Stack()), "\n")
	for at, line := range lines {
		if strings.HasPrefix(line, "panic(") {
			found = ""
			for _, below := range lines[at+1:] {
				if strings.Contains(below, "k8s.io/") && strings.HasPrefix(below, "\t") && found == "" {
					found = strings.TrimSpace(below)
				}
			}
		}
	}
	return found
}
