package bundle

// start starts.
func start(f func()) {
	go f()
}
