package op_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// packed returns an archive of files in this order: name, text, name, text.
func packed(t *testing.T, files ...string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for i := 0; i < len(files); i += 2 {
		if err := w.WriteHeader(&tar.Header{Name: files[i], Mode: 0o644, Size: int64(len(files[i+1]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, files[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// unpacked returns the texts of an archive by name.
func unpacked(t *testing.T, archive string) map[string]string {
	t.Helper()
	z, err := gzip.NewReader(strings.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[h.Name] = string(text)
	}
}

// TestChartReplace: replacements apply to templates, hooks, values and packaged subcharts.
// Changed replacements upgrade the release. Without any, the archive is unchanged.
func TestChartReplace(t *testing.T) {
	archive := packed(t, "x/Chart.yaml", "name: x\n", "x/values.yaml", "digest: sha256:old\n", "x/templates/hook.yaml", "image: a@sha256:old # old\n",
		"x/charts/y.tgz", packed(t, "y/values.yaml", "sha: old\n"))
	c := steptest.Cluster(t, steptest.Small)
	kase := steptest.Case{Cluster: c, Before: steptest.ExistingCluster(c), Artifacts: steptest.Artifacts{Text: map[string]string{"x": archive}}}
	s := kase.Sim(t)
	words := map[string]string{}
	step := op.Ensure("x", []op.Resource{op.Chart{
		Release: "x", Namespace: "kube-public", Kubeconfig: adminConf, Archive: manifest.Need{Kind: manifest.Chart, Name: "x"},
		Values:  func(context.Context, *steps.Host) ([]byte, error) { return []byte("mine: old\n"), nil },
		Replace: func(context.Context, *steps.Host) (map[string]string, error) { return words, nil },
	}})
	var sent []string // of each installation, the chart
	var values string
	s.Handle(func(c connector.Cmd) bool { return slices.Contains(c.Argv, "upgrade") }, func(c connector.Cmd, stdin []byte) (connector.Result, bool) {
		at := c.Argv[slices.Index(c.Argv, "upgrade")+2]
		sent, values = append(sent, s.Read(at)), string(stdin)
		return connector.Result{}, false
	})
	run(t, kase, s, step)
	if len(sent) != 1 || sent[0] != archive || values != "mine: old\n" {
		t.Errorf("without words %d charts were sent, values %q", len(sent), values)
	}
	words["old"] = "new"
	if v, err := step.Precheck(t.Context(), kase.NewHost(t, s, step)); err != nil || v != steps.Todo {
		t.Errorf("other words: %v, %v", v, err)
	}
	run(t, kase, s, step)
	if v, err := step.Precheck(t.Context(), kase.NewHost(t, s, step)); err != nil || v != steps.Done {
		t.Errorf("the same words: %v, %v", v, err)
	}
	if len(sent) != 2 || values != "mine: new\n" {
		t.Fatalf("%d charts were sent, values %q", len(sent), values)
	}
	got := unpacked(t, sent[1])
	want := map[string]string{"x/Chart.yaml": "name: x\n", "x/values.yaml": "digest: sha256:new\n", "x/templates/hook.yaml": "image: a@sha256:new # new\n"}
	if inner := unpacked(t, got["x/charts/y.tgz"]); inner["y/values.yaml"] != "sha: new\n" {
		t.Errorf("the chart in it has %q", inner)
	}
	delete(got, "x/charts/y.tgz")
	if !maps.Equal(got, want) {
		t.Errorf("%q", got)
	}

	// What is no chart is an error that names it.
	kase.Artifacts = steptest.Artifacts{Text: map[string]string{"x": "no archive"}}
	if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err == nil || !strings.Contains(err.Error(), "chart kube-public/x") {
		t.Errorf("no archive: %v", err)
	}
}
