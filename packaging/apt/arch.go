package apt

// Arch converts a Go architecture to dpkg's name; unknown names are returned unchanged.
func Arch(arch string) string {
	if a, ok := arches[arch]; ok {
		return a
	}
	return arch
}

// arches contains dpkg's names where they differ, from its cputable and ostable.
var arches = map[string]string{"386": "i386", "arm": "armhf", "ppc64le": "ppc64el", "mipsle": "mipsel", "mips64le": "mips64el"}
