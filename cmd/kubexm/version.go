package main

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/bundle/sbom"
)

// version is set by the release build with -ldflags -X.
var version = ""

func (a *app) versionCommand() *cobra.Command {
	var sbom bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print kubexm's version, or its bill of materials",
		Long: `Print the version of kubexm, the Go version that built it, and its platform.

With --sbom, print its software bill of materials as CycloneDX 1.6 instead: every module that is
linked into this program, with the version and checksum from its build information.`,
		Example: `  kubexm version
  kubexm version -o json
  kubexm version --sbom > kubexm.cdx.json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if sbom {
				return a.printOwnSBOM()
			}
			if a.structured() {
				return a.printValue(struct {
					Version  string `json:"version"`
					Go       string `json:"go"`
					Platform string `json:"platform"`
				}{ownVersion(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH})
			}
			_, err := fmt.Fprint(a.out, versionLine())
			return err
		},
	}
	cmd.Flags().BoolVar(&sbom, "sbom", false, "print kubexm's bill of materials as CycloneDX")
	a.outputFlag(cmd, "text", "json")
	return cmd
}

// versionLine returns the output of `kubexm version` and `kubexm --version`.
func versionLine() string {
	return fmt.Sprintf("kubexm %s %s %s/%s\n", ownVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func (a *app) printOwnSBOM() error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return errors.New("this program has no build information; build it with go build")
	}
	text, err := sbom.Program("kubexm", ownVersion(), info)
	if err != nil {
		return err
	}
	_, err = a.out.Write(text)
	return err
}

// ownVersion returns the release's version, else the module's, else "dev".
func ownVersion() string {
	if version != "" {
		return version
	}
	if bi, ok := debug.ReadBuildInfo(); ok && bi.Main.Version != "" && bi.Main.Version != "(devel)" {
		return bi.Main.Version
	}
	return "dev"
}
