package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/rogpeppe/go-internal/testscript"
	"oras.land/oras-go/v2"
	orasremote "oras.land/oras-go/v2/registry/remote"
)

// scriptRegistry starts an empty registry that knows referrers, as OCI 1.1 has them,
// and is nobody's of this module: its address is $REGISTRY.
func scriptRegistry(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 0 {
		ts.Fatalf("usage: registry")
	}
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0))))
	ts.Defer(server.Close)
	ts.Setenv("REGISTRY", strings.TrimPrefix(server.URL, "http://"))
}

// referrers asks the registry's referrers API what refers to a tag, and compares the
// predicate types of the statements that it finds there: referrers REFERENCE TYPE...
func referrers(ts *testscript.TestScript, _ bool, args []string) {
	ref, err := name.ParseReference(args[0], name.Insecure)
	ts.Check(err)
	root, err := remote.Head(ref)
	ts.Check(err)
	repo := ref.Context()
	resp, err := http.Get("http://" + repo.RegistryStr() + "/v2/" + repo.RepositoryStr() + "/referrers/" + root.Digest.String())
	ts.Check(err)
	defer resp.Body.Close()
	var found v1.Index
	ts.Check(json.NewDecoder(resp.Body).Decode(&found))
	if resp.StatusCode != http.StatusOK || found.MediaType != v1.MediaTypeImageIndex {
		ts.Fatalf("referrers of %s: %s, %s", args[0], resp.Status, found.MediaType)
	}
	var types []string
	for _, d := range found.Manifests {
		types = append(types, predicateType(ts, repo.Digest(d.Digest.String()), root.Digest.String()))
	}
	slices.Sort(types)
	want := slices.Sorted(slices.Values(args[1:]))
	if !slices.Equal(types, want) {
		ts.Fatalf("what refers to %s is %q, want %q", args[0], types, want)
	}
}

// attach has something else refer to a tag: attach REFERENCE TYPE.
func attach(ts *testscript.TestScript, _ bool, args []string) {
	repo, err := orasremote.NewRepository(args[0])
	ts.Check(err)
	repo.PlainHTTP = true
	ctx := context.Background()
	root, err := repo.Resolve(ctx, repo.Reference.Reference)
	ts.Check(err)
	var layers []v1.Descriptor
	for _, text := range []string{"{}", "[]"} {
		d, err := oras.PushBytes(ctx, repo, args[1], []byte(text))
		ts.Check(err)
		layers = append(layers, d)
	}
	_, err = oras.PackManifest(ctx, repo, oras.PackManifestVersion1_1, args[1], oras.PackManifestOptions{Subject: &root, Layers: layers})
	ts.Check(err)
}

// predicateType reads the statement in an artifact, which has to be about root.
func predicateType(ts *testscript.TestScript, at name.Digest, root string) string {
	image, err := remote.Image(at)
	ts.Check(err)
	text, err := image.RawManifest()
	ts.Check(err)
	var m v1.Manifest
	ts.Check(json.Unmarshal(text, &m))
	if m.ArtifactType != "application/vnd.dev.sigstore.bundle.v0.3+json" || m.Subject == nil || m.Subject.Digest != digest.Digest(root) || len(m.Layers) != 1 {
		ts.Fatalf("%s: %s", at, text)
	}
	layers, err := image.Layers()
	ts.Check(err)
	rc, err := layers[0].Compressed()
	ts.Check(err)
	defer rc.Close()
	var signed struct{ DSSEEnvelope struct{ Payload string } }
	ts.Check(json.NewDecoder(rc).Decode(&signed))
	payload, err := base64.StdEncoding.DecodeString(signed.DSSEEnvelope.Payload)
	ts.Check(err)
	var statement struct {
		PredicateType string
		Subject       []struct{ Digest map[string]string }
	}
	ts.Check(json.Unmarshal(payload, &statement))
	if len(statement.Subject) != 1 || "sha256:"+statement.Subject[0].Digest["sha256"] != root {
		ts.Fatalf("%s is about %v", at, statement.Subject)
	}
	return statement.PredicateType
}
