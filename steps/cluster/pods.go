package cluster

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// maxList limits the output of kubectl, in bytes: it suffices for ten thousand pods.
const maxList = 8 << 20

// podRows has kubectl print one line for each pod, with the fields of parsePod between tabs.
const podRows = `go-template={{range .items}}{{.metadata.namespace}}{{"\t"}}{{.metadata.name}}{{"\t"}}{{with .spec.nodeName}}{{.}}{{end}}{{"\t"}}{{.status.phase}}{{"\t"}}` +
	`{{range .metadata.ownerReferences}}{{if .controller}}{{.kind}} {{.name}}{{end}}{{end}}{{"\t"}}` +
	`{{range $key, $value := .metadata.annotations}}{{if eq $key "kubernetes.io/config.mirror"}}mirror{{end}}{{end}}{{"\t"}}` +
	`{{with .metadata.deletionTimestamp}}{{.}}{{end}}{{"\t"}}{{with .metadata.deletionGracePeriodSeconds}}{{.}}{{end}}{{"\t"}}` +
	`{{range .spec.volumes}}{{range $key, $value := .}}{{$key}} {{end}}{{end}}{{"\t"}}` +
	`{{range $key, $value := .metadata.labels}}{{$key}}={{$value}} {{end}}{{"\t"}}` +
	`{{range .spec.containers}}{{with .resources.requests}}{{with .cpu}}{{.}}{{end}}/{{with .memory}}{{.}}{{end}} {{end}}{{end}}{{"\t"}}` +
	`{{range .spec.initContainers}}{{with .restartPolicy}}{{.}}{{end}}/{{with .resources.requests}}{{with .cpu}}{{.}}{{end}}/{{with .memory}}{{.}}{{end}}{{end}} {{end}}{{"\n"}}{{end}}`

// pod holds the fields of a Pod object that a drain reads.
type pod struct {
	namespace, name, node, phase string
	controller                   string // "StatefulSet web"; "" if there is none
	mirror                       bool   // of a static pod
	deletion                     string // when it ends at the latest, if it is being deleted
	grace                        string // in seconds, of that deletion
	emptyDir, hostPath           bool
	labels                       map[string]string
	requests                     resources
}

func (p pod) String() string { return p.namespace + "/" + p.name }

// parsePod parses a line of podRows.
func parsePod(line string) (pod, error) {
	f := strings.Split(line, "\t")
	if len(f) != 12 || f[0] == "" || f[1] == "" {
		return pod{}, fmt.Errorf("kubectl get pods: unexpected output %q", line)
	}
	volumes := strings.Fields(f[8])
	p := pod{namespace: f[0], name: f[1], node: f[2], phase: f[3], controller: f[4], mirror: f[5] != "", deletion: f[6], grace: f[7],
		emptyDir: slices.Contains(volumes, "emptyDir"), hostPath: slices.Contains(volumes, "hostPath"), labels: map[string]string{}}
	for label := range strings.FieldsSeq(f[9]) {
		key, value, _ := strings.Cut(label, "=")
		p.labels[key] = value
	}
	p.requests = podRequests(f[10], f[11])
	return p, nil
}

// kind returns the kind of the pod's controller.
func (p pod) kind() string {
	kind, _, _ := strings.Cut(p.controller, " ")
	return kind
}

func (p pod) terminating() bool { return p.deletion != "" }

// finished reports whether the containers of the pod have ended for good.
func (p pod) finished() bool { return p.phase == "Succeeded" || p.phase == "Failed" }

// evicted reports whether kubectl drain evicts the pod.
func (p pod) evicted() bool { return !p.mirror && p.kind() != "DaemonSet" }

// unmanaged reports whether kubectl drain refuses the pod without --force, because nothing
// starts it again.
func (p pod) unmanaged() bool { return p.controller == "" && !p.finished() }

// listPods returns the pods of a node; of the cluster if node is "".
func listPods(ctx context.Context, h *steps.Host, node string) ([]pod, error) {
	args := []string{"get", "pods", "-A", "-o", podRows}
	if node != "" {
		args = append(args, "--field-selector=spec.nodeName="+node)
	}
	out, err := list(ctx, h, args...)
	if err != nil {
		return nil, err
	}
	var all []pod
	for line := range strings.Lines(out) {
		p, err := parsePod(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// podsToEvict returns the pods of a node that a drain evicts.
func podsToEvict(ctx context.Context, h *steps.Host, node string) ([]pod, error) {
	all, err := listPods(ctx, h, node)
	return slices.DeleteFunc(all, func(p pod) bool { return !p.evicted() }), err
}

// list runs kubectl with output that may be long.
func list(ctx context.Context, h *steps.Host, args ...string) (string, error) {
	res, err := h.Run(ctx, runner.Cmd{Limit: maxList, Argv: op.Kubectl(kubectl.AdminConf, append([]string{"--request-timeout=30s"}, args...)...)})
	return string(res.Stdout), err
}

// resources are requested or allocatable: CPUs, bytes of memory, and pods.
type resources struct{ cpu, memory, pods float64 }

func (r resources) plus(o resources) resources {
	return resources{r.cpu + o.cpu, r.memory + o.memory, r.pods + o.pods}
}

func (r resources) minus(o resources) resources {
	return resources{r.cpu - o.cpu, r.memory - o.memory, r.pods - o.pods}
}

// shortOf lists what of need is more than r has: "3.5 of 3 CPUs".
func (r resources) shortOf(need resources) []string {
	var out []string
	if need.cpu > r.cpu {
		out = append(out, fmt.Sprintf("%s of %s CPUs", strconv.FormatFloat(need.cpu, 'f', -1, 64), strconv.FormatFloat(r.cpu, 'f', -1, 64)))
	}
	if need.memory > r.memory {
		out = append(out, fmt.Sprintf("%.1f of %.1f GiB of memory", need.memory/(1<<30), r.memory/(1<<30)))
	}
	if need.pods > r.pods {
		out = append(out, fmt.Sprintf("%.0f of %.0f pods", need.pods, r.pods))
	}
	return out
}

// podRequests returns what a pod requests, as the scheduler counts it: containers and sidecars
// run together, each other init container before them. Columns are those of podRows.
func podRequests(containers, inits string) resources {
	var run, largest resources
	for c := range strings.FieldsSeq(containers) {
		run = run.plus(parseRequests(c))
	}
	for c := range strings.FieldsSeq(inits) {
		restart, requests, _ := strings.Cut(c, "/")
		r := parseRequests(requests)
		if restart == "Always" {
			run = run.plus(r)
			continue
		}
		largest = resources{cpu: max(largest.cpu, r.cpu), memory: max(largest.memory, r.memory)}
	}
	return resources{cpu: max(run.cpu, largest.cpu), memory: max(run.memory, largest.memory), pods: 1}
}

func parseRequests(text string) resources {
	cpu, memory, _ := strings.Cut(text, "/")
	return resources{cpu: quantity(cpu), memory: quantity(memory)}
}

// quantity returns the value of a Kubernetes quantity, such as "100m" or "1Gi"; 0 if it is
// none.
func quantity(text string) float64 {
	i := strings.IndexFunc(text, func(r rune) bool { return r != '.' && r != '-' && r != '+' && (r < '0' || r > '9') })
	if i < 0 {
		i = len(text)
	}
	number, suffix := text[:i], text[i:]
	factor, ok := map[string]float64{
		"": 1, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
		"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50, "Ei": 1 << 60,
	}[suffix]
	if !ok { // an exponent, "1e3"
		number, factor = text, 1
	}
	value, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0
	}
	return value * factor
}
