// Says how Argo CD and Flux judge an object: one question as JSON on each line, one answer on each line.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/argoproj/argo-cd/v3/util/lua"
	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

type question struct {
	// Lua is Argo CD's health check; Expressions are Flux's. Without both, Flux's own rules for any object are asked.
	Lua         string                            `json:"lua"`
	Expressions *kustomize.HealthCheckExpressions `json:"expressions"`
	Object      json.RawMessage                   `json:"object"`
}

type answer struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

func main() {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var asked question
		if err := in.Decode(&asked); err == io.EOF {
			return
		} else if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		told, err := judge(asked)
		if err != nil {
			told = answer{"Error", err.Error()}
		}
		_ = out.Encode(told)
	}
}

func judge(asked question) (answer, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(asked.Object); err != nil {
		return answer{}, err
	}
	switch {
	case asked.Lua != "":
		found, err := (lua.VM{}).ExecuteHealthLua(object, asked.Lua)
		if err != nil {
			return answer{}, err
		}
		return answer{string(found.Status), found.Message}, nil
	case asked.Expressions != nil:
		evaluator, err := cel.NewStatusEvaluator(asked.Expressions)
		if err != nil {
			return answer{}, err
		}
		found, err := evaluator.Evaluate(context.Background(), object)
		if err != nil {
			return answer{}, err
		}
		return answer{found.Status.String(), found.Message}, nil
	default:
		found, err := status.Compute(object)
		if err != nil {
			return answer{}, err
		}
		return answer{found.Status.String(), found.Message}, nil
	}
}
