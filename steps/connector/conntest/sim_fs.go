package conntest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/mensylisir/kubexm/steps/connector"
)

// File is a file, folder or link on a Sim. Its type is in Mode.
type File struct {
	Mode     fs.FileMode
	Data     []byte // replaced, and never changed in place: other hosts may share it
	Target   string // of a link
	UID, GID int
}

// initFiles makes the folders that every distribution has.
func (s *Sim) initFiles() {
	for _, d := range []string{
		"/etc/systemd/system", "/usr/lib/systemd/system", "/etc/sysctl.d", "/etc/modules-load.d", "/etc/profile.d",
		"/usr/local/bin", "/usr/local/sbin", "/usr/local/lib", "/usr/bin", "/usr/sbin", "/var/lib", "/var/log", "/var/backups",
		"/opt", "/root", "/home", "/run", "/proc", "/sys", "/dev", "/mnt",
	} {
		s.addDir(d, 0o755)
	}
	s.addDir("/tmp", 0o777|fs.ModeSticky)
	s.files.put("/etc/hosts", &File{Mode: 0o644, Data: []byte("127.0.0.1 localhost\n::1 localhost\n")})
	s.files.put("/etc/hostname", &File{Mode: 0o644, Data: []byte(s.hostname + "\n")})
	s.files.put("/etc/fstab", &File{Mode: 0o644, Data: []byte("UUID=1 / ext4 defaults 0 1\n")})
}

func (s *Sim) addDir(p string, mode fs.FileMode) {
	if _, ok := s.files.at[p]; ok {
		return
	}
	if p != "/" {
		s.addDir(path.Dir(p), 0o755)
	}
	s.files.put(p, &File{Mode: mode | fs.ModeDir})
}

// AddFile adds a file that belongs to root, and its parent folders.
func (s *Sim) AddFile(p, data string, mode fs.FileMode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addDir(path.Dir(p), 0o755)
	s.files.put(p, &File{Mode: mode, Data: s.contents.ofText(data)})
	s.scribbled(p)
}

// AddDir adds a folder and its parents.
func (s *Sim) AddDir(p string, mode fs.FileMode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addDir(p, mode)
}

// AddLink adds a symbolic link.
func (s *Sim) AddLink(p, target string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addDir(path.Dir(p), 0o755)
	s.files.put(p, link(target))
}

// RemoveAll removes p and everything below it.
func (s *Sim) RemoveAll(p string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.purge(p)
}

// File returns the file at p. It does not follow links.
func (s *Sim) File(p string) (File, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.files.at[p]
	if !ok {
		return File{}, false
	}
	c := *f
	c.Data = bytes.Clone(f.Data)
	return c, true
}

// Read returns the content of a file, or "" if it does not exist. It follows links.
func (s *Sim) Read(p string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f, ok := s.files.at[s.resolve(p, true)]; ok {
		return string(f.Data)
	}
	return ""
}

// Grep returns the lines of a file that contain text. It follows links.
func (s *Sim) Grep(p, text string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.files.at[s.resolve(p, true)]
	if !ok {
		return nil
	}
	var out []string
	for line := range bytes.Lines(f.Data) {
		if bytes.Contains(line, []byte(text)) {
			out = append(out, string(line))
		}
	}
	return out
}

func link(target string) *File { return &File{Mode: fs.ModeSymlink | 0o777, Target: target} }

// resolve gives the path without links in it; last says whether a link in the
// last place is followed too. What does not exist stays as it is.
func (s *Sim) resolve(p string, last bool) string {
	for range 40 { // as many links as Linux follows
		next, done := s.resolveOnce(p, last)
		if done {
			return next
		}
		p = next
	}
	return p
}

func (s *Sim) resolveOnce(p string, last bool) (string, bool) {
	if !s.linked(p, last) {
		return p, true
	}
	at := "/"
	parts := strings.Split(strings.Trim(path.Clean(p), "/"), "/")
	for i, part := range parts {
		next := path.Join(at, part)
		f, ok := s.files.at[next]
		if ok && f.Mode&fs.ModeSymlink != 0 && (last || i < len(parts)-1) {
			target := f.Target
			if !path.IsAbs(target) {
				target = path.Join(at, target)
			}
			return path.Join(append([]string{target}, parts[i+1:]...)...), false
		}
		at = next
	}
	return at, true
}

