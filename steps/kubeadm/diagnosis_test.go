package kubeadm

import "testing"

func TestLastError(t *testing.T) {
	for _, c := range []struct{ log, want string }{
		{"", ""},
		{"I1121 07:20:20 server.go:1] starting\n", "I1121 07:20:20 server.go:1] starting"},
		{
			"Flag --container-runtime-endpoint has been deprecated\n" +
				`E1121 07:20:20.184748    5049 run.go:72] "command failed" err="failed to parse kubelet flag: unknown flag: --max-housekeeping-interval"` + "\n" +
				"kubelet.service: Main process exited, code=exited, status=1/FAILURE\nkubelet.service: Failed with result 'exit-code'.\n",
			"failed to parse kubelet flag: unknown flag: --max-housekeeping-interval",
		},
		{
			"2026-11-21T07:20:20+00:00 h4 systemd[1]: kubelet.service: Control process exited, code=exited, status=1/FAILURE\nkubelet.service: Failed with result 'exit-code'.\n" +
				"Failed to start kubelet.service - kubelet: the Kubernetes node agent.\n",
			"kubelet.service: Control process exited, code=exited, status=1/FAILURE",
		},
		{"Usage:\n  kube-apiserver [flags]\n\nError: unknown flag: --nonsense\n", "Error: unknown flag: --nonsense"},
		{`x err="open \"/a b\": no such file"` + "\n", `open "/a b": no such file`},
	} {
		if got := lastError(c.log); got != c.want {
			t.Errorf("%q: %q, want %q", c.log, got, c.want)
		}
	}
}
