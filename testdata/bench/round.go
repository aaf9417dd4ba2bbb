package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// round is everything once.
type round struct {
	Floor     sample `json:"floor"`
	Build     sample `json:"build"`
	Rebuild   sample `json:"rebuild"`
	Verify    sample `json:"verify"`
	Hash      sample `json:"sha256"`
	Hashed    sample `json:"hashedFloor"`
	Plain     sample `json:"tarZstd"`
	LinkFloor sample `json:"linkFloor"`
	LinkBuild sample `json:"linkBuild"`

	Push     sample `json:"push"`
	Oras     sample `json:"oras"`
	Seed     sample `json:"seed"`
	OrasSeed sample `json:"orasImages"`

	Upload     sample `json:"upload"`
	Cat        sample `json:"cat"`
	LinkUpload sample `json:"linkUpload"`
	LinkCat    sample `json:"linkCat"`

	UploadSmall sample `json:"uploadSmall"`
	CatSmall    sample `json:"catSmall"`

	Large large `json:"large"`
	Few   large `json:"few"`

	// Of a peer that is not there, nil.
	HaulerBuild *sample `json:"haulerBuild,omitempty"`
	HaulerPush  *sample `json:"haulerPush,omitempty"`
	ZarfBuild   *sample `json:"zarfBuild,omitempty"`
}

// String gives the wall times in seconds.
func (r round) String() string {
	var s string
	part := func(on float64, format string, args ...any) {
		if on > 0 {
			s += fmt.Sprintf("; "+format, args...)
		}
	}
	part(r.Floor.Wall, "floor %.1f (hashed %.1f), build %.1f (cpu %.1f, %d MB), rebuild %.1f (cpu %.1f), verify %.1f, sha256 %.1f, tar+zstd %.1f; on the link: floor %.1f, build %.1f",
		r.Floor.Wall, r.Hashed.Wall, r.Build.Wall, r.Build.CPU, r.Build.Memory/1e6, r.Rebuild.Wall, r.Rebuild.CPU, r.Verify.Wall, r.Hash.Wall, r.Plain.Wall, r.LinkFloor.Wall, r.LinkBuild.Wall)
	part(r.Push.Wall, "push %.1f (cpu %.1f, %d MB), oras %.1f (cpu %.1f), seed %.1f, oras %.1f",
		r.Push.Wall, r.Push.CPU, r.Push.Memory/1e6, r.Oras.Wall, r.Oras.CPU, r.Seed.Wall, r.OrasSeed.Wall)
	for _, p := range []struct {
		name string
		*sample
	}{{"hauler build", r.HaulerBuild}, {"hauler push", r.HaulerPush}, {"zarf build", r.ZarfBuild}} {
		if p.sample != nil {
			part(p.Wall, "%s %.1f (cpu %.1f)", p.name, p.Wall, p.CPU)
		}
	}
	part(r.Upload.Wall, "files to %d hosts %.1f (cpu %.1f, %d MB), cat %.1f (cpu %.1f); on the link: %.1f, cat %.1f; small ones %.1f (cpu %.1f), cat %.1f (cpu %.1f)", fleetSize,
		r.Upload.Wall, r.Upload.CPU, r.Upload.Memory/1e6, r.Cat.Wall, r.Cat.CPU, r.LinkUpload.Wall, r.LinkCat.Wall,
		r.UploadSmall.Wall, r.UploadSmall.CPU, r.CatSmall.Wall, r.CatSmall.CPU)
	for _, l := range []large{r.Large, r.Few} {
		part(l.Seconds, "plan %.2f (cpu %.2f, %d MB), run %.1f and %.1f (cpu %.1f, %d MB), %d steps and %d",
			l.Plan.Wall, l.Plan.CPU, l.Plan.Memory/1e6, l.Seconds, l.Again, l.Run.CPU, l.Run.Memory/1e6, l.Ran, l.Rerun)
	}
	return strings.TrimPrefix(s, "; ")
}

// linkRate is the shared link's bytes a second.
const linkRate = 250e6

// round measures everything once, each thing beside what it is compared with.
func (w *work) round(ctx context.Context) (r round, err error) {
	for _, part := range []struct {
		name string
		do   func(context.Context, *round) error
	}{
		{partBuild, w.builds}, {partPush, w.transfers}, {partPeers, w.peerBuilds}, {partBuild, w.linked}, {partHosts, w.uploads}, {partLarge, w.larges},
	} {
		if !w.has(part.name) {
			continue
		}
		if err := part.do(ctx, &r); err != nil {
			return r, err
		}
	}
	return r, nil
}

func (w *work) builds(ctx context.Context, r *round) (err error) {
	if r.Floor, err = w.fetch(ctx, fetchPlain, "floor"); err != nil {
		return err
	}
	if r.Build, err = w.build(ctx, "build", "built", "out"); err != nil {
		return err
	}
	archive := filepath.Join(w.dir, "built", "out", archiveName)
	if r.Hash, err = w.measure(ctx, process{args: []string{w.self, hashFiles, filepath.Join(w.layout, "blobs", "sha256")}}); err != nil {
		return err
	}
	if r.Verify, err = w.measure(ctx, process{args: w.kubexm("verify", "bundle", "verify", "--allow-unsigned", archive)}); err != nil {
		return err
	}
	if r.Rebuild, err = w.build(ctx, "rebuild", "built", "again"); err != nil {
		return err
	}
	if err = os.RemoveAll(filepath.Join(w.dir, "built")); err != nil {
		return err
	}
	r.Hashed, r.Plain, err = w.plain(ctx)
	return err
}

func (w *work) linked(ctx context.Context, r *round) (err error) {
	w.content.link.rate.Store(linkRate)
	defer w.content.link.rate.Store(0)
	if r.LinkFloor, err = w.fetch(ctx, fetchPlain, "floor"); err != nil {
		return err
	}
	r.LinkBuild, err = w.build(ctx, "linked", "linked", "out")
	return errors.Join(err, os.RemoveAll(filepath.Join(w.dir, "linked")))
}

// fetch downloads everything to a folder and removes it again.
func (w *work) fetch(ctx context.Context, how, name string) (sample, error) {
	dir := filepath.Join(w.dir, name)
	if err := os.Mkdir(dir, 0o750); err != nil {
		return sample{}, err
	}
	s, err := w.measure(ctx, process{args: []string{w.self, how, w.list, w.base, dir}})
	return s, errors.Join(err, os.RemoveAll(dir))
}

// plain is what one would do by hand: download and hash, then tar and zstd. The
// first half is given by itself too.
func (w *work) plain(ctx context.Context) (hashed, all sample, err error) {
	dir, out := filepath.Join(w.dir, "plain"), filepath.Join(w.dir, "plain.tar.zst")
	if err := os.Mkdir(dir, 0o750); err != nil {
		return hashed, all, err
	}
	defer os.RemoveAll(dir)
	defer os.Remove(out)
	hashed, err = w.measure(ctx, process{args: []string{w.self, fetchHashed, w.list, w.base, dir}})
	if err != nil {
		return hashed, all, err
	}
	two, err := w.measure(ctx, process{args: []string{"bash", "-c", "set -o pipefail; tar -C " + dir + " -c . | zstd -3 -T0 -q -o " + out}})
	if err != nil {
		return hashed, all, err
	}
	info, err := os.Stat(out)
	if err != nil {
		return hashed, all, err
	}
	two.Output = info.Size()
	return hashed, hashed.and(two), nil
}
