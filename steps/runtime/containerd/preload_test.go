package containerd_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/runtime/containerd"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// runtime keeps what is pulled, by name, and which names are pinned. Several pulls run at a time.
type runtime struct {
	mu     sync.Mutex
	has    map[string]string // name → digest
	pinned map[string]bool
	pulled []string
}

func (r *runtime) on(s *conntest.Sim) {
	r.has, r.pinned, r.pulled = map[string]string{}, map[string]bool{}, nil
	s.HandleProgram("crictl", func(c connector.Cmd, _ []byte) (connector.Result, bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		ref := c.Argv[len(c.Argv)-1]
		switch c.Argv[1] {
		case "pull":
			r.pulled = append(r.pulled, ref)
			_, r.has[ref], _ = strings.Cut(ref, "@")
			return connector.Result{}, true
		case "rmi":
			digest := r.has[ref]
			for name, d := range r.has {
				if d == digest {
					delete(r.has, name)
					delete(r.pinned, name)
				}
			}
			return connector.Result{}, true
		}
		return connector.Result{}, false
	})
	s.HandleProgram("ctr", func(c connector.Cmd, _ []byte) (connector.Result, bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		last := c.Argv[len(c.Argv)-1]
		switch {
		case slices.Contains(c.Argv, "list"):
			out := "REF TYPE DIGEST SIZE PLATFORMS LABELS\n"
			for name, d := range r.has {
				if r.pinned[name] || !strings.Contains(last, "pinned") {
					out += name + " application/vnd.oci.image.index.v1+json " + d + " 1.0 MiB linux/amd64 -\n"
				}
			}
			return connector.Result{Stdout: []byte(out)}, true
		case slices.Contains(c.Argv, "tag"):
			r.has[last] = r.has[c.Argv[len(c.Argv)-2]]
			return connector.Result{}, true
		case slices.Contains(c.Argv, "label"):
			ref := c.Argv[len(c.Argv)-2]
			if r.has[ref] == "" {
				return connector.Result{Exit: 1, Stderr: []byte("no such image\n")}, true
			}
			r.pinned[ref] = true
			return connector.Result{}, true
		}
		return connector.Result{}, false
	})
}

const (
	pause     = "registry.k8s.io/pause:1.0"
	apiserver = "registry.k8s.io/kube-apiserver:1.0"
)

// TestPreloadKeepsItsLaws runs it against a runtime that keeps what is pulled.
func TestPreloadKeepsItsLaws(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	r := &runtime{}
	steptest.Do(t, steptest.Case{Cluster: c, Before: r.on}, containerd.Preload(c, []string{"pause", "kube-apiserver"}, nil, nil), false)
	for _, ref := range []string{pause, apiserver} {
		if r.has[ref] != steptest.Digest(ref) || !r.pinned[ref] {
			t.Errorf("%s is %s, pinned: %t", ref, r.has[ref], r.pinned[ref])
		}
	}
	want := []string{"registry.k8s.io/pause@" + steptest.Digest(pause), "registry.k8s.io/kube-apiserver@" + steptest.Digest(apiserver)}
	if got := slices.Sorted(slices.Values(r.pulled)); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("pulled %v, not by the lock's digests", r.pulled)
	}
}

// TestPreloadComparesWithTheLock: a node that has another image under the name of
// one of the lock's, pinned or not, has it replaced; the registry's tags are asked
// before that, of the missing images alone.
func TestPreloadComparesWithTheLock(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	kase := steptest.Case{Cluster: c}
	s := kase.Sim(t)
	r := &runtime{}
	r.on(s)
	r.has[pause], r.pinned[pause] = steptest.Digest("another image"), true
	r.has["registry.k8s.io/pause@"+steptest.Digest("another image")] = steptest.Digest("another image")
	r.has["registry.k8s.io/pause@"+steptest.Digest(pause)] = steptest.Digest(pause) // pulled and never pinned
	r.has[apiserver], r.pinned[apiserver] = steptest.Digest(apiserver), true
	var asked []string
	refusal := errors.New("registry r: pause:1.0 is another image")
	step := containerd.Preload(c, []string{"pause", "kube-apiserver"}, nil, func(_ context.Context, _ *steps.Host, images []manifest.ImagePin) error {
		for _, im := range images {
			asked = append(asked, im.Reference)
		}
		return refusal
	})
	if v, err := step.Precheck(t.Context(), kase.NewHost(t, s, step)); err != nil || v != steps.Todo {
		t.Fatalf("the check takes another image for the lock's: %v, %v", v, err)
	}
	if err := step.Run(t.Context(), kase.NewHost(t, s, step)); !errors.Is(err, refusal) || len(r.pulled) > 0 {
		t.Errorf("%v, pulled %v", err, r.pulled)
	}
	if !slices.Equal(asked, []string{pause}) {
		t.Errorf("asked for %v", asked)
	}
	refusal = nil
	if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
		t.Fatal(err)
	}
	if r.has[pause] != steptest.Digest(pause) || !r.pinned[pause] || len(r.pulled) != 1 {
		t.Errorf("%s is %s, pulled %v", pause, r.has[pause], r.pulled)
	}
	if v, err := step.Precheck(t.Context(), kase.NewHost(t, s, step)); err != nil || v != steps.Done {
		t.Errorf("%v, %v", v, err)
	}
}
