package steptest

import (
	"path"
	"strings"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
)

// nftDir is the folder of a host's nftables tables: one file each, so that a snapshot of
// the host includes them.
const nftDir = "/sys/nft"

// Table adds a table to a host, such as "ip nat", with its listing by nft.
func Table(s *conntest.Sim, name, text string) { s.AddFile(nftDir+"/"+name, text, 0o600) }

// EmptyTable is the table that iptables creates when it lists one that does not exist.
const EmptyTable = `# Warning: table ip nat is managed by iptables-nft, do not touch!
table ip nat {
	chain PREROUTING {
		type nat hook prerouting priority dstnat; policy accept;
	}

	chain OUTPUT {
		type nat hook output priority dstnat; policy accept;
	}
}
`

// Nft simulates nft on a host: listing tables, and deleting one.
func Nft(s *conntest.Sim) {
	s.HandleProgram("nft", func(c connector.Cmd, _ []byte) (connector.Result, bool) {
		words := strings.Join(c.Argv[1:], " ")
		if words == "list tables" {
			var b strings.Builder
			for _, p := range s.Below(nftDir) {
				b.WriteString("table " + path.Base(p) + "\n")
			}
			return prints("%s", b.String()), true
		}
		verb, table, ok := strings.Cut(words, " table ")
		file := nftDir + "/" + table
		if _, there := s.File(file); !ok || !there {
			return failed(1, "Error: No such file or directory"), true
		}
		if verb == "list" {
			return prints("%s", s.Read(file)), true
		}
		s.RemoveAll(file)
		if len(s.Below(nftDir)) == 0 {
			s.RemoveAll(nftDir)
		}
		return connector.Result{}, true
	})
}

// disturb makes the persistent changes of kubelet and kube-proxy to kernel settings and
// firewall tables of a host.
func disturb(s *conntest.Sim) {
	for key, value := range map[string]string{"vm.overcommit_memory": "1", "kernel.panic": "10", "kernel.panic_on_oops": "1", "net.netfilter.nf_conntrack_max": "262144"} {
		s.Tune(key, value)
	}
	for _, table := range []string{"ip filter", "ip nat", "ip6 mangle"} {
		if _, ok := s.File(nftDir + "/" + table); !ok {
			Table(s, table, EmptyTable)
		}
	}
}
