package controlplane

import (
	"context"
	"slices"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Harden writes the hardening files of the API server to a master: the audit policy, the Pod
// Security admission configuration, and the authentication configuration for anonymous
// requests. A running API server reloads the last one; the others need a restart.
func Harden(c *manifest.Cluster) steps.Step { return op.Ensure("kubeadm.harden", hardening(c)) }

// RemoveHardening removes the hardening files of the API server and the audit log from a master.
func RemoveHardening(c *manifest.Cluster) steps.Step {
	return op.Remove("kubeadm.soften", hardening(c))
}

func hardening(c *manifest.Cluster) []op.Resource {
	rs := []op.Resource{
		op.Dir{Path: manifest.HardeningDir, Attr: runner.Attr{Mode: 0o700}, Own: true},
		op.Dir{Path: manifest.AuditDir, Attr: runner.Attr{Mode: 0o700}, Own: true},
	}
	for _, f := range []struct {
		path string
		doc  func(*manifest.Cluster) Object
	}{{manifest.AuditPolicy, auditPolicy}, {manifest.AdmissionConfig, admission}, {manifest.AuthConfig, authentication}} {
		rs = append(rs, op.File{Path: f.path, Attr: runner.Attr{Mode: 0o600}, Body: func(context.Context, *steps.Host) ([]byte, error) {
			return Encode(f.doc(c))
		}})
	}
	return rs
}

// auditPolicy returns the audit policy, of which the first matching rule applies
// (audit.k8s.io/v1). The content of Secrets and other confidential objects is never logged.
func auditPolicy(*manifest.Cluster) Object {
	resources := func(group string, names ...string) Object {
		o := Object{"group": group}
		if len(names) > 0 {
			o["resources"] = names
		}
		return o
	}
	changes := []string{"create", "update", "patch", "delete", "deletecollection"}
	return Object{
		"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": []string{"RequestReceived"},
		"rules": []Object{
			{"level": "None", "nonResourceURLs": []string{"/healthz*", "/livez*", "/readyz*", "/version", "/metrics"}},
			{"level": "None", "resources": []Object{resources("coordination.k8s.io", "leases"), resources("", "events"), resources("events.k8s.io", "events")}},
			{"level": "Metadata", "resources": []Object{
				resources("", "secrets", "configmaps", "serviceaccounts/token"), resources("authentication.k8s.io", "tokenreviews"),
			}},
			// Reads by the cluster's own components are most of all requests, and irrelevant.
			{"level": "None", "userGroups": []string{"system:nodes"}, "verbs": []string{"get", "list", "watch"}},
			{"level": "None", "users": []string{"system:kube-proxy", "system:kube-scheduler", "system:kube-controller-manager", "system:apiserver"}, "verbs": []string{"get", "list", "watch"}},
			{"level": "Request", "verbs": changes, "resources": []Object{
				resources("rbac.authorization.k8s.io"), resources("admissionregistration.k8s.io"), resources("certificates.k8s.io"), resources("policy"),
			}},
			{"level": "Metadata"},
		},
	}
}

// admission returns the defaults of Pod Security admission for namespaces without a label.
// Its API version is v1 from 1.25 on (pod-security-admission, admission/api).
func admission(c *manifest.Cluster) Object {
	version := "pod-security.admission.config.k8s.io/v1"
	if Minor(c) < 25 {
		version = "pod-security.admission.config.k8s.io/v1beta1"
	}
	return Object{
		"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration",
		"plugins": []Object{{"name": "PodSecurity", "configuration": Object{
			"apiVersion": version, "kind": "PodSecurityConfiguration",
			"defaults": Object{
				"enforce": c.Spec.Kubernetes.Hardening.PodSecurity, "enforce-version": "latest",
				"audit": "restricted", "audit-version": "latest", "warn": "restricted", "warn-version": "latest",
			},
			"exemptions": Object{"usernames": []string{}, "runtimeClasses": []string{}, "namespaces": privileged(c)},
		}}},
	}
}

// privileged returns the namespaces that may run any pod: those of the cluster's own
// components, of the config's charts, and those that the config lists.
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

// authentication allows anonymous requests only to the paths that need them: the kubelet's
// probes, and the ConfigMap cluster-info, which kubeadm join reads before it trusts the
// cluster. The API version is v1 from 1.35 on and v1beta1 before (k8s.io/apiserver v0.32.2
// and v0.35.0, pkg/apis/apiserver).
func authentication(c *manifest.Cluster) Object {
	version := "apiserver.config.k8s.io/v1beta1"
	if Minor(c) >= 35 {
		version = "apiserver.config.k8s.io/v1"
	}
	var conditions []Object
	for _, p := range []string{"/livez", "/readyz", "/healthz", "/api/v1/namespaces/kube-public/configmaps/cluster-info"} {
		conditions = append(conditions, Object{"path": p})
	}
	return Object{"apiVersion": version, "kind": "AuthenticationConfiguration", "anonymous": Object{"enabled": true, "conditions": conditions}}
}
