package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/mensylisir/kubexm/manifest/refusal"
)

// addDial adds the flags that say how hosts are dialed.
func (f *siteFlags) addDial(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "do it without asking")
	cmd.Flags().Var(&choice{&f.hostKeys, []string{"strict", "accept-new"}, "policy"}, "host-key-policy",
		"which SSH host keys are trusted: strict, accept-new; replaces hostKeyPolicy of the config")
}

// confirmHosts asks before hosts are dialed that only the bundle's config names and
// that no earlier run of the workdir has dialed.
func (a *app) confirmHosts(ctx context.Context, f *siteFlags, s *siteRun) error {
	if f.yes {
		return nil
	}
	unseen, err := s.Unseen()
	if err != nil || len(unseen) == 0 {
		return err
	}
	if n := len(unseen); n > 10 {
		unseen = append(unseen[:10:10], fmt.Sprintf("and %d more", n-10))
	}
	what := fmt.Sprintf("the config of %s names hosts that no run of this workdir has connected to: %s", f.bundle, strings.Join(unseen, ", "))
	no := &refusal.Error{Err: errors.New(what), Kind: refusal.Usage, Advice: "--yes connects to them with your SSH keys and passwords; -f gives a config of your own"}
	in, ok := a.in.(*os.File)
	if !ok || a.structured() || !term.IsTerminal(int(in.Fd())) {
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

// confirm puts a question on the terminal; y and yes agree.
func (a *app) confirm(ctx context.Context, terminal *os.File, question string) (bool, error) {
	fmt.Fprint(a.err, question)
	answers := make(chan string, 1)
	go func() { // what reads an answer waits on until the process ends
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
