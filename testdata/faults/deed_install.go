package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest/durable"
)

// installDeed makes a cluster and takes it away, with the workdir on the disk.
func installDeed() deed {
	return deed{
		name: "install and delete",
		prepare: func(ctx context.Context, s *stand) error {
			if _, err := s.model(ctx); err != nil {
				return err
			}
			g, err := s.lab.ground(ctx, "ground of "+strings.TrimPrefix(s.root, s.lab.dir))
			if err != nil {
				return err
			}
			s.ground = g
			g.workdir = s.at("work")
			return durable.MkdirAll(g.workdir, 0o750)
		},
		phases: []phase{{
			name: "install",
			args: func(s *stand) []string { return s.ground.install() },
			again: func(ctx context.Context, s *stand) error {
				before := s.ground.authority()
				if err := s.ground.again(ctx, s.ground.install()); err != nil {
					return err
				}
				if now := s.ground.authority(); before != "" && now != before {
					return errors.New("THE CA WAS REPLACED that hosts used already")
				}
				return nil
			},
			done: func(ctx context.Context, s *stand) error { return s.ground.made(ctx) },
		}, {
			name:  "delete",
			args:  func(s *stand) []string { return s.ground.destroy() },
			again: func(ctx context.Context, s *stand) error { return s.ground.again(ctx, s.ground.destroy()) },
			done:  func(_ context.Context, s *stand) error { return s.ground.gone() },
		}},
	}
}

// authority is the CA of the registry as a host has it; empty where none has it yet.
func (g *ground) authority() string {
	for _, n := range g.names {
		sim := g.hosts[n].sim
		for _, p := range slices.Sorted(slices.Values(sim.Below("/etc"))) {
			if text := sim.Read(p); strings.HasSuffix(p, "/ca.crt") && strings.Contains(text, "BEGIN CERTIFICATE") && !strings.Contains(p, "/kubernetes/") {
				return text
			}
		}
	}
	return ""
}
