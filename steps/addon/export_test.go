package addon

// OwnManifest is for the tests of what it returns.
var OwnManifest = ownManifest
