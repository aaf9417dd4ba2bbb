package upstream

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func TestChartsArePublishedAsHelmDoes(t *testing.T) {
	s, url := serve(t, Options{})
	archive := []byte("a chart")
	if err := s.PublishChart("registry.example/charts/web:1.2.3", archive, map[string]string{"name": "web", "version": "1.2.3"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Publish("https://charts.example/stable/index.yaml", []byte("entries: {}\n")); err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(strings.TrimPrefix(url, "http://")+"/registry.example/charts/web:1.2.3", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	img, err := remote.Image(ref, remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	m, err := img.Manifest()
	if err != nil || string(m.Config.MediaType) != chartConfig || len(m.Layers) != 1 || string(m.Layers[0].MediaType) != chartContent {
		t.Fatalf("%+v, %v", m, err)
	}
	config, err := img.RawConfigFile()
	if err != nil || string(config) != `{"name":"web","version":"1.2.3"}` {
		t.Errorf("%s, %v", config, err)
	}
	layer, err := img.LayerByDigest(m.Layers[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	rc, err := layer.Compressed()
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(rc)
	if err != nil || !bytes.Equal(got, archive) {
		t.Errorf("%q, %v", got, err)
	}
	if res, body, err := get(t, url+"/charts.example/stable/index.yaml"); err != nil || res.StatusCode != http.StatusOK || string(body) != "entries: {}\n" {
		t.Errorf("%s %q, %v", res.Status, body, err)
	}
	for _, host := range []string{"charts.example", "registry.example"} {
		if !slices.Contains(s.Hosts(), host) {
			t.Errorf("%s is none of the hosts %v", host, s.Hosts())
		}
	}
	for _, ref := range []string{"registry.example/charts/web", "registry.example/charts/web@sha256:" + hexOf(nil), "%"} {
		if err := s.PublishChart(ref, archive, nil); err == nil {
			t.Errorf("a chart was published as %s", ref)
		}
	}
	if err := s.Publish("index.yaml", nil); err == nil {
		t.Error("a file was published at no host")
	}
}
