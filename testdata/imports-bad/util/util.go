// Package util is a drawer for anything.
package util

import _ "example.test/house/installer"
