package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
)

func echo(args []string) error {
	n, err := numbers(args, 1)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", fmt.Sprintf(":%d", n[0]))
	if err != nil {
		return err
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			io.Copy(conn, conn)
		}()
	}
}

// answer tells of each request only what is the same whichever way it came.
func answer(args []string) error {
	n, err := numbers(args, 1)
	if err != nil {
		return err
	}
	return http.ListenAndServe(fmt.Sprintf(":%d", n[0]), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := newCounted()
		io.Copy(body, r.Body)
		if code, err := strconv.Atoi(r.URL.Query().Get("code")); err == nil {
			w.WriteHeader(code)
		}
		fmt.Fprintf(w, "%s %s\nbody %s\n", r.Method, r.URL, body)
	}))
}

// dial opens all connections at once; each sends its own bytes and reads as many.
func dial(args []string) error {
	if len(args) != 3 {
		return errors.New("expected ADDRESS CONNECTIONS BYTES")
	}
	n, err := numbers(args[1:], 2)
	if err != nil {
		return err
	}
	failures, all := make(chan error, n[0]), sync.WaitGroup{}
	for seed := range n[0] {
		all.Go(func() {
			if err := oneEcho(args[0], n[1], seed); err != nil {
				failures <- fmt.Errorf("connection %d: %w", seed, err)
			}
		})
	}
	all.Wait()
	close(failures)
	if err := <-failures; err != nil {
		return err
	}
	fmt.Printf("%d connections, %d bytes each, all came back\n", n[0], n[1])
	return nil
}

func oneEcho(address string, bytesEach, seed int64) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	go write(conn, bytesEach, seed)
	// Only the reader tells: a failed write leaves bytes that never come.
	got, expected := make([]byte, piece), make([]byte, piece)
	for wanted, read := seeded(seed), int64(0); read < bytesEach; {
		size := min(piece, bytesEach-read)
		if _, err := io.ReadFull(conn, got[:size]); err != nil {
			return fmt.Errorf("after %d bytes: %w", read, err)
		}
		io.ReadFull(wanted, expected[:size])
		if !bytes.Equal(got[:size], expected[:size]) {
			return fmt.Errorf("other bytes came back after %d", read)
		}
		read += size
	}
	return nil
}
