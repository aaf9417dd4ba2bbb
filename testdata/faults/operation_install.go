package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest/durable"
)

// installOperation makes a cluster and takes it away, with the workdir on the disk.
func installOperation() operation {
	return operation{
		name: "install and delete",
		prepare: func(ctx context.Context, s *stand) error {
			if _, err := s.model(ctx); err != nil {
				return err
			}
			g, err := s.lab.clusterSite(ctx, "site of "+strings.TrimPrefix(s.root, s.lab.dir))
			if err != nil {
				return err
			}
			s.clusterSite = g
			g.workdir = s.at("work")
			return durable.MkdirAll(g.workdir, 0o750)
		},
		phases: []phase{{
			name: "install",
			args: func(s *stand) []string { return s.clusterSite.install() },
			again: func(ctx context.Context, s *stand) error {
				before := s.clusterSite.authority()
				if err := s.clusterSite.again(ctx, s.clusterSite.install()); err != nil {
					return err
				}
				if now := s.clusterSite.authority(); before != "" && now != before {
					return errors.New("THE CA WAS REPLACED that hosts used already")
				}
				return nil
			},
			done: func(ctx context.Context, s *stand) error { return s.clusterSite.made(ctx) },
		}, {
			name:  "delete",
			args:  func(s *stand) []string { return s.clusterSite.destroy() },
			again: func(ctx context.Context, s *stand) error { return s.clusterSite.again(ctx, s.clusterSite.destroy()) },
			done:  func(_ context.Context, s *stand) error { return s.clusterSite.gone() },
		}},
	}
}

// authority is the CA of the registry as a host has it; empty where none has it yet.
func (g *clusterSite) authority() string {
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
