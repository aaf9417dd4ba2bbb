// Package vulns checks kubexm against the known vulnerabilities of its modules without network
// access: govulncheck reads a database that is generated from the facts in known.json.
//
// known.json has the entries of the Go vulnerability database for the modules in kubexm's
// build list, the standard library and the toolchain: identifiers, versions and symbols,
// without the texts. It contains the day of these facts. To update them, on a machine with
// internet:
//
//	git clone https://github.com/golang/vulndb && make vulns VULNDB=vulndb
package vulns
