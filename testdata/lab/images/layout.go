package images

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/mensylisir/kubexm/testdata/lab/components"
)

// generation is to be raised when images come out otherwise than before.
const generation = "1"

// Layout gives an OCI layout with an image of every component that is run from
// one, each noted under its reference. What the cache holds is not made again.
func Layout(ctx context.Context, cache, rootfs string, rows []components.Component, log io.Writer) (string, error) {
	return layoutOf(ctx, recipes, cache, rootfs, nil, rows, log)
}

// layoutOf makes the images of recipes. deb gives the file of a package of Debian; nil for recipes
// without.
func layoutOf(ctx context.Context, recipes []recipe, cache, rootfs string, deb func(string) (string, error), rows []components.Component, log io.Writer) (string, error) {
	debs := map[string]string{}
	for _, r := range recipes {
		for _, name := range r.packages {
			file, err := deb(name)
			if err != nil {
				return "", fmt.Errorf("image %s: %w", r.repository, err)
			}
			debs[name] = file
		}
	}
	key, err := keyOf(recipes, cache, rootfs, debs, rows)
	if err != nil {
		return "", err
	}
	return once(cache, key, log, func(part string) (int, error) {
		return len(recipes), fill(ctx, part, recipes, cache, rootfs, debs, rows)
	})
}

// once gives the layout of a key. Where the cache does not have it, fill writes it into a folder,
// and gives the number of its images.
func once(cache, key string, log io.Writer, fill func(part string) (int, error)) (string, error) {
	dir := filepath.Join(cache, "images", key)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	begun := time.Now()
	part, err := os.MkdirTemp(cache, "images-part-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(part)
	n, err := fill(part)
	if err != nil {
		return "", err
	}
	if err := os.Chmod(part, 0o755); err != nil { //nolint:gosec // a folder that anyone may read
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	if err := os.Rename(part, dir); err != nil {
		if _, there := os.Stat(dir); there == nil { // another process was faster
			return dir, nil
		}
		return "", err
	}
	fmt.Fprintf(log, "made %d images (%s)\n", n, time.Since(begun).Round(time.Second))
	return dir, nil
}

// refName is the annotation that notes an image's reference.
const refName = "org.opencontainers.image.ref.name"

// Names lists the references of all images of a layout.
func Names(dir string) ([]string, error) {
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, err
	}
	m, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	var all []string
	for _, d := range m.Manifests {
		all = append(all, d.Annotations[refName])
	}
	return all, nil
}

// keyOf names what the images are made of.
func keyOf(recipes []recipe, cache, rootfs string, debs map[string]string, rows []components.Component) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, generation, filepath.Base(rootfs), recipes, tools, links)
	for _, name := range slices.Sorted(maps.Keys(debs)) {
		fmt.Fprintln(h, filepath.Base(debs[name]))
	}
	for _, r := range recipes {
		c, err := components.Find(rows, r.component)
		if err != nil {
			return "", err
		}
		stamp, err := os.ReadFile(filepath.Join(c.Dir(cache), "stamp"))
		if err != nil {
			return "", fmt.Errorf("%s is not built: %w", c.Name, err)
		}
		h.Write(stamp)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:6]), nil
}

func fill(ctx context.Context, dir string, recipes []recipe, cache, rootfs string, debs map[string]string, rows []components.Component) error {
	out, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	files, err := base(rootfs)
	if err != nil {
		return fmt.Errorf("collect the base of images: %w", err)
	}
	bottom, err := layer(files, links)
	if err != nil {
		return err
	}
	texts, err := os.MkdirTemp(filepath.Dir(dir), "texts-") // read until the last image is written
	if err != nil {
		return err
	}
	defer os.RemoveAll(texts)
	for _, r := range recipes {
		c, err := components.Find(rows, r.component)
		if err != nil {
			return err
		}
		var files []string
		for _, name := range r.packages {
			files = append(files, debs[name])
		}
		more, err := unpack(ctx, filepath.Join(texts, "debian-"+r.component), rootfs, files, r.debian)
		if err != nil {
			return fmt.Errorf("image %s: %w", r.repository, err)
		}
		index, err := r.make(c, cache, texts, more, bottom)
		if err != nil {
			return fmt.Errorf("image %s: %w", r.repository, err)
		}
		name := map[string]string{refName: r.reference(c)}
		if err := out.AppendIndex(index, layout.WithAnnotations(name)); err != nil {
			return fmt.Errorf("image %s: %w", r.repository, err)
		}
	}
	return nil
}

// unpack unpacks Debian's packages into dir, and gives some of their programs with their libraries:
// path in the image → file. Programs are by their path in the package → that in the image.
func unpack(ctx context.Context, dir, rootfs string, debs []string, programs map[string]string) (map[string]string, error) {
	for _, file := range debs {
		if said, err := exec.CommandContext(ctx, "dpkg-deb", "--extract", file, dir).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("unpack %s: %s (%w)", file, strings.TrimSpace(string(said)), err)
		}
	}
	w := newWalker(dir, rootfs)
	for from := range programs {
		if err := w.program(from); err != nil {
			return nil, err
		}
	}
	moved := map[string]string{}
	for from, to := range programs {
		moved[to] = w.files[from]
		delete(w.files, from)
	}
	maps.Copy(w.files, moved)
	return w.files, nil
}

// addTree adds the files below a folder, at a path in the image.
func addTree(files map[string]string, dir, at string) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files[at+filepath.ToSlash(strings.TrimPrefix(name, dir))] = name
		}
		return err
	})
}

// make gives an index with the image for the component's architecture, which has more files as well. Its
// scripts are written into texts, and read when the image is.
func (r recipe) make(c components.Component, cache, texts string, more map[string]string, bottom v1.Layer) (v1.ImageIndex, error) {
	files := maps.Clone(more)
	for name, at := range r.plain {
		if c.Files[name] == "" {
			return nil, errors.New("the component has no file " + name)
		}
		files[at] = filepath.Join(c.Dir(cache), name)
	}
	for name, at := range r.trees {
		if err := addTree(files, filepath.Join(c.Dir(cache), name), at); err != nil {
			return nil, err
		}
	}
	for program, at := range r.files {
		if c.Programs[program] == "" {
			return nil, errors.New("the component has no program " + program)
		}
		files[at] = filepath.Join(c.Dir(cache), program)
	}
	for name, text := range r.scripts {
		files[name] = filepath.Join(texts, strings.ReplaceAll(r.repository+name, "/", "_"))
		if err := os.WriteFile(files[name], []byte(text), 0o755); err != nil { //nolint:gosec // a program
			return nil, err
		}
	}
	top, err := layer(files, r.links)
	if err != nil {
		return nil, err
	}
	layers := []v1.Layer{top}
	if r.base {
		layers = []v1.Layer{bottom, top}
	}
	return indexOf(c.GOARCH(), v1.Config{
		Env:        append([]string{searchPath}, r.env...),
		Entrypoint: r.entrypoint, Labels: r.labels(c), User: r.user,
	}, layers...)
}

// searchPath is where the images' programs are looked for.
const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// indexOf gives an index with one image, for an architecture.
func indexOf(arch string, run v1.Config, layers ...v1.Layer) (v1.ImageIndex, error) {
	platform := v1.Platform{OS: "linux", Architecture: arch}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.AppendLayers(img, layers...)
	if err != nil {
		return nil, err
	}
	old, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config := old.DeepCopy()
	config.OS, config.Architecture, config.Created = platform.OS, platform.Architecture, v1.Time{Time: made}
	config.Config = run
	if img, err = mutate.ConfigFile(img, config); err != nil {
		return nil, err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	return mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &platform}}), nil
}
