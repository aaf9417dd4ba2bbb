package kubeadm

import (
	"context"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Harden brings to a master what its API server reads beside flags: who is
// written down, which pods are let in, and what nobody may ask for. An API server
// that runs takes over the last of these at once, the others when it starts again.
func Harden(c *manifest.Cluster) steps.Step { return op.Ensure("kubeadm.harden", hardening(c)) }

// Soften is its inverse, with the audit log.
func Soften(c *manifest.Cluster) steps.Step { return op.Remove("kubeadm.soften", hardening(c)) }

func hardening(c *manifest.Cluster) []op.Resource {
	rs := []op.Resource{
		op.Dir{Path: manifest.HardeningDir, Attr: runner.Attr{Mode: 0o700}, Own: true},
		op.Dir{Path: manifest.AuditDir, Attr: runner.Attr{Mode: 0o700}, Own: true},
	}
	for _, f := range []struct {
		path string
		doc  func(*manifest.Cluster) object
	}{{manifest.AuditPolicy, auditPolicy}, {manifest.AdmissionConfig, admission}, {manifest.AuthConfig, authentication}} {
		rs = append(rs, op.File{Path: f.path, Attr: runner.Attr{Mode: 0o600}, Body: func(context.Context, *steps.Host) ([]byte, error) {
			return encode(f.doc(c))
		}})
	}
	return rs
}

// auditPolicy says what the API server writes down of a request, by the first rule
// that fits (audit.k8s.io/v1). The content of what is secret never is.
func auditPolicy(*manifest.Cluster) object {
	resources := func(group string, names ...string) object {
		o := object{"group": group}
		if len(names) > 0 {
			o["resources"] = names
		}
		return o
	}
	changes := []string{"create", "update", "patch", "delete", "deletecollection"}
	return object{
		"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": []string{"RequestReceived"},
		"rules": []object{
			{"level": "None", "nonResourceURLs": []string{"/healthz*", "/livez*", "/readyz*", "/version", "/metrics"}},
			{"level": "None", "resources": []object{resources("coordination.k8s.io", "leases"), resources("", "events"), resources("events.k8s.io", "events")}},
			{"level": "Metadata", "resources": []object{
				resources("", "secrets", "configmaps", "serviceaccounts/token"), resources("authentication.k8s.io", "tokenreviews"),
			}},
			// What the cluster's own parts read is most of all there is, and says nothing.
			{"level": "None", "userGroups": []string{"system:nodes"}, "verbs": []string{"get", "list", "watch"}},
			{"level": "None", "users": []string{"system:kube-proxy", "system:kube-scheduler", "system:kube-controller-manager", "system:apiserver"}, "verbs": []string{"get", "list", "watch"}},
			{"level": "Request", "verbs": changes, "resources": []object{
				resources("rbac.authorization.k8s.io"), resources("admissionregistration.k8s.io"), resources("certificates.k8s.io"), resources("policy"),
			}},
			{"level": "Metadata"},
		},
	}
}

// admission sets Pod Security admission for namespaces without a label. Its own
// document is v1 from 1.25 on (pod-security-admission, admission/api).
func admission(c *manifest.Cluster) object {
	version := "pod-security.admission.config.k8s.io/v1"
	if minor(c) < 25 {
		version = "pod-security.admission.config.k8s.io/v1beta1"
	}
	return object{
		"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration",
		"plugins": []object{{"name": "PodSecurity", "configuration": object{
			"apiVersion": version, "kind": "PodSecurityConfiguration",
			"defaults": object{
				"enforce": c.Spec.Kubernetes.Hardening.PodSecurity, "enforce-version": "latest",
				"audit": "restricted", "audit-version": "latest", "warn": "restricted", "warn-version": "latest",
			},
			"exemptions": object{"usernames": []string{}, "runtimeClasses": []string{}, "namespaces": privileged(c)},
		}}},
	}
}

// privileged are the namespaces that may run any pod: those of the cluster's own
// parts, of the charts that the config asks for, and those that it names.
func privileged(c *manifest.Cluster) []string {
	out := []string{"kube-system"}
	if n := part.NetworkOf(c); n.Namespace != "" {
		out = append(out, n.Namespace)
	}
	for _, a := range c.Spec.Addons {
		if a.Form() == manifest.Chart && a.In() != "default" {
			out = append(out, a.In())
		}
	}
	out = append(out, c.Spec.Kubernetes.Hardening.PrivilegedNamespaces...)
	slices.Sort(out)
	return slices.Compact(out)
}

// authentication lets who is nobody ask for what is asked without a name: the
// kubelet's probes, and what kubeadm join reads before it trusts the cluster. The document
// is v1beta1 until there is v1 (k8s.io/apiserver v0.32.2 and v0.35.0, pkg/apis/apiserver).
func authentication(c *manifest.Cluster) object {
	version := "apiserver.config.k8s.io/v1beta1"
	if minor(c) >= 35 {
		version = "apiserver.config.k8s.io/v1"
	}
	var conditions []object
	for _, p := range []string{"/livez", "/readyz", "/healthz", "/api/v1/namespaces/kube-public/configmaps/cluster-info"} {
		conditions = append(conditions, object{"path": p})
	}
	return object{"apiVersion": version, "kind": "AuthenticationConfiguration", "anonymous": object{"enabled": true, "conditions": conditions}}
}

// hardened are the flags of a component that make it hard to break into. The API
// server refuses a file about who comes in beside flags about it: those of the
// config count.
func hardened(c *manifest.Cluster, component string, users manifest.Args) manifest.Args {
	var out manifest.Args
	for _, s := range c.SettingsOf(component) {
		if s.Name == "authentication-config" && (!knowsAnonymous(c) || slices.ContainsFunc(users, func(a manifest.Arg) bool {
			return a.Name == "anonymous-auth" || strings.HasPrefix(a.Name, "oidc-")
		})) {
			continue
		}
		out = append(out, manifest.Arg{Name: s.Name, Value: s.Value})
	}
	return out
}

// knowsAnonymous: the config may have switched off what the file needs.
func knowsAnonymous(c *manifest.Cluster) bool {
	for _, gate := range []string{"AnonymousAuthConfigurableEndpoints", "StructuredAuthenticationConfiguration"} {
		if on, written := c.Spec.Kubernetes.FeatureGates[gate]; written && !on {
			return false
		}
	}
	return true
}

// volumes are the folders of the host that an API server has beside kubeadm's own.
func volumes(c *manifest.Cluster) []object {
	out := []object{{"name": "kubexm", "hostPath": manifest.HardeningDir, "mountPath": manifest.HardeningDir, "readOnly": true, "pathType": "Directory"}}
	if !slices.Contains(c.Spec.Kubernetes.Hardening.Relax, manifest.RelaxAudit) {
		out = append(out, object{"name": "kubexm-audit", "hostPath": manifest.AuditDir, "mountPath": manifest.AuditDir, "pathType": "DirectoryOrCreate"})
	}
	return out
}

// hardenKubelet puts the kubelet's settings into its configuration. Its flags
// overrule that.
func hardenKubelet(c *manifest.Cluster, o object) error {
	for _, s := range c.SettingsOf(manifest.OfKubelet) {
		at, path := o, strings.Split(s.Name, ".")
		for _, key := range path[:len(path)-1] {
			next, ok := at[key].(object)
			if !ok {
				next = object{}
				at[key] = next
			}
			at = next
		}
		last := path[len(path)-1]
		if words := strings.Split(s.Value, ","); len(words) > 1 {
			at[last] = words
			continue
		}
		var value any
		if err := yaml.Unmarshal([]byte(s.Value), &value); err != nil {
			return err
		}
		at[last] = value
	}
	return nil
}