// linked reports whether p or a part of it is a link, or may be one because p is not clean; last as in
// resolve. Hardly a path has links, and hosts look at hundreds of thousands of paths.
func (s *Sim) linked(p string, last bool) bool {
	if p == "" || p[0] != '/' || path.Clean(p) != p {
		return true
	}
	for i := 1; i <= len(p); i++ {
		if i < len(p) && p[i] != '/' || i == len(p) && !last {
			continue
		}
		if f, ok := s.files.at[p[:i]]; ok && f.Mode&fs.ModeSymlink != 0 {
			return true
		}
	}
	return false
}

// dirOf gives the place of a new file, or what a shell would complain about.
func (s *Sim) dirOf(p string) (string, string) {
	p = s.resolve(p, false)
	switch d, ok := s.files.at[path.Dir(p)]; {
	case !ok:
		return p, fmt.Sprintf("cannot create %s: Directory nonexistent", p)
	case !d.Mode.IsDir():
		return p, fmt.Sprintf("cannot create %s: Not a directory", p)
	}
	return p, ""
}

func beside(p string) string { return path.Join(path.Dir(p), "."+path.Base(p)+".kubexm-new") }

// doFile knows the verbs about one file.
func (s *Sim) doFile(c connector.Cmd, stdin []byte) (connector.Result, bool) {
	args := c.Args()
	switch c.Verb {
	case connector.VerbRead, connector.VerbDigest:
		f, ok := s.files.at[s.resolve(args[0], true)]
		switch {
		case !ok:
			return exits(44, "")
		case f.Mode.IsDir():
			return exits(1, "cat: %s: Is a directory", args[0])
		case c.Verb == connector.VerbDigest:
			return says("%s\n", digest(f.Data))
		}
		return connector.Result{Stdout: bytes.Clone(f.Data)}, true
	case connector.VerbWrite:
		return s.write(args[0], args[1], stdin, func(f *File) string { return s.attr(f, args[2], args[3]) }, args[0])
	case connector.VerbPut:
		return s.put(args, stdin)
	case connector.VerbCompare:
		return s.compare(args)
	case connector.VerbAttr:
		f, ok := s.files.at[s.resolve(args[0], true)]
		if !ok {
			return exits(44, "")
		}
		return done(s.attr(f, args[1], args[2]))
	case connector.VerbStat:
		p := s.resolve(args[0], false)
		f, ok := s.files.at[p]
		if !ok {
			return exits(44, "")
		}
		return connector.Result{Stdout: s.record(f, args[0])}, true
	}
	return connector.Result{}, false
}

// compare prints what scriptCompare of the runner does.
func (s *Sim) compare(args []string) (connector.Result, bool) {
	var out []byte
	for pair := range slices.Chunk(args, 2) {
		f, ok := s.files.at[s.resolve(pair[0], false)]
		if !ok {
			out = fmt.Appendf(out, "\x00\x00\x00%s\x00\x00", pair[0])
			continue
		}
		c := File{Mode: f.Mode, Data: f.Data, UID: f.UID, GID: f.GID}
		if f.Mode.IsRegular() && strconv.Itoa(len(f.Data)) == pair[1] {
			c.Target = digest(f.Data)
		}
		out = append(out, s.record(&c, pair[0])...)
	}
	return connector.Result{Stdout: out}, true
}

func done(complaint string) (connector.Result, bool) {
	if complaint != "" {
		return exits(1, "%s", complaint)
	}
	return connector.Result{}, true
}

