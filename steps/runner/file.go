package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/steps/connector"
)

// LargestFile is the maximum size of a file that ReadFile reads, in bytes.
const LargestFile = 16 << 20

// Attr is the mode and the ownership of a file or folder.
type Attr struct {
	Mode fs.FileMode // permission bits, setuid, setgid, sticky; 0 means 0644, for folders 0755
	// Owner and Group are names or IDs. If they are empty, an existing file keeps its
	// owner, and a new file belongs to root.
	Owner, Group string
}

// args returns the mode for chmod and the owner for chown.
func (a Attr) args(otherwise fs.FileMode) (mode, owner string) {
	m := a.Mode
	if m == 0 {
		m = otherwise
	}
	bits := uint32(m.Perm())
	if m&fs.ModeSetuid != 0 {
		bits |= 0o4000
	}
	if m&fs.ModeSetgid != 0 {
		bits |= 0o2000
	}
	if m&fs.ModeSticky != 0 {
		bits |= 0o1000
	}
	owner = a.Owner
	if a.Group != "" {
		owner += ":" + a.Group
	}
	return fmt.Sprintf("%04o", bits), owner
}

// ReadFile returns the content of a file. It follows links. A file of more than
// LargestFile bytes is ErrTooLarge.
func (r *Runner) ReadFile(ctx context.Context, path string) ([]byte, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	res, err := r.do(ctx, connector.Cmd{
		Verb: connector.VerbRead, Argv: shell(scriptRead, path), Sudo: true, Limit: LargestFile,
	})
	switch {
	case exited(err, exitAbsent):
		return nil, absent("read", path)
	case errors.Is(err, ErrTruncated):
		return nil, &fs.PathError{Op: "read", Path: path, Err: ErrTooLarge}
	case err != nil:
		return nil, err
	}
	return res.Stdout, nil
}

// Download writes the content of a file of any size to w.
func (r *Runner) Download(ctx context.Context, path string, w io.Writer) error {
	if err := checkPath(path); err != nil {
		return err
	}
	_, err := r.do(ctx, connector.Cmd{
		Verb: connector.VerbRead, Argv: shell(scriptRead, path), Sudo: true, Stdout: w, Limit: 1,
	})
	if exited(err, exitAbsent) {
		return absent("read", path)
	}
	return err
}

// WriteFile replaces the content of a file atomically: it writes a temporary file in the
// same folder, syncs and renames it. A link is replaced, not followed. The folder must
// exist.
func (r *Runner) WriteFile(ctx context.Context, path string, data []byte, a Attr) error {
	if err := checkPath(path); err != nil {
		return err
	}
	mode, owner := a.args(0o644)
	_, err := r.script(ctx, connector.VerbWrite, scriptWrite, bytes.NewReader(data), path, strconv.Itoa(len(data)), mode, owner)
	if exited(err, exitShort) {
		return &fs.PathError{Op: "write", Path: path, Err: ErrShort}
	}
	return err
}

// Digest returns the SHA-256 of a file as 64 hexadecimal digits. It follows links.
func (r *Runner) Digest(ctx context.Context, path string) (string, error) {
	if err := checkPath(path); err != nil {
		return "", err
	}
	res, err := r.script(ctx, connector.VerbDigest, scriptDigest, nil, path)
	switch {
	case exited(err, exitAbsent):
		return "", absent("digest", path)
	case err != nil:
		return "", err
	}
	sum := strings.TrimSpace(string(res.Stdout))
	if len(sum) != 64 || strings.Trim(sum, "0123456789abcdef") != "" {
		return "", fmt.Errorf("digest %s: %q is not a sha256", path, sum)
	}
	return sum, nil
}

// Info describes a file, folder or link on a host.
type Info struct {
	Name         string      // the requested path; the base name in a list
	Mode         fs.FileMode // type and permissions
	Size         int64       // bytes
	UID, GID     int
	Owner, Group string // names; UNKNOWN if the ID has no name
	ModTime      time.Time
	Target       string // of a symbolic link
}

// IsDir reports whether i is a folder.
func (i Info) IsDir() bool { return i.Mode.IsDir() }

