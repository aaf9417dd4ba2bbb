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

// FileOptions are the options for reading .repo files.
type FileOptions struct {
	Vars Variables
	// Base is the folder of relative paths of keys; if empty, only URLs are accepted.
	Base string
	// Keys are URLs of additional keys that are trusted for every repository. If there are
	// any, packages must be signed unless a repository is configured otherwise.
	Keys []string
}

// ReadRepositories reads every .repo file of a folder such as /etc/yum.repos.d, sorted by
// name, and returns the enabled repositories. A missing folder has none.
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
				problems = append(problems, manifest.Problem{File: name, Path: r.ID, Message: "the repository is also in " + other,
					Advice: "disable one of them with enabled=0"})
				continue
			}
			where[r.ID] = name
			all = append(all, r)
		}
	}
	return all, problems
}

// ParseRepositories parses one .repo file, and returns the enabled repositories without
// errors. The file's name is only used in the problems.
func ParseRepositories(name string, content []byte, o FileOptions) ([]Repository, manifest.Problems) {
	sections, problems := readINI(content)
	var out []Repository
	seen := map[string]bool{}
	for _, s := range sections {
		if s.name == "main" {
			continue
		}
		if seen[s.name] {
			problems = append(problems, manifest.Problem{Line: s.line, Path: s.name, Message: "the repository is configured twice"})
			continue
		}
		seen[s.name] = true
		r := reading{section: s, options: o}
		repository, enabled := r.repository()
		if !enabled {
			continue // errors in disabled repositories do not matter
		}
		problems = append(problems, r.problems...)
		if r.problems.Err() == nil && !s.unnamed {
			out = append(out, repository)
		}
	}
	problems.Sort()
	return out, problems.In(name)
}

// reading is the state of converting one section to a repository.
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
			r.problem(manifest.Error, "priority", fmt.Sprintf("priority %q is not a number", v.text), "")
		}
		out.Priority = n
	}
	if len(out.Bases) == 0 {
		r.noBase()
	}
	if out.SignedMetadata && len(out.Keys) == 0 {
		r.problem(manifest.Error, "repo_gpgcheck", "its metadata must be signed, but it has no key", "set its gpgkey, or repo_gpgcheck=0")
	}
	if out.SignedPackages && len(out.Keys) == 0 {
		r.problem(manifest.Error, "gpgcheck", "its packages must be signed, but it has no key", "set its gpgkey, or gpgcheck=0")
	}
	for _, key := range unheeded {
		if v, ok := r.values[key]; ok && v.text != "" {
			r.problem(manifest.Warning, key, "it is ignored", "if the repository cannot be reached without it, set a mirror in spec.sources that does not need it")
		}
	}
	return out, enabled
}

// unheeded are unsupported settings that may be necessary to reach a repository.
var unheeded = []string{"proxy", "username", "password", "sslcacert", "sslclientcert", "sslclientkey", "sslverify"}

func (r *reading) noBase() {
	for _, key := range []string{"mirrorlist", "metalink"} {
		if _, ok := r.values[key]; ok {
			r.problem(manifest.Error, key, "mirror lists are not supported, since they return another mirror each time",
				"set baseurl to the address of one mirror, or disable the repository with enabled=0")
			return
		}
	}
	if r.problems.Err() == nil || r.values["baseurl"].text == "" {
		r.problem(manifest.Error, "", "the repository has no baseurl", "set its address as baseurl")
	}
}

// truth parses a boolean.
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
	r.problem(manifest.Error, key, fmt.Sprintf("%q is not a boolean", v.text), "write 1 or 0")
	return otherwise
}

// list parses words separated by spaces, commas or lines.
func (r *reading) list(key string) []string {
	text, missing := r.options.Vars.expand(r.values[key].text)
	for _, m := range missing {
		r.problem(manifest.Error, key, "the variable $"+m+" has no value", "set it in /etc/dnf/vars, or write its value")
	}
	if words := strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(" \t\n,", c) }); len(words) > 0 {
		return words
	}
	return nil
}

// under resolves a path relative to a folder.
func under(base, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(base, path)
}

// FileAddress returns the file URL of a path on this machine.
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
			r.problem(manifest.Error, key, fmt.Sprintf("%q is not a valid URL", a), "use a URL that begins with "+strings.Join(schemes, "://, ")+"://")
			continue
		}
		if u.Scheme == "http" && key == "gpgkey" {
			r.problem(manifest.Warning, key, a+" is downloaded over plain http: an attacker on the network can replace the key", "use an https URL or a file")
		}
		out = append(out, a)
	}
	return out
}
