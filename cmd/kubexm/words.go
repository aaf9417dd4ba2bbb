package main

import "github.com/spf13/cobra"

// commandWords are other tools' words for kubexm's commands, by their path: what a
// person types who comes from there. They are offered, and not taken.
func commandWords() map[string][]string {
	return map[string][]string{
		"kubexm install":         {"up", "deploy", "apply", "start", "setup", "provision", "bootstrap", "init", "run", "launch", "rollout", "make"},
		"kubexm create":          {"make", "new", "add"},
		"kubexm create cluster":  {"clusters", "kubernetes", "k8s"},
		"kubexm delete":          {"remove", "rm", "destroy", "uninstall", "down", "del", "teardown", "purge", "drop", "take"},
		"kubexm delete cluster":  {"clusters", "kubernetes", "k8s", "destroy", "uninstall", "down", "teardown"},
		"kubexm reset":           {"clean", "cleanup", "wipe", "nuke"},
		"kubexm bundle":          {"artifact", "artifacts", "package", "archive", "bundles", "pkg", "manifest"},
		"kubexm bundle build":    {"make", "create", "export", "pack", "package", "generate", "new", "assemble", "download", "compile"},
		"kubexm bundle ls":       {"list", "contents", "files", "dir"},
		"kubexm bundle show":     {"inspect", "describe", "info", "cat", "view", "display", "metadata"},
		"kubexm bundle verify":   {"validate", "check-signature", "test"},
		"kubexm bundle extract":  {"unpack", "untar", "unzip", "export", "save", "decompress"},
		"kubexm bundle push":     {"upload", "publish", "copy"},
		"kubexm bundle pull":     {"download", "fetch", "get", "load"},
		"kubexm bundle diff":     {"compare"},
		"kubexm bundle split":    {"cut", "chunk"},
		"kubexm bundle join":     {"merge", "concat", "combine"},
		"kubexm bundle repair":   {"fix", "mend", "recover", "rebuild"},
		"kubexm bundle lock":     {"pin", "resolve", "freeze"},
		"kubexm bundle images":   {"image", "list-images", "img"},
		"kubexm bundle sign":     {"attest", "signature"},
		"kubexm bundle sbom":     {"bom", "spdx", "cyclonedx"},
		"kubexm config":          {"cfg", "conf", "configuration"},
		"kubexm config init":     {"new", "template", "example", "sample", "generate", "create", "default", "starter"},
		"kubexm config validate": {"lint", "verify", "check", "test"},
		"kubexm config explain":  {"describe", "doc", "docs", "help", "fields"},
		"kubexm config schema":   {"jsonschema", "spec"},
		"kubexm preflight":       {"check", "checks", "precheck", "doctor", "diagnose", "probe"},
		"kubexm hosts":           {"host", "machine", "machines", "node", "server", "servers"},
		"kubexm hosts prepare":   {"ready", "init", "setup", "bootstrap"},
		"kubexm hosts restore":   {"revert", "undo", "unprepare"},
		"kubexm get":             {"list", "ls", "describe", "show"},
		"kubexm get nodes":       {"node", "status", "no", "health", "ps"},
		"kubexm get cluster":     {"clusters", "info", "cluster-info"},
		"kubexm kubeconfig":      {"credentials", "context", "login", "use", "kubectl", "admin", "get-credentials"},
		"kubexm plan":            {"graph", "preview", "diff", "dag"},
		"kubexm keys":            {"key", "keypair", "cosign"},
		"kubexm keys generate":   {"new", "create", "make", "keygen", "key-pair", "generate-key-pair"},
		"kubexm registry":        {"repo", "repository", "mirror"},
		"kubexm registry serve":  {"start", "run", "up", "server"},
		"kubexm registry push":   {"fill", "load", "seed", "sync", "mirror", "upload", "import"},
		"kubexm registry login":  {"auth", "signin"},
		"kubexm site inventory":  {"list", "export", "scan", "report"},
		"kubexm audit":           {"log", "logs", "history", "trail", "events"},
		"kubexm audit show":      {"list", "ls", "cat", "print", "view"},
		"kubexm audit verify":    {"check", "validate"},
		"kubexm receipt show":    {"cat", "print", "inspect", "view"},
		"kubexm receipt verify":  {"check", "validate"},
		"kubexm cache prune":     {"clean", "clear", "gc", "delete", "purge", "rm", "remove"},
		"kubexm cache ls":        {"list", "show", "size", "du"},
		"kubexm versions":        {"matrix", "releases", "supported", "list-versions", "components"},
		"kubexm version":         {"about", "ver"},
		"kubexm man":             {"manual", "manpages", "docs"},
		"kubexm completion":      {"autocomplete", "complete"},
		"kubexm help":            {"usage"},
	}
}

