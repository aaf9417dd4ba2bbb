package node_test

import (
	"testing"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/node"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/steptest"
)

func TestWhatOthersChangeIsNoted(t *testing.T) {
	rs := []op.Resource{node.Noted{Keys: []string{"kernel.panic", "vm.overcommit_memory", "no.such.key", "net.netfilter.nf_conntrack_max"}}, node.Tables{}}
	for name, before := range map[string]func(*conntest.Sim){
		"bare": steptest.Nft,
		"with tables": func(s *conntest.Sim) {
			steptest.Nft(s)
			steptest.Table(s, "ip filter", steptest.EmptyTable)
			steptest.Table(s, "inet firewalld", "table inet firewalld {\n}\n")
		},
		"without nft": func(s *conntest.Sim) {
			s.HandleProgram("nft", func(connector.Cmd, []byte) (connector.Result, bool) { return connector.Result{Exit: 127}, true })
		},
	} {
		t.Run(name, func(t *testing.T) {
			steptest.Ensure(t, steptest.Case{Before: before}, op.Ensure("x.note", rs), op.Remove("x.give-back", rs))
		})
	}
}

// TestChangedSettingsAreRestored: and what holds anybody's rules stays.
func TestChangedSettingsAreRestored(t *testing.T) {
	rs := []op.Resource{node.Noted{Keys: []string{"kernel.panic", "vm.overcommit_memory", "vm.swappiness"}}, node.Tables{}}
	kase := steptest.Case{Before: func(s *conntest.Sim) {
		steptest.Nft(s)
		steptest.Table(s, "ip mangle", steptest.EmptyTable)
		steptest.Table(s, "inet firewalld", "table inet firewalld {\n}\n")
	}}
	install, remove := op.Ensure("x.note", rs), op.Remove("x.give-back", rs)
	s := kase.Sim(t)
	first := s.Snapshot()
	if err := install.Run(t.Context(), kase.NewHost(t, s, install)); err != nil {
		t.Fatal(err)
	}
	s.Tune("kernel.panic", "10")
	s.Tune("vm.swappiness", "1")
	s.Fail(connector.VerbSysctlW, "vm.swappiness", 1, "Read-only file system")
	for _, name := range []string{"ip filter", "ip nat", "ip6 nat"} {
		steptest.Table(s, name, steptest.EmptyTable)
	}
	if err := remove.Run(t.Context(), kase.NewHost(t, s, remove)); err != nil {
		t.Fatal(err)
	}
	if got := s.Sysctl("vm.swappiness"); got != "1" {
		t.Errorf("a setting that cannot be set is %s", got)
	}
	s.Tune("vm.swappiness", "60")
	if d := conntest.Diff(first, s.Snapshot()); d != "" {
		t.Errorf("not what it was:\n%s", d)
	}

	for name, rules := range map[string]string{
		"a rule":          "table ip nat {\n\tchain OUTPUT {\n\t\ttype nat hook output priority dstnat; policy accept;\n\t\tcounter packets 0 bytes 0\n\t}\n}\n",
		"a policy":        "table ip filter {\n\tchain INPUT {\n\t\ttype filter hook input priority filter; policy drop;\n\t}\n}\n",
		"a chain":         "table ip nat {\n\tchain MINE {\n\t}\n}\n",
		"a set":           "table ip nat {\n\tset s {\n\t\ttype ipv4_addr\n\t}\n}\n",
		"somebody else's": steptest.EmptyTable,
	} {
		table := "ip nat"
		if name == "somebody else's" {
			table = "ip site"
		}
		s := kase.Sim(t)
		if err := install.Run(t.Context(), kase.NewHost(t, s, install)); err != nil {
			t.Fatal(err)
		}
		steptest.Table(s, table, rules)
		if err := remove.Run(t.Context(), kase.NewHost(t, s, remove)); err != nil {
			t.Fatal(err)
		}
		if s.Read("/sys/nft/"+table) != rules {
			t.Errorf("a table with %s was deleted", name)
		}
	}
}
