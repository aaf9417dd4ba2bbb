package images

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// packaged is an image with programs of Debian's packages, under the name of upstream's image:
// programs in C whose source no Go module has.
type packaged struct {
	repository string
	packages   []string          // the program's is the first; the rest is what the hosts' Debian lacks for it
	programs   map[string]string // path in the package → path in the image
	scripts    map[string]string // path in the image → text
	users      map[string]int    // with groups of the same name and number, beside root
	folders    []string          // empty ones
	links      map[string]string // path in the image → where it leads
	config     v1.Config
}

// balancers are the load balancers in front of API servers. Paths, users, entry points and
// signals are those of upstream's images: github.com/docker-library/haproxy and
// github.com/nginxinc/docker-nginx, the Dockerfiles of alpine.
var balancers = []packaged{
	{
		repository: "docker.io/library/haproxy",
		packages:   []string{"haproxy", "liblua5.3-0", "libopentracing-c-wrapper0", "libopentracing1"},
		programs:   map[string]string{"/usr/sbin/haproxy": "/usr/local/sbin/haproxy", shell: shell},
		scripts: map[string]string{"/usr/local/bin/docker-entrypoint.sh": `#!/bin/sh
# Upstream's adds the same two flags.
case $1 in
-*) set -- haproxy "$@" ;;
esac
if [ "$1" = haproxy ]; then
	shift
	set -- haproxy -W -db "$@"
fi
exec "$@"
`},
		users:   map[string]int{"haproxy": 99},
		folders: []string{"/usr/local/etc/haproxy/", "/var/lib/haproxy/", "/run/", "/tmp/"},
		config: v1.Config{
			Entrypoint: []string{"docker-entrypoint.sh"}, Cmd: []string{"haproxy", "-f", "/usr/local/etc/haproxy/haproxy.cfg"},
			User: "haproxy", WorkingDir: "/var/lib/haproxy", StopSignal: "SIGUSR1",
		},
	},
	{
		repository: "docker.io/library/nginx",
		packages:   []string{"nginx", "libnginx-mod-stream"},
		programs:   map[string]string{"/usr/sbin/nginx": debiansNGINX, streamModule: streamModule, shell: shell},
		scripts: map[string]string{
			"/docker-entrypoint.sh": "#!/bin/sh\n# Upstream's changes files before that, where it may.\nexec \"$@\"\n",
			"/usr/sbin/nginx": `#!/bin/sh
# Upstream's nginx has the module stream built in. Debian's is a file, which -g loads here.
# Of several -g nginx takes the last, so the caller's is joined to it.
directives='load_module ` + streamModule + `;'
left=$#
while [ "$left" -gt 0 ]; do
	if [ "$1" = -g ] && [ "$left" -gt 1 ]; then
		directives="$directives $2"
		shift 2
		left=$((left - 2))
	else
		set -- "$@" "$1"
		shift
		left=$((left - 1))
	fi
done
exec ` + debiansNGINX + ` -g "$directives" "$@"
`,
		},
		// Debian's nginx runs its workers as www-data where nothing is said, upstream's as nginx.
		users:   map[string]int{"nginx": 101, "www-data": 101},
		folders: []string{"/etc/nginx/conf.d/", "/var/cache/nginx/", "/run/", "/tmp/"},
		links: map[string]string{
			"/var/log/nginx/access.log": "/dev/stdout", "/var/log/nginx/error.log": "/dev/stderr", "/var/run": "../run",
			"/var/lib/nginx": "../cache/nginx", // where Debian's writes temporary files
		},
		config: v1.Config{Entrypoint: []string{"/docker-entrypoint.sh"}, Cmd: []string{"nginx", "-g", "daemon off;"}, StopSignal: "SIGQUIT"},
	},
}

const (
	shell        = "/usr/bin/dash"
	debiansNGINX = "/usr/lib/nginx/nginx"
	streamModule = "/usr/lib/nginx/modules/ngx_stream_module.so"
)

// shellLinks are the names that the loader, the shell and the programs go by as well.
var shellLinks = map[string]string{"/bin": "usr/bin", "/sbin": "usr/sbin", "/lib": "usr/lib", "/lib64": "usr/lib64", "/usr/bin/sh": "dash"}

// Balancers are images of load balancers.
type Balancers struct {
	Layout string   // the folder of an OCI layout; "" where nobody asked for one of them
	Notes  []string // what each is, in a line
}

