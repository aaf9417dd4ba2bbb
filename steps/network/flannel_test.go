package network

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/steps/steptest"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

func TestFlannelTakesTheConfig(t *testing.T) {
	upstream, err := os.ReadFile("testdata/upstream.yaml")
	if err != nil {
		t.Fatal(err)
	}
	before := steptest.YAML(t, upstream)
	for name, c := range map[string]struct {
		network, want string
	}{
		"vxlan":     {"plugin: flannel", `{"Network":"10.233.64.0/18","Backend":{"Type":"vxlan"},"EnableNFTables":false}`},
		"host-gw":   {"plugin: flannel, flannel: {backend: host-gw}", `{"Network":"10.233.64.0/18","Backend":{"Type":"host-gw"},"EnableNFTables":false}`},
		"wireguard": {"plugin: flannel, kubePodsCIDR: 10.9.0.0/16, flannel: {backend: wireguard}", `{"Network":"10.9.0.0/16","Backend":{"Type":"wireguard"},"EnableNFTables":false}`},
		"dual-stack": {
			"plugin: flannel, kubePodsCIDR: '10.233.64.0/18,fd00:10::/48', kubeServiceCIDR: '10.233.0.0/18,fd00:20::/112'",
			`{"Network":"10.233.64.0/18","EnableIPv6":true,"IPv6Network":"fd00:10::/48","Backend":{"Type":"vxlan"},"EnableNFTables":false}`,
		},
		"ipv6": {
			"plugin: flannel, kubePodsCIDR: 'fd00:10::/48', kubeServiceCIDR: 'fd00:20::/112'",
			`{"EnableIPv4":false,"EnableIPv6":true,"IPv6Network":"fd00:10::/48","Backend":{"Type":"vxlan"},"EnableNFTables":false}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := strings.Replace(steptest.Small, "plugin: flannel", c.network, 1)
			switch name {
			case "dual-stack":
				config = strings.Replace(config, "192.0.2.11}", "192.0.2.11, internalAddress: '10.0.0.11,fd00::11'}", 1)
			case "ipv6":
				config = strings.Replace(config, "192.0.2.11}", "192.0.2.11, internalAddress: 'fd00::11'}", 1)
			}
			out, err := flannelFor(steptest.Cluster(t, config), upstream)
			if err != nil {
				t.Fatal(err)
			}
			steptest.Golden(t, *update, name+".yaml", string(out))
			after := steptest.YAML(t, out)
			conf, _ := after[2]["data"].(map[string]any)
			var got, want any
			text, _ := conf["net-conf.json"].(string)
			if err := json.Unmarshal([]byte(text), &got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("net-conf.json (-want +got):\n%s", d)
			}
			// Root alone reads what is copied to hosts. Nothing else of upstream's is another.
			if mode := configVolume(t, after[3])["defaultMode"]; mode != 0o600 {
				t.Errorf("files of the ConfigMap have mode %v", mode)
			}
			delete(configVolume(t, after[3]), "defaultMode")
			was, _ := before[2]["data"].(map[string]any)
			conf["net-conf.json"] = was["net-conf.json"]
			if d := cmp.Diff(before[:4], after); d != "" {
				t.Errorf("more than net-conf.json changed:\n%s", d)
			}
		})
	}
}

func TestFlannelRefusesAnotherManifest(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	for name, text := range map[string]string{
		"no ConfigMap": "kind: Namespace\nmetadata: {name: x}\n",
		"no net-conf":  "kind: ConfigMap\ndata: {other: x}\n",
		"no yaml":      "kind: [\n",
		"empty":        "",
	} {
		if out, err := flannelFor(c, []byte(text)); err == nil {
			t.Errorf("%s: gave\n%s", name, out)
		}
	}
}

// configVolume is the ConfigMap that a DaemonSet's pods have as files.
func configVolume(t *testing.T, daemonSet map[string]any) map[string]any {
	t.Helper()
	at := any(daemonSet)
	for _, key := range []string{"spec", "template", "spec", "volumes"} {
		m, _ := at.(map[string]any)
		at = m[key]
	}
	all, _ := at.([]any)
	for _, v := range all {
		m, _ := v.(map[string]any)
		if c, ok := m["configMap"].(map[string]any); ok {
			return c
		}
	}
	t.Fatal("no ConfigMap among the volumes")
	return nil
}
