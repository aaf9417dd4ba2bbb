// Package repack makes rpms of the packages of an installed Debian, so that the lab
// has hosts of the other family though no distribution of it can be had: the lab's
// own small distribution, with real rpm, dnf and systemd. It writes one spec file
// with a package for each of Debian's; rpmbuild, in that Debian, does the rest.
//
// Programs, libraries and units are Debian's. Names that Red Hat's family has for
// them are Red Hat's, and so are the places of chrony's and sshd's files; dpkg, apt
// and what serves only these are left out; sh is bash.
//
// It imports nothing of kubexm.
package repack