// addWords gives each command its words.
func addWords(root *cobra.Command) {
	words := commandWords()
	eachCommand(root, func(cmd *cobra.Command) { cmd.SuggestFor = words[cmd.CommandPath()] })
}

// flagWords are other tools' words for kubexm's flags.
func flagWords() map[string][]string {
	return map[string][]string{
		"filename":        {"config", "file", "host", "hosts", "cluster-file", "conf", "cfg", "inventory", "values", "manifest", "c", "config-file", "cluster-config"},
		"bundle":          {"archive", "artifact", "package", "a", "tarball", "bundle-file", "input"},
		"output":          {"format", "out-format", "json", "yaml"},
		"out":             {"output-file", "to", "save", "dest", "destination", "o-file", "write"},
		"to":              {"registry", "destination", "dest", "target", "repository", "url"},
		"host":            {"hosts", "node", "nodes", "server", "machine", "hostname"},
		"skip-host":       {"host", "hosts", "node", "ignore-host", "exclude-host", "exclude", "skip-node"},
		"skip-checks":     {"ignore-preflight-errors", "skip-preflight-checks", "ignore-errors", "no-preflight", "skip-phases"},
		"yes":             {"force", "assume-yes", "confirm", "no-prompt", "auto-approve", "non-interactive"},
		"dry-run":         {"check", "diff", "simulate", "noop", "preview", "what-if", "n", "plan"},
		"verbose":         {"debug", "log-level", "loglevel", "V", "trace", "d"},
		"parallel":        {"jobs", "concurrency", "threads", "workers", "j", "forks", "limit-forks"},
		"workdir":         {"work-dir", "dir", "directory", "home", "state", "C", "data-dir", "chdir"},
		"key":             {"public-key", "pubkey", "trust-key", "verify-key", "pub"},
		"sign-key":        {"private-key", "signing-key", "sign", "key"},
		"allow-unsigned":  {"insecure", "skip-verify", "no-verify", "insecure-ignore-tlog", "insecure-skip-verify", "unsigned", "skip-signature"},
		"plain-http":      {"insecure", "http", "tls-verify", "no-tls"},
		"ca-file":         {"ca", "cacert", "ca-cert", "certificate-authority", "tls-ca"},
		"username":        {"user", "u"},
		"password-stdin":  {"password", "pass"},
		"volume-size":     {"split", "chunk-size", "volumes", "bytes", "b", "s"},
		"template":        {"type", "profile", "example", "preset", "from"},
		"progress":        {"no-progress", "quiet", "q", "silent", "tty"},
		"color":           {"colour", "no-color", "no-colour"},
		"kubernetes":      {"kubernetes-version", "k8s", "k8s-version", "kube-version", "version"},
		"preserve-data":   {"keep", "keep-data", "keep-etcd", "preserve"},
		"resume":          {"continue", "restart"},
		"host-key-policy": {"insecure-ignore-host-key", "strict-host-key-checking", "accept-new", "no-host-key-check"},
		"locked":          {"frozen", "frozen-lockfile", "lock-only"},
		"lock":            {"lockfile", "lock-file"},
		"cache-dir":       {"cache"},
		"since":           {"delta", "base", "from", "after"},
		"files":           {"dir", "dest", "directory", "output-dir", "C"},
		"listen":          {"addr", "address", "port", "bind"},
		"merge":           {"update", "kubeconfig", "append"},
	}
}
