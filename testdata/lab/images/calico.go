package images

import _ "embed"

// startCalico starts the programs of calico/node, as rc.local and start_runit of upstream's image do.
//
//go:embed calico-node.sh
var startCalico string

// confd is the folder of the templates of BIRD's configuration.
const confd = "/etc/calico/confd/"

// templatesOfBIRD are the files of the component that calico's confd makes BIRD's configuration of, for
// IPv4.
func templatesOfBIRD() map[string]string {
	out := map[string]string{}
	for _, name := range []string{"bird", "bird_aggr", "bird_ipam"} {
		out[name+".toml"] = confd + "conf.d/" + name + ".toml"
		out[name+".cfg.template"] = confd + "templates/" + name + ".cfg.template"
	}
	return out
}

// servicesOfCalico gives the scripts of the image, with one for each service of runit.
func servicesOfCalico(commands map[string]string) map[string]string {
	out := map[string]string{"/usr/sbin/start_runit": startCalico}
	for name, command := range commands {
		out["/etc/service/available/"+name+"/run"] = "#!/bin/sh\nexec 2>&1\nexec " + command + "\n"
	}
	return out
}
