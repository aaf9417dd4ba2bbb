package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/manifest/refusal"
)

// addDial adds the flags of the SSH connections to hosts.
func (f *siteFlags) addDial(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, useYes)
	cmd.Flags().Var(&choice{&f.hostKeys, []string{"strict", "accept-new"}, "policy"}, "host-key-policy",
		"which SSH host keys are trusted: strict, accept-new; overrides hostKeyPolicy of the config")
}

// confirmHosts prompts before kubexm connects to hosts that are only in the bundle's
// config and that no earlier run of this workdir connected to.
func (a *app) confirmHosts(ctx context.Context, f *siteFlags, s *siteRun) error {
	if f.yes {
		return nil
	}
	unseen, err := s.UnknownHosts()
	if err != nil || len(unseen) == 0 {
		return err
	}
	if n := len(unseen); n > 10 {
		unseen = append(unseen[:10:10], fmt.Sprintf("and %d more", n-10))
	}
	what := fmt.Sprintf("the config of %s contains hosts that no run with this workdir has connected to: %s", f.bundle, strings.Join(unseen, ", "))
	no := &refusal.Error{Err: errors.New(what), Kind: refusal.Usage, Advice: "--yes connects to them with your SSH keys and passwords; -f uses your own config"}
	in := a.terminal()
	if in == nil {
		return no
	}
	yes, err := a.confirm(ctx, in, what+"\nConnect to them with your SSH keys and passwords? [y/N] ")
	if err != nil {
		return err
	}
	if !yes {
		return no
	}
	return nil
}

// confirm prints a question on the terminal and reports whether the answer is y or yes.
// It returns ctx's error when ctx ends first.
func (a *app) confirm(ctx context.Context, terminal *os.File, question string) (bool, error) {
	fmt.Fprint(a.err, question)
	answers := make(chan string, 1)
	go func() { // a read from a terminal cannot be cancelled: it lasts until the process ends
		line, _ := bufio.NewReader(terminal).ReadString('\n')
		answers <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case answer := <-answers:
		return answer == "y" || answer == "yes", nil
	case <-ctx.Done():
		fmt.Fprintln(a.err)
		return false, ctx.Err()
	}
}
