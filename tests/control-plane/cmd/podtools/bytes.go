package main

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"os"
)

// piece is what is written at once.
const piece = 64 << 10

// counted is a SHA-256 that knows its length.
type counted struct {
	sum   hash.Hash
	bytes int64
}

func newCounted() *counted { return &counted{sum: sha256.New()} }

func (c *counted) Write(p []byte) (int, error) {
	c.bytes += int64(len(p))
	return c.sum.Write(p)
}

func (c *counted) String() string { return fmt.Sprintf("%d %x", c.bytes, c.sum.Sum(nil)) }

// seeded are endless bytes that the seed decides.
func seeded(seed int64) io.Reader {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], uint64(seed))
	return rand.NewChaCha8(key)
}

// write sends so many seeded bytes.
func write(to io.Writer, bytes, seed int64) error {
	_, err := io.CopyBuffer(struct{ io.Writer }{to}, io.LimitReader(seeded(seed), bytes), make([]byte, piece))
	return err
}

func source(args []string) error {
	n, err := numbers(args, 2)
	if err != nil {
		return err
	}
	return write(os.Stdout, n[0], n[1])
}

func digest([]string) error {
	sum := newCounted()
	if _, err := io.Copy(sum, os.Stdin); err != nil {
		return err
	}
	fmt.Println(sum)
	return nil
}

// both reads and writes independently, so that neither direction waits for the other.
func both(args []string) error {
	n, err := numbers(args, 3)
	if err != nil {
		return err
	}
	in, out, done := newCounted(), newCounted(), make(chan error, 1)
	go func() {
		_, err := io.Copy(in, os.Stdin)
		done <- err
	}()
	if err := write(io.MultiWriter(os.Stdout, out), n[0], n[1]); err != nil {
		return err
	}
	if err := <-done; err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "in %s\nout %s\n", in, out)
	os.Exit(int(n[2]))
	return nil
}
