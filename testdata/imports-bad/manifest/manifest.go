// Package manifest is the last of the line.
package manifest

import _ "example.test/house/versions"
