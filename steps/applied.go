package steps

// Applied is what a cluster remembers of how it was made: later changes start
// from it.
type Applied struct {
	Config       []byte // without secrets
	Lock         []byte
	ConfigDigest string
	LockDigest   string
	Serial       string
	Highest      string // serial that the cluster has had: an older bundle is refused
	Root         string
	Set          string // the release of the lock: "v1.32.2"
	Operation    string // the id of the run's operation; "" where it has none
	// Components are the versions that the lock chose, by component: "containerd".
	Components map[string]string
	// Digests are "sha256:…" of the files that components are downloaded as, by component
	// and platform: "kubelet linux/amd64". Nil says that they are not known.
	Digests map[string]string
	// Away are hosts of the config on which nothing was done, by name.
	Away []string
	// Bundles says where the archives lie that were used, as JSON. It is kept on the
	// workdir host alone: to the cluster these paths mean nothing.
	Bundles []byte
}
