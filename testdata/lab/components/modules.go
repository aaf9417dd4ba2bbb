package components

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// own is the module of the lab's own programs.
const own = "github.com/mensylisir/kubexm/"

// folder holds what c is built from: its module files, or its source where it is the lab's own.
func (b *Builder) folder(c Component) string {
	if c.Module == "" {
		return filepath.Join(b.Root, strings.TrimPrefix(c.Programs[c.names()[0]], own))
	}
	if b.pinned(c) {
		return filepath.Join(b.Root, "testdata", "lab", "components", c.Name)
	}
	return filepath.Join(b.Cache, "modules", c.Name, c.Version)
}

// pinned reports whether c is at the version that the checkout holds the modules of.
func (b *Builder) pinned(c Component) bool {
	rows, err := everything()
	if err != nil {
		return false
	}
	row, err := Find(rows, c.Name)
	return err == nil && row.Version == c.Version
}

// modules sees to the module files of a version that the checkout does not hold.
func (b *Builder) modules(ctx context.Context, c Component) error {
	if c.Module == "" || b.pinned(c) {
		return nil
	}
	if _, err := os.Stat(filepath.Join(b.folder(c), "go.sum")); err == nil {
		return nil
	}
	return b.Pin(ctx, c)
}

// Pin writes the component's go.mod and go.sum: the module at its version, and
// what its programs need at the versions that it asks for.
func (b *Builder) Pin(ctx context.Context, c Component) error {
	dir := b.folder(c)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, old := range []string{"go.mod", "go.sum"} {
		if err := os.Remove(filepath.Join(dir, old)); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	served := c.Module
	if c.Served != "" {
		served = c.Served
	}
	text, err := b.upstreamModule(ctx, served+"@"+c.moduleVersion())
	if err != nil {
		return err
	}
	mod, err := newModule(c, text)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), mod, 0o644); err != nil {
		return err
	}
	args := []string{"list", "-mod=mod", "-deps", "-tags", c.Tags}
	for _, name := range c.names() {
		args = append(args, c.Programs[name])
	}
	return b.run(b.goCommand(ctx, c, args...))
}

// newModule gives a go.mod that asks for c's module alone, with the settings
// that upstream builds with: text is its go.mod.
func newModule(c Component, text []byte) ([]byte, error) {
	upstream, err := modfile.Parse(c.Name+"/go.mod", text, nil) // ParseLax leaves out what a main module alone may say
	if err != nil {
		return nil, err
	}
	f := new(modfile.File)
	steps := []error{
		f.AddModuleStmt("github.com/mensylisir/kubexm/testdata/lab/components/" + c.Name),
		f.AddGoStmt("1.26"),
	}
	if c.Served != "" {
		steps = append(steps, f.AddReplace(c.Module, "", c.Served, c.moduleVersion()))
	}
	for _, g := range upstream.Godebug {
		steps = append(steps, f.AddGodebug(g.Key, g.Value))
	}
	for _, r := range upstream.Replace {
		if to := replacement(c, r); to.Path != "" {
			steps = append(steps, f.AddReplace(r.Old.Path, r.Old.Version, to.Path, to.Version))
		}
	}
	steps = append(steps, f.AddRequire(c.Module, c.moduleVersion()))
	for _, name := range c.names() {
		if !strings.HasPrefix(c.Programs[name], c.Module) {
			steps = append(steps, f.AddRequire(c.Programs[name], c.moduleVersion()))
		}
		steps = append(steps, f.AddTool(c.Programs[name]))
	}
	for _, err := range steps {
		if err != nil {
			return nil, err
		}
	}
	f.Cleanup()
	return f.Format()
}

// moduleVersion is the version of the component's module.
func (c *Component) moduleVersion() string { return cmp.Or(c.At, c.Version) }

// replacement gives the module that upstream builds with in place of another. A
// folder of its own repository is published as a module of its own.
func replacement(c Component, r *modfile.Replace) module.Version {
	switch {
	case c.Replace[r.Old.Path] != "":
		return module.Version{Path: r.Old.Path, Version: c.Replace[r.Old.Path]}
	case r.New.Version != "":
		return r.New
	case strings.HasPrefix(r.New.Path, "./staging/"):
		return module.Version{Path: r.Old.Path, Version: "v0" + strings.TrimPrefix(c.Version, "v1")}
	case path.Join(c.Module, r.New.Path) == r.Old.Path:
		return module.Version{Path: r.Old.Path, Version: c.Version}
	}
	return module.Version{}
}

// upstreamModule gives the go.mod of a module at a version.
func (b *Builder) upstreamModule(ctx context.Context, at string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", at)
	if err := os.MkdirAll(b.Cache, 0o755); err != nil {
		return nil, err
	}
	empty, err := os.MkdirTemp(b.Cache, "none-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(empty)
	cmd.Dir = empty
	out, err := cmd.Output()
	var m struct{ GoMod, Error string }
	if jerr := json.Unmarshal(out, &m); jerr != nil || m.Error != "" {
		return nil, fmt.Errorf("download %s: %s (%w)", at, m.Error, err)
	}
	return os.ReadFile(m.GoMod)
}

// moduleDir is where Go keeps the source of c's module.
func (b *Builder) moduleDir(ctx context.Context, c Component) (string, error) {
	// Without -mod=readonly's checks of the whole graph it says where, after it has fetched it.
	if err := b.run(b.goCommand(ctx, c, "mod", "download", c.Module)); err != nil {
		return "", err
	}
	cmd := b.goCommand(ctx, c, "list", "-m", "-f", "{{.Dir}}", c.Module)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go list -m %s: %w", c.Module, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// changed copies c's module beside the cache, with the row's file in its top
// folder and its lines edited, and gives the folder of a go.mod that builds from
// the copy. Go takes no overlay over files of its module cache.
func (b *Builder) changed(ctx context.Context, c Component) (string, error) {
	module, err := b.moduleDir(ctx, c)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(b.Cache, "source", c.Name, c.Version)
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	source := filepath.Join(dir, "source")
	if err := copyTree(module, source); err != nil {
		return "", err
	}
	if c.Add != "" {
		added, err := os.ReadFile(filepath.Join(b.folder(c), c.Add))
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(source, strings.TrimSuffix(c.Add, ".in")), added, 0o644); err != nil {
			return "", err
		}
	}
	for _, e := range c.Edits {
		if err := e.apply(source); err != nil {
			return "", err
		}
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(b.folder(c), name))
		if err != nil {
			return "", err
		}
		if name == "go.mod" {
			content = append(bytes.TrimRight(content, "\n"), fmt.Appendf(nil, "\n\nreplace %s => %s\n", c.Module, source)...)
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// apply makes the edit in a copy of the module.
func (e Edit) apply(source string) error {
	file := filepath.Join(source, filepath.FromSlash(e.File))
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if n := bytes.Count(content, []byte(e.From)); n != 1 {
		return fmt.Errorf("%s has %q %d times, not once", e.File, e.From, n)
	}
	return os.WriteFile(file, bytes.Replace(content, []byte(e.From), []byte(e.To), 1), 0o644)
}

// copyTree copies files and folders, writable where the module cache's are not.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), content, 0o644)
	})
}

// Checkout finds the top folder of the module's checkout, at or above the working folder.
func Checkout() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if raw, err := os.ReadFile(filepath.Join(at, "go.mod")); err == nil && modfile.ModulePath(raw) == "github.com/mensylisir/kubexm" {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("no checkout of kubexm holds %s", dir)
		}
	}
}
