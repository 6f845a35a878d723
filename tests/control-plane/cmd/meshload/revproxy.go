package main

import (
	"flag"
	"net/http"
	"net/http/httputil"
	"net/url"
)

// revproxy serves httputil.ReverseProxy over TLS and HTTP/2 on both sides. It forwards the client's own token.
func revproxy(flags *flag.FlagSet, args []string) error {
	var upstream target
	upstream.register(flags, "")
	listen := flags.String("listen", "127.0.0.1:8443", "address to serve on")
	cert := flags.String("serve-cert", "", "PEM file of the serving certificate")
	key := flags.String("serve-key", "", "PEM file of its key")
	flags.Parse(args)
	if err := upstream.load(); err != nil {
		return err
	}
	base, err := url.Parse(upstream.url)
	if err != nil {
		return err
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(base) },
		FlushInterval: -1, // a watch needs every event at once
		Transport:     upstream.transport(),
	}
	server := &http.Server{Addr: *listen, Handler: proxy}
	return server.ListenAndServeTLS(*cert, *key)
}
