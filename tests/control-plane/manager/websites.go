package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	hosting = "webhosting.timebertt.dev"
	// page is the annotation of a Deployment's Pods that changes with what they are to show.
	page = "test.shoal.dev/page"
	// byTheme finds the Websites of a Theme in the cache.
	byTheme = "spec.theme"
	// workers are as many as the shards of the measured operator have.
	workers = 15
)

// webmaster makes the four parts of Websites: a ConfigMap with the page, a Deployment without replicas, a Service and
// an Ingress, all under the Website's name.
//
// It is as trusting as most operators are: a part that its cache does not have is created, and if that is refused,
// the Website shows phase Error, a Warning event says why, and it is tried again after a while.
type webmaster struct {
	client.Client
	events events.EventRecorder
}

func kind(name string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: hosting, Version: "v1alpha1", Kind: name}
}

func object(name string) *unstructured.Unstructured {
	it := &unstructured.Unstructured{}
	it.SetGroupVersionKind(kind(name))
	return it
}

func newWebmaster(config *rest.Config, speed int) (ctrl.Manager, error) {
	manager, err := ctrl.NewManager(config, options("websites", speed))
	if err != nil {
		return nil, err
	}
	index := func(it client.Object) []string { return []string{theme(it.(*unstructured.Unstructured))} }
	if err := manager.GetFieldIndexer().IndexField(context.Background(), object("Website"), byTheme, index); err != nil {
		return nil, err
	}
	w := &webmaster{manager.GetClient(), manager.GetEventRecorder("websites")}
	changed := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	return manager, ctrl.NewControllerManagedBy(manager).
		For(object("Website"), changed).
		Owns(&corev1.ConfigMap{}).
		Owns(&appsv1.Deployment{}, changed).
		Owns(&corev1.Service{}).
		Owns(&networkingv1.Ingress{}).
		Watches(object("Theme"), handler.EnqueueRequestsFromMapFunc(w.of), changed).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(w)
}

// of lists the Websites of a Theme.
func (w *webmaster) of(ctx context.Context, it client.Object) []reconcile.Request {
	sites := &unstructured.UnstructuredList{}
	sites.SetGroupVersionKind(kind("WebsiteList"))
	if err := w.List(ctx, sites, client.MatchingFields{byTheme: it.GetName()}); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for _, site := range sites.Items {
		name := types.NamespacedName{Namespace: site.GetNamespace(), Name: site.GetName()}
		requests = append(requests, reconcile.Request{NamespacedName: name})
	}
	return requests
}

// Reconcile makes one Website what it wants, and tells how that went.
func (w *webmaster) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	site := object("Website")
	if err := w.Get(ctx, request.NamespacedName, site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if site.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, nil
	}
	err := w.reconcile(ctx, site)
	phase := "Ready"
	if apierrors.IsConflict(err) {
		return ctrl.Result{Requeue: true}, nil
	}
	if err != nil {
		phase = "Error"
		w.events.Eventf(site, nil, corev1.EventTypeWarning, "Failed", "Reconcile", "%v", err)
	}
	if told := w.tell(ctx, site, phase); apierrors.IsConflict(told) {
		return ctrl.Result{Requeue: true}, nil
	} else if err == nil {
		err = client.IgnoreNotFound(told)
	}
	return ctrl.Result{}, err
}

func (w *webmaster) reconcile(ctx context.Context, site *unstructured.Unstructured) error {
	look := object("Theme")
	if err := w.Get(ctx, types.NamespacedName{Name: theme(site)}, look); err != nil {
		return fmt.Errorf("theme: %w", err)
	}
	text := render(site, look)
	for _, build := range []func(metav1.ObjectMeta, string) client.Object{configMap, deployment, service, ingress} {
		if err := w.part(ctx, site, build, text); err != nil {
			return err
		}
	}
	return nil
}

// part creates what the cache lacks, and patches what shows an old page.
func (w *webmaster) part(ctx context.Context, site *unstructured.Unstructured, build func(metav1.ObjectMeta, string) client.Object, text string) error {
	labels := maps.Clone(site.GetLabels())
	wanted := build(metav1.ObjectMeta{Namespace: site.GetNamespace(), Name: site.GetName(), Labels: labels}, text)
	if err := ctrl.SetControllerReference(site, wanted, w.Scheme()); err != nil {
		return err
	}
	found := wanted.DeepCopyObject().(client.Object)
	err := w.Get(ctx, client.ObjectKeyFromObject(wanted), found)
	if apierrors.IsNotFound(err) {
		return w.Create(ctx, wanted)
	}
	if err != nil || shown(found) == shown(wanted) {
		return err
	}
	before := found.DeepCopyObject().(client.Object)
	show(found, text)
	return w.Patch(ctx, found, client.MergeFrom(before))
}

// tell writes the status, unless it is so already.
func (w *webmaster) tell(ctx context.Context, site *unstructured.Unstructured, phase string) error {
	about, _, _ := unstructured.NestedInt64(site.Object, "status", "observedGeneration")
	told, _, _ := unstructured.NestedString(site.Object, "status", "phase")
	if told == phase && about == site.GetGeneration() {
		return nil
	}
	status := map[string]any{"phase": phase, "observedGeneration": site.GetGeneration()}
	if err := unstructured.SetNestedMap(site.Object, status, "status"); err != nil {
		return err
	}
	return w.Status().Update(ctx, site)
}

func theme(site *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(site.Object, "spec", "theme")
	return name
}

func render(site, theme *unstructured.Unstructured) string {
	color, _, _ := unstructured.NestedString(theme.Object, "spec", "color")
	font, _, _ := unstructured.NestedString(theme.Object, "spec", "fontFamily")
	return fmt.Sprintf("<title>%s</title><body style='color: %s; font-family: %s'>", site.GetName(), color, font)
}

// shown is what a part says about the page; empty for parts that do not depend on it.
func shown(part client.Object) string {
	switch part := part.(type) {
	case *corev1.ConfigMap:
		return part.Data["index.html"]
	case *appsv1.Deployment:
		return part.Spec.Template.Annotations[page]
	}
	return ""
}

func show(part client.Object, text string) {
	switch part := part.(type) {
	case *corev1.ConfigMap:
		part.Data = map[string]string{"index.html": text}
	case *appsv1.Deployment:
		part.Spec.Template.Annotations = map[string]string{page: sum(text)}
	}
}

func sum(text string) string {
	hash := fnv.New64a()
	hash.Write([]byte(text))
	return fmt.Sprintf("%016x", hash.Sum64())
}

func configMap(meta metav1.ObjectMeta, text string) client.Object {
	it := &corev1.ConfigMap{ObjectMeta: meta}
	show(it, text)
	return it
}

func deployment(meta metav1.ObjectMeta, text string) client.Object {
	it := &appsv1.Deployment{ObjectMeta: meta}
	it.Spec.Replicas = new(int32)
	it.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"website": meta.Name}}
	it.Spec.Template.Labels = it.Spec.Selector.MatchLabels
	it.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "registry.example/web:1"}}
	show(it, text)
	return it
}

func service(meta metav1.ObjectMeta, _ string) client.Object {
	ports := []corev1.ServicePort{{Port: 80}}
	selector := map[string]string{"website": meta.Name}
	return &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: ports, Selector: selector}}
}

func ingress(meta metav1.ObjectMeta, _ string) client.Object {
	it := &networkingv1.Ingress{ObjectMeta: meta}
	it.Spec.DefaultBackend = &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
		Name: meta.Name, Port: networkingv1.ServiceBackendPort{Number: 80},
	}}
	return it
}
