package ssh_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/ssh"
	"github.com/mensylisir/kubexm/steps/connector/sshtest"
	"github.com/mensylisir/kubexm/testdata/fair"
)

// fakeSudo behaves as sudo 1.9 does, as far as it is asked here: -n, -S with -p,
// -k, the lecture, three tries. It writes what it was called with to sudo.log.
const fakeSudo = `#!/bin/sh
dir=$(dirname "$0")
echo "$@" >>"$dir/sudo.log"
mode=$(cat "$dir/mode")
n= prompt=
while :; do
	case $1 in
	-n) n=1 ;;
	-S | -k) ;;
	-p) prompt=$2; shift ;;
	--) shift; break ;;
	*) echo "sudo: $1?" >&2; exit 2 ;;
	esac
	shift
done
case $mode in
free) exec "$@" ;;
nobody) echo "admin is not in the sudoers file." >&2; exit 1 ;;
tty) echo "sudo: sorry, you must have a tty to run sudo" >&2; exit 1 ;;
esac
if [ -n "$n" ]; then echo "sudo: a password is required" >&2; exit 1; fi
echo "We trust you have received the usual lecture." >&2
for try in 1 2 3; do
	printf %s "$prompt" >&2
	if ! read -r line; then echo >&2; echo "sudo: no password was provided" >&2; exit 1; fi
	echo "$line" >>"$dir/given"
	if [ "$line" = "right" ]; then exec "$@"; fi
	if [ "$mode" = once ]; then echo "sudo: 1 incorrect password attempt" >&2; exit 1; fi
	echo "Sorry, try again." >&2
done
echo "sudo: 3 incorrect password attempts" >&2
exit 1
`

// sudoHost gives a host whose sudo is in this mode, and a folder with its traces.
func sudoHost(t *testing.T, mode, password string) (*ssh.Conn, string) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "sudo"), fakeSudo)
	if err := os.Chmod(filepath.Join(dir, "sudo"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "mode"), mode)
	s := sshtest.Start(t, sshtest.Config{Password: "secret"})
	cfg := config(t, s)
	cfg.User, cfg.SudoPassword, cfg.Path = "admin", password, dir+":"+connector.SearchPath
	return open(t, cfg), dir
}

func given(t *testing.T, dir string) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "given"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(b))
}

func TestSudo(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"free", "password"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			c, dir := sudoHost(t, mode, "right")
			// Nothing of the input is lost, nothing is added, whatever sudo asks before.
			for _, in := range []string{"", "one line\n", "no newline", "right\n", strings.Repeat("x\x00\n", 1<<18)} {
				var out bytes.Buffer
				res, err := c.Exec(t.Context(), connector.Cmd{Argv: []string{"cat"}, Stdin: strings.NewReader(in), Stdout: &out, Sudo: true})
				if err != nil || res.Exit != 0 || out.String() != in || len(res.Stderr) != 0 {
					t.Fatalf("%d bytes in, %d out, exit %d, stderr %q, %v", len(in), out.Len(), res.Exit, res.Stderr, err)
				}
			}
			res, err := c.Exec(t.Context(), connector.Cmd{Argv: []string{"/bin/sh", "-c", `echo "out $LC_ALL"; echo "err's" >&2; exit 9`}, Sudo: true})
			if err != nil || res.Exit != 9 || string(res.Stdout) != "out C\n" || string(res.Stderr) != "err's\n" {
				t.Errorf("%d %q %q %v", res.Exit, res.Stdout, res.Stderr, err)
			}
			calls, err := os.ReadFile(filepath.Join(dir, "sudo.log"))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(calls), "right") {
				t.Errorf("the password is an argument: %s", calls)
			}
			if mode == "free" && given(t, dir) != nil {
				t.Errorf("the password was given without being asked for")
			}
			for _, g := range given(t, dir) {
				if g != "right" {
					t.Errorf("sudo was given %q", g)
				}
			}
		})
	}
}

