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

// app is what every command shares: where it reads and writes, and the flags
// of the root command. There is no package-level state.
type app struct {
	in       io.Reader
	out, err io.Writer // once a command runs each is a console.Writer
	env      func(string) (string, bool)

	// orderly says that the running command stops in good order when stop is closed.
	orderly atomic.Bool
	stop    chan struct{}
	pressed atomic.Int32 // how often Ctrl-C was, while orderly

	screen *console.Screen // on err: lines of the commands that show a live frame, and of the log
	lines  *console.Lines  // of -o json, where the command has such

	log     *slog.Logger
	output  string // -o of the command that runs
	printed bool   // its one document is on the way: a failure prints none
	verbose bool
	display console.Display
}

// run executes one command line and gives its exit code.
func (a *app) run(ctx context.Context, args []string) int {
	a.out, a.err = console.Plainly(a.out), console.Plainly(a.err)
	if a.screen == nil {
		a.screen = console.NewScreen(a.err)
	}
	a.output = askedFormat(args)
	err := a.execute(ctx, args)
	code := a.report(ctx, err)
	for _, w := range []io.Writer{a.out, a.err} {
		if p, ok := w.(*console.Writer); ok {
			_ = p.Flush() // what could not be written, nobody reads either
		}
	}
	return code
}

// execute runs the command that args name. Words are looked at before flags: which
// flags there are is only known with the command.
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
		Short: "Take Kubernetes into places without internet, and keep it alive there",
		Long: `kubexm takes Kubernetes into places without internet, and keeps it alive there.

On a host with internet, "kubexm bundle build" turns a cluster config into one
archive with every binary and image that the config asks for, each pinned by
digest. The archive is carried in. There "kubexm install" verifies it and
makes the cluster over SSH, without one packet leaving the site.`,
		Example: `  kubexm keys generate                     # cosign.key and cosign.pub
  kubexm config init > config.yaml         # a commented config to start from
  kubexm config validate -f config.yaml    # every problem, with line and advice
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
			if err := flagsAsWanted(cmd); err != nil {
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
	root.PersistentFlags().BoolVarP(&a.verbose, "verbose", "v", false, "log what is done, and why, to standard error")
	root.AddCommand(a.bundleCommand(), a.keysCommand(), a.cacheCommand(), a.manCommand(), a.configCommand(), a.versionsCommand(), a.versionCommand(),
		a.siteCommand(), a.planCommand(), a.getCommand(), a.diffCommand(), a.operationCommand(), a.kubeconfigCommand(), a.registryCommand(), a.auditCommand(),
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

// outputFlag adds -o with the formats that a command knows, the first by default.
func (a *app) outputFlag(cmd *cobra.Command, formats ...string) {
	if i := slices.Index(formats, "json"); i >= 0 && !slices.Contains(formats, "yaml") {
		formats = slices.Insert(slices.Clone(formats), i+1, "yaml")
	}
	format := formats[0]
	f := &choice{value: &format, allowed: formats}
	cmd.Flags().VarP(f, "output", "o", "output format: "+f.list())
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}
