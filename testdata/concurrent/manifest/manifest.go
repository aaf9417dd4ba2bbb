package manifest

// gone is no go statement: go f()
var gone = "go f()"
