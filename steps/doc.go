// Package steps defines the contract between the engine and a step. A Step is one
// idempotent change of one host: Precheck reports whether the host already has the
// desired state and changes nothing, Run applies the change, and Rollback undoes it.
//
// The engine calls Precheck and skips a step that is Done. Otherwise it calls Run,
// then Precheck again: a step that ran must be Done afterwards. When a step fails, the
// engine calls Rollback in the same run. A later run repeats the step from its
// Precheck.
//
// Meta declares what a step requires before anything runs: artifacts of the bundle,
// outputs of other steps, timeouts and retries. A Host is the only access of a step to
// its host and to the bundle. Package op builds most steps from resources such as
// files and units; package steptest holds the conformance tests for steps. The domains
// (containerd, kubeadm and so on) are sub-folders.
//
// It may import registry, bundle, packaging, versions and manifest. A step never
// downloads: it reads all bytes from a bundle.
package steps
