package images

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/mensylisir/kubexm/testdata/lab/components"
	"github.com/mensylisir/kubexm/testdata/lab/mirror"
)

// The configs forward between sockets of a folder: no test takes a port that it does not have.
const (
	haproxyConfig = `global
    maxconn 100
defaults
    mode tcp
    timeout connect 1s
    timeout client 10s
    timeout server 10s
frontend in
    bind unix@/tmp/in
    default_backend out
backend out
    server one unix@/tmp/%s
`
	nginxConfig = `worker_processes 1;
error_log stderr;
pid /tmp/pid;
events {}
stream {
    server {
        listen unix:/tmp/in;
        proxy_pass unix:/tmp/%s;
    }
}
`
)

// TestBalancersRun runs the images' programs as a pod does: by upstream's user, without a file
// to write beside a folder. Each forwards, and takes another config by its signal.
func TestBalancersRun(t *testing.T) {
	if os.Getuid() != 0 || runtime.GOOS != "linux" {
		t.Skip("needs root on Linux, to change the root folder")
	}
	cache, err := components.DefaultCache()
	if err != nil {
		t.Fatal(err)
	}
	disks, err := filepath.Glob(filepath.Join(cache, "rootfs", "debian-12-*.img"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mirror.Open(cache).Sources(); err != nil || len(disks) == 0 {
		t.Skip("the lab's root file system or its packages are not in the cache: make lab-up lab-down")
	}
	references := []string{"docker.io/library/nginx:1.2.3-alpine", "registry.k8s.io/pause:3.10", "docker.io/library/haproxy:4.5.6-alpine"}
	b, err := MakeBalancers(t.Context(), t.TempDir(), strings.TrimSuffix(disks[0], ".img"), mirror.Open(cache).Package, references, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"nginx", "haproxy"} {
		if note := b.Notes[i]; !strings.HasPrefix(note, references[2*i]+" is Debian's "+name+" ") {
			t.Errorf("%s is noted as %q", name, note)
		}
	}
	for reference, c := range map[string]struct {
		config, text, program string
		user                  uint32
		reload, stop          syscall.Signal
	}{
		references[0]: {"/etc/nginx/nginx.conf", nginxConfig, debiansNGINX, 101, syscall.SIGHUP, syscall.SIGQUIT},
		references[2]: {"/usr/local/etc/haproxy/haproxy.cfg", haproxyConfig, "/usr/local/sbin/haproxy", 99, syscall.SIGUSR2, syscall.SIGUSR1},
	} {
		t.Run(filepath.Base(c.program), func(t *testing.T) {
			root, config := unpackImage(t, b.Layout, reference)
			if want := strconv.Itoa(int(c.user)); !strings.Contains(readFile(t, root+"/etc/passwd"), ":"+want+":"+want+":") {
				t.Errorf("no user is %s", want)
			}
			for _, name := range []string{"a", "b"} {
				answer(t, filepath.Join(root, "tmp", name), name)
			}
			put := func(to string) {
				if err := os.WriteFile(root+c.config, fmt.Appendf(nil, c.text, to), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			within := func(args ...string) (*exec.Cmd, *bytes.Buffer) {
				cmd := exec.CommandContext(t.Context(), "/bin/sh", append([]string{"-c", `exec "$@"`, "sh"}, args...)...)
				cmd.Env, cmd.Dir = config.Config.Env, cmp.Or(config.Config.WorkingDir, "/")
				cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: c.user, Gid: c.user}}
				var said bytes.Buffer
				cmd.Stdout, cmd.Stderr = &said, &said
				return cmd, &said
			}
			put("a")
			test := map[syscall.Signal][]string{syscall.SIGHUP: {"nginx", "-t"}, syscall.SIGUSR2: {"haproxy", "-c", "-f", c.config}}[c.reload]
			if cmd, said := within(test...); cmd.Run() != nil {
				t.Fatalf("%s: %s", test, said)
			}
			cmd, said := within(append(config.Config.Entrypoint, config.Config.Cmd...)...)
			cmd.WaitDelay = 10 * time.Second // for the output of what it leaves behind
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait(); close(ended) }()
			t.Cleanup(func() {
				_ = cmd.Process.Kill()
				t.Logf("it ended (%v), and said\n%s", <-ended, said)
			})
			forwards(t, root, "a", func() error { return nil })
			if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", cmd.Process.Pid)); err != nil || !strings.HasSuffix(exe, c.program) {
				t.Errorf("the first process is %s, %v: signals do not reach %s", exe, err, c.program)
			}
			put("b")
			forwards(t, root, "b", func() error { return cmd.Process.Signal(c.reload) })
			stops(t, ended, func() error { return cmd.Process.Signal(c.stop) })
		})
	}
}

// unpackImage gives a folder with an image's files, and its config.
func unpackImage(t *testing.T, dir, reference string) (string, *v1.ConfigFile) {
	t.Helper()
	root := t.TempDir()
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	all, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all.Manifests {
		if d.Annotations[refName] != reference {
			continue
		}
		own, err := index.ImageIndex(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		m, err := own.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		image, err := own.Image(m.Manifests[0].Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		files := mutate.Extract(image)
		defer files.Close()
		tar := exec.CommandContext(t.Context(), "tar", "--extract", "--no-same-owner", "--directory", root)
		tar.Stdin = files
		if out, err := tar.CombinedOutput(); err != nil {
			t.Fatalf("%s (%v)", out, err)
		}
		for name, mode := range map[string]os.FileMode{root: 0o755, root + "/tmp": 0o777 | os.ModeSticky} { // a pod mounts a folder there
			if err := os.Chmod(name, mode); err != nil {
				t.Fatal(err)
			}
		}
		null := root + "/dev/null" // as a runtime makes it
		if err := errors.Join(os.MkdirAll(root+"/dev", 0o755), syscall.Mknod(null, syscall.S_IFCHR|0o666, 1<<8|3), os.Chmod(null, 0o666)); err != nil {
			t.Fatal(err)
		}
		return root, config
	}
	t.Fatalf("the layout has no %s", reference)
	return "", nil
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// answer has a socket give a name to who connects.
func answer(t *testing.T, socket, name string) {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(socket, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, name) // who is gone needs no name
			_ = c.Close()
		}
	}()
}

// stops waits until the balancer ends. It asks for that every two seconds, as forwards does.
func stops(t *testing.T, ended <-chan error, ask func() error) {
	t.Helper()
	for range 30 {
		if err := ask(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("after the image's stop signal: %v", err)
			}
			return
		case <-time.After(2 * time.Second):
		}
	}
	t.Fatal("it does not end by the image's stop signal")
}

// forwards waits until the balancer forwards to a name. It asks for that every two seconds:
// haproxy's master ignores signals while it starts and while it reloads.
func forwards(t *testing.T, root, name string, ask func() error) {
	t.Helper()
	var last error
	for n := range 1200 {
		if n%40 == 0 {
			if err := ask(); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(50 * time.Millisecond)
		var d net.Dialer
		c, err := d.DialContext(t.Context(), "unix", root+"/tmp/in")
		if last = err; err != nil {
			continue
		}
		got, err := io.ReadAll(c)
		last = errors.Join(err, c.Close(), fmt.Errorf("it forwards to %q", got))
		if string(got) == name {
			return
		}
	}
	t.Fatalf("it never forwards to %s: %v", name, last)
}
