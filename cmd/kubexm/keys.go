package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/mensylisir/kubexm/bundle/sign"
	"github.com/mensylisir/kubexm/installer/report"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

func (a *app) keysCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "keys", Short: "Make keys that bundles are signed with", Args: cobra.NoArgs}
	cmd.AddCommand(a.keysGenerate())
	return cmd
}

func (a *app) keysGenerate() *cobra.Command {
	prefix := ""
	f := &passwordFlags{}
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Make a pair of keys for signing bundles",
		Long: `Make an ECDSA P-256 key in cosign's format: PREFIX.key, encrypted with a password and readable
for you alone, and PREFIX.pub, which goes to every site. cosign takes both. Files that stand
already are not replaced.

The password is taken from ` + sign.PasswordVariable + ` or ` + sign.CosignPasswordVariable + `, from a file, or asked for on the
terminal. An empty one is accepted, and the key is as good as in the clear then.

Where PREFIX.key stands without PREFIX.pub, because a run was interrupted between the two or
the public key was lost, that one is made from the key, which stays.`,
		Example: `  kubexm keys generate
  kubexm keys generate --output-key-prefix site
  ` + sign.PasswordVariable + `="$PASSWORD" kubexm keys generate --output-key-prefix ci`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.generateKeys(cmd.Context(), prefix, f) },
	}
	cmd.Flags().StringVar(&prefix, "output-key-prefix", "cosign", "what the names of both files begin with")
	f.add(cmd)
	a.outputFlag(cmd, "text", "json")
	return cmd
}

func (a *app) generateKeys(ctx context.Context, prefix string, f *passwordFlags) error {
	private, public := prefix+".key", prefix+".pub"
	if stands(private) && !stands(public) {
		return a.completeKeys(ctx, private, public, f)
	}
	for _, path := range []string{private, public} {
		if stands(path) {
			return &refusal.Error{Err: fmt.Errorf("%s exists", path), Kind: refusal.Usage, Advice: "choose another name with --output-key-prefix; a key that is lost cannot be made again"}
		}
	}
	password, err := a.keyPassword(ctx, f, "Password for the new key: ", true)
	if err != nil {
		return err
	}
	if err := sign.CreatePair(private, public, password); err != nil {
		return err
	}
	return a.sayKeys(private, public)
}

// completeKeys makes the public key of a private one that stands alone: a kill or a
// loss of power left it so, or the other was lost. A private key is never replaced.
func (a *app) completeKeys(ctx context.Context, private, public string, f *passwordFlags) error {
	s, err := a.signer(ctx, private, f)
	if err != nil {
		return err
	}
	if err := s.WritePublic(public); err != nil {
		return err
	}
	fmt.Fprintf(a.err, "%s stands already; %s was made from it\n", private, public)
	return a.sayKeys(private, public)
}

func (a *app) sayKeys(private, public string) error {
	if a.structured() {
		return a.printValue(map[string]string{"privateKey": private, "publicKey": public})
	}
	_, err := fmt.Fprintf(a.out, "%s: keep it and its password apart, and to yourself\n%s: carry it to every site\n  next  kubexm bundle build -f config.yaml --sign-key %s\n", private, public, private)
	return err
}

// passwordFlags say where the password of a private key is.
type passwordFlags struct{ file string }

func (f *passwordFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.file, "key-password-file", "", "a file with the key's password, without a line feed (default $"+sign.PasswordVariable+", else asked for)")
	_ = cmd.MarkFlagFilename("key-password-file")
}

// keyPassword gives the password of a private key: from the file, from the
// environment, or from a person at a terminal, who is asked twice for a new one.
func (a *app) keyPassword(ctx context.Context, f *passwordFlags, prompt string, twice bool) ([]byte, error) {
	if f.file != "" {
		text, err := readSecret(f.file)
		return bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r")), err
	}
	for _, name := range []string{sign.PasswordVariable, sign.CosignPasswordVariable} {
		if v, ok := a.env(name); ok {
			return []byte(v), nil
		}
	}
	in, ok := a.in.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return nil, &refusal.Error{Err: errors.New("no password for the private key"), Kind: refusal.Usage,
			Advice: "set " + sign.PasswordVariable + ", or name a file with --key-password-file; here is no terminal to ask on"}
	}
	password, err := a.ask(ctx, in, prompt)
	if err != nil || !twice {
		return password, err
	}
	again, err := a.ask(ctx, in, "The same again: ")
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(password, again) {
		return nil, &refusal.Error{Err: errors.New("the two differ"), Kind: refusal.Usage}
	}
	return password, nil
}

// ask puts a question on the terminal, whose answer is not shown. Ctrl-C ends it,
// with the terminal as it was: what reads an answer waits on until the process ends.
func (a *app) ask(ctx context.Context, terminal *os.File, prompt string) ([]byte, error) {
	fd := int(terminal.Fd())
	was, err := term.GetState(fd)
	if err != nil {
		return nil, err
	}
	type answer struct {
		text []byte
		err  error
	}
	answers := make(chan answer, 1)
	fmt.Fprint(a.err, prompt)
	defer fmt.Fprintln(a.err)
	go func() {
		text, err := term.ReadPassword(fd)
		answers <- answer{text, err}
	}()
	select {
	case x := <-answers:
		return x.text, x.err
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), term.Restore(fd, was))
	}
}

// readSecret reads a private key or a password.
func readSecret(path string) ([]byte, error) { return sign.ReadSecret(path, report.CommandLine(path)) }

// signer opens the private key at path.
func (a *app) signer(ctx context.Context, path string, f *passwordFlags) (*sign.Signer, error) {
	return sign.OpenKey(path, report.CommandLine(path), func() ([]byte, error) {
		return a.keyPassword(ctx, f, "Password for "+path+": ", false)
	})
}
