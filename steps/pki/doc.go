// Package pki creates and stores private keys and certificates, in this process, with
// crypto/x509 alone. Keys are ECDSA P-256. A Store is a folder below the workdir: private
// keys have mode 0600 in a folder of mode 0700. An existing CA key is never overwritten.
//
// It is the one domain that other domains may import: what they share are its
// types. It imports no other package of this module.
package pki
