package rpm

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// FileOptions say how .repo files are read.
type FileOptions struct {
	Vars Variables
	// Base is where paths of keys start that are no addresses. Without it there are none.
	Base string
	// Keys are addresses of keys that count for every repository, beside its own. Who
	// gives some means them: packages have to be signed then where a repository does
	// not say otherwise.
	Keys []string
}

// ReadRepositories reads every .repo file of a folder, such as /etc/yum.repos.d,
// in the order of their names, and gives the enabled repositories. A folder that
// is not there has none.
func ReadRepositories(dir string, o FileOptions) ([]Repository, manifest.Problems) {
	files, err := os.ReadDir(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, manifest.Problems{{File: dir, Message: err.Error()}}
	}
	var all []Repository
	var problems manifest.Problems
	where := map[string]string{}
	for _, f := range files {
		name := filepath.Join(dir, f.Name())
		if f.IsDir() || filepath.Ext(name) != ".repo" {
			continue
		}
		content, err := os.ReadFile(name)
		if err != nil {
			problems = append(problems, manifest.Problem{File: name, Message: err.Error()})
			continue
		}
		found, p := ParseRepositories(name, content, o)
		problems = append(problems, p...)
		for _, r := range found {
			if other, ok := where[r.ID]; ok {
				problems = append(problems, manifest.Problem{File: name, Path: r.ID, Message: "the repository is in " + other + " too",
					Advice: "disable one of them with enabled=0"})
				continue
			}
			where[r.ID] = name
			all = append(all, r)
		}
	}
	return all, problems
}

// ParseRepositories reads one .repo file and gives the enabled repositories that
// have no mistake in them. The file's name is for the problems alone.
func ParseRepositories(name string, content []byte, o FileOptions) ([]Repository, manifest.Problems) {
	sections, problems := readINI(content)
	var out []Repository
	seen := map[string]bool{}
	for _, s := range sections {
		if s.name == "main" {
			continue
		}
		if seen[s.name] {
			problems = append(problems, manifest.Problem{Line: s.line, Path: s.name, Message: "the repository is there twice"})
			continue
		}
		seen[s.name] = true
		r := reading{section: s, options: o}
		repository, enabled := r.repository()
		if !enabled {
			continue // nobody mends what is off
		}
		problems = append(problems, r.problems...)
		if r.problems.Err() == nil && !s.unnamed {
			out = append(out, repository)
		}
	}
	problems.Sort()
	return out, problems.In(name)
}

// reading is one section as a repository is made of it.
type reading struct {
	section
	options  FileOptions
	problems manifest.Problems
}

func (r *reading) problem(s manifest.Severity, key, message, advice string) {
	line := r.line
	if v, ok := r.values[key]; ok {
		line = v.line
	}
	path := r.name
	if key != "" {
		path += "." + key
	}
	r.problems = append(r.problems, manifest.Problem{Severity: s, Line: line, Path: path, Message: message, Advice: advice})
}

func (r *reading) repository() (Repository, bool) {
	enabled := r.truth("enabled", true)
	out := Repository{
		ID: r.name, Name: r.name, Priority: defaultPriority,
		SignedPackages: r.truth("gpgcheck", len(r.options.Keys) > 0), SignedMetadata: r.truth("repo_gpgcheck", false),
		ModuleHotfixes: r.truth("module_hotfixes", false),
		Bases:          r.addresses("baseurl", "http", "https", "file"),
		Keys:           append(r.addresses("gpgkey", "http", "https", "file"), r.options.Keys...),
		Exclude:        append(r.list("exclude"), r.list("excludepkgs")...),
		Include:        r.list("includepkgs"),
	}
	if names := r.list("name"); len(names) > 0 {
		out.Name = strings.Join(names, " ")
	}
	if v, ok := r.values["priority"]; ok {
		n, err := strconv.Atoi(v.text)
		if err != nil {
			r.problem(manifest.Error, "priority", fmt.Sprintf("priority %q is no number", v.text), "")
		}
		out.Priority = n
	}
	if len(out.Bases) == 0 {
		r.noBase()
	}
	if out.SignedMetadata && len(out.Keys) == 0 {
		r.problem(manifest.Error, "repo_gpgcheck", "its metadata has to be signed, and there is no key", "give its gpgkey, or repo_gpgcheck=0")
	}
	if out.SignedPackages && len(out.Keys) == 0 {
		r.problem(manifest.Error, "gpgcheck", "its packages have to be signed, and there is no key", "give its gpgkey, or gpgcheck=0")
	}
	for _, key := range unheeded {
		if v, ok := r.values[key]; ok && v.text != "" {
			r.problem(manifest.Warning, key, "it has no effect here", "name a mirror that needs none in spec.sources where the repository cannot be reached without it")
		}
	}
	return out, enabled
}

// unheeded are settings without which a repository may not be reached.
var unheeded = []string{"proxy", "username", "password", "sslcacert", "sslclientcert", "sslclientkey", "sslverify"}

func (r *reading) noBase() {
	for _, key := range []string{"mirrorlist", "metalink"} {
		if _, ok := r.values[key]; ok {
			r.problem(manifest.Error, key, "a list of mirrors is not asked, since it gives another one each time",
				"give the address of one mirror as baseurl, or disable the repository with enabled=0")
			return
		}
	}
	if r.problems.Err() == nil || r.values["baseurl"].text == "" {
		r.problem(manifest.Error, "", "the repository has no baseurl", "give its address as baseurl")
	}
}

// truth reads what is on or off.
func (r *reading) truth(key string, otherwise bool) bool {
	v, ok := r.values[key]
	if !ok {
		return otherwise
	}
	switch strings.ToLower(v.text) {
	case "1", "yes", "true", "on":
		return true
	case "0", "no", "false", "off":
		return false
	}
	r.problem(manifest.Error, key, fmt.Sprintf("%q is neither on nor off", v.text), "write 1 or 0")
	return otherwise
}

// list reads words with blanks, commas or lines between them.
func (r *reading) list(key string) []string {
	text, missing := r.options.Vars.expand(r.values[key].text)
	for _, m := range missing {
		r.problem(manifest.Error, key, "the variable $"+m+" has no value", "put it into /etc/dnf/vars, or write its value")
	}
	if words := strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(" \t\n,", c) }); len(words) > 0 {
		return words
	}
	return nil
}

// under gives a path that starts from a folder.
func under(base, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(base, path)
}

// FileAddress gives the address of a file of this machine.
func FileAddress(path string) string { return (&url.URL{Scheme: "file", Path: path}).String() }

func (r *reading) addresses(key string, schemes ...string) []string {
	var out []string
	for _, a := range r.list(key) {
		if key == "gpgkey" && r.options.Base != "" && !strings.Contains(a, ":") {
			a = FileAddress(under(r.options.Base, a))
		}
		u, err := url.Parse(a)
		known := false
		for _, s := range schemes {
			known = known || err == nil && u.Scheme == s && (u.Host != "" || s == "file" && u.Path != "")
		}
		if !known {
			r.problem(manifest.Error, key, fmt.Sprintf("%q is no address", a), "write one that begins with "+strings.Join(schemes, "://, ")+"://")
			continue
		}
		if u.Scheme == "http" && key == "gpgkey" {
			r.problem(manifest.Warning, key, a+" is fetched over plain http: anybody on the way can give another key", "give an https address or a file")
		}
		out = append(out, a)
	}
	return out
}
