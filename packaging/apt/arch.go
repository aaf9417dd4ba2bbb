package apt

// Arch gives dpkg's word for an architecture in Go's words, and what it was given
// where there is no other word for it.
func Arch(arch string) string {
	if a, ok := arches[arch]; ok {
		return a
	}
	return arch
}

// arches has dpkg's words where they differ, of its cputable and ostable.
var arches = map[string]string{"386": "i386", "arm": "armhf", "ppc64le": "ppc64el", "mipsle": "mipsel", "mips64le": "mips64el"}
