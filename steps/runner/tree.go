package runner

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/mensylisir/kubexm/steps/connector"
)

// Mkdir makes a folder and those above it that are missing (mode 0755), and
// gives the folder its permissions, also when it was there. It returns the
// folders that it made, the outermost first.
func (r *Runner) Mkdir(ctx context.Context, path string, a Attr) (made []string, err error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	mode, owner := a.args(0o755)
	res, err := r.script(ctx, connector.VerbMkdir, scriptMkdir, nil, path, mode, owner)
	for _, m := range strings.Split(string(res.Stdout), "\x00") {
		if m != "" {
			made = append(made, m)
		}
	}
	return made, err
}

// SetAttr gives a file or folder its permissions. It follows a link.
func (r *Runner) SetAttr(ctx context.Context, path string, a Attr) error {
	if err := checkPath(path); err != nil {
		return err
	}
	mode, owner := a.args(0o644)
	_, err := r.script(ctx, connector.VerbAttr, scriptAttr, nil, path, mode, owner)
	if exited(err, exitAbsent) {
		return absent("set mode of", path)
	}
	return err
}

// Remove removes a file or a link; that there is none is fine. A folder is an error.
func (r *Runner) Remove(ctx context.Context, path string) error {
	if err := checkPath(path); err != nil {
		return err
	}
	_, err := r.do(ctx, connector.Cmd{Verb: connector.VerbRemove, Argv: []string{"rm", "-f", "--", path}, Sudo: true})
	return err
}

// RemoveDir removes an empty folder; that there is none is fine. One that holds
// something is ErrNotEmpty.
func (r *Runner) RemoveDir(ctx context.Context, path string) error {
	if err := checkPath(path); err != nil {
		return err
	}
	_, err := r.script(ctx, connector.VerbRmdir, scriptRmdir, nil, path)
	if exited(err, exitNotEmpty) {
		return &fs.PathError{Op: "remove", Path: path, Err: ErrNotEmpty}
	}
	return err
}

// RemoveAll removes path and all below it, but nothing that is mounted there:
// a mount is an error. It refuses the root and the folders directly below it.
func (r *Runner) RemoveAll(ctx context.Context, path string) error {
	if err := checkPath(path); err != nil {
		return err
	}
	if strings.Count(path, "/") < 2 {
		return fmt.Errorf("remove all of %s: refused, it is no folder of ours", path)
	}
	_, err := r.do(ctx, connector.Cmd{Verb: connector.VerbPurge, Argv: []string{"rm", "-rf", "--one-file-system", "--", path}, Sudo: true})
	return err
}

// Link makes path a symbolic link to target, in place of a file or another link.
func (r *Runner) Link(ctx context.Context, target, path string) error {
	if err := checkPath(path); err != nil {
		return err
	}
	_, err := r.script(ctx, connector.VerbLink, scriptLink, nil, path, target)
	return err
}

// Copy makes a copy of a file or link on the host, with mode, owner and times.
func (r *Runner) Copy(ctx context.Context, from, to string) error {
	return r.fromTo(ctx, connector.VerbCopy, scriptCopy, "copy", from, to)
}

// Rename moves a file, link or folder; a file or an empty folder at its new
// place is replaced.
func (r *Runner) Rename(ctx context.Context, from, to string) error {
	return r.fromTo(ctx, connector.VerbRename, scriptRename, "rename", from, to)
}

func (r *Runner) fromTo(ctx context.Context, verb, script, op, from, to string) error {
	for _, p := range []string{from, to} {
		if err := checkPath(p); err != nil {
			return err
		}
	}
	_, err := r.script(ctx, verb, script, nil, to, from)
	if exited(err, exitAbsent) {
		return absent(op, from)
	}
	return err
}

// Discard removes what an upload or a write that was cut off left beside path.
func (r *Runner) Discard(ctx context.Context, file string) error {
	if err := checkPath(file); err != nil {
		return err
	}
	return r.Remove(ctx, path.Join(path.Dir(file), "."+path.Base(file)+".kubexm-new"))
}
