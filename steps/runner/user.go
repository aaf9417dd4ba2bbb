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

// accountName is what useradd takes on every distribution.
var accountName = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)

func checkAccount(name string) error {
	if !accountName.MatchString(name) {
		return fmt.Errorf("%q is no name of a user or group", name)
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

// User gives an account; none is fs.ErrNotExist.
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
		return User{}, fmt.Errorf("%q is no line of passwd", line)
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

// NewUser is an account to be made.
type NewUser struct {
	Name   string
	UID    int    // 0: the host chooses
	Group  string // the primary one, which has to exist; empty: one of the user's name
	Groups []string
	Home   string // empty: none is made
	Shell  string // empty: /sbin/nologin
	System bool
}

// EnsureUser makes an account that is not there, and tells whether it did. One
// that is there stays as it is.
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

// RemoveUser removes an account, not its files; that there is none is fine.
func (r *Runner) RemoveUser(ctx context.Context, name string) error {
	if _, err := r.User(ctx, name); err != nil {
		return ignoreAbsent(err)
	}
	_, err := r.do(ctx, connector.Cmd{Verb: connector.VerbUserDel, Argv: []string{"userdel", name}, Sudo: true})
	return err
}

// Group gives the number of a group; none is fs.ErrNotExist.
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
		return 0, fmt.Errorf("%q is no line of group", res.Stdout)
	}
	return strconv.Atoi(f[2])
}

// EnsureGroup makes a group that is not there, and tells whether it did. gid 0
// lets the host choose.
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

// RemoveGroup removes a group; that there is none is fine.
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