// MakeBalancers gives an image for each of references that names a load balancer, whatever
// its tag. deb gives the file of a package of Debian; the rest comes from rootfs.
func MakeBalancers(ctx context.Context, cache, rootfs string, deb func(name string) (string, error), references []string, log io.Writer) (Balancers, error) {
	var b Balancers
	var all []asked
	for _, reference := range references {
		for _, p := range balancers {
			if !strings.HasPrefix(reference, p.repository+":") {
				continue
			}
			a := asked{packaged: p, reference: reference}
			for _, name := range p.packages {
				file, err := deb(name)
				if err != nil {
					return b, fmt.Errorf("image %s: %w", reference, err)
				}
				a.debs = append(a.debs, file)
			}
			all = append(all, a)
			b.Notes = append(b.Notes, reference+" is "+a.is()+", and stands for upstream's.")
		}
	}
	if len(all) == 0 {
		return b, nil
	}
	sum := sha256.New()
	fmt.Fprintln(sum, generation, filepath.Base(rootfs), shellLinks)
	for _, a := range all {
		fmt.Fprintln(sum, a.reference, a.packaged, a.names())
	}
	var err error
	b.Layout, err = once(cache, fmt.Sprintf("balancers-%x", sum.Sum(nil)[:6]), log, func(part string) (int, error) {
		out, err := layout.Write(part, empty.Index)
		if err != nil {
			return 0, err
		}
		for _, a := range all {
			if err := a.add(ctx, out, cache, rootfs); err != nil {
				return 0, fmt.Errorf("image %s: %w", a.reference, err)
			}
		}
		return len(all), nil
	})
	return b, err
}

// asked is an image under the reference that it is asked for by.
type asked struct {
	packaged
	reference string
	debs      []string // files of packages
}

// names gives the packages' names with their versions, as files are named.
func (a asked) names() (all []string) {
	for _, file := range a.debs {
		all = append(all, filepath.Base(file))
	}
	return all
}

// version is that of the program's package: haproxy_2.6.12-1_amd64.deb is 2.6.12-1.
func (a asked) version() string {
	parts := strings.Split(filepath.Base(a.debs[0]), "_")
	return parts[min(1, len(parts)-1)]
}

func (a asked) is() string { return "Debian's " + a.packages[0] + " " + a.version() }

// add makes the image and appends it to a layout. Layers are read once, when they are appended.
func (a asked) add(ctx context.Context, out layout.Path, cache, rootfs string) error {
	dir, err := os.MkdirTemp(cache, "balancer-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	files, err := unpack(ctx, filepath.Join(dir, "debian"), rootfs, a.debs, a.programs)
	if err != nil {
		return err
	}
	if err := a.write(filepath.Join(dir, "texts"), files); err != nil {
		return err
	}
	links := maps.Clone(shellLinks)
	maps.Copy(links, a.links)
	top, err := layer(files, links)
	if err != nil {
		return err
	}
	config := a.config
	config.Env = []string{searchPath}
	config.Labels = map[string]string{
		"org.opencontainers.image.title":       a.packages[0],
		"org.opencontainers.image.version":     a.version(),
		"org.opencontainers.image.description": a.is() + ", packed by the kubexm lab, standing for " + a.reference,
	}
	index, err := indexOf(runtime.GOARCH, config, top)
	if err != nil {
		return err
	}
	return out.AppendIndex(index, layout.WithAnnotations(map[string]string{refName: a.reference}))
}

// accounts are the files that users and groups are looked up in.
func (a asked) accounts() map[string]string {
	users, groups := "root:x:0:0:root:/root:/bin/sh\n", "root:x:0:\n"
	for _, name := range slices.Sorted(maps.Keys(a.users)) {
		users += fmt.Sprintf("%s:x:%d:%[2]d::/nonexistent:/sbin/nologin\n", name, a.users[name])
		groups += fmt.Sprintf("%s:x:%d:\n", name, a.users[name])
	}
	return map[string]string{"/etc/passwd": users, "/etc/group": groups}
}

// write notes in files what the image has beside programs, in a folder on disk.
func (a asked) write(dir string, files map[string]string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for mode, texts := range map[os.FileMode]map[string]string{0o755: a.scripts, 0o644: a.accounts()} {
		for name, text := range texts {
			at := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
			if err := os.WriteFile(at, []byte(text), mode); err != nil {
				return err
			}
			files[name] = at
		}
	}
	for _, name := range a.folders {
		files[name] = ""
	}
	return nil
}
