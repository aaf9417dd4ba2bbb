package lab

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/testdata/lab/components"
	"github.com/mensylisir/kubexm/testdata/lab/images"
	"github.com/mensylisir/kubexm/versions"
)

// TestVersionsOfTheTable: what the table takes with each version of Kubernetes is
// what the matrix says that goes with it.
func TestVersionsOfTheTable(t *testing.T) {
	matrix, problems := versions.Load()
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	rows, err := components.Table("")
	if err != nil {
		t.Fatal(err)
	}
	kubernetes, err := components.Find(rows, components.Kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	if len(kubernetes.Others) == 0 {
		t.Fatal("the table has no other version of Kubernetes")
	}
	for _, version := range append([]string{kubernetes.Version}, kubernetes.Others...) {
		t.Run(version, func(t *testing.T) {
			_, release, known := matrix.Release(versions.Kubernetes, version)
			if !known {
				t.Fatal("the matrix does not know it")
			}
			rows, err := components.Table(version)
			if err != nil {
				t.Fatal(err)
			}
			etcd, err := components.Find(rows, "etcd")
			if err != nil || etcd.Version != release.With["etcd"] {
				t.Errorf("etcd %s, %v; the matrix has %s", etcd.Version, err, release.With["etcd"])
			}
			refs, err := images.References(rows)
			if err != nil {
				t.Fatal(err)
			}
			for name, part := range map[string]string{"registry.k8s.io/etcd": "etcd-image", "registry.k8s.io/coredns/coredns": "coredns", "registry.k8s.io/pause": "pause"} {
				if want := name + ":" + release.With[part]; !slices.Contains(refs, want) {
					t.Errorf("no image is %s, of %s", want, strings.Join(refs, " "))
				}
			}
			for _, runtime := range []string{"v1.7.27", "v2.0.5", "v2.1.9"} {
				chosen, err := components.Choose(rows, "containerd="+runtime)
				if err != nil {
					t.Fatal(err)
				}
				var doc versions.Document
				if err := choose(&doc, chosen); err != nil {
					t.Fatal(err)
				}
				if with := doc.Components[versions.Kubernetes].Versions[version].With["containerd"]; with != runtime {
					t.Errorf("with %s chosen a bundle has containerd %s", runtime, with)
				}
			}
		})
	}
}

// TestBalancersOfAConfig: the images of load balancers are made where a config asks for them,
// with the tag that the matrix has.
func TestBalancersOfAConfig(t *testing.T) {
	rows, err := components.Table("")
	if err != nil {
		t.Fatal(err)
	}
	for config, want := range map[string]string{
		"../e2e/testdata/load-balancers-workers.yaml": "docker.io/library/haproxy:",
		"../e2e/testdata/load-balancers.yaml":         "", // on hosts of their own, as packages
	} {
		lock, err := resolve(config, rows)
		if err != nil {
			t.Fatal(err)
		}
		var references []string
		for _, image := range lock.Images {
			references = append(references, image.Reference)
		}
		var packages []string
		deb := func(name string) (string, error) {
			packages = append(packages, name)
			return "", errors.New("it is not here")
		}
		b, err := images.MakeBalancers(t.Context(), t.TempDir(), t.TempDir(), deb, references, t.Output())
		if want == "" {
			if err != nil || b.Layout != "" || len(packages) > 0 {
				t.Errorf("%s: %+v of %q, %v", config, b, packages, err)
			}
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), "image "+want) || !slices.Equal(packages, []string{"haproxy"}) {
			t.Errorf("%s: %v; it asks for packages %q", config, err, packages)
		}
	}
}
