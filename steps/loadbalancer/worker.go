package loadbalancer

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// WorkerDir is the folder of the load balancer's files on a worker. The pod mounts it whole: a
// mounted file would stay the old one when a new one takes its name. It is not below /etc/kubexm:
// a worker may be the registry's host as well, and of two removals neither would be the one
// that finds that folder empty and its own.
const WorkerDir = "/etc/kubexm-balancer"

// WorkerProbes carries the certificate of the health checks from the API entry point to the
// workers.
var WorkerProbes = steps.NewKey[Probe]("loadbalancer.worker-probe")

// pod is the program in the static pod of a worker.
type pod struct {
	user    int    // of the image: docker.io/library/haproxy and nginx
	file    string // configuration, in WorkerDir
	command []string
	signal  string // has the program read its configuration again, and finish its connections
	probes  bool   // requests /readyz
}

func podOf(c *manifest.Cluster) pod {
	if part.EndpointOf(c).OnNodes == part.NGINX {
		return pod{user: 101, file: "nginx.conf", command: []string{"nginx", "-e", "stderr", "-c", WorkerDir + "/nginx.conf"}, signal: "-HUP"}
	}
	// The master process of -W survives a reload, and hands its listeners to the new worker.
	return pod{user: 99, file: "haproxy.cfg", command: []string{"haproxy", "-W", "-db", "-f", WorkerDir + "/haproxy.cfg"}, signal: "-USR2", probes: true}
}

// ChecksReadyOnWorkers is ChecksReady for the load balancers on workers.
func ChecksReadyOnWorkers(c *manifest.Cluster) bool { return podOf(c).probes }

// CheckWorkerTrust checks whether the load balancer on a worker has the cluster's CA, which
// authority contains, and a certificate that it has signed.
func CheckWorkerTrust(authority steps.Key[[]byte]) steps.Step {
	return checkTrust("loadbalancer.check-worker-trust", WorkerDir, authority)
}

// SignWorkerProbe has the cluster's CA sign a client certificate for the health checks of the
// load balancers on workers, where a worker has none that is valid.
func SignWorkerProbe(c *manifest.Cluster) steps.Step {
	return signProbe("loadbalancer.sign-worker-probe", part.WorkerBalancers.Names(c), WorkerProbes)
}

// InstallOnWorker runs haproxy or nginx as a static pod on a worker that has joined, for the
// clients on that worker: its kubelet, kube-proxy and pods in the host's network.
func InstallOnWorker(c *manifest.Cluster, authority steps.Key[[]byte], probe steps.Key[Probe]) steps.Step {
	return op.Ensure("loadbalancer.install-on-worker", workerResources(c, authority, probe), func(m *steps.Meta) {
		m.Timeout = podTimeout + 2*time.Minute
		if podOf(c).probes {
			m.Reads = []steps.AnyKey{authority, probe, Trusted}
		}
	})
}

// UninstallFromWorker is its inverse.
func UninstallFromWorker(c *manifest.Cluster) steps.Step {
	return op.Remove("loadbalancer.uninstall-from-worker", workerResources(c, steps.Key[[]byte]{}, steps.Key[Probe]{}))
}

func workerResources(c *manifest.Cluster, authority steps.Key[[]byte], probe steps.Key[Probe]) []op.Resource {
	p := podOf(c)
	rs := []op.Resource{op.Dir{Path: WorkerDir, Own: true}}
	if p.probes {
		rs = append(rs,
			op.File{Path: path.Join(WorkerDir, caName), Body: authorityText(authority)},
			op.File{Path: path.Join(WorkerDir, probeName), Attr: runner.Attr{Mode: 0o640, Owner: "0", Group: strconv.Itoa(p.user)}, Secret: true,
				Body: probeText(path.Join(WorkerDir, probeName), probe)})
	}
	config := op.Text(path.Join(WorkerDir, p.file), func(ctx context.Context, h *steps.Host) ([]byte, error) {
		text, _, err := workerConfig(ctx, h, c, authority, probe)
		return text, err
	})
	image := manifest.Need{Kind: manifest.Image, Name: string(part.EndpointOf(c).OnNodes)}
	static := imageFile{op.File{Path: part.WorkerBalancerPod, Attr: runner.Attr{Mode: 0o600}, Body: func(_ context.Context, h *steps.Host) ([]byte, error) {
		pin, err := h.Image(image)
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		err = templates.ExecuteTemplate(&b, "worker.yaml", map[string]any{
			"User": p.user, "Image": pin.Reference, "Command": p.command, "Health": part.BalancerHealthPort, "Dir": WorkerDir,
		})
		return b.Bytes(), err
	}}, image}
	// kubeadm join needs no folder of static pods on a worker. Modes are those of
	// controlplane.RestrictFiles.
	return append(rs, config, op.Dir{Path: path.Dir(part.WorkerBalancerPod), Attr: runner.Attr{Mode: 0o700}}, static, inUse{cluster: c, authority: authority, probe: probe})
}

// imageFile is a file that names an image of the bundle.
type imageFile struct {
	op.File
	image manifest.Need
}

func (f imageFile) Needs() []manifest.Need { return []manifest.Need{f.image} }

