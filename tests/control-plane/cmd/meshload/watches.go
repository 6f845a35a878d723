package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

const (
	// watchTimeout is for all that a probe waits for.
	watchTimeout = 40 * time.Second
	// manyWatches is more than the streams that an API server allows on one connection.
	manyWatches = 150
)

var watchProbes = []probe{
	{"410-watch", expiredWatch},
	{"watchlist-json", func(c *checker) (string, error) { return watchList(c, contentJSON) }},
	{"watchlist-protobuf", func(c *checker) (string, error) {
		return watchList(c, contentProtobuf+";stream=watch")
	}},
	{"150-watches", deliverToMany},
}

// expiredWatch asks for events since version 1: the answer is 410, or an ERROR event.
func expiredWatch(c *checker) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), watchTimeout)
	defer cancel()
	w, err := c.watch(ctx, c.http, allConfigMaps+"?watch=1&resourceVersion=1", contentJSON)
	if err != nil {
		if strings.Contains(err.Error(), "410") {
			return err.Error(), nil
		}
		return "", err
	}
	first, err := w.next()
	if err != nil {
		return "", err
	}
	if first.kind != "ERROR" || !bytes.Contains(first.raw, []byte("410")) {
		return "", fmt.Errorf("expected an ERROR event, got %s: %.200s", first.kind, first.raw)
	}
	return fmt.Sprintf("an ERROR event of %d bytes", len(first.raw)), nil
}

// watchList asks for the objects as events, and for the mark that ends them.
func watchList(c *checker, accept string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), watchTimeout)
	defer cancel()
	query := "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
	w, err := c.watch(ctx, c.client(), allConfigMaps+query, accept)
	if err != nil {
		return "", err
	}
	for added := 0; ; {
		e, err := w.next()
		switch {
		case err != nil:
			return "", fmt.Errorf("after %d ADDED, without the end's mark: %w", added, err)
		case e.kind == "ADDED":
			added++
		case e.kind == "BOOKMARK" && bytes.Contains(e.raw, []byte("k8s.io/initial-events-end")):
			return fmt.Sprintf("%d ADDED, then the end's mark", added), c.counted(added)
		default:
			return "", fmt.Errorf("after %d ADDED came %s: %.200s", added, e.kind, e.raw)
		}
	}
}

// deliverToMany opens many watches over one client and lets each deliver an event.
func deliverToMany(c *checker) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), watchTimeout)
	defer cancel()
	client, results := c.client(), make(chan error, manyWatches)
	opened := make(chan struct{}, manyWatches)
	path := configMaps(c.owned) + "?watch=1&fieldSelector=metadata.name%3Dcheck-w"
	for range manyWatches {
		go func() { results <- deliver(ctx, c, client, path, opened) }()
	}
	for n := range manyWatches {
		select {
		case <-opened:
		case err := <-results:
			return "", fmt.Errorf("after %d watches were open: %w", n, err)
		}
	}
	defer c.direct.call(c.direct.client(), http.MethodDelete, configMaps(c.owned)+"/check-w", "")
	body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"check-w","labels":{"shard":"a"}}}`
	if err := create(&c.direct, c.direct.client(), configMaps(c.owned), body); err != nil {
		return "", err
	}
	var failed error
	for range manyWatches {
		failed = errors.Join(failed, <-results)
	}
	return fmt.Sprintf("%d watches, one event each", manyWatches), failed
}

// deliver opens one watch and ends with its first event.
func deliver(ctx context.Context, c *checker, client *http.Client, path string, opened chan<- struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := c.watch(ctx, client, path, contentJSON)
	if err != nil {
		return err
	}
	opened <- struct{}{}
	first, err := w.next()
	if err == nil && first.kind != "ADDED" {
		err = fmt.Errorf("expected ADDED, got %s: %.200s", first.kind, first.raw)
	}
	return err
}
