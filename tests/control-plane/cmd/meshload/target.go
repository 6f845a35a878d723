package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

const (
	contentJSON     = "application/json"
	contentProtobuf = "application/vnd.kubernetes.protobuf"
	contentMerge    = "application/merge-patch+json"
	contentApply    = "application/apply-patch+yaml"
	// callTimeout ends a call that nobody answers.
	callTimeout = time.Minute
)

// target is one API endpoint and the identity to use there.
type target struct {
	url, ca, tokenFile string
	// Set by load.
	token string
	tls   *tls.Config
}

// reply is a whole answer.
type reply struct {
	code   int
	header http.Header
	proto  string
	body   []byte
}

func (t *target) register(flags *flag.FlagSet, prefix string) {
	flags.StringVar(&t.url, prefix+"url", "", "base URL, https")
	flags.StringVar(&t.ca, prefix+"ca", "", "PEM file of the authority that it is verified with")
	flags.StringVar(&t.tokenFile, prefix+"token-file", "", "file with the bearer token")
}

// load reads the files that the flags name.
func (t *target) load() error {
	if t.url == "" || t.ca == "" {
		return errors.New("--url and --ca are needed")
	}
	pem, err := os.ReadFile(t.ca)
	if err != nil {
		return err
	}
	t.tls = &tls.Config{RootCAs: x509.NewCertPool()}
	if !t.tls.RootCAs.AppendCertsFromPEM(pem) {
		return fmt.Errorf("%s: no certificate", t.ca)
	}
	if t.tokenFile == "" {
		return nil
	}
	token, err := os.ReadFile(t.tokenFile)
	t.token = strings.TrimSpace(string(token))
	return err
}

// transport shares no connection with any other.
func (t *target) transport() *http.Transport {
	return &http.Transport{
		TLSClientConfig:     t.tls.Clone(),
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 1024,
		DisableCompression:  true,
	}
}

func (t *target) client() *http.Client { return &http.Client{Transport: t.transport()} }

// request makes a request; header holds names and values in turn.
func (t *target) request(ctx context.Context, method, path, body string, header ...string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, t.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if t.token != "" {
		req.Header.Set("Authorization", "Bearer "+t.token)
	}
	req.Header.Set("User-Agent", "meshload")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	return req, nil
}

// call sends one request and reads the whole answer.
func (t *target) call(client *http.Client, method, path, body string, header ...string) (*reply, error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	req, err := t.request(ctx, method, path, body, header...)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return &reply{resp.StatusCode, resp.Header, resp.Proto, b}, err
}

// want fails unless the answer has that code and contains that text.
func (r *reply) want(code int, text string) error {
	if r.code != code {
		return fmt.Errorf("expected %d, got %d: %.200s", code, r.code, r.body)
	}
	if !bytes.Contains(r.body, []byte(text)) {
		return fmt.Errorf("expected %q in the answer: %.200s", text, r.body)
	}
	return nil
}
