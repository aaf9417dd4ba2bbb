// Package fetch turns round and imports its user.
package fetch

import _ "example.test/house/bundle"
