// Asks an API server by KubeRay's own Go client: one call as JSON on each line, what came of it on each line.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"time"

	client "github.com/ray-project/kuberay/apiserver/pkg/http"
	"github.com/ray-project/kuberay/apiserversdk/util"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

type call struct {
	// Method is the name of the client's method; Request is its message, if it takes one.
	Method  string          `json:"method"`
	Request json.RawMessage `json:"request"`
}

type outcome struct {
	Answer json.RawMessage `json:"answer,omitempty"`
	// Status is the body of a refusal, as the client read it.
	Status     json.RawMessage `json:"status,omitempty"`
	HTTPStatus int             `json:"httpStatus,omitempty"`
	IsNotFound bool            `json:"isNotFound,omitempty"`
	Error      string          `json:"error,omitempty"`
}

func main() {
	retries := util.RetryConfig{BackoffFactor: 1, InitBackoff: time.Second, MaxBackoff: time.Second, OverallTimeout: time.Minute}
	server := reflect.ValueOf(client.NewKuberayAPIServerClient(os.Args[1], &http.Client{}, retries))
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var asked call
		if err := in.Decode(&asked); err == io.EOF {
			return
		} else if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		_ = out.Encode(ask(server, asked))
	}
}

// ask calls a method of the client, which returns an answer or none, the status of a refusal, and an error.
func ask(server reflect.Value, asked call) outcome {
	method := server.MethodByName(asked.Method)
	if !method.IsValid() {
		return outcome{Error: "the client has no method " + asked.Method}
	}
	var arguments []reflect.Value
	if method.Type().NumIn() > 0 {
		request := reflect.New(method.Type().In(0).Elem())
		if err := protojson.Unmarshal(asked.Request, request.Interface().(proto.Message)); err != nil {
			return outcome{Error: "not sent: " + err.Error()}
		}
		arguments = append(arguments, request)
	}
	results := method.Call(arguments)
	if err, _ := results[len(results)-1].Interface().(error); err != nil {
		return refusal(err, results[len(results)-2])
	}
	if len(results) == 2 {
		return outcome{}
	}
	return outcome{Answer: plain(results[0])}
}

func refusal(err error, status reflect.Value) outcome {
	told := outcome{Error: err.Error(), IsNotFound: client.IsNotFoundError(err)}
	var refused *client.KuberayAPIServerClientError
	if errors.As(err, &refused) {
		told.HTTPStatus = refused.HTTPStatusCode
	}
	if !status.IsNil() {
		told.Status = plain(status)
	}
	return told
}

func plain(message reflect.Value) json.RawMessage {
	body, err := protojson.MarshalOptions{}.Marshal(message.Interface().(proto.Message))
	if err != nil {
		panic(err)
	}
	return body
}
