package conntest

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/steps/connector"
)

// doTree knows the verbs about folders, links, and moving things.
func (s *Sim) doTree(c connector.Cmd, _ []byte) (connector.Result, bool) {
	args := c.Args()
	switch c.Verb {
	case connector.VerbList:
		dir := s.resolve(args[0], true)
		d, ok := s.files.at[dir]
		if !ok || !d.Mode.IsDir() {
			return exits(44, "")
		}
		var out []byte
		for _, name := range s.children(dir) {
			out = append(out, s.record(s.files.at[path.Join(dir, name)], name)...)
		}
		return connector.Result{Stdout: out}, true
	case connector.VerbLines:
		return s.lines(args[0], args[1])
	case connector.VerbMkdir:
		return s.mkdir(args[0], args[1], args[2])
	case connector.VerbRemove:
		return s.remove(args)
	case connector.VerbRmdir:
		p := s.resolve(args[0], false)
		if f, ok := s.files.at[p]; !ok || !f.Mode.IsDir() {
			return connector.Result{}, true
		}
		if len(s.children(p)) > 0 {
			return exits(47, "")
		}
		s.files.drop(p)
		return connector.Result{}, true
	case connector.VerbPurge:
		s.purge(s.resolve(args[0], false))
		return connector.Result{}, true
	case connector.VerbLink:
		p, complaint := s.dirOf(args[0])
		if complaint != "" {
			return exits(1, "ln: %s", complaint)
		}
		if f, ok := s.files.at[p]; ok && f.Mode.IsDir() {
			return exits(1, "mv: cannot overwrite directory '%s' with non-directory", p)
		}
		s.files.drop(beside(p))
		target := args[1]
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(p), target)
		}
		if f, ok := s.files.at[p]; ok && f.Mode.IsRegular() && s.resolve(target, true) == p {
			return exits(1, "mv: '%s' and '%s' are the same file", beside(p), p)
		}
		s.files.put(p, link(args[1]))
		return connector.Result{}, true
	case connector.VerbCopy, connector.VerbRename:
		return s.move(c.Verb == connector.VerbCopy, args[0], args[1])
	}
	return connector.Result{}, false
}

func (s *Sim) mkdir(p, mode, owner string) (connector.Result, bool) {
	var missing []string
	for d := p; ; d = path.Dir(d) {
		f, ok := s.files.at[s.resolve(d, true)]
		if ok && f.Mode.IsDir() {
			break
		}
		missing = append(missing, d)
	}
	slices.Reverse(missing)
	var out bytes.Buffer
	for _, d := range missing {
		at := s.resolve(d, false)
		if f, ok := s.files.at[at]; ok && !f.Mode.IsDir() {
			res, known := exits(1, "mkdir: cannot create directory '%s': File exists", d)
			res.Stdout = out.Bytes()
			return res, known
		}
		s.files.put(at, &File{Mode: fs.ModeDir | 0o755})
		out.WriteString(d + "\x00")
	}
	complaint := s.attr(s.files.at[s.resolve(p, true)], mode, owner)
	res, known := done(complaint)
	res.Stdout = out.Bytes()
	return res, known
}

func (s *Sim) purge(p string) {
	below := p + "/"
	for name := range s.files.at {
		if name == p || strings.HasPrefix(name, below) {
			s.files.drop(name)
		}
	}
}

func (s *Sim) move(keep bool, to, from string) (connector.Result, bool) {
	from = s.resolve(from, false)
	f, ok := s.files.at[from]
	if !ok {
		return exits(44, "")
	}
	if keep && f.Mode.IsDir() {
		return exits(1, "is a folder")
	}
	to, complaint := s.dirOf(to)
	if complaint != "" {
		return exits(1, "mv: %s", complaint)
	}
	switch {
	case keep:
	case from == to:
		return exits(1, "mv: '%s' and '%s' are the same file", from, to)
	case f.Mode.IsDir() && strings.HasPrefix(to, from+"/"):
		return exits(1, "mv: cannot move '%s' to a subdirectory of itself, '%s'", from, to)
	}
	if old, ok := s.files.at[to]; ok {
		switch {
		case old.Mode.IsDir() && !f.Mode.IsDir():
			return exits(1, "mv: cannot overwrite directory '%s' with non-directory", to)
		case !old.Mode.IsDir() && f.Mode.IsDir():
			return exits(1, "mv: cannot overwrite non-directory '%s' with directory", to)
		case old.Mode.IsDir() && len(s.children(to)) > 0:
			return exits(1, "mv: cannot move '%s' to '%s': Directory not empty", from, to)
		}
	}
	if keep {
		s.files.drop(beside(to))
		c := *f
		c.Data = bytes.Clone(f.Data)
		s.files.put(to, &c)
		return connector.Result{}, true
	}
	moved := map[string]*File{}
	for name, g := range s.files.at {
		if name == from || strings.HasPrefix(name, from+"/") {
			moved[to+strings.TrimPrefix(name, from)] = g
			s.files.drop(name)
		}
	}
	for name, g := range moved {
		s.files.put(name, g)
	}
	return connector.Result{}, true
}

// remove removes files in their order. The power may fail between two of them.
func (s *Sim) remove(paths []string) (connector.Result, bool) {
	var complaint string
	for i, name := range paths {
		p := s.resolve(name, false)
		if f, ok := s.files.at[p]; ok && f.Mode.IsDir() {
			complaint += fmt.Sprintf("rm: cannot remove '%s': Is a directory\n", name)
			continue
		}
		s.files.drop(p)
		if s.disk.past != nil && i < len(paths)-1 { // after the last one, wrote notes the state
			s.disk.past = append(s.disk.past, s.state())
		}
	}
	if complaint != "" {
		return exits(1, "%s", complaint)
	}
	return connector.Result{}, true
}

// lines gives the lines of the files in a folder.
func (s *Sim) lines(folder, suffix string) (connector.Result, bool) {
	dir := s.resolve(folder, true)
	if d, ok := s.files.at[dir]; !ok || !d.Mode.IsDir() {
		return exits(44, "")
	}
	var out bytes.Buffer
	for _, name := range s.children(dir) {
		if !strings.HasSuffix(name, suffix) || strings.HasPrefix(name, ".") {
			continue
		}
		f := s.files.at[s.resolve(path.Join(dir, name), true)]
		switch {
		case f == nil || len(f.Data) == 0 && !f.Mode.IsDir():
			return exits(1, "%s: empty, or gone", name)
		case f.Mode.IsDir():
			return exits(2, "grep: %s: Is a directory", name)
		}
		for line := range bytes.Lines(f.Data) {
			fmt.Fprintf(&out, "%s\x00%s\n", name, bytes.TrimSuffix(line, []byte{'\n'}))
		}
	}
	return connector.Result{Stdout: out.Bytes()}, true
}
