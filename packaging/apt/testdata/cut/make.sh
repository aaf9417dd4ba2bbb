#!/bin/sh
# Cuts the packages that names.txt lists out of the machine's own package lists,
# their records as they stand. Run it on a Debian 12 after apt-get update:
#
#   sh make.sh > Packages
set -eu
cd "$(dirname "$0")"
apt-cache show --no-all-versions $(cat names.txt) | awk -v RS= -v ORS='\n\n' '
  { match($0, /(^|\n)Package: [^\n]*/); name = substr($0, RSTART, RLENGTH); sub(/\n?Package: /, "", name)
    if (!seen[name]++) print }'
