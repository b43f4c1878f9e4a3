#!/bin/sh
# What holds the house together: layers, circles, names, stories, sizes, exports. The rules are those of `make metrics`.
cd "$(dirname "$0")/../.." || exit 1
exec tests/metrics "${SVMSTREAM_BUILD:-build}" --check
