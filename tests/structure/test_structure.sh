#!/bin/bash
# What holds the house together: layers look down, only svs_ is exported, nothing sleeps, the top level stays as agreed.
cd "$(dirname "$0")/../.." || exit 1
build=${SVMSTREAM_BUILD:-build}
library=$build/libsvmstream.so
n=0
failed=0

# empty TEXT FOUND: passes when nothing was found
empty() {
    n=$((n + 1))
    if [ -z "$2" ]; then
        echo "ok $n - $1"
    else
        echo "not ok $n - $1"
        echo "$2" | sed 's/^/#   /'
        failed=1
    fi
}

upward_includes() {
    local above=
    for floor in cli engine store wire novelty solver learner data linalg base; do # from the top
        [ -z "$above" ] || grep -nE "#include \"($above)/" src/$floor/*.[ch]
        above=$floor${above:+|$above}
    done
}

not_exported() {
    local exported
    exported=$(nm -D --defined-only "$library" | awk '{ print $3 }')
    grep -hoE '\bsvs_[a-z_]+\(' include/svmstream/*.h | tr -d '(' | sort -u | while read -r name; do
        echo "$exported" | grep -qx "$name" || echo "$name"
    done
}

undocumented() { # a public declaration without a comment above it or in its group
    awk 'FNR == 1 { commented = 0 } /\*\// { commented = 1 } /^$/ { commented = 0 } /^SVS_API/ && !commented { print FILENAME ": " $0 }' include/svmstream/*.h
}

empty "the check for upward includes sees the includes there are" "$(grep -q '#include "base/' src/wire/*.c || echo none)"
empty "layers include only their own and lower floors" "$(upward_includes)"
empty "only engine and command line know ZeroMQ" "$(grep -ln '#include <zmq.h>' src/*/*.[ch] | grep -vE '^src/(engine|cli)/')"
examples=$(ls examples/*.c 2>/dev/null)
empty "public headers and examples use public headers only" \
    "$(grep -nE '#include "(base|linalg|data|learner|solver|novelty|wire|store|engine|cli)/' include/svmstream/*.h $examples)"
empty "the shared library is there" "$([ -e "$library" ] || echo "$library")"
empty "the shared library exports only svs_" "$(nm -D --defined-only "$library" | awk '{ print $3 }' | grep -v '^svs_')"
empty "every public function is exported" "$(not_exported)"
empty "every public function has a comment" "$(undocumented)"
empty "no test sleeps" "$(grep -rnE '\b(usleep|nanosleep|sleep)\(|^[^#]*\bsleep [0-9]' tests --include='*' --exclude-dir=bench --exclude=test_structure.sh)"
empty "nothing is left open in the sources" "$(grep -rnE 'TODO|FIXME|XXX' src include adapters 2>/dev/null)"
empty "memory is taken through the one gate" \
    "$(grep -nE '(^|[^_a-z])(malloc|calloc|realloc|free)\(' src/*/*.c | grep -v '^src/base/alloc')"
if [ -e .git ]; then
    empty "the top level holds only what was agreed" "$(git ls-files | cut -d/ -f1 | sort -u |
        grep -vxE 'Makefile|README\.md|src|include|adapters|examples|tests|LICENSE|CHANGELOG\.md|\..*')"
fi
echo "1..$n"
exit $failed
