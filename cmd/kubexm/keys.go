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
	cmd := &cobra.Command{Use: "keys", Short: "Generate keys for signing bundles", Args: cobra.NoArgs}
	cmd.AddCommand(a.keysGenerate())
	return cmd
}

func (a *app) keysGenerate() *cobra.Command {
	prefix := ""
	f := &passwordFlags{}
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Generate a key pair for signing bundles",
		Long: `Generate an ECDSA P-256 key pair in cosign's format. PREFIX.key is the private key, encrypted with a
password and readable only by you. PREFIX.pub is the public key; every site needs a copy. Existing
files are not replaced.

The password is read from ` + sign.PasswordVariable + ` or ` + sign.CosignPasswordVariable + `, from a file, or from the terminal.
An empty password is accepted, but does not protect the key.

If PREFIX.key exists without PREFIX.pub, because a run was interrupted or the public key was lost,
PREFIX.pub is derived from the private key.`,
		Example: `  kubexm keys generate
  kubexm keys generate --output-key-prefix site
  ` + sign.PasswordVariable + `="$PASSWORD" kubexm keys generate --output-key-prefix ci`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.generateKeys(cmd.Context(), prefix, f) },
	}
	cmd.Flags().StringVar(&prefix, "output-key-prefix", "cosign", "prefix of the names of both files")
	f.add(cmd)
	a.outputFlag(cmd, "text", "json")
	return cmd
}

func (a *app) generateKeys(ctx context.Context, prefix string, f *passwordFlags) error {
	private, public := prefix+".key", prefix+".pub"
	if exists(private) && !exists(public) {
		return a.completeKeys(ctx, private, public, f)
	}
	for _, path := range []string{private, public} {
		if exists(path) {
			return &refusal.Error{Err: fmt.Errorf("%s already exists", path), Kind: refusal.Usage, Advice: "choose another name with --output-key-prefix; a lost private key cannot be recovered"}
		}
	}
	password, err := a.keyPassword(ctx, f, "Password for the new key: ", true)
	if err != nil {
		return err
	}
	if err := sign.CreatePair(private, public, password); err != nil {
		return err
	}
	return a.printKeys(private, public)
}

// completeKeys writes the missing public key of an existing private key: a kill or a
// power loss came between the two files, or the public key was lost. A private key is
// never replaced.
func (a *app) completeKeys(ctx context.Context, private, public string, f *passwordFlags) error {
	s, err := a.signer(ctx, private, f)
	if err != nil {
		return err
	}
	if err := s.WritePublic(public); err != nil {
		return err
	}
	fmt.Fprintf(a.err, "%s already exists; %s was derived from it\n", private, public)
	return a.printKeys(private, public)
}

func (a *app) printKeys(private, public string) error {
	if a.structured() {
		return a.printValue(map[string]string{"privateKey": private, "publicKey": public})
	}
	_, err := fmt.Fprintf(a.out, "%s: private key; keep it secret, and store its password elsewhere\n%s: public key; copy it to every site\n  next  kubexm bundle build -f config.yaml --sign-key %s\n", private, public, private)
	return err
}

// passwordFlags select the source of a private key's password.
type passwordFlags struct{ file string }

func (f *passwordFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.file, "key-password-file", "", "file with the key's password; a final line feed is ignored (default $"+sign.PasswordVariable+", else a prompt)")
	_ = cmd.MarkFlagFilename("key-password-file")
}

// keyPassword returns the password of a private key: from the file, from the
// environment, or from a prompt on the terminal. With twice it prompts a second time to
// confirm a new password.
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
			Advice: "set " + sign.PasswordVariable + ", or specify a file with --key-password-file; standard input is not a terminal"}
	}
	password, err := a.prompt(ctx, in, prompt)
	if err != nil || !twice {
		return password, err
	}
	again, err := a.prompt(ctx, in, "Repeat the password: ")
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(password, again) {
		return nil, &refusal.Error{Err: errors.New("the passwords do not match"), Kind: refusal.Usage}
	}
	return password, nil
}

// prompt reads a line from the terminal without echo. When ctx ends first it restores
// the terminal and returns ctx's error; the pending read lasts until the process ends.
func (a *app) prompt(ctx context.Context, terminal *os.File, prompt string) ([]byte, error) {
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
