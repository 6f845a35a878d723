package main

import (
	"flag"
	"fmt"
	"net/http"
	"strings"
)

const (
	namespaces = 40
	// valueBytes makes the objects of one namespace larger than what the API server leaves uncompressed (128 KiB).
	valueBytes = 3000
	writers    = 16
)

// managerStates is a custom resource, so that a list of a kind that has no protobuf can be asked for.
const managerStates = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
"metadata":{"name":"managerstates.ctrlmesh.kruise.io"},
"spec":{"group":"ctrlmesh.kruise.io","scope":"Namespaced","names":{"plural":"managerstates","kind":"ManagerState"},
"versions":[{"name":"v1alpha1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`

// seed makes namespaces mesh-00 to mesh-39 and spreads ConfigMaps over them: object n lives in namespace n mod 40, so
// cm-00030 is in mesh-30. What is there already stays.
func seed(flags *flag.FlagSet, args []string) error {
	var to target
	to.register(flags, "")
	count := flags.Int("count", 2000, "number of ConfigMaps")
	flags.Parse(args)
	if err := to.load(); err != nil {
		return err
	}
	client := to.client()
	crds := "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	if err := create(&to, client, crds, managerStates); err != nil {
		return err
	}
	for n := range namespaces {
		body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"mesh-%02d"}}`, n)
		if err := create(&to, client, "/api/v1/namespaces", body); err != nil {
			return err
		}
	}
	return fill(&to, client, *count)
}

// fill shares the ConfigMaps out among writers and returns the first error.
func fill(to *target, client *http.Client, count int) error {
	done := make(chan error)
	for first := range writers {
		go func() {
			var err error
			for n := first; n < count && err == nil; n += writers {
				path := fmt.Sprintf("/api/v1/namespaces/mesh-%02d/configmaps", n%namespaces)
				err = create(to, client, path, configMap(n))
			}
			done <- err
		}()
	}
	var failed error
	for range writers {
		if err := <-done; err != nil {
			failed = err
		}
	}
	return failed
}

func configMap(n int) string {
	const object = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cm-%05d","labels":{"shard":%q}},"data":{"k":%q}}`
	shard := "a"
	if n%namespaces >= namespaces/2 {
		shard = "b"
	}
	return fmt.Sprintf(object, n, shard, strings.Repeat("v", valueBytes))
}

func create(to *target, client *http.Client, path, body string) error {
	got, err := to.call(client, http.MethodPost, path, body, "Content-Type", contentJSON)
	if err != nil {
		return err
	}
	if got.code == http.StatusConflict {
		return nil
	}
	return got.want(http.StatusCreated, "")
}