// TestSudoSideBySide: the first commands of a connection come at the same time.
func TestSudoSideBySide(t *testing.T) {
	t.Parallel()
	c, _ := sudoHost(t, "password", "right")
	var wg sync.WaitGroup
	for range 12 {
		wg.Go(func() {
			res, err := c.Exec(t.Context(), connector.Cmd{Argv: []string{"echo", "hello"}, Sudo: true})
			if err != nil || string(res.Stdout) != "hello\n" {
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
	wg.Wait()
}

func TestSudoRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode, password string
		wrong          bool
		says, advice   string
		given          int
	}{
		{"password", "", false, "a password is required", "set sudoPassword", 0},
		{"password", "wr0ng", true, "wrong password for admin", "set sudoPassword", 1},
		{"once", "wr0ng", true, "wrong password for admin", "set sudoPassword", 1},
		{"nobody", "right", false, "not in the sudoers", "/etc/sudoers.d", 0},
		{"tty", "", false, "must have a tty", "requiretty", 0},
	} {
		t.Run(c.mode+" "+c.password, func(t *testing.T) {
			t.Parallel()
			password := c.password
			conn, dir := sudoHost(t, c.mode, password)
			if password == "" {
				// Without one of its own sudo is given the login's: there is none here either.
				conn, dir = sudoHostByKey(t, c.mode)
			}
			clock := fair.Start()
			for range 3 {
				_, err := conn.Exec(t.Context(), connector.Cmd{Argv: []string{"touch", dir + "/ran"}, Sudo: true, Stdin: strings.NewReader("input\n")})
				var e *connector.SudoError
				if !errors.As(err, &e) || e.Wrong != c.wrong || !strings.Contains(err.Error(), c.says) || !strings.Contains(e.Advice(), c.advice) {
					t.Fatalf("error is %v, advice %q", err, e.Advice())
				}
				if strings.Contains(err.Error()+e.Advice(), "wr0ng") {
					t.Fatalf("the password is shown: %v", err)
				}
			}
			clock.Within(t, 5*time.Second)
			// A wrong password is given once: more would lock the account.
			if g := given(t, dir); len(g) != c.given {
				t.Errorf("sudo was given %q", g)
			}
			if exists(dir + "/ran")() {
				t.Error("the command ran all the same")
			}
			says(t, conn, "echo without", "without")
		})
	}
}

func sudoHostByKey(t *testing.T, mode string) (*ssh.Conn, string) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "sudo"), fakeSudo)
	if err := os.Chmod(filepath.Join(dir, "sudo"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "mode"), mode)
	key, pub := pemKey(t, "ed25519", "")
	s := sshtest.Start(t, sshtest.Config{Keys: keys(pub)})
	cfg := config(t, s)
	cfg.User, cfg.Password, cfg.Key, cfg.Path = "admin", "", key, dir+":"+connector.SearchPath
	return open(t, cfg), dir
}

func TestSudoIsNotThere(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Config{Password: "secret"})
	cfg := config(t, s)
	cfg.User, cfg.Path = "admin", t.TempDir()+":/bin"
	if _, err := os.Stat("/bin/sudo"); err == nil {
		t.Skip("this machine has a sudo in /bin")
	}
	_, err := open(t, cfg).Exec(t.Context(), connector.Cmd{Argv: []string{"true"}, Sudo: true})
	var e *connector.SudoError
	if !errors.As(err, &e) || !strings.Contains(e.Advice(), "install sudo") {
		t.Errorf("error is %v", err)
	}
}

func TestSudoIsNotRootsAffair(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Config{Password: "secret"})
	cfg := config(t, s)
	cfg.Path = t.TempDir() + ":" + connector.SearchPath
	c := open(t, cfg)
	if !c.Root() {
		t.Error("the login is root's by default")
	}
	if res, err := c.Exec(t.Context(), connector.Cmd{Argv: []string{"true"}, Sudo: true}); err != nil || res.Exit != 0 {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestPasswordIsNowhere: while a command runs under sudo, no process of the
// machine has the password in its arguments or environment.
func TestPasswordIsNowhere(t *testing.T) {
	t.Parallel()
	c, _ := sudoHost(t, "password", "right")
	res, err := c.Exec(t.Context(), connector.Cmd{
		Argv: []string{"/bin/sh", "-c", `cat /proc/self/environ /proc/$PPID/environ /proc/$$/cmdline /proc/$PPID/cmdline | tr '\0' '\n'`}, Sudo: true,
	})
	if err != nil || len(res.Stdout) == 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	if strings.Contains(string(res.Stdout), "right") || strings.Contains(string(res.Stdout), "secret") {
		t.Errorf("a password is in the open:\n%s", res.Stdout)
	}
}