func (s *Sim) write(p, size string, data []byte, attr func(*File) string, to string) (connector.Result, bool) {
	to, complaint := s.dirOf(to)
	if complaint != "" {
		return exits(2, "sh: 1: %s", complaint)
	}
	if size != strconv.Itoa(len(data)) {
		return exits(45, "")
	}
	if old, ok := s.files.at[to]; ok && old.Mode.IsDir() {
		return exits(1, "mv: cannot overwrite directory '%s' with non-directory", p)
	}
	f := &File{Mode: 0o600, Data: data}
	if c := attr(f); c != "" {
		return exits(1, "%s", c)
	}
	s.files.drop(beside(to)) // what a lost connection left
	s.files.put(to, f)
	return connector.Result{}, true
}

// put does what scriptPut of the runner does.
func (s *Sim) put(args []string, data []byte) (connector.Result, bool) {
	dir := s.resolve(args[0], true)
	if d, ok := s.files.at[dir]; !ok || !d.Mode.IsDir() {
		return exits(2, "sh: 1: cd: can't cd to %s", args[0])
	}
	var files []*File
	var wrong []byte
	for f := range slices.Chunk(args[3:], 3) {
		s.files.drop(path.Join(dir, "."+f[0]+".kubexm-new")) // what a lost connection left
		size, err := strconv.Atoi(f[1])
		if err != nil || size > len(data) {
			return exits(45, "")
		}
		file := &File{Mode: 0o600, Data: s.contents.of(data[:size:size])} // of its own: the input goes away
		data = data[size:]
		if digest(file.Data) != f[2] {
			wrong = append(wrong, f[0]+"\x00"...)
		}
		if c := s.attr(file, args[1], args[2]); c != "" {
			return exits(1, "%s", c)
		}
		files = append(files, file)
	}
	if wrong != nil {
		return connector.Result{Exit: 46, Stdout: wrong}, true
	}
	for i, f := range files {
		p := path.Join(dir, args[3+3*i])
		if old, ok := s.files.at[p]; ok && old.Mode.IsDir() {
			return exits(1, "mv: cannot overwrite directory '%s' with non-directory", args[3+3*i])
		}
		s.files.put(p, f)
	}
	return connector.Result{}, true
}

// attr gives f a mode and an owner, or says what chown would.
func (s *Sim) attr(f *File, mode, owner string) string {
	if owner != "" {
		user, group, _ := strings.Cut(owner, ":")
		if user != "" {
			uid, ok := s.uid(user)
			if !ok {
				return fmt.Sprintf("chown: invalid user: '%s'", owner)
			}
			f.UID = uid
		}
		if group != "" {
			gid, ok := s.gid(group)
			if !ok {
				return fmt.Sprintf("chown: invalid group: '%s'", owner)
			}
			f.GID = gid
		}
	}
	bits, err := strconv.ParseUint(mode, 8, 12)
	if err != nil {
		return fmt.Sprintf("chmod: invalid mode: '%s'", mode)
	}
	f.Mode = f.Mode.Type() | permissions(uint32(bits))
	return ""
}

func permissions(bits uint32) fs.FileMode {
	m := fs.FileMode(bits & 0o777)
	for bit, mode := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if bits&bit != 0 {
			m |= mode
		}
	}
	return m
}

// record prints what scriptStat of the runner does.
func (s *Sim) record(f *File, name string) []byte {
	st := uint32(f.Mode.Perm())
	size := len(f.Data)
	switch {
	case f.Mode.IsDir():
		st, size = st|0o040000, 4096
	case f.Mode&fs.ModeSymlink != 0:
		st, size = st|0o120000, len(f.Target)
	default:
		st |= 0o100000
	}
	for mode, bit := range map[fs.FileMode]uint32{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if f.Mode&mode != 0 {
			st |= bit
		}
	}
	return fmt.Appendf(nil, "%x %d %d %d %d\x00%s\x00%s\x00%s\x00%s\x00", st, size, f.UID, f.GID, 1700000000,
		s.userName(f.UID), s.groupName(f.GID), name, f.Target)
}

// children gives the names directly in a folder, sorted.
func (s *Sim) children(dir string) []string {
	return slices.Clone(s.files.in[dir])
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
