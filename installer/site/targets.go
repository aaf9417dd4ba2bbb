package site

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

// CheckTargets checks the names of the hosts that the user has selected for a pipeline.
func CheckTargets(p plan.Pipeline, c *manifest.Cluster, names []string) error {
	known := hostNames(c.Spec.Hosts)
	may := known
	if p.TargetHosts != nil {
		may = hostNames(p.TargetHosts(c))
	}
	for _, name := range names {
		switch {
		case !slices.Contains(known, name):
			return &refusal.Error{Err: fmt.Errorf("the config has no host %s%s", name, refusal.DidYouMean(name, known)), Kind: refusal.Usage, Advice: "use host names of spec.hosts"}
		case !slices.Contains(may, name):
			return &refusal.Error{Err: fmt.Errorf("kubexm %s does not work on host %s%s", strings.Join(p.Command, " "), name, refusal.DidYouMean(name, may)), Kind: refusal.Usage,
				Advice: "choose among " + strings.Join(may, ", ")}
		}
	}
	return nil
}

func hostNames(hosts []manifest.Host) []string {
	var out []string
	for _, h := range hosts {
		out = append(out, h.Name)
	}
	return out
}
