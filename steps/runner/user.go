package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mensylisir/kubexm/steps/connector"
)

// accountName matches names that useradd accepts on all distributions.
var accountName = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)

func checkAccount(name string) error {
	if !accountName.MatchString(name) {
		return fmt.Errorf("%q is not a valid user or group name", name)
	}
	return nil
}

// User is an account on a host.
type User struct {
	Name     string
	UID, GID int
	Home     string
	Shell    string
	Groups   []string // sorted, the primary one included
}

// User returns an account. If it does not exist, the error is fs.ErrNotExist.
func (r *Runner) User(ctx context.Context, name string) (User, error) {
	if err := checkAccount(name); err != nil {
		return User{}, err
	}
	res, err := r.script(ctx, connector.VerbUser, scriptUser, nil, name)
	switch {
	case exited(err, exitAbsent):
		return User{}, absent("user", name)
	case err != nil:
		return User{}, err
	}
	return parseUser(string(res.Stdout))
}

func parseUser(s string) (User, error) {
	line, groups, _ := strings.Cut(s, "\n")
	f := strings.Split(line, ":")
	if len(f) != 7 {
		return User{}, fmt.Errorf("%q is not a line of passwd", line)
	}
	u := User{Name: f[0], Home: f[5], Shell: f[6], Groups: strings.Fields(groups)}
	var err error
	if u.UID, err = strconv.Atoi(f[2]); err != nil {
		return User{}, fmt.Errorf("user %s: %w", u.Name, err)
	}
	if u.GID, err = strconv.Atoi(f[3]); err != nil {
		return User{}, fmt.Errorf("user %s: %w", u.Name, err)
	}
	slices.Sort(u.Groups)
	return u, nil
}

// NewUser is an account to create.
type NewUser struct {
	Name   string
	UID    int    // 0: the host chooses
	Group  string // the primary group, which must exist; empty: a new group of the user's name
	Groups []string
	Home   string // empty: no home folder is created
	Shell  string // empty: /sbin/nologin
	System bool
}

// EnsureUser creates an account if it does not exist, and reports whether it did. It does
// not change an existing account.
func (r *Runner) EnsureUser(ctx context.Context, u NewUser) (made bool, err error) {
	_, err = r.User(ctx, u.Name)
	if !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	argv := []string{"useradd"}
	if u.System {
		argv = append(argv, "--system")
	}
	if u.UID > 0 {
		argv = append(argv, "--uid", strconv.Itoa(u.UID))
	}
	if u.Group != "" {
		argv = append(argv, "--gid", u.Group)
	} else {
		argv = append(argv, "--user-group")
	}
	if len(u.Groups) > 0 {
		argv = append(argv, "--groups", strings.Join(u.Groups, ","))
	}
	if u.Home != "" {
		argv = append(argv, "--create-home", "--home-dir", u.Home)
	} else {
		argv = append(argv, "--no-create-home", "--home-dir", "/nonexistent")
	}
	shell := u.Shell
	if shell == "" {
		shell = "/sbin/nologin"
	}
	argv = append(argv, "--shell", shell, u.Name)
	_, err = r.do(ctx, connector.Cmd{Verb: connector.VerbUserAdd, Argv: argv, Sudo: true})
	return err == nil, err
}

// RemoveUser removes an account but not its files. A missing account is not an error.
func (r *Runner) RemoveUser(ctx context.Context, name string) error {
	if _, err := r.User(ctx, name); err != nil {
		return ignoreAbsent(err)
	}
	_, err := r.do(ctx, connector.Cmd{Verb: connector.VerbUserDel, Argv: []string{"userdel", name}, Sudo: true})
	return err
}

// Group returns the ID of a group. If it does not exist, the error is fs.ErrNotExist.
func (r *Runner) Group(ctx context.Context, name string) (gid int, err error) {
	if err := checkAccount(name); err != nil {
		return 0, err
	}
	res, err := r.script(ctx, connector.VerbGroup, scriptGroup, nil, name)
	switch {
	case exited(err, exitAbsent):
		return 0, absent("group", name)
	case err != nil:
		return 0, err
	}
	f := strings.Split(strings.TrimSpace(string(res.Stdout)), ":")
	if len(f) != 4 {
		return 0, fmt.Errorf("%q is not a line of group", res.Stdout)
	}
	return strconv.Atoi(f[2])
}

// EnsureGroup creates a group if it does not exist, and reports whether it did. With gid 0
// the host chooses the ID.
func (r *Runner) EnsureGroup(ctx context.Context, name string, gid int, system bool) (made bool, err error) {
	if _, err := r.Group(ctx, name); !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	argv := []string{"groupadd"}
	if system {
		argv = append(argv, "--system")
	}
	if gid > 0 {
		argv = append(argv, "--gid", strconv.Itoa(gid))
	}
	_, err = r.do(ctx, connector.Cmd{Verb: connector.VerbGroupAdd, Argv: append(argv, name), Sudo: true})
	return err == nil, err
}

// RemoveGroup removes a group. A missing group is not an error.
func (r *Runner) RemoveGroup(ctx context.Context, name string) error {
	if _, err := r.Group(ctx, name); err != nil {
		return ignoreAbsent(err)
	}
	_, err := r.do(ctx, connector.Cmd{Verb: connector.VerbGroupDel, Argv: []string{"groupdel", name}, Sudo: true})
	return err
}

func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