// workerConfig returns the configuration on a worker, and the digest by which the program
// reports that it uses it. The digest covers the certificates, which are read with it.
func workerConfig(ctx context.Context, h *steps.Host, c *manifest.Cluster, authority steps.Key[[]byte], probe steps.Key[Probe]) (text []byte, id string, err error) {
	p, e := podOf(c), part.EndpointOf(c)
	v := valuesOf(c)
	v.CA, v.Probe, v.Bind = path.Join(WorkerDir, caName), path.Join(WorkerDir, probeName), e.OnWorker()
	v.Config = "-"
	if text, err = render(p.file, v); err != nil {
		return nil, "", err
	}
	sum := sha256.New()
	sum.Write(text)
	if p.probes {
		for _, of := range []func(context.Context, *steps.Host) ([]byte, error){authorityText(authority), probeText(path.Join(WorkerDir, probeName), probe)} {
			part, err := of(ctx, h)
			if err != nil {
				return nil, "", err
			}
			sum.Write(part)
		}
	}
	v.Config = hex.EncodeToString(sum.Sum(nil))[:16]
	text, err = render(p.file, v)
	return text, v.Config, err
}

// podTimeout is how long the kubelet may take to start the pod: it looks for manifests every 20
// seconds (fileCheckFrequency), and the image is there.
const podTimeout = 3 * time.Minute

// inUse is the configuration that the program in the pod uses: it answers requests for the
// configuration's digest. Otherwise it is sent its signal, and is not restarted.
type inUse struct {
	op.NoNeeds
	cluster   *manifest.Cluster
	authority steps.Key[[]byte]
	probe     steps.Key[Probe]
}

func (inUse) String() string { return "configuration of pod kubexm-balancer" }

func (u inUse) Want(ctx context.Context, h *steps.Host, changed bool) (*op.Change, error) {
	_, id, err := workerConfig(ctx, h, u.cluster, u.authority, u.probe)
	if err != nil {
		return nil, err
	}
	if !changed {
		if status, err := ask(ctx, h, id); err != nil || status == httpOK {
			return nil, err
		}
	}
	return &op.Change{
		What:  "have the load balancer of the worker use its configuration",
		Apply: func(ctx context.Context, h *steps.Host) error { return u.use(ctx, h, id) },
		Undo:  func(context.Context, *steps.Host) error { return nil }, // the kubelet stops the pod when its manifest is gone
	}, nil
}

// Gone does nothing: the pod ends with its manifest.
func (inUse) Gone(context.Context, *steps.Host) (*op.Change, error) { return nil, nil }

const httpOK = "200"

// scriptAsk takes PORT PATH: it prints the status of an HTTP response, or nothing if there is
// none.
const scriptAsk = `exec 2>/dev/null
exec 3<>"/dev/tcp/127.0.0.1/$1" || exit 0
printf 'GET %s HTTP/1.0\r\n\r\n' "$2" >&3
read -r -t 2 version status rest <&3
printf '%s' "$status"`

// ask requests a configuration's digest from the program. The status is "" if nothing answers.
func ask(ctx context.Context, h *steps.Host, id string) (status string, err error) {
	out, err := h.Exec(ctx, "bash", "-c", scriptAsk, "bash", strconv.Itoa(part.BalancerHealthPort), "/config/"+id)
	return string(out), err
}

// signalEvery is the time between two signals: haproxy loses one that arrives while it starts.
const signalEvery = 5 * time.Second

// use waits until the program uses a configuration, and signals it until then.
func (u inUse) use(ctx context.Context, h *steps.Host, id string) error {
	var signalled time.Time
	attempt := func(ctx context.Context) error {
		status, err := ask(ctx, h, id)
		if err != nil || status == httpOK {
			return err
		}
		if status == "" {
			return errNoAnswer
		}
		container, err := first(ctx, h, "ps", "--quiet", "--state", "Running", "--name", "^balancer$", "--label", "io.kubernetes.pod.name=kubexm-balancer-"+h.Name)
		if err != nil || container == "" || time.Since(signalled) < signalEvery {
			return notYet(err)
		}
		pid, err := first(ctx, h, "inspect", "--output", "go-template", "--template", "{{.info.pid}}", container)
		if err != nil {
			return err
		}
		if _, err := h.Exec(ctx, "kill", podOf(u.cluster).signal, pid); err != nil {
			return err
		}
		signalled = time.Now()
		return notYet(nil)
	}
	err := steps.Until(ctx, podTimeout, time.Second, func(ctx context.Context) error { return unlessRefused(ctx, attempt(ctx)) })
	return steps.Advise(err, "run crictl ps -a --name balancer, crictl logs and journalctl -u kubelet on %s", h.Name)
}

// errNotInUse and errNoAnswer may pass: the kubelet has not started the container yet.
var (
	errNotInUse = errors.New("the load balancer does not use the configuration in " + WorkerDir)
	errNoAnswer = fmt.Errorf("nothing answers on port %d of the loopback address", part.BalancerHealthPort)
)

func notYet(err error) error { return cmp.Or(err, errNotInUse) }

// unlessRefused makes an error permanent, unless a program refused, nothing is there yet, or the
// time is over.
func unlessRefused(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || errors.Is(err, errNotInUse) || errors.Is(err, errNoAnswer) || runner.Refused(err) {
		return err
	}
	return steps.Permanent(err)
}

// first runs crictl and returns the first line of its output.
func first(ctx context.Context, h *steps.Host, words ...string) (string, error) {
	out, err := h.Exec(ctx, append([]string{"crictl"}, words...)...)
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line, err
}
