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
		Short: "Build, verify and read bundles",
		Long: `A bundle is one archive, NAME.tar.zst, with every binary and image that a cluster config
requires. Each is pinned by digest in a lock file. The archive contains an OCI image layout:
"tar --zstd -tf" lists it, and "kubexm bundle extract --oci" writes its images for OCI tools.`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(a.bundleBuild(), a.bundleLock(), a.bundleLs(), a.bundleShow(), a.bundleVerify(), a.bundleSign(), a.bundleCheck(), a.bundleExtract(), a.bundleImages(),
		a.bundleSplit(), a.bundleJoin(), a.bundleRepair(), a.bundleDiff(), a.bundlePush(), a.bundlePull(), a.bundleSBOM())
	return cmd
}

// sourceFlags are the flags of the commands that resolve a config and query upstream.
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
	fs.StringVar(&f.lock, "lock", "", "the lock file (default kubexm.lock in the config's folder)")
	fs.StringVar(&f.sources, "sources", "", "a file of kind Sources: mirrors that override spec.sources")
	fs.StringVar(&f.versions, "versions", "", useVersions)
	fs.StringVar(&f.cacheDir, "cache-dir", "", useCacheDir)
	fs.IntVarP(&f.parallel, "parallel", "p", 8, useParallel+"downloads")
	for _, name := range []string{"filename", "sources", "versions"} {
		_ = cmd.MarkFlagFilename(name, "yaml", "yml")
	}
	_ = cmd.MarkFlagRequired("filename")
}

// lockPath returns the path of the lock file: --lock, else kubexm.lock in the config's
// folder.
func (f *sourceFlags) lockPath() string {
	if f.lock != "" {
		return f.lock
	}
	if f.config == "-" {
		return "kubexm.lock"
	}
	return filepath.Join(filepath.Dir(f.config), "kubexm.lock")
}

// cacheDirVariable is the environment variable that is used without --cache-dir.
const cacheDirVariable = "KUBEXM_CACHE"

func (a *app) cache(f *sourceFlags) (*fetch.Cache, error) {
	dir := f.cacheDir
	if dir == "" {
		dir, _ = a.env(cacheDirVariable)
	}
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return nil, &refusal.Error{Err: err, Kind: refusal.Usage, Advice: "specify a folder with --cache-dir"}
		}
		dir = filepath.Join(base, "kubexm")
	}
	c, err := fetch.OpenCache(dir)
	if err != nil {
		return nil, fmt.Errorf("open cache: %w", err)
	}
	return c, nil
}

// heldCache opens the cache and locks it against `kubexm cache prune`. The caller must
// call the returned function when the command ends.
func (a *app) heldCache(ctx context.Context, f *sourceFlags) (*fetch.Cache, func(), error) {
	c, err := a.cache(f)
	if err != nil {
		return nil, nil, err
	}
	release, err := c.Hold(ctx)
	return c, release, err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
