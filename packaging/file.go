package packaging

// File is a file of a repository.
type File struct {
	Path    string // relative to the repository, with slashes
	Content []byte
}
