package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/archive"
	"github.com/mensylisir/kubexm/bundle/fetch"
	"github.com/mensylisir/kubexm/manifest/refusal"
	"github.com/mensylisir/kubexm/packaging/apt"
)

func (a *app) bundleCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bundle",
		Short: "Build, check and open bundles",
		Long: `A bundle is one archive, NAME.tar.zst, with every binary and image that a cluster
config asks for, each pinned by digest in a lock. It is an OCI layout inside:
"tar --zstd -tf" lists it, and "kubexm bundle extract --oci" hands it to any OCI tool.`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(a.bundleBuild(), a.bundleLock(), a.bundleLs(), a.bundleShow(), a.bundleVerify(), a.bundleSign(), a.bundleCheck(), a.bundleExtract(), a.bundleImages(),
		a.bundleSplit(), a.bundleJoin(), a.bundleRepair(), a.bundleDiff(), a.bundlePush(), a.bundlePull(), a.bundleSBOM())
	return cmd
}

// sourceFlags are the flags of the commands that resolve a config and ask upstream.
type sourceFlags struct {
	config   string
	lock     string
	sources  string
	versions string
	cacheDir string
	parallel int
	update   bool
}

func (f *sourceFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVarP(&f.config, "filename", "f", "", also(useConfig, "- reads standard input"))
	fs.StringVar(&f.lock, "lock", "", "the lock (default kubexm.lock beside the config)")
	fs.StringVar(&f.sources, "sources", "", "a file of kind Sources: mirrors, laid over spec.sources")
	fs.StringVar(&f.versions, "versions", "", "a file of kind Versions: own versions and digests, laid over the embedded matrix")
	fs.StringVar(&f.cacheDir, "cache-dir", "", useCacheDir)
	fs.IntVarP(&f.parallel, "parallel", "p", 8, useParallel+"downloads")
	for _, name := range []string{"filename", "sources", "versions"} {
		_ = cmd.MarkFlagFilename(name, "yaml", "yml")
	}
	_ = cmd.MarkFlagRequired("filename")
}

// lockPath is where the lock stands: beside the config, unless a flag says otherwise.
func (f *sourceFlags) lockPath() string {
	if f.lock != "" {
		return f.lock
	}
	if f.config == "-" {
		return "kubexm.lock"
	}
	return filepath.Join(filepath.Dir(f.config), "kubexm.lock")
}

// cacheDirVariable names the environment variable that stands in for --cache-dir.
const cacheDirVariable = "KUBEXM_CACHE"

func (a *app) cache(f *sourceFlags) (*fetch.Cache, error) {
	dir := f.cacheDir
	if dir == "" {
		dir, _ = a.env(cacheDirVariable)
	}
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return nil, &refusal.Error{Err: err, Kind: refusal.Usage, Advice: "name a folder with --cache-dir"}
		}
		dir = filepath.Join(base, "kubexm")
	}
	c, err := fetch.OpenCache(dir)
	if err != nil {
		return nil, fmt.Errorf("open cache: %w", err)
	}
	return c, nil
}

// heldCache is a cache that nobody prunes until the command has ended.
func (a *app) heldCache(ctx context.Context, f *sourceFlags) (*fetch.Cache, func(), error) {
	c, err := a.cache(f)
	if err != nil {
		return nil, nil, err
	}
	release, err := c.Hold(ctx)
	return c, release, err
}

// noBundle says that there is no archive of a name, and which one may be meant.
func noBundle(err *fs.PathError) error {
	advice := "name a bundle: NAME.tar.zst, or NAME.tar.zst.001 where it is in volumes"
	if first := err.Path + bundle.FirstVolume; stands(first) {
		advice = "it is in volumes: name " + first
	}
	return &refusal.Error{Err: &fs.PathError{Op: "open", Path: err.Path, Err: err.Err}, Kind: refusal.Usage, Advice: advice}
}

func stands(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// refused gives an error about a bundle, a lock or an artifact its exit code
// and, where there is something to do, advice.
func refused(err error) error {
	if _, known := errors.AsType[*refusal.Error](err); known {
		return err // it says itself what to do
	}
	var format *bundle.FormatError
	var damaged *archive.Error
	var wrong *fetch.DigestError
	var size *fetch.SizeError
	var space *bundle.SpaceError
	var exists *bundle.ExistsError
	var name *bundle.NameError
	var path *fs.PathError
	for _, of := range []func(error) error{refusedDelta, untrusted} {
		if known := of(err); known != nil {
			return known
		}
	}
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong), errors.As(err, &size), refusedPackages(err):
		return &refusal.Error{Err: err, Kind: refusal.Content} // says itself what to do
	case errors.As(err, &name):
		return &refusal.Error{Err: err, Kind: refusal.Usage, Advice: "`kubexm bundle ls` lists what it holds"}
	case errors.As(err, &exists):
		return &refusal.Error{Err: err, Kind: refusal.Usage, Advice: "name a new folder"}
	case errors.Is(err, archive.ErrBusy):
		return &refusal.Error{Err: err, Kind: refusal.Failed, Advice: "wait for the other build, or choose another name for the archive"}
	case errors.Is(err, archive.ErrInput):
		errors.As(err, &damaged)
		return &refusal.Error{Err: err, Kind: refusal.Usage, Advice: damaged.Advice}
	case errors.As(err, &damaged) && damaged.Advice != "":
		return &refusal.Error{Err: err, Kind: refusal.Content, Advice: damaged.Advice}
	case errors.As(err, &format), errors.As(err, &damaged):
		advice := "carry the archive again, or build it anew"
		if format != nil && format.Advice != "" {
			advice = format.Advice
		}
		return &refusal.Error{Err: err, Kind: refusal.Content, Advice: advice}
	case errors.As(err, &path) && path.Op == "stat" && errors.Is(path, fs.ErrNotExist):
		return noBundle(path)
	case errors.As(err, &space):
		return &refusal.Error{Err: err, Kind: refusal.Failed, Advice: "choose another place for the archive, or for the cache with --cache-dir"}
	}
	return err
}

// refusedPackages tells whether err is about a repository of packages, or about its
// metadata, that is not what it has to be.
func refusedPackages(err error) bool {
	var repository *apt.Refusal
	var unvouched *fetch.UnvouchedError
	var metadata *fetch.MetadataError
	return errors.As(err, &repository) || errors.As(err, &unvouched) || errors.As(err, &metadata)
}
