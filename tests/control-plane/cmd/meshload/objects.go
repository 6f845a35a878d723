package main

import (
	"fmt"
	"net/http"
)

// objectProbes are about single objects, in an order that leaves nothing behind.
var objectProbes = []probe{
	{"create", func(c *checker) (string, error) {
		body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"check-a","labels":{"shard":"a"}}}`
		return c.answered(http.StatusCreated, "check-a", http.MethodPost, "", body, contentJSON)
	}},
	{"merge-patch", func(c *checker) (string, error) {
		return c.answered(http.StatusOK, `"w":"m"`, http.MethodPatch, "/check-a", `{"data":{"w":"m"}}`, contentMerge)
	}},
	{"server-side-apply", func(c *checker) (string, error) {
		body := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: check-a}\ndata: {x: z}\n"
		path := "/check-a?fieldManager=m&force=true"
		return c.answered(http.StatusOK, `"x":"z"`, http.MethodPatch, path, body, contentApply)
	}},
	{"delete", func(c *checker) (string, error) {
		return c.answered(http.StatusOK, "Success", http.MethodDelete, "/check-a", "", contentJSON)
	}},
	// A 404 would make a garbage collector delete what hangs on the object.
	{"get-foreign", func(c *checker) (string, error) {
		return wanted(c.get(configMaps(c.foreign)+"/"+c.foreignName))(http.StatusOK, c.foreignName)
	}},
	{"impersonate-user-without-rights", func(c *checker) (string, error) {
		as := []string{"Impersonate-User", "nobody", "Impersonate-Group", "g1", "Impersonate-Group", "g2"}
		return wanted(c.get(configMaps(c.owned)+"?limit=1", as...))(http.StatusForbidden, "nobody")
	}},
	{"impersonate-masters", func(c *checker) (string, error) {
		as := []string{"Impersonate-User", "u", "Impersonate-Group", "system:masters"}
		return wanted(c.get("/api/v1/nodes", as...))(http.StatusOK, "NodeList")
	}},
}

// answered sends a request about the owned namespace's ConfigMaps.
func (c *checker) answered(code int, text, method, path, body, content string) (string, error) {
	got, err := c.call(c.http, method, configMaps(c.owned)+path, body, "Content-Type", content)
	return wanted(got, err)(code, text)
}

// wanted tells whether an answer has a code and contains a text.
func wanted(got *reply, err error) func(code int, text string) (string, error) {
	return func(code int, text string) (string, error) {
		if err != nil {
			return "", err
		}
		detail := fmt.Sprintf("%d %s, %d bytes", got.code, got.header.Get("Content-Type"), len(got.body))
		return detail, got.want(code, text)
	}
}
