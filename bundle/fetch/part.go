package fetch

const (
	partSuffix = ".part"
	metaSuffix = ".part.meta"
)
