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

// User is an account of the system, with the group it belongs to. One that is
// there stays as it is; that its number is another one is an error, because
// files that are shared by number would be somebody else's.
type User struct {
	NoNeeds
	Name  string
	UID   int    // 0: the host chooses
	Group string // made where it is missing; empty: one of the user's name
	GID   int    // of the group; 0: the host chooses
	Home  string // made with the user, and removed with it; empty: none
	Shell string // empty: nobody logs in
}

func (u User) String() string { return "user " + u.Name }

func (u User) group() string { return cmp.Or(u.Group, u.Name) }

// The words of what kubexm made, as the record keeps them.
const (
	madeGroup = "group"
	madeUser  = "user"
	madeHome  = "home"
)

// Want makes the group and the user where they are missing.
func (u User) Want(ctx context.Context, h *steps.Host, _ bool) (*Change, error) {
	lacks, err := u.lacks(ctx, h)
	if err != nil || len(lacks) == 0 {
		return nil, err
	}
	earlier, recorded, err := Recall(ctx, h, u)
	if err != nil {
		return nil, err
	}
	e := Record{Value: join(strings.Fields(earlier.Value), lacks)}
	return &Change{
		What: "make " + u.String(),
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
			if err := u.unmake(ctx, h, lacks); err != nil {
				return err
			}
			if recorded {
				return Rewrite(ctx, h, u, earlier)
			}
			return Forget(ctx, h, u)
		},
	}, nil
}

// lacks gives what of the user is missing.
func (u User) lacks(ctx context.Context, h *steps.Host) ([]string, error) {
	var out []string
	gid, err := h.Group(ctx, u.group())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		out = append(out, madeGroup)
	case err != nil:
		return nil, err
	case u.GID != 0 && gid != u.GID:
		return nil, u.another(h, "group "+u.group(), gid, u.GID)
	}
	have, err := h.User(ctx, u.Name)
	switch {
	case err == nil && u.UID != 0 && have.UID != u.UID:
		return nil, u.another(h, u.String(), have.UID, u.UID)
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

func (User) another(h *steps.Host, what string, have, want int) error {
	return steps.Advise(fmt.Errorf("%s has number %d, not %d", what, have, want), "give it number %d on %s, or remove it", want, h.Name)
}

// Gone removes what kubexm made of the user.
func (u User) Gone(ctx context.Context, h *steps.Host) (*Change, error) {
	e, recorded, err := Recall(ctx, h, u)
	if err != nil || !recorded {
		return nil, err
	}
	return &Change{What: "remove " + u.String(), Apply: func(ctx context.Context, h *steps.Host) error {
		if err := u.unmake(ctx, h, strings.Fields(e.Value)); err != nil {
			return err
		}
		return Forget(ctx, h, u)
	}}, nil
}

// unmake takes back what was made, in reverse.
func (u User) unmake(ctx context.Context, h *steps.Host, made []string) error {
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

// join gives the words of both lists, each once, sorted.
func join(a, b []string) string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " ")
}
