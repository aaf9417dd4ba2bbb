package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/bundle/fetch"
	"github.com/mensylisir/kubexm/manifest/refusal"
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

func stands(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
