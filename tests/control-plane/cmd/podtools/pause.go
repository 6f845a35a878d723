package main

import (
	"os"
	"os/signal"
	"syscall"
)

// pause is process 1 of its namespace, so whoever loses its parent there is reaped here.
func pause([]string) error {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	for received := range signals {
		if received != syscall.SIGCHLD {
			break
		}
		for pid := 1; pid > 0; {
			pid, _ = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		}
	}
	return nil
}
