package runner

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/mensylisir/kubexm/steps/connector"
)

// Mkdir creates a folder and its missing parents (mode 0755), and sets mode and owner of
// the folder even if it already existed. It returns the created folders, the outermost
// first.
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

// SetAttr sets mode and owner of a file or folder. It follows links.
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

// Remove removes files and links, in the order of paths, with one command. A missing file
// is not an error; a folder is. After an error, the rest of paths is removed all the same.
func (r *Runner) Remove(ctx context.Context, paths ...string) error {
	for _, p := range paths {
		if err := checkPath(p); err != nil {
			return err
		}
	}
	if len(paths) == 0 {
		return nil
	}
	_, err := r.do(ctx, connector.Cmd{Verb: connector.VerbRemove, Argv: append([]string{"rm", "-f", "--"}, paths...), Sudo: true})
	return err
}

// RemoveDir removes an empty folder. A missing folder is not an error. If the folder is not
// empty, the error is ErrNotEmpty.
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

// RemoveAll removes path and everything below it. It does not cross into other file
// systems: a mount point below path is an error. It refuses the root and top-level
// folders.
func (r *Runner) RemoveAll(ctx context.Context, path string) error {
	if err := checkPath(path); err != nil {
		return err
	}
	if strings.Count(path, "/") < 2 {
		return fmt.Errorf("remove all of %s: refused, it is the root or a top-level folder", path)
	}
	_, err := r.do(ctx, connector.Cmd{Verb: connector.VerbPurge, Argv: []string{"rm", "-rf", "--one-file-system", "--", path}, Sudo: true})
	return err
}

// Link makes path a symbolic link to target. It replaces an existing file or link.
func (r *Runner) Link(ctx context.Context, target, path string) error {
	if err := checkPath(path); err != nil {
		return err
	}
	_, err := r.script(ctx, connector.VerbLink, scriptLink, nil, path, target)
	return err
}

// Copy copies a file or link on the host, with mode, owner and times.
func (r *Runner) Copy(ctx context.Context, from, to string) error {
	return r.fromTo(ctx, connector.VerbCopy, scriptCopy, "copy", from, to)
}

// Rename renames a file, link or folder. It replaces a file or an empty folder at to.
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

// Discard removes the temporary file that an interrupted upload or write of file left.
func (r *Runner) Discard(ctx context.Context, file string) error {
	if err := checkPath(file); err != nil {
		return err
	}
	return r.Remove(ctx, Partial(file))
}

// Partial returns the path of the temporary file of an upload or a write of file.
func Partial(file string) string {
	return path.Join(path.Dir(file), "."+path.Base(file)+".kubexm-new")
}
