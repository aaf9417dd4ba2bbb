package images

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// tools are what an image with a base has of the hosts' Debian.
var tools = []string{
	"/usr/sbin/xtables-nft-multi", "/usr/sbin/xtables-legacy-multi", "/usr/sbin/nft", "/usr/sbin/conntrack",
	"/usr/sbin/ipset", "/usr/bin/kmod", "/usr/bin/ip",
	"/usr/bin/dash", "/usr/bin/cp", "/usr/bin/ls", "/usr/bin/cat", "/usr/bin/mkdir", "/usr/bin/mv", "/usr/bin/rm",
	"/usr/bin/ln", "/usr/bin/chmod", "/usr/bin/sleep", "/usr/bin/env", "/usr/bin/echo",
}

// links are the names that those go by as well.
var links = map[string]string{
	"/bin": "usr/bin", "/sbin": "usr/sbin", "/lib": "usr/lib", "/lib64": "usr/lib64",
	"/usr/bin/sh": "dash", "/usr/sbin/ip": "../bin/ip", "/usr/sbin/modprobe": "../bin/kmod", "/usr/bin/lsmod": "kmod",
	"/usr/sbin/iptables": "xtables-nft-multi", "/usr/sbin/iptables-save": "xtables-nft-multi", "/usr/sbin/iptables-restore": "xtables-nft-multi",
	"/usr/sbin/ip6tables": "xtables-nft-multi", "/usr/sbin/ip6tables-save": "xtables-nft-multi", "/usr/sbin/ip6tables-restore": "xtables-nft-multi",
}

// plain are files that programs read.
var plain = []string{"/etc/protocols", "/etc/services", "/etc/ethertypes"}

// base lists the files of a base layer: its path in the image → the file that it is.
func base(rootfs string) (map[string]string, error) {
	w := newWalker(rootfs)
	for _, tool := range tools {
		if err := w.program(tool); err != nil {
			return nil, err
		}
	}
	// iptables loads its matches and targets by name when it runs.
	own := slices.IndexFunc(libraries, func(dir string) bool { _, err := os.Stat(filepath.Join(rootfs, dir)); return err == nil })
	err := filepath.WalkDir(filepath.Join(rootfs, libraries[max(own, 0)], "xtables"), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return w.program(strings.TrimPrefix(name, rootfs))
	})
	if err != nil {
		return nil, err
	}
	for _, name := range plain {
		if _, err := os.Stat(filepath.Join(rootfs, name)); err == nil {
			w.files[name] = filepath.Join(rootfs, name)
		}
	}
	return w.files, nil
}

// libraries are where the loader looks. A root has one of the first, its architecture's own.
var libraries = []string{"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"}

// walker collects programs and the libraries that they load. A file is taken from the first
// root that has it.
type walker struct {
	roots []string
	files map[string]string
}

func newWalker(roots ...string) *walker { return &walker{roots: roots, files: map[string]string{}} }

// program adds an ELF file under its name, whatever links led there, and all that it needs.
func (w *walker) program(name string) error {
	if _, seen := w.files[name]; seen {
		return nil
	}
	real, err := w.resolve(name)
	if err != nil {
		return err
	}
	w.files[name] = real
	f, err := elf.Open(real)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer f.Close()
	needed, err := f.ImportedLibraries()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, lib := range needed {
		at, err := w.library(lib)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := w.program(at); err != nil {
			return err
		}
	}
	loader := f.Section(".interp")
	if loader == nil {
		return nil
	}
	interp, err := loader.Data()
	if err != nil {
		return err
	}
	at := strings.TrimRight(string(interp), "\x00")
	if strings.HasPrefix(at, "/lib") { // a link to the folder under /usr
		at = "/usr" + at
	}
	return w.program(at)
}

func (w *walker) library(name string) (string, error) {
	for _, dir := range libraries {
		if _, err := w.resolve(path.Join(dir, name)); err == nil {
			return path.Join(dir, name), nil
		}
	}
	return "", fmt.Errorf("needs %s, which the hosts' Debian lacks", name)
}

// find gives the place of a name in the first root that has it.
func (w *walker) find(name string) (at string, err error) {
	for _, root := range w.roots {
		at = filepath.Join(root, name)
		if _, err = os.Lstat(at); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return at, err
}

// resolve follows links, each of which is meant within the roots.
func (w *walker) resolve(name string) (string, error) {
	var seen []string
	for {
		at, err := w.find(name)
		if err != nil {
			return "", err
		}
		to, err := os.Readlink(at)
		if err != nil { // it is no link
			return at, nil //nolint:nilerr // as the comment says
		}
		if !path.IsAbs(to) {
			to = path.Join(path.Dir(name), to)
		}
		if strings.HasPrefix(to, "/lib") {
			to = "/usr" + to
		}
		if slices.Contains(seen, to) {
			return "", fmt.Errorf("%s: links in a circle", name)
		}
		seen, name = append(seen, to), to
	}
}
