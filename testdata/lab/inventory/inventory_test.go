package inventory

import (
	"strings"
	"testing"
)

func TestCompare(t *testing.T) {
	parse := func(s string) Inventory {
		inv, err := Parse([]byte(s))
		if err != nil {
			t.Fatal(err)
		}
		return inv
	}
	before := parse("file\t/etc/a\t1\nfile\t/etc/b\t1\nfile\t/var/log/x\t1\nunit\tc\tactive\nroute\tr\ta\nroute\tr\tb\n")
	after := parse("file\t/etc/a\t2\nfile\t/var/log/y\t1\nunit\tc\tactive\nunit\td\tfailed\nroute\tr\ta\nroute\tr\tb\n")
	without, err := parseExclusions([]byte(`[{kinds: [file], name: /var/log/.*, why: logs}]`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range Compare(before, after, without) {
		got = append(got, d.String())
	}
	want := "~ file /etc/a: 1 → 2\n- file /etc/b 1\n+ unit d failed"
	if s := strings.Join(got, "\n"); s != want {
		t.Errorf("%s\nwant\n%s", s, want)
	}
	if d := Compare(before, before, nil); len(d) != 0 {
		t.Error(d)
	}
}

func TestRefused(t *testing.T) {
	if _, err := Parse([]byte("file\n")); err == nil {
		t.Error("a line of one part was read")
	}
	for _, text := range []string{`[{kinds: [file], name: "("}]`, `[{kinds: [file], name: "(", why: w}]`, `[{kinds: [], name: a, why: w}]`, `[{kind: [file]}]`} {
		if _, err := parseExclusions([]byte(text)); err == nil {
			t.Errorf("%s was read", text)
		}
	}
}

func TestCommittedExclusions(t *testing.T) {
	if _, err := ReadExclusions(); err != nil {
		t.Error(err)
	}
}
