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
	// Components are the versions that the lock chose, by component: "containerd".
	Components map[string]string
	// Away are hosts of the config on which nothing was done, by name.
	Away []string
	// Bundles says where the archives lie that were used, as JSON. It is kept on the
	// workdir host alone: to the cluster these paths mean nothing.
	Bundles []byte
}
