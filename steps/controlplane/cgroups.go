package controlplane

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

const (
	cgroups  = "/sys/fs/cgroup"
	podSlice = "kubepods.slice" // "kubepods" with the driver cgroupfs

	// settings is where systemd stores, until the next boot, properties that were set at run
	// time on units that it created itself, such as the slices of pods after a boot.
	settings = "/run/systemd/system.control"
)

// stopPods removes the cgroups of pods, which the kubelet creates and never removes. With
// cgroup v1 systemd manages only some hierarchies and leaves the others. A cgroup with
// processes cannot be removed.
func stopPods(ctx context.Context, h *steps.Host) error {
	s, err := h.Unit(ctx, podSlice)
	if err != nil {
		return err
	}
	if s.IsActive() {
		if err := h.UnitStop(ctx, podSlice); err != nil {
			return err
		}
	}
	if err := forgetSettings(ctx, h); err != nil {
		return err
	}
	all, err := h.List(ctx, cgroups)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	tops := []string{cgroups} // cgroup v2
	for _, hierarchy := range all {
		if hierarchy.IsDir() {
			tops = append(tops, path.Join(cgroups, hierarchy.Name))
		}
	}
	var left []string
	for _, top := range tops {
		for _, name := range []string{podSlice, "kubepods"} {
			dir := path.Join(top, name)
			exists, err := h.Exists(ctx, dir)
			if err != nil {
				return err
			}
			if exists {
				left = append(left, dir)
			}
		}
	}
	if len(left) == 0 {
		return nil
	}
	argv := append(append([]string{"find"}, left...), "-depth", "-type", "d", "-exec", "rmdir", "{}", ";")
	_, err = h.Run(ctx, runner.Cmd{Argv: argv, OK: []int{1, 127}}) // 1: some were removed meanwhile
	return err
}

// forgetSettings removes the properties that the kubelet set on the slices of pods.
func forgetSettings(ctx context.Context, h *steps.Host) error {
	all, err := h.List(ctx, settings)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, i := range all {
		if !strings.HasPrefix(i.Name, "kubepods") {
			continue
		}
		if err := h.RemoveAll(ctx, path.Join(settings, i.Name)); err != nil {
			return err
		}
	}
	if err := h.RemoveDir(ctx, settings); err != nil && !errors.Is(err, runner.ErrNotEmpty) {
		return err
	}
	return nil
}
