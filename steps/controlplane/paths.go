package controlplane

// PKIDir is the folder of a master's certificates and keys.
const PKIDir = "/etc/kubernetes/pki"

// AuthorityFile is the certificate of the cluster's CA on a node.
const AuthorityFile = PKIDir + "/ca.crt"

// OperatorConf is the administrator's kubeconfig in the cluster's folder on the
// workdir host. kubexm identifies the cluster by the CA in it.
const OperatorConf = "kubeconfig"
