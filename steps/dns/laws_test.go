package dns_test

import (
	"testing"

	"github.com/mensylisir/kubexm/steps/dns"
	"github.com/mensylisir/kubexm/steps/steptest"
)

func TestStepsKeepTheirLaws(t *testing.T) {
	hosts := steptest.Cluster(t, steptest.Small+"  dns: {dnsEtcHosts: \"192.0.2.50 git.site.local\"}\n")
	steptest.Do(t, steptest.Case{Cluster: hosts, Before: steptest.ExistingCluster(hosts)}, dns.CoreDNS(hosts), true)
	cached := steptest.Cluster(t, steptest.Small+"  dns: {nodelocaldns: {enabled: true}}\n")
	steptest.Do(t, steptest.Case{Cluster: cached, Before: steptest.ExistingCluster(cached)}, dns.Cache(cached), true)
}
