package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
)

// largestFrame is what client-go reads at most.
const largestFrame = 16 << 20

// event is one event of a watch: its type, and the bytes that it came in.
type event struct {
	kind string
	raw  []byte
}

// watch is an open watch; cancel its context to end it.
type watch struct {
	events chan event
	// err says why the stream ended, once events is closed.
	err error
}

// next waits for an event or the stream's end.
func (w *watch) next() (event, error) {
	if e, open := <-w.events; open {
		return e, nil
	}
	return event{}, fmt.Errorf("the watch ended: %w", w.err)
}

// watch opens a watch and returns once its head is there.
func (t *target) watch(ctx context.Context, client *http.Client, path, accept string) (*watch, error) {
	req, err := t.request(ctx, http.MethodGet, path, "", "Accept", accept)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		return nil, fmt.Errorf("watch: %d %.200s", resp.StatusCode, b)
	}
	w := &watch{events: make(chan event, 1024)}
	go w.read(ctx, resp.Body, accept == contentJSON)
	return w, nil
}

func (w *watch) read(ctx context.Context, body io.ReadCloser, lines bool) {
	defer close(w.events)
	defer body.Close()
	from, next := bufio.NewReaderSize(body, 1<<16), frame
	if lines {
		next = line
	}
	for {
		e, err := next(from)
		if err != nil {
			w.err = err
			return
		}
		select {
		case w.events <- e:
		case <-ctx.Done():
			w.err = ctx.Err()
			return
		}
	}
}

// line reads one event of a JSON watch.
func line(from *bufio.Reader) (event, error) {
	raw, err := from.ReadBytes('\n')
	if err != nil {
		return event{}, err
	}
	_, rest, _ := bytes.Cut(raw, []byte(`"type":"`))
	kind, _, _ := bytes.Cut(rest, []byte(`"`))
	return event{string(kind), raw}, nil
}

// frame reads one event of a protobuf watch: its length, then a WatchEvent whose first field is the type.
func frame(from *bufio.Reader) (event, error) {
	var size uint32
	if err := binary.Read(from, binary.BigEndian, &size); err != nil {
		return event{}, err
	}
	if size > largestFrame {
		return event{}, fmt.Errorf("frame of %d bytes", size)
	}
	raw := make([]byte, size)
	if _, err := io.ReadFull(from, raw); err != nil {
		return event{}, err
	}
	if len(raw) < 2 || raw[0] != 1<<3|2 || len(raw) < 2+int(raw[1]) {
		return event{}, fmt.Errorf("a frame that is no WatchEvent: %.20q", raw)
	}
	return event{string(raw[2 : 2+raw[1]]), raw}, nil
}
