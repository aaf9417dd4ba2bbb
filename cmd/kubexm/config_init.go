package main

import (
	"embed"
	"os"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/manifest/starter"
)

// starters are commented configs, one a template.
//
//go:embed starters/*.yaml
var starters embed.FS

// templates are the names of the starters, the first by default.
var templates = []string{"single", "ha", "registry", "dual-stack"}

func (a *app) configInit() *cobra.Command {
	template, out, force := templates[0], "", false
	hosts := &starter.Machines{}
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a commented config to start from",
		Long: `Write a commented cluster config to start from, to standard output or a file.

  single      one machine that does everything
  ha          three masters with etcd behind a load balancer that exists, three workers
  registry    a master, two workers, and a registry on a host of its own
  dual-stack  IPv4 and IPv6 side by side

Only one of them has a registry: without one, each node is sent the images over its SSH
connection and keeps them. A registry is worth having with many nodes, or for images of your
own that come and go: they are pushed, and need no bundle. With --masters the hosts are named here.

Each can be built and installed as it is, with your hosts' addresses. Then read on: "kubexm
config explain" says what every field means.`,
		Example: `  kubexm config init > config.yaml
  kubexm config init --template ha --out ha.yaml
  kubexm config init --masters 10.0.0.11-13 --workers 10.0.0.21-40 \
    --registry 10.0.0.10 --user ops --out hosts.yaml`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			text, err := starters.ReadFile("starters/" + template + ".yaml")
			if err != nil {
				return err
			}
			if hosts.Given() {
				if text, err = hosts.Config(text); err != nil {
					return err
				}
			}
			if out == "" || out == "-" {
				_, err = a.out.Write(text)
				return err
			}
			return writeNew(out, text, force)
		},
	}
	t := &choice{value: &template, allowed: templates, name: "template"}
	cmd.Flags().VarP(t, "template", "t", "which one: "+t.list())
	cmd.Flags().StringVarP(&out, "out", "O", "", useOut)
	cmd.Flags().BoolVar(&force, "force", false, useForce)
	_ = cmd.RegisterFlagCompletionFunc("template", cobra.FixedCompletions(templates, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.MarkFlagFilename("out", "yaml", "yml")
	addMachines(cmd, hosts)
	return cmd
}

// writeNew writes a file that a person will go on with: never over another one
// unasked. Passwords may come to stand in it, so that it is its owner's alone.
func writeNew(path string, text []byte, force bool) error {
	if err := refuseExisting(path, force); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}
