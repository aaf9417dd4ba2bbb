package main

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/cmd/kubexm/console"
)

// app is the state that all commands share: input, output, environment, and the flags of
// the root command. There is no package-level state.
type app struct {
	in       io.Reader
	out, err io.Writer // once a command runs each is a console.Writer
	env      func(string) (string, bool)

	// orderly is set while the running command stops gracefully when stop is closed.
	orderly atomic.Bool
	stop    chan struct{}
	pressed atomic.Int32 // number of Ctrl-C presses while orderly

	screen *console.Screen // on err: output above the live view, and log lines
	lines  *console.Lines  // JSON lines of -o json; nil for commands without them

	log     *slog.Logger
	output  string // -o of the command that runs
	printed bool   // its document was printed: a failure prints no second one
	verbose bool
	display console.Display
}

// run executes one command line and returns its exit code.
func (a *app) run(ctx context.Context, args []string) int {
	a.out, a.err = console.AsWriter(a.out), console.AsWriter(a.err)
	if a.screen == nil {
		a.screen = console.NewScreen(a.err)
	}
	a.output = requestedFormat(args)
	err := a.execute(ctx, args)
	code := a.report(ctx, err)
	for _, w := range []io.Writer{a.out, a.err} {
		if p, ok := w.(*console.Writer); ok {
			_ = p.Flush() // there is no other place to report an error to
		}
	}
	return code
}

// execute runs the command in args. Commands are checked before flags, because the valid
// flags depend on the command.
func (a *app) execute(ctx context.Context, args []string) error {
	root := a.root()
	if at, words := unknownCommand(root, args); at != nil {
		return usageError(at, unknownError(at, words))
	}
	if err := oneDash(root, args); err != nil {
		return err
	}
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "kubexm",
		Short: "Install and operate Kubernetes at sites without internet access",
		Long: `kubexm installs and operates Kubernetes at sites without internet access.

On a host with internet access, "kubexm bundle build" builds one archive from a cluster config. The
archive (the bundle) contains every binary and image that the config requires, pinned by digest.
Carry it to the site. There "kubexm install" verifies it and creates the cluster over SSH; no packet
leaves the site.`,
		Example: `  kubexm keys generate                     # cosign.key and cosign.pub
  kubexm config init > config.yaml         # write a commented example
  kubexm config validate -f config.yaml    # list all errors and warnings
  kubexm bundle build -f config.yaml --sign-key cosign.key demo.tar.zst
  kubexm bundle verify --key cosign.pub demo.tar.zst
  kubexm install demo.tar.zst --key cosign.pub -f config.yaml    # at the site`,
		Version:       ownVersion(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			level := slog.LevelWarn
			if a.verbose {
				level = slog.LevelDebug
			}
			a.log = slog.New(slog.NewTextHandler(a.screen, &slog.HandlerOptions{Level: level}))
			if f := cmd.Flags().Lookup("output"); f != nil {
				a.output = f.Value.String()
			}
			a.takeRenamed(cmd)
			if err := a.fromEnvironment(cmd); err != nil {
				return err
			}
			if err := checkFlagUse(cmd); err != nil {
				return err
			}
			if err := a.setDisplay(cmd); err != nil {
				return err
			}
			return checkArchiveWords(cmd, args)
		},
	}
	root.SetVersionTemplate(versionLine())
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return flagError(cmd, err) })
	root.PersistentFlags().BoolVarP(&a.verbose, "verbose", "v", false, "write a detailed log to standard error")
	root.AddCommand(a.bundleCommand(), a.keysCommand(), a.cacheCommand(), a.manCommand(), a.configCommand(), a.versionsCommand(), a.versionCommand(),
		a.siteCommand(), a.planCommand(), a.getCommand(), a.etcdCommand(), a.healthCommand(), a.diffCommand(), a.operationCommand(), a.kubeconfigCommand(), a.registryCommand(), a.auditCommand(),
		a.receiptCommand())
	a.addPipelines(root)
	root.SetHelpCommand(helpCommand())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	addWords(root)
	a.addDisplay(root)
	nameVariables(root)
	narrow(root)
	strictUsage(root)
	return root
}

// outputFlag adds -o with the given formats; the first is the default. A command with
// json also has yaml.
func (a *app) outputFlag(cmd *cobra.Command, formats ...string) {
	if i := slices.Index(formats, "json"); i >= 0 && !slices.Contains(formats, "yaml") {
		formats = slices.Insert(slices.Clone(formats), i+1, "yaml")
	}
	format := formats[0]
	f := &choice{value: &format, allowed: formats}
	cmd.Flags().VarP(f, "output", "o", "output format: "+f.list())
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}
