#!/bin/sh
# The rules among the figures of `make metrics`: include cycles, writable globals, very long functions and files.
cd "$(dirname "$0")/../.." || exit 1
exec tests/metrics "$SVMSTREAM_BUILD" --check
