package main

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/testdata/lab/components"
	"github.com/mensylisir/kubexm/testdata/lab/mirror"
)

// choice is which components a command is about.
type choice struct {
	kubernetes string
	with       []string
}

func (f *choice) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.kubernetes, "kubernetes", "", "the version of Kubernetes, where not the table's")
	cmd.Flags().StringSliceVar(&f.with, "with", nil, "other versions of components, as containerd=v1.7.27")
}

// rows gives the rows of names; without names all that every lab has.
func (f *choice) rows(names []string) ([]components.Component, error) {
	all, err := components.Table(f.kubernetes)
	if err != nil {
		return nil, err
	}
	all, err = components.Choose(all, f.with...)
	if err != nil || len(names) == 0 {
		return all, err
	}
	addons, err := components.Addons()
	if err != nil {
		return nil, err
	}
	all = append(all, addons...)
	for _, name := range names {
		if _, err := components.Find(all, name); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(all, func(c components.Component) bool { return !slices.Contains(names, c.Name) }), nil
}

// builder builds from the checkout that the command was started in.
func builder() (*components.Builder, error) {
	cache, err := components.DefaultCache()
	if err != nil {
		return nil, err
	}
	root, err := components.Checkout()
	if err != nil {
		return nil, err
	}
	return &components.Builder{Root: root, Cache: filepath.Clean(cache), Log: os.Stdout}, nil
}

func componentsCommand() *cobra.Command {
	var f choice
	cmd := &cobra.Command{
		Use:   "components [NAME...]",
		Short: "Build the components that the cache lacks, or the named ones of them",
		RunE: func(cmd *cobra.Command, names []string) error {
			rows, err := f.rows(names)
			if err != nil {
				return err
			}
			b, err := builder()
			if err != nil {
				return err
			}
			if err := b.Build(cmd.Context(), rows); err != nil || len(names) > 0 {
				return err
			}
			return mirror.Make(cmd.Context(), b.Cache, b.Log)
		},
	}
	f.add(cmd)
	return cmd
}

func pinCommand() *cobra.Command {
	var f choice
	cmd := &cobra.Command{
		Use:   "pin NAME...",
		Short: "Write the go.mod and go.sum of components anew, after their row has changed",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			rows, err := f.rows(names)
			if err != nil {
				return err
			}
			b, err := builder()
			if err != nil {
				return err
			}
			for _, c := range rows {
				if err := b.Pin(cmd.Context(), c); err != nil {
					return err
				}
			}
			return nil
		},
	}
	f.add(cmd)
	return cmd
}
