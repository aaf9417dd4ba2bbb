package lab

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestLabSSH holds commands to one login, and to none that outlives its host.
func TestLabSSH(t *testing.T) {
	l := Start(t, 1, WithDisks(2<<30))
	ctx := t.Context()
	h := &l.Hosts[0]
	on := func(script string) string { return run(t, l.SSH(ctx, h, RootUser, script)) }

	if got := on("df --output=size -BM / | tail -1"); got != "1" && !strings.HasPrefix(strings.TrimSpace(got), "19") && !strings.HasPrefix(strings.TrimSpace(got), "20") {
		t.Errorf("a disk of 2 GiB has room for %s", got)
	}
	logins := func() int {
		n, err := strconv.Atoi(on("journalctl -q -o cat -t sshd | grep -c '^Accepted .* from " + l.Asker() + " '"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := logins()
	for range 12 { // as many at once as a connection carries, and more
		on("true")
	}
	if got := logins(); got != before {
		t.Errorf("12 commands logged in %d times", got-before)
	}
	if got := on("sshd -T -C addr=192.0.2.1,user=root,host=h | grep -i maxsessions"); got != "maxsessions 10" {
		t.Errorf("others than the lab have %q", got)
	}
	if code := l.SSH(ctx, h, RootUser, "cat >&2; exit 7").Run(); code == nil || !strings.Contains(code.Error(), "7") {
		t.Errorf("a command that ends with 7: %v", code)
	}

	// What does not answer is given up as soon as it is without a shared connection.
	if err := l.Unplug(ctx, h); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if out, err := l.SSH(ctx, h, RootUser, "true").CombinedOutput(); err == nil || time.Since(begun) > 30*time.Second {
		t.Errorf("a host without its link: %q, %v, after %s", out, err, time.Since(begun))
	}
	if err := l.Plug(ctx, h); err != nil {
		t.Fatal(err)
	}
	on("true")
	if err := l.Cut(h); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(l.socket(h, RootUser)); err == nil {
		t.Error("a connection to a host that is off is left")
	}
	if err := l.Boot(ctx, h); err != nil {
		t.Fatal(err)
	}
	// Every sshd ends, its own connection's and the one that listens: systemd starts that again.
	_ = l.SSH(ctx, h, RootUser, "pkill -KILL -f '^sshd: '").Run()
	for try := 0; l.SSH(ctx, h, RootUser, "true").Run() != nil; try++ {
		if try == 100 {
			t.Fatal("a connection that was killed is in the way")
		}
		time.Sleep(100 * time.Millisecond)
	}
}
