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

// UnverifiedError reports packages from unsigned repositories that would be downloaded over
// plain http.
type UnverifiedError struct {
	Repository string   // "debian-12"
	Addresses  []string // hosts that were read without TLS
}

// Error returns the hosts and what to do.
func (e *UnverifiedError) Error() string {
	return fmt.Sprintf("refused packages of %s: their repositories are not signed, and they were downloaded over plain http from %s; "+
		"use https or a repository with a signature, or allow plain http for it in spec.sources", e.Repository, strings.Join(e.Addresses, ", "))
}

// pinPackages reads the repositories of a, or those configured on this machine, and pins
// all packages that are required.
func (c *Client) pinPackages(ctx context.Context, a manifest.Artifact) (manifest.Artifact, error) {
	t := c.options.Progress.Start(fmt.Sprintf("reading repositories of %s for %s", a.Name, a.Platform.Machine()), -1)
	w := &packageWeb{client: c}
	pinned, notes, err := system.Pin(ctx, w, a, system.Options{Base: c.options.Base, Etc: c.options.Etc})
	t.Done(err)
	for _, n := range notes {
		if _, noted := c.noted.LoadOrStore(n, nil); !noted { // most are the same for every architecture
			c.options.Note(n)
		}
	}
	if err != nil {
		return a, err
	}
	if plain := w.plainHosts(); pinned.Trust == manifest.FromContent && len(plain) > 0 {
		return a, &UnverifiedError{Repository: a.Name, Addresses: plain}
	}
	return pinned, withoutLogins(pinned)
}

// withoutLogins returns an error for addresses with a password, which would get into the
// lock and the bundle.
func withoutLogins(a manifest.Artifact) error {
	addresses := slices.Concat(a.Packages.Sources, a.Packages.Repositories)
	for _, m := range a.Members {
		addresses = append(addresses, m.Address)
	}
	if slices.ContainsFunc(addresses, hasLoginIn) {
		return errors.New("the address of a repository contains a password, which would go into the bundle; remove it, and put the login into the file of spec.sources.dockerConfig")
	}
	return nil
}
