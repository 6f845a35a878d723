// Command requestinfo prints what a Kubernetes API server makes of request lines.
//
// It reads lines of the form "METHOD TARGET" from standard input, skips empty lines and those that begin with "# ",
// and prints one JSON object a line, in the same order. Each line goes through net/http's own request parser and
// then through the RequestInfoFactory with kube-apiserver's prefixes, so "refused" says which of the two refused it.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"
)

type answer struct {
	Request string `json:"request"`
	Refused string `json:"refused,omitempty"`
	Info    *info  `json:"info,omitempty"`
}

// info is request.RequestInfo under stable names.
type info struct {
	Resource      bool     `json:"isResourceRequest"`
	Path          string   `json:"path"`
	Verb          string   `json:"verb"`
	APIPrefix     string   `json:"apiPrefix"`
	APIGroup      string   `json:"apiGroup"`
	APIVersion    string   `json:"apiVersion"`
	Namespace     string   `json:"namespace"`
	ResourceName  string   `json:"resource"`
	Subresource   string   `json:"subresource"`
	Name          string   `json:"name"`
	Parts         []string `json:"parts"`
	FieldSelector string   `json:"fieldSelector"`
	LabelSelector string   `json:"labelSelector"`
}

func main() {
	// A query that does not decode is logged; here it is a case like any other.
	klog.SetLogger(logr.Discard())
	if err := run(os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for lines.Scan() {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "# ") {
			continue
		}
		if err := encoder.Encode(resolve(line)); err != nil {
			return err
		}
	}
	return lines.Err()
}

func resolve(line string) answer {
	head := fmt.Sprintf("%s HTTP/1.1\r\nHost: localhost\r\n\r\n", line)
	req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(head)))
	if err != nil {
		return answer{Request: line, Refused: "net/http"}
	}
	factory := request.RequestInfoFactory{
		APIPrefixes:          sets.NewString("api", "apis"),
		GrouplessAPIPrefixes: sets.NewString("api"),
	}
	got, err := factory.NewRequestInfo(req)
	if err != nil {
		return answer{Request: line, Refused: "requestinfo"}
	}
	return answer{Request: line, Info: &info{
		Resource:      got.IsResourceRequest,
		Path:          got.Path,
		Verb:          got.Verb,
		APIPrefix:     got.APIPrefix,
		APIGroup:      got.APIGroup,
		APIVersion:    got.APIVersion,
		Namespace:     got.Namespace,
		ResourceName:  got.Resource,
		Subresource:   got.Subresource,
		Name:          got.Name,
		Parts:         append([]string{}, got.Parts...),
		FieldSelector: got.FieldSelector,
		LabelSelector: got.LabelSelector,
	}}
}
