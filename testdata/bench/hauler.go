package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// haulName is what Hauler's archive is called here.
const haulName = "haul.tar.zst"

// haul writes the manifest of images and files that Hauler syncs.
func (t theirs) haul() ([]byte, error) {
	type item struct {
		Name string `yaml:"name,omitempty"`
		Path string `yaml:"path,omitempty"`
	}
	type document struct {
		APIVersion string            `yaml:"apiVersion"`
		Kind       string            `yaml:"kind"`
		Metadata   map[string]string `yaml:"metadata"`
		Spec       map[string][]item `yaml:"spec"`
	}
	var images, files []item
	for _, i := range t.images {
		images = append(images, item{Name: i})
	}
	for _, f := range t.files {
		files = append(files, item{Path: f, Name: path.Base(f)})
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	all := []document{{Kind: "Images", Spec: map[string][]item{"images": images}}}
	if len(files) > 0 {
		all = append(all, document{Kind: "Files", Spec: map[string][]item{"files": files}})
	}
	for _, d := range all {
		d.APIVersion, d.Metadata = "content.hauler.cattle.io/v1", map[string]string{"name": "bench"}
		if err := e.Encode(d); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), e.Close()
}

// haulerBuild is sync and save of everything.
func (w *work) haulerBuild(ctx context.Context, hauler string) (all sample, err error) {
	dir, out, remove, err := w.home("hauler")
	if err != nil {
		return all, err
	}
	all, err = w.haulerSave(ctx, hauler, w.theirs, dir, filepath.Join(out, haulName))
	return all, errors.Join(err, remove())
}

// haulerImages makes the archive that is pushed later: of the images alone, as its
// copy to a registry takes files along and has no way to leave out just these.
func (w *work) haulerImages(ctx context.Context, hauler string) error {
	dir, out, remove, err := w.home("hauler")
	if err != nil {
		return err
	}
	archive := filepath.Join(out, haulName)
	if _, err = w.haulerSave(ctx, hauler, theirs{images: w.theirs.images}, dir, archive); err == nil {
		w.haul = filepath.Join(w.dir, haulName)
		err = os.Rename(archive, w.haul)
	}
	return errors.Join(err, remove())
}

// haulerSave makes an archive in a home of Hauler.
func (w *work) haulerSave(ctx context.Context, hauler string, what theirs, dir, archive string) (all sample, err error) {
	text, err := what.haul()
	if err != nil {
		return all, err
	}
	list, store, out := filepath.Join(dir, "haul.yaml"), filepath.Join(dir, "out", "store"), filepath.Dir(archive)
	if err := os.WriteFile(list, text, 0o600); err != nil {
		return all, err
	}
	sync, err := w.measure(ctx, process{home: dir, out: out, args: []string{hauler, "store", "sync", "--store", store, "--platform", "linux/amd64", "--filename", list}})
	if err != nil {
		return all, err
	}
	save, err := w.measure(ctx, process{home: dir, out: out, args: []string{hauler, "store", "save", "--store", store, "--filename", archive}})
	if err != nil {
		return all, err
	}
	info, err := os.Stat(archive)
	if err != nil {
		return all, err
	}
	save.Output = info.Size()
	return sync.and(save), nil
}

// haulerPush is load and copy of the images to an empty registry.
func (w *work) haulerPush(ctx context.Context, r *round) error {
	hauler, ok := w.peers["hauler"]
	if !ok {
		return nil
	}
	if err := errors.Join(w.target.empty(), warm(w.haul)); err != nil {
		return err
	}
	dir, out, remove, err := w.home("hauler")
	if err != nil {
		return err
	}
	store := filepath.Join(out, "store")
	load, err := w.measure(ctx, process{home: dir, out: out, args: []string{hauler, "store", "load", "--store", store, "--filename", w.haul}})
	if err == nil {
		var copied sample
		copied, err = w.measure(ctx, process{home: dir, out: out, args: []string{hauler, "store", "copy", "--store", store, "--plain-http", "registry://" + w.host}})
		load = load.and(copied)
	}
	r.HaulerPush = &load
	return errors.Join(err, remove(), w.target.empty())
}
