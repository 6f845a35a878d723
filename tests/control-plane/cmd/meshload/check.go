package main

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// probe is one question. It returns what it saw, and an error when no correct server answers that.
type probe struct {
	name string
	ask  func(*checker) (string, error)
}

// checker is what the probes work with.
type checker struct {
	*target
	http *http.Client
	// direct is the API server itself, which may write where the target may not.
	direct target
	// owned and foreign are namespaces; foreignName is a ConfigMap in the latter.
	owned, foreign, foreignName string
	// items is the number of ConfigMaps that the target is to show; below zero any number is right.
	items int
}

// check runs all probes and prints one line for each, then their sum.
func check(flags *flag.FlagSet, args []string) error {
	c := checker{target: &target{}}
	c.register(flags, "")
	c.direct.register(flags, "direct-")
	flags.StringVar(&c.owned, "owned", "mesh-00", "a namespace that the target may write")
	flags.StringVar(&c.foreign, "foreign", "mesh-30", "a namespace that the target may not show in a list")
	flags.StringVar(&c.foreignName, "foreign-name", "cm-00030", "a ConfigMap in it")
	flags.IntVar(&c.items, "items", -1, "ConfigMaps that the target is to show in all; -1 for any number")
	next := flags.String("next", "", "comma-separated probes that are known to fail and do not count")
	flags.Parse(args)
	if err := errors.Join(c.load(), c.direct.load()); err != nil {
		return err
	}
	c.http = c.client()
	return c.run(strings.Split(*next, ","))
}

func (c *checker) run(next []string) error {
	passed, failed, later := 0, 0, 0
	for _, p := range slices.Concat(objectProbes, listProbes(), watchProbes) {
		detail, err := p.ask(c)
		switch {
		case err == nil:
			passed++
			fmt.Printf("ok    %s: %s\n", p.name, detail)
		case slices.Contains(next, p.name):
			later++
			fmt.Printf("next  %s: %v\n", p.name, err)
		default:
			failed++
			fmt.Printf("FAIL  %s: %v\n", p.name, err)
		}
	}
	fmt.Printf("%d passed, %d failed, %d next\n", passed, failed, later)
	if failed > 0 {
		return fmt.Errorf("%d probes failed at %s", failed, c.url)
	}
	return nil
}

func (c *checker) get(path string, header ...string) (*reply, error) {
	return c.call(c.http, http.MethodGet, path, "", header...)
}

// configMaps is the collection of a namespace.
func configMaps(namespace string) string { return "/api/v1/namespaces/" + namespace + "/configmaps" }

// allConfigMaps is the collection that is partly foreign.
const allConfigMaps = "/api/v1/configmaps"
