package versions

import _ "example.test/house/manifest"
