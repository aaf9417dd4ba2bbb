package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	orascontent "oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/registry"
)

// The processes that send to a registry, beside `kubexm bundle push`.
const (
	pushLayout = "baseline-push"   // LAYOUT DIGEST HOST/REPOSITORY:TAG: what the oras command does, with its library
	pushImages = "baseline-images" // LAYOUT HOST: every image, one after the other, each to its own repository
	seedImages = "seed"            // ARCHIVE HOST: what an installation does, from this machine
)

// atOnce is how many blobs everybody sends at once.
const atOnce = 4

// pushOne copies all that a digest of a layout leads to.
func pushOne(ctx context.Context, layout, digest, to string) error {
	store, err := oci.NewFromFS(ctx, os.DirFS(layout))
	if err != nil {
		return err
	}
	root, err := store.Resolve(ctx, digest)
	if err != nil {
		return err
	}
	return copyTo(ctx, store, root, to)
}

// copyTo copies all that d leads to, and tags it where to has a tag.
func copyTo(ctx context.Context, from orascontent.ReadOnlyStorage, d ocispec.Descriptor, to string) error {
	repo, err := remote.NewRepository(to)
	if err != nil {
		return err
	}
	repo.PlainHTTP = true
	if err := oras.CopyGraph(ctx, from, repo, d, oras.CopyGraphOptions{Concurrency: atOnce}); err != nil {
		return err
	}
	if repo.Reference.ValidateReferenceAsTag() != nil {
		return nil // by digest alone
	}
	return repo.Tag(ctx, d, repo.Reference.Reference)
}

// pushAll copies every image of a layout that a bundle was unpacked to.
func pushAll(ctx context.Context, layout, host string) error {
	var index, root ocispec.Index
	if err := readJSON(filepath.Join(layout, "index.json"), &index); err != nil {
		return err
	}
	if len(index.Manifests) != 1 {
		return fmt.Errorf("%s: %d roots", layout, len(index.Manifests))
	}
	if err := readJSON(filepath.Join(layout, "blobs", "sha256", index.Manifests[0].Digest.Encoded()), &root); err != nil {
		return err
	}
	store, err := oci.NewFromFS(ctx, os.DirFS(layout))
	if err != nil {
		return err
	}
	for _, d := range root.Manifests {
		name := d.Annotations["io.containerd.image.name"]
		if name == "" {
			continue // a file's
		}
		to, tag, err := registry.Mapper{Host: host}.Repository(name)
		if err != nil {
			return err
		}
		if to = host + "/" + to; tag != "" {
			to += ":" + tag
		} else {
			to += "@" + d.Digest.String()
		}
		if err := copyTo(ctx, store, d, to); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func readJSON(path string, to any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

// seedAll sends every image of an archive as the step of an installation does,
// but for the SSH connection that it goes through there.
func seedAll(ctx context.Context, archive, host string) error {
	b, err := bundle.Open(ctx, archive, bundle.Policy{AllowUnsigned: true})
	if err != nil {
		return err
	}
	defer b.Close()
	t := registry.Target{Mapper: registry.Mapper{Host: host}, PlainHTTP: true}
	has, err := registry.Compare(ctx, t, b, b.Lock.Images, atOnce)
	if err != nil {
		return err
	}
	_, _, err = registry.Fill(ctx, t, b, has, registry.Options{Parallel: atOnce})
	return err
}
