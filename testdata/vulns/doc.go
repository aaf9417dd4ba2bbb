// Package vulns holds kubexm against the vulnerabilities that are known of the
// modules it is made of, without asking anybody: govulncheck is given a database of
// its own, made of the facts in known.json.
//
// known.json has the entries of the Go vulnerability database for the modules in
// kubexm's build list, the standard library and the toolchain: identifiers, versions
// and symbols, without the texts. It says of which day they are. To bring them up to
// date, on a machine with internet:
//
//	git clone https://github.com/golang/vulndb && make vulns VULNDB=vulndb
package vulns
