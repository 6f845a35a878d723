package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// pageSize is what client-go's pager asks for.
const pageSize = 500

// list is what the probes read of one.
type list struct {
	Metadata struct {
		Continue           string `json:"continue"`
		RemainingItemCount *int64 `json:"remainingItemCount"`
	} `json:"metadata"`
	Items []struct {
		Metadata struct{ Namespace, Name string } `json:"metadata"`
	} `json:"items"`
}

// shapes are the encodings and kinds that clients ask for; an answer contains want.
var shapes = []struct{ name, path, accept, want string }{
	{"list-protobuf", "", contentProtobuf, "k8s\x00"},
	{"list-partial-metadata-json", "", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", `"PartialObjectMetadataList"`},
	{"list-partial-metadata-protobuf", "", contentProtobuf + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", "k8s\x00"},
	{"list-table", "", "application/json;as=Table;g=meta.k8s.io;v=v1", `"kind":"Table"`},
	{"list-cbor", "", "application/cbor, application/json", "ConfigMapList"},
	{"list-protobuf-newer-kind-endpointslices", "/apis/discovery.k8s.io/v1/endpointslices", contentProtobuf, "k8s\x00"},
	{"list-protobuf-newer-kind-hpa-v2", "/apis/autoscaling/v2/horizontalpodautoscalers", contentProtobuf, "k8s\x00"},
	{"list-custom-resource", "/apis/ctrlmesh.kruise.io/v1alpha1/managerstates", contentJSON, `"items"`},
	{"list-cluster-scoped-nodes", "/api/v1/nodes", contentJSON, `"NodeList"`},
	{"aggregated-discovery", "/apis", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", "APIGroupDiscoveryList"},
	{"openapi-v3", "/openapi/v3", contentJSON, "paths"},
}

// queries are odd in form, but legal.
var queries = []string{
	"?pretty&limit=1", "?labelSelector=shard!%3Dzz&limit=1", "?labelSelector=shard=a&limit=1",
	"?labelSelector=shard%20in%20(a,b)&limit=1", "?limit=1&labelSelector=shard%3Db",
}

func listProbes() []probe {
	probes := []probe{
		{"chunked-list", chunkedList}, {"empty-list-is-array", emptyList}, {"gzip-list", gzipList},
		{"410-list-continue", expiredContinue},
	}
	for _, s := range shapes {
		probes = append(probes, probe{s.name, func(c *checker) (string, error) {
			path := s.path
			if path == "" {
				path = configMaps(c.owned) + "?limit=5"
			}
			return wanted(c.get(path, "Accept", s.accept))(http.StatusOK, s.want)
		}})
	}
	for _, q := range queries {
		probes = append(probes, probe{"query " + q, func(c *checker) (string, error) {
			return wanted(c.get(configMaps(c.owned)+q))(http.StatusOK, "ConfigMapList")
		}})
	}
	return probes
}

// chunkedList reads all pages: nothing twice, and as many objects as are to be shown.
func chunkedList(c *checker) (string, error) {
	seen, pages, token := map[string]bool{}, 0, ""
	for pages == 0 || token != "" {
		page, err := c.page(token)
		if err != nil {
			return "", fmt.Errorf("page %d: %w", pages, err)
		}
		for _, item := range page.Items {
			name := item.Metadata.Namespace + "/" + item.Metadata.Name
			if seen[name] {
				return "", fmt.Errorf("%s came twice", name)
			}
			seen[name] = true
		}
		pages, token = pages+1, page.Metadata.Continue
	}
	return fmt.Sprintf("%d items in %d pages", len(seen), pages), c.counted(len(seen))
}

func (c *checker) page(token string) (*list, error) {
	query := fmt.Sprintf("?limit=%d&continue=%s", pageSize, url.QueryEscape(token))
	got, err := c.get(allConfigMaps + query)
	if err != nil {
		return nil, err
	}
	if err := got.want(http.StatusOK, ""); err != nil {
		return nil, err
	}
	page := &list{}
	if err := json.Unmarshal(got.body, page); err != nil {
		return nil, err
	}
	if page.Metadata.RemainingItemCount != nil && c.items >= 0 && *page.Metadata.RemainingItemCount > int64(c.items) {
		return nil, fmt.Errorf("remainingItemCount %d counts hidden objects", *page.Metadata.RemainingItemCount)
	}
	return page, nil
}

func (c *checker) counted(items int) error {
	if c.items >= 0 && items != c.items {
		return fmt.Errorf("%d items, expected %d", items, c.items)
	}
	return nil
}

func emptyList(c *checker) (string, error) {
	path := configMaps(c.owned) + "?fieldSelector=metadata.name%3Dno-such"
	return wanted(c.get(path))(http.StatusOK, `"items":[]`)
}

func gzipList(c *checker) (string, error) {
	got, err := c.get(configMaps(c.owned)+"?resourceVersion=0", "Accept-Encoding", "gzip")
	if err != nil {
		return "", err
	}
	plain, encoding := got.body, got.header.Get("Content-Encoding")
	if encoding == "gzip" {
		if plain, err = gunzip(got.body); err != nil {
			return "", err
		}
	}
	var l list
	if err := json.Unmarshal(plain, &l); err != nil || len(l.Items) == 0 {
		return "", fmt.Errorf("%d %.200s: %v", got.code, plain, err)
	}
	detail := "encoding %q, %d bytes for %d, %d items"
	return fmt.Sprintf(detail, encoding, len(got.body), len(plain), len(l.Items)), nil
}

func gunzip(b []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// expiredContinue asks for a page at version 1, which is compacted on a server that has run for a while.
func expiredContinue(c *checker) (string, error) {
	const token = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhXHUwMDAwIn0"
	return wanted(c.get(allConfigMaps+"?limit=5&continue="+token))(http.StatusGone, "Expired")
}
