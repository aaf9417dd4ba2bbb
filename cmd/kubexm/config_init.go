package main

import (
	"embed"
	"os"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/manifest/starter"
)

// starters are commented example configs, one for each template.
//
//go:embed starters/*.yaml
var starters embed.FS

// templates are the names of the starters; the first is the default.
var templates = []string{"single", "ha", "registry", "dual-stack"}

func (a *app) configInit() *cobra.Command {
	template, out, force := templates[0], "", false
	hosts := &starter.Machines{}
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a commented example config",
		Long: `Write a commented example of a cluster config to standard output or a file.

  single      one host with all roles
  ha          three masters with etcd, an existing load balancer, three workers
  registry    one master, two workers, and a registry on a separate host
  dual-stack  IPv4 and IPv6

Only the template registry has a registry. Without one, images are copied to each node over SSH and
stored there. Use a registry for many nodes, or for your own images that change often: they are
pushed, and need no bundle.

With --masters, --workers and --registry the config lists your hosts. Otherwise replace the
addresses; nothing else has to be changed. "kubexm config explain" describes every field.`,
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
			if hosts.HasHosts() {
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
	cmd.Flags().VarP(t, "template", "t", "template: "+t.list())
	cmd.Flags().StringVarP(&out, "out", "O", "", useOut)
	cmd.Flags().BoolVar(&force, "force", false, useForce)
	_ = cmd.RegisterFlagCompletionFunc("template", cobra.FixedCompletions(templates, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.MarkFlagFilename("out", "yaml", "yml")
	addMachines(cmd, hosts)
	return cmd
}

// writeNew writes a file that a user will edit. It replaces an existing file only with
// force. Only the owner can read it, since it may contain passwords later.
func writeNew(path string, text []byte, force bool) error {
	if err := refuseExisting(path, force); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}
