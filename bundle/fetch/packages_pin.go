package fetch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/packaging/system"
)

// UnvouchedError says that packages would have come over plain http from
// repositories that nobody signed.
type UnvouchedError struct {
	Repository string   // "debian-12"
	Addresses  []string // hosts that were asked without TLS
}

// Error names the hosts and what to do.
func (e *UnvouchedError) Error() string {
	return fmt.Sprintf("refused packages of %s: nobody signed their repositories, and they came over plain http from %s; "+
		"use https or a repository with a signature, or allow plain http for it in spec.sources", e.Repository, strings.Join(e.Addresses, ", "))
}

// pinPackages reads the repositories that a names, or those that this machine is
// configured for, and pins all that its wants need.
func (c *Client) pinPackages(ctx context.Context, a manifest.Artifact) (manifest.Artifact, error) {
	t := c.options.Progress.Start(fmt.Sprintf("reading repositories of %s for %s", a.Name, a.Platform.Machine()), -1)
	w := &packageWeb{client: c}
	pinned, notes, err := system.Pin(ctx, w, a, system.Options{Base: c.options.Base, Etc: c.options.Etc})
	t.Done(err)
	for _, n := range notes {
		if _, said := c.noted.LoadOrStore(n, nil); !said { // most are the same for every architecture
			c.options.Note(n)
		}
	}
	if err != nil {
		return a, err
	}
	if plain := w.plainHosts(); pinned.Trust == manifest.FromContent && len(plain) > 0 {
		return a, &UnvouchedError{Repository: a.Name, Addresses: plain}
	}
	return pinned, withoutLogins(pinned)
}

// withoutLogins refuses what would carry a password into the lock and the bundle.
func withoutLogins(a manifest.Artifact) error {
	addresses := slices.Concat(a.Packages.Sources, a.Packages.Repositories)
	for _, m := range a.Members {
		addresses = append(addresses, m.Address)
	}
	if slices.ContainsFunc(addresses, hasLoginIn) {
		return errors.New("a repository's address holds a password, which would go into the bundle; take it out, and log in by the file that spec.sources.dockerConfig names")
	}
	return nil
}
