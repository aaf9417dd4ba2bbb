package manifest

import (
	"fmt"
	"strings"
)

func indexed(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// parentPath gives the path of what holds path.
func parentPath(path string) string {
	if strings.HasSuffix(path, "]") {
		return path[:strings.LastIndexByte(path, '[')]
	}
	i := strings.LastIndexByte(path, '.')
	return path[:max(i, 0)]
}
