// Command meshload asks anything that speaks the Kubernetes API, an API server or a proxy in front of one, what only a
// correct one answers, and serves the proxy that Shoal is measured against.
//
//	meshload seed     TARGET     makes the objects that check looks at
//	meshload check    TARGET     runs the probes, one line each; exits 1 when one fails
//	meshload revproxy TARGET     serves httputil.ReverseProxy, the proxy that a user would write
//
// It uses the standard library only, so that no client library smooths over what the wire says.
package main

import (
	"flag"
	"fmt"
	"os"
)

// command is one of the things that the program does, with its flags in a set of its own.
type command struct {
	name string
	run  func(*flag.FlagSet, []string) error
}

var commands = []command{{"seed", seed}, {"check", check}, {"revproxy", revproxy}}

func main() {
	if len(os.Args) > 1 {
		for _, c := range commands {
			if c.name == os.Args[1] {
				exit(c.run(flag.NewFlagSet(c.name, flag.ExitOnError), os.Args[2:]))
			}
		}
	}
	fmt.Fprintln(os.Stderr, "usage: meshload seed|check|revproxy [flags]; -h after the command lists them")
	os.Exit(2)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "meshload:", err)
		os.Exit(1)
	}
	os.Exit(0)
}
