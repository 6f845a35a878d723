// Command informer keeps client-go's caches of one API server or proxy and prints them when asked.
//
// It watches ConfigMaps (typed, in protobuf), a custom resource (dynamic, in JSON) and the metadata of both (in
// protobuf). A line "print" on standard input is answered with one line an object, sorted, and an empty line:
//
//	configmaps <namespace>/<name> <uid> <resourceVersion>
//	widgets ...
//	configmaps/metadata ...
//	widgets/metadata ...
//
// It ends when standard input does. Whether it asks for a WatchList or for a list and a watch is client-go's own feature
// gate, KUBE_FEATURE_WatchListClient=true or false in the environment.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"sort"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const protobuf = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	widgets    = schema.GroupVersionResource{Group: "test.shoal.dev", Version: "v1", Resource: "widgets"}
)

// stores are the caches by the name that their lines begin with.
type stores map[string]cache.SharedIndexInformer

func main() {
	kubeconfig := flag.String("kubeconfig", "", "the file that says whom to watch")
	agent := flag.String("user-agent", "informer", "the name that the API server's audit log shows")
	flag.Parse()
	if err := run(*kubeconfig, *agent, os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(kubeconfig, agent string, in io.Reader, out io.Writer) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.UserAgent, config.QPS = agent, -1
	all, err := watch(config)
	if err != nil {
		return err
	}
	return answer(all, in, out)
}

// watch starts an informer for each kind and form. Nothing waits for them: a store shows what it has.
func watch(config *rest.Config) (stores, error) {
	typed := rest.CopyConfig(config)
	typed.AcceptContentTypes, typed.ContentType = protobuf, runtime.ContentTypeProtobuf
	typedClient, err := kubernetes.NewForConfig(typed)
	if err != nil {
		return nil, err
	}
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	const never = time.Duration(0)
	typedFactory := informers.NewSharedInformerFactory(typedClient, never)
	dynamicFactory := dynamicinformer.NewDynamicSharedInformerFactory(dynamicClient, never)
	metadataFactory := metadatainformer.NewSharedInformerFactory(metadataClient, never)
	all := stores{
		"configmaps":          typedFactory.Core().V1().ConfigMaps().Informer(),
		"widgets":             dynamicFactory.ForResource(widgets).Informer(),
		"configmaps/metadata": metadataFactory.ForResource(configMaps).Informer(),
		"widgets/metadata":    metadataFactory.ForResource(widgets).Informer(),
	}
	stop := context.Background().Done()
	typedFactory.Start(stop)
	dynamicFactory.Start(stop)
	metadataFactory.Start(stop)
	return all, nil
}

func answer(all stores, in io.Reader, out io.Writer) error {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if lines.Text() != "print" {
			return fmt.Errorf("the only command is print, not %q", lines.Text())
		}
		if _, err := fmt.Fprint(out, all.text(), "\n"); err != nil {
			return err
		}
	}
	return nil
}

func (all stores) text() string {
	var lines []string
	for name, informer := range all {
		for _, object := range informer.GetStore().List() {
			lines = append(lines, line(name, object))
		}
	}
	sort.Strings(lines)
	return strings.Join(lines, "")
}

func line(name string, object any) string {
	shown, err := meta.Accessor(object)
	if err != nil {
		return fmt.Sprintf("%s %v\n", name, err)
	}
	return fmt.Sprintf("%s %s/%s %s %s\n", name, shown.GetNamespace(), shown.GetName(), shown.GetUID(), shown.GetResourceVersion())
}
