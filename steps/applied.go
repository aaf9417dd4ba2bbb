package steps

// Applied is the record of what kubexm last applied to a cluster. Later operations
// start from it.
type Applied struct {
	Config       []byte // without secrets
	Lock         []byte
	ConfigDigest string
	LockDigest   string
	Serial       string
	Highest      string // highest bundle serial applied so far: older bundles are rejected
	Root         string
	Set          string // release of the lock: "v1.32.2"
	Operation    string // ID of the run's operation; "" if it has none
	// Components are the versions selected by the lock, by component: "containerd".
	Components map[string]string
	// Digests are the digests ("sha256:…") of the components' files, by component and
	// platform: "kubelet linux/amd64". Nil means unknown.
	Digests map[string]string
	// Away are the names of hosts of the config that the run left out.
	Away []string
	// Bundles lists the paths of the used archives, as JSON. Only the workdir host
	// stores it: the paths are meaningless to the cluster.
	Bundles []byte
}