// IsLink reports whether i is a symbolic link.
func (i Info) IsLink() bool { return i.Mode&fs.ModeSymlink != 0 }

// IsRegular reports whether i is a regular file.
func (i Info) IsRegular() bool { return i.Mode.IsRegular() }

// Attr returns the mode and the owners of i, as IDs, for WriteFile and Mkdir.
func (i Info) Attr() Attr {
	return Attr{
		Mode:  i.Mode & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky),
		Owner: strconv.Itoa(i.UID), Group: strconv.Itoa(i.GID),
	}
}

// Has reports whether i has the mode and owners of a. Empty owners of a match any.
func (i Info) Has(a Attr) bool {
	mode := a.Mode
	if mode == 0 {
		mode = 0o644
		if i.IsDir() {
			mode = 0o755
		}
	}
	is := func(want, name string, id int) bool { return want == "" || want == name || want == strconv.Itoa(id) }
	return i.Attr().Mode == mode && is(a.Owner, i.Owner, i.UID) && is(a.Group, i.Group, i.GID)
}

// Exists reports whether path exists. It does not follow links.
func (r *Runner) Exists(ctx context.Context, path string) (bool, error) {
	_, err := r.Stat(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Stat describes path. It does not follow links.
func (r *Runner) Stat(ctx context.Context, path string) (Info, error) {
	if err := checkPath(path); err != nil {
		return Info{}, err
	}
	res, err := r.script(ctx, connector.VerbStat, scriptStat, nil, path)
	switch {
	case exited(err, exitAbsent):
		return Info{}, absent("stat", path)
	case err != nil:
		return Info{}, err
	}
	infos, err := parseInfos(res.Stdout)
	if err != nil || len(infos) != 1 {
		return Info{}, fmt.Errorf("stat %s: %q is not one record: %w", path, res.Stdout, err)
	}
	return infos[0], nil
}

// List returns the entries of a folder, sorted by name.
func (r *Runner) List(ctx context.Context, dir string) ([]Info, error) {
	if err := checkPath(dir); err != nil {
		return nil, err
	}
	res, err := r.do(ctx, connector.Cmd{
		Verb: connector.VerbList, Argv: shell(scriptList, dir), Sudo: true, Limit: LargestFile,
	})
	switch {
	case exited(err, exitAbsent):
		return nil, absent("list", dir)
	case errors.Is(err, ErrTruncated):
		return nil, &fs.PathError{Op: "list", Path: dir, Err: ErrTooLarge}
	case err != nil:
		return nil, err
	}
	infos, err := parseInfos(res.Stdout)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	return infos, nil
}

// Lines returns the content of all files in dir whose names end in suffix, by name, with one
// command. They must be text files: a missing newline at the end is added, and an empty
// file is an error. Hidden files are ignored. A missing folder is fs.ErrNotExist.
func (r *Runner) Lines(ctx context.Context, dir, suffix string) (map[string][]byte, error) {
	if err := checkPath(dir); err != nil {
		return nil, err
	}
	res, err := r.do(ctx, connector.Cmd{
		Verb: connector.VerbLines, Argv: shell(scriptLines, dir, suffix), Sudo: true, Limit: LargestFile,
	})
	switch {
	case exited(err, exitAbsent):
		return nil, absent("read", dir)
	case errors.Is(err, ErrTruncated):
		return nil, &fs.PathError{Op: "read", Path: dir, Err: ErrTooLarge}
	case err != nil:
		return nil, err
	}
	out, err := parseLines(res.Stdout)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", dir, err)
	}
	return out, nil
}

// parseLines parses the output of scriptLines.
func parseLines(b []byte) (map[string][]byte, error) {
	out := map[string][]byte{}
	for line := range bytes.Lines(b) {
		name, text, ok := bytes.Cut(line, []byte{0})
		if !ok || len(name) == 0 || !bytes.HasSuffix(text, []byte{'\n'}) {
			return nil, fmt.Errorf("%q is no line after the name of a file", line[:min(len(line), 80)])
		}
		out[string(name)] = append(out[string(name)], text...)
	}
	return out, nil
}
