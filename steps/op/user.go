package op

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// User is a system account with its primary group. An existing account is not changed. It
// is an error if it has another UID or GID than required, because files that are shared
// by ID would belong to another user.
type User struct {
	NoNeeds
	Name  string
	UID   int    // 0: the host chooses
	Group string // created if it does not exist; empty: the user's name
	GID   int    // of the group; 0: the host chooses
	Home  string // created and removed with the user; empty: none
	Shell string // empty: no login shell
}

func (u User) String() string { return "user " + u.Name }

func (u User) group() string { return cmp.Or(u.Group, u.Name) }

// The parts that kubexm created, as listed in the record's Value.
const (
	madeGroup = "group"
	madeUser  = "user"
	madeHome  = "home"
)

// Want creates the group and the user if they do not exist.
func (u User) Want(ctx context.Context, h *steps.Host, _ bool) (*Change, error) {
	lacks, err := u.missing(ctx, h)
	if err != nil || len(lacks) == 0 {
		return nil, err
	}
	earlier, recorded, err := ReadRecord(ctx, h, u)
	if err != nil {
		return nil, err
	}
	e := Record{Value: join(strings.Fields(earlier.Value), lacks)}
	return &Change{
		What: "create " + u.String(),
		Apply: func(ctx context.Context, h *steps.Host) error {
			if err := Remember(ctx, h, u, e); err != nil {
				return err
			}
			if _, err := h.EnsureGroup(ctx, u.group(), u.GID, true); err != nil {
				return err
			}
			_, err := h.EnsureUser(ctx, runner.NewUser{Name: u.Name, UID: u.UID, Group: u.group(), Home: u.Home, Shell: u.Shell, System: true})
			return err
		},
		Undo: func(ctx context.Context, h *steps.Host) error {
			if err := u.remove(ctx, h, lacks); err != nil {
				return err
			}
			if recorded {
				return Rewrite(ctx, h, u, earlier)
			}
			return Forget(ctx, h, u)
		},
	}, nil
}

// missing returns the parts of the user that do not exist: madeGroup, madeUser, madeHome.
func (u User) missing(ctx context.Context, h *steps.Host) ([]string, error) {
	var out []string
	gid, err := h.Group(ctx, u.group())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		out = append(out, madeGroup)
	case err != nil:
		return nil, err
	case u.GID != 0 && gid != u.GID:
		return nil, u.mismatch(h, "group "+u.group(), gid, u.GID)
	}
	have, err := h.User(ctx, u.Name)
	switch {
	case err == nil && u.UID != 0 && have.UID != u.UID:
		return nil, u.mismatch(h, u.String(), have.UID, u.UID)
	case !errors.Is(err, fs.ErrNotExist):
		return out, err
	}
	out = append(out, madeUser)
	if u.Home == "" {
		return out, nil
	}
	exists, err := h.Exists(ctx, u.Home)
	if err == nil && !exists {
		out = append(out, madeHome)
	}
	return out, err
}

func (User) mismatch(h *steps.Host, what string, have, want int) error {
	return steps.Advise(fmt.Errorf("%s has ID %d, not %d", what, have, want), "set its ID to %d on %s, or remove it", want, h.Name)
}

// Gone removes the parts of the user that kubexm created.
func (u User) Gone(ctx context.Context, h *steps.Host) (*Change, error) {
	e, recorded, err := ReadRecord(ctx, h, u)
	if err != nil || !recorded {
		return nil, err
	}
	return &Change{What: "remove " + u.String(), Apply: func(ctx context.Context, h *steps.Host) error {
		if err := u.remove(ctx, h, strings.Fields(e.Value)); err != nil {
			return err
		}
		return Forget(ctx, h, u)
	}}, nil
}

// remove removes the given parts, in reverse order of their creation.
func (u User) remove(ctx context.Context, h *steps.Host, made []string) error {
	if slices.Contains(made, madeHome) {
		if err := h.RemoveAll(ctx, u.Home); err != nil {
			return err
		}
	}
	if slices.Contains(made, madeUser) {
		if err := h.RemoveUser(ctx, u.Name); err != nil {
			return err
		}
	}
	if slices.Contains(made, madeGroup) {
		return h.RemoveGroup(ctx, u.group())
	}
	return nil
}

// join returns the words of both lists, sorted and without duplicates.
func join(a, b []string) string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " ")
}
