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
		Short: "Print kubexm's own version, or what it is made of",
		Long: `Print the version of kubexm, the release of Go that built it and the platform it is for.

With --sbom, print its bill of materials in place of that, as CycloneDX 1.6: every module that is
linked into this program, with its version and checksum, as the build itself wrote them down.`,
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
	cmd.Flags().BoolVar(&sbom, "sbom", false, "print what kubexm is made of, as CycloneDX")
	a.outputFlag(cmd, "text", "json")
	return cmd
}

// versionLine is what `kubexm version` and `kubexm --version` print.
func versionLine() string {
	return fmt.Sprintf("kubexm %s %s %s/%s\n", ownVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func (a *app) printOwnSBOM() error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return errors.New("this program was built without a list of its modules; build it with go build")
	}
	text, err := sbom.Program("kubexm", ownVersion(), info)
	if err != nil {
		return err
	}
	_, err = a.out.Write(text)
	return err
}

// ownVersion is the release's version, else the module's, else "dev".
func ownVersion() string {
	if version != "" {
		return version
	}
	if bi, ok := debug.ReadBuildInfo(); ok && bi.Main.Version != "" && bi.Main.Version != "(devel)" {
		return bi.Main.Version
	}
	return "dev"
}
