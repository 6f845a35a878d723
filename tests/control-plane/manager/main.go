// Command manager runs a controller of controller-runtime over the Gadgets of one API group.
//
// A Gadget wants spec.size ConfigMaps of its own, each with spec.color in its data, and tells in its status how many
// there are and which generation that is about. When it is deleted they are deleted first. The controller is written
// the usual way: a finalizer, CreateOrUpdate, DeleteAllOf, a status update, events, and leader election.
//
// With --websites it is a controller over Websites instead, see websites.go.
//
// With --speed=N the clocks of the informers run N times as fast: watches end, and caches are told everything again,
// after an Nth of the time.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	finalizer = "test.shoal.dev/parts"
	// owner is the label of a part that names its Gadget.
	owner = "test.shoal.dev/gadget"
	// resync is controller-runtime's own default.
	resync = 10 * time.Hour
)

// reconciler makes the parts of Gadgets.
type reconciler struct {
	client.Client
	kind   schema.GroupVersionKind
	events events.EventRecorder
}

func main() {
	group := flag.String("group", "", "the API group of the Gadgets")
	websites := flag.Bool("websites", false, "work on Websites, not on Gadgets")
	speed := flag.Int("speed", 1, "how many times as fast the clocks of the informers run")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(*group, *speed, *websites); err != nil {
		log.Fatal(err)
	}
}

func run(group string, speed int, websites bool) error {
	// Of --kubeconfig, a flag that controller-runtime brings.
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return faster{next, speed} })
	build := func() (ctrl.Manager, error) { return newManager(config, group, speed) }
	if websites {
		build = func() (ctrl.Manager, error) { return newWebmaster(config, speed) }
	}
	manager, err := build()
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

// options are those of a manager that elects its leader by the lock of that name.
func options(lock string, speed int) ctrl.Options {
	period := resync / time.Duration(speed)
	return ctrl.Options{
		Cache:                         cache.Options{SyncPeriod: &period},
		Metrics:                       server.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              lock,
		LeaderElectionNamespace:       "kube-system",
		LeaderElectionReleaseOnCancel: true,
	}
}

func newManager(config *rest.Config, group string, speed int) (ctrl.Manager, error) {
	manager, err := ctrl.NewManager(config, options("gadgets."+group, speed))
	if err != nil {
		return nil, err
	}
	kind := schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Gadget"}
	gadget := &unstructured.Unstructured{}
	gadget.SetGroupVersionKind(kind)
	r := &reconciler{manager.GetClient(), kind, manager.GetEventRecorder("gadgets")}
	return manager, ctrl.NewControllerManagedBy(manager).
		For(gadget).
		Owns(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(r)
}

// Reconcile makes the parts of one Gadget what it wants.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	gadget := &unstructured.Unstructured{}
	gadget.SetGroupVersionKind(r.kind)
	if err := r.Get(ctx, request.NamespacedName, gadget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	err := r.reconcile(ctx, gadget)
	if apierrors.IsConflict(err) {
		// The cache is behind; its next event brings the Gadget back, if nothing else does.
		return ctrl.Result{RequeueAfter: 50 * time.Millisecond}, nil
	}
	return ctrl.Result{}, err
}

func (r *reconciler) reconcile(ctx context.Context, gadget *unstructured.Unstructured) error {
	if gadget.GetDeletionTimestamp() != nil {
		return r.finish(ctx, gadget)
	}
	if controllerutil.AddFinalizer(gadget, finalizer) {
		return r.Update(ctx, gadget)
	}
	size, _, _ := unstructured.NestedInt64(gadget.Object, "spec", "size")
	color, _, _ := unstructured.NestedString(gadget.Object, "spec", "color")
	for index := range size {
		if err := r.part(ctx, gadget, index, color); err != nil {
			return err
		}
	}
	if err := r.removeFrom(ctx, gadget, size); err != nil {
		return err
	}
	return r.tell(ctx, gadget, size)
}

// part creates one ConfigMap, or makes it what it has to be.
func (r *reconciler) part(ctx context.Context, gadget *unstructured.Unstructured, index int64, color string) error {
	part := &corev1.ConfigMap{}
	part.Namespace, part.Name = gadget.GetNamespace(), partName(gadget, index)
	did, err := controllerutil.CreateOrUpdate(ctx, r.Client, part, func() error {
		part.Labels = map[string]string{owner: gadget.GetName()}
		part.Data = map[string]string{"color": color}
		return controllerutil.SetControllerReference(gadget, part, r.Scheme())
	})
	if err == nil && did == controllerutil.OperationResultCreated {
		r.events.Eventf(gadget, part, corev1.EventTypeNormal, "Created", "Create", "created %s", part.Name)
	}
	return ignoreExists(err)
}

// removeFrom deletes the parts that are too many.
func (r *reconciler) removeFrom(ctx context.Context, gadget *unstructured.Unstructured, size int64) error {
	parts := &corev1.ConfigMapList{}
	if err := r.List(ctx, parts, client.InNamespace(gadget.GetNamespace()), labels(gadget)); err != nil {
		return err
	}
	for index := range parts.Items {
		part := &parts.Items[index]
		if number, err := strconv.ParseInt(part.Name[len(gadget.GetName())+1:], 10, 64); err == nil && number < size {
			continue
		}
		if err := client.IgnoreNotFound(r.Delete(ctx, part)); err != nil {
			return err
		}
	}
	return nil
}

func (r *reconciler) tell(ctx context.Context, gadget *unstructured.Unstructured, size int64) error {
	told, _, _ := unstructured.NestedInt64(gadget.Object, "status", "parts")
	about, found, _ := unstructured.NestedInt64(gadget.Object, "status", "observedGeneration")
	if found && told == size && about == gadget.GetGeneration() {
		return nil
	}
	status := map[string]any{"parts": size, "observedGeneration": gadget.GetGeneration()}
	if err := unstructured.SetNestedMap(gadget.Object, status, "status"); err != nil {
		return err
	}
	return client.IgnoreNotFound(r.Status().Update(ctx, gadget))
}

func (r *reconciler) finish(ctx context.Context, gadget *unstructured.Unstructured) error {
	inNamespace := client.InNamespace(gadget.GetNamespace())
	if err := r.DeleteAllOf(ctx, &corev1.ConfigMap{}, inNamespace, labels(gadget)); err != nil {
		return err
	}
	if !controllerutil.RemoveFinalizer(gadget, finalizer) {
		return nil
	}
	return client.IgnoreNotFound(r.Update(ctx, gadget))
}

func labels(gadget *unstructured.Unstructured) client.MatchingLabels {
	return client.MatchingLabels{owner: gadget.GetName()}
}

func partName(gadget *unstructured.Unstructured, index int64) string {
	return fmt.Sprintf("%s-%d", gadget.GetName(), index)
}

// ignoreExists lets a stale cache be: the part's own event brings the Gadget back.
func ignoreExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// faster shortens the time that each watch is asked to last.
type faster struct {
	next  http.RoundTripper
	speed int
}

func (f faster) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	if seconds, err := strconv.Atoi(query.Get("timeoutSeconds")); err == nil && f.speed > 1 {
		request = request.Clone(request.Context())
		query.Set("timeoutSeconds", strconv.Itoa(1+seconds/f.speed))
		request.URL.RawQuery = query.Encode()
	}
	return f.next.RoundTrip(request)
}
