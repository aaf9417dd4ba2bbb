package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/mensylisir/kubexm/manifest"
)

// Options configures a Client. Cache is required; the zero value of everything
// else is a sane default.
type Options struct {
	Cache    *Cache
	Base     string           // the folder that paths in a lock start from: the config's
	Sources  manifest.Sources // what stands in for upstream, certificates and credentials
	Helm     string           // Helm's list of repositories, repositories.yaml, for their logins; unless Sources names credentials
	Log      *slog.Logger     // nil says nothing
	Progress Progress         // nil tells nobody
	Note     func(string)     // told what a person should know of what is pinned; nil: the log is
	Etc      string           // where this machine's package repositories are configured; /etc

	Parallel  int    // connections to one host at once; 8
	UserAgent string // "kubexm"

	Stall      time.Duration // how long a source may send next to nothing; 30 s
	Attempts   int           // tries without progress before giving up; 6
	Backoff    time.Duration // pause before the second try, doubled for each further one; 500 ms
	MaxBackoff time.Duration // longest pause of ours; 30 s
	MaxWait    time.Duration // longest pause that a server may ask for; 2 min
}

// Client gets pinned artifacts into a cache. It is safe for concurrent use; how
// many of its calls run at once is the caller's choice.
type Client struct {
	cache   *Cache
	options Options
	log     *slog.Logger
	http    *http.Client
	base    *transport
	limits  limits
	keys    authn.Keychain
	helm    []helmRepository

	noted sync.Map // what Note was told
	read  sync.Map // sha256 of an address of packages' metadata → sha256 of what was found there in this run

	mu           sync.Mutex
	repositories map[string]*http.Client // by registry/repository
	entering     keyedMutex              // the repositories being logged in to
}

// New makes a Client.
func New(o Options) (*Client, error) {
	if o.Cache == nil {
		return nil, errors.New("a fetch client needs a cache")
	}
	o.setDefaults()
	var pool *x509.CertPool // nil: the system's
	if o.Sources.CAFile != "" {
		var err error
		if pool, err = certificates(o.Sources.CAFile); err != nil {
			return nil, err
		}
	}
	keys, err := keychain(o.Sources.DockerConfig)
	if err != nil {
		return nil, err
	}
	var helm []helmRepository
	if o.Sources.DockerConfig == "" {
		if helm, err = helmRepositories(o.Helm); err != nil {
			return nil, err
		}
	}
	base := newTransport(o, &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12})
	return &Client{
		cache:        o.Cache,
		options:      o,
		log:          o.Log,
		http:         &http.Client{Transport: base, CheckRedirect: checkRedirect},
		base:         base,
		limits:       defaultLimits(),
		keys:         keys,
		helm:         helm,
		repositories: map[string]*http.Client{},
	}, nil
}

func (o *Options) setDefaults() {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Progress == nil {
		o.Progress = silent{}
	}
	if o.Note == nil {
		o.Note = func(text string) { o.Log.Warn("of what is pinned", "note", text) }
	}
	orInt(&o.Parallel, 8)
	orInt(&o.Attempts, 6)
	orDuration(&o.Stall, 30*time.Second)
	orDuration(&o.Backoff, 500*time.Millisecond)
	orDuration(&o.MaxBackoff, 30*time.Second)
	orDuration(&o.MaxWait, 2*time.Minute)
	if o.UserAgent == "" {
		o.UserAgent = "kubexm"
	}
}

func orInt(n *int, d int) {
	if *n <= 0 {
		*n = d
	}
}

func orDuration(n *time.Duration, d time.Duration) {
	if *n <= 0 {
		*n = d
	}
}

// certificates reads the system's certificates and those in file.
func certificates(file string) (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("read the system's certificates: %w", err)
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read certificates: %w", err)
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read certificates: %s holds none in PEM form", file)
	}
	return pool, nil
}

// plainKey marks a context whose requests may go over plain http.
type plainKey struct{}

func allowPlainHTTP(ctx context.Context, plain bool) context.Context {
	if !plain {
		return ctx
	}
	return context.WithValue(ctx, plainKey{}, true)
}

func plainHTTPAllowed(ctx context.Context) bool {
	allowed, _ := ctx.Value(plainKey{}).(bool)
	return allowed
}
