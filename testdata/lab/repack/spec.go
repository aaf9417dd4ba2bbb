package repack

import (
	_ "embed"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// head.spec has what concerns all packages: how files come into the build, and which
// are put elsewhere than Debian has them.
//
//go:embed head.spec
var head string

// scripts.spec has the packages' scripts, and the packages that are no Debian's.
//
//go:embed scripts.spec
var scripts string

// Write writes kubexmlab.spec, the lists of files and links.sh into dir, from the
// Debian that is installed below root. In that Debian dir is to be /build.
func Write(root, dir string) error {
	root = filepath.Clean(root)
	all, err := readStatus(root)
	if err != nil {
		return err
	}
	t, err := readTree(root, all)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "lists"), 0o755); err != nil {
		return err
	}
	var links strings.Builder
	for _, p := range slices.Sorted(maps.Keys(t.links)) {
		fmt.Fprintf(&links, "ln -sfn %s $RPM_BUILD_ROOT%s\n", t.links[p], p)
	}
	if err := os.WriteFile(filepath.Join(dir, "links.sh"), []byte(links.String()), 0o644); err != nil {
		return err
	}
	for name, files := range t.files {
		if err := t.list(filepath.Join(dir, "lists", name), files); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "kubexmlab.spec"), []byte(t.spec(all)), 0o644)
}

func (t *tree) spec(all []debian) string {
	provided := map[string]string{}
	for _, d := range all {
		for _, p := range d.provides {
			if name, _, _ := strings.Cut(p, " "); provided[name] == "" {
				provided[name] = d.name
			}
		}
	}
	for _, d := range all {
		provided[d.name] = d.name
	}
	var b strings.Builder
	b.WriteString(head)
	for _, d := range all {
		if name := rpmName(d.name); name != "" {
			t.write(&b, d, name, provided)
		}
	}
	fmt.Fprintf(&b, `
%%package -n %[1]s
AutoReqProv: no
Summary: What a host of the lab has
Requires: %[2]s
%%description -n %[1]s
What a host of the lab has.
%%files -n %[1]s
`, Host, strings.Join(hostNeeds, " "))
	b.WriteString("\n" + scripts)
	return b.String()
}

// write writes what concerns one package of Debian's.
func (t *tree) write(b *strings.Builder, d debian, name string, provided map[string]string) {
	epoch, version, release := evr(d.version)
	fmt.Fprintf(b, "\n%%package -n %s\nAutoReqProv: no\nSummary: %s\nEpoch: %s\nVersion: %s\nRelease: %s\n",
		name, strings.ReplaceAll(d.summary, "%", "%%"), epoch, version, release)
	needs := []string{"filesystem"}
	if name == "filesystem" {
		needs[0] = "setup" // before all others, whose files belong to its users
	}
	for _, clause := range d.depends {
		if r := requires(clause, provided); r != "" && r != name && !slices.Contains(needs, r) {
			needs = append(needs, r)
		}
	}
	for _, r := range needs {
		fmt.Fprintf(b, "Requires: %s\n", r)
	}
	for _, p := range provides(d, name) {
		fmt.Fprintf(b, "Provides: %s\n", p)
	}
	fmt.Fprintf(b, "%%description -n %s\nFrom Debian's package %s %s.\n%%files -n %s", name, d.name, d.version, name)
	if _, ok := t.files[name]; ok {
		fmt.Fprintf(b, " -f /build/lists/%s", name)
	}
	b.WriteString("\n" + unitScripts(name, t.files[name]))
}

// list writes the files of one rpm as rpmbuild reads them.
func (t *tree) list(file string, files []string) error {
	var b strings.Builder
	b.WriteString("%defattr(-,-,-)\n") // as they are; rpmbuild would have all be root's
	slices.Sort(files)
	for _, line := range files {
		mark, name, marked := strings.Cut(line, " /")
		switch {
		case marked && mark[0] == '%':
			fmt.Fprintf(&b, "%s %s\n", mark, quoted("/"+name))
		case t.conf[line]:
			fmt.Fprintf(&b, "%%config(noreplace) %s\n", quoted(moved(line)))
		default:
			fmt.Fprintf(&b, "%s\n", quoted(moved(line)))
		}
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

func quoted(p string) string { return `"` + strings.ReplaceAll(p, "%", "%%") + `"` }
