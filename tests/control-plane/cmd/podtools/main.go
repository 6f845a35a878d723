// Command podtools is what the containers of a real node run, and what makes and checks bytes outside of them.
//
//	podtools image OUT REF BUSYBOX COMMAND...   writes an OCI image of this program and busybox, no registry needed
//	podtools pause                                 sleeps and reaps until TERM: the sandbox of every Pod
//	podtools source BYTES SEED                     writes bytes that the seed decides
//	podtools digest                                prints how many bytes stdin had, and their SHA-256
//	podtools both BYTES SEED CODE                  source and digest at once, the digests on stderr; exits with CODE
//	podtools echo PORT                             sends back what each connection sends
//	podtools http PORT                             answers each request with what it was
//	podtools dial ADDRESS CONNECTIONS BYTES        asks an echo, and fails unless every byte came back
//
// It uses the standard library only and is static, so one file is a whole image.
package main

import (
	"fmt"
	"os"
	"strconv"
)

var commands = map[string]func(args []string) error{
	"image": image, "pause": pause, "source": source, "digest": digest, "both": both,
	"echo": echo, "http": answer, "dial": dial,
}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: podtools image|pause|source|digest|both|echo|http|dial, see its source")
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "podtools:", err)
		os.Exit(1)
	}
}

// numbers reads exactly count whole numbers.
func numbers(args []string, count int) ([]int64, error) {
	if len(args) != count {
		return nil, fmt.Errorf("expected %d numbers, got %q", count, args)
	}
	values := make([]int64, count)
	for i, arg := range args {
		value, err := strconv.ParseInt(arg, 10, 64)
		if err != nil {
			return nil, err
		}
		values[i] = value
	}
	return values, nil
}
