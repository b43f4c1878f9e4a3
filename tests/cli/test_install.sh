#!/bin/bash
# make install puts everything where it belongs, what is there works from there, and make uninstall takes it away.
cd "$(dirname "$0")/../.." || exit 1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
stage=$folder/stage
n=0
failed=0

# check TEXT COMMAND...: the command succeeds
check() {
    local text=$1
    shift
    n=$((n + 1))
    if "$@" >"$folder/out" 2>&1 </dev/null; then
        echo "ok $n - $text"
    else
        echo "not ok $n - $text"
        sed 's/^/#   /' "$folder/out"
        failed=1
    fi
}

skip() {
    n=$((n + 1))
    echo "ok $n - $1 # SKIP $2"
}

# MAKEFLAGS of an outer make would start a build of their own here.
unset MAKEFLAGS MFLAGS MAKELEVEL
install() {
    make -s BUILD="$SVMSTREAM_BUILD" PREFIX=/opt/svm DESTDIR="$stage" "$1"
}

sanitized() {
    nm -D "$SVMSTREAM_BUILD/libsvmstream.so" | grep -qE '__(a|t)san_'
}

check "make install succeeds" install install
root=$stage/opt/svm
for file in bin/svmstream bin/svmstream-mqtt bin/svmstream-http lib/libsvmstream.a lib/libsvmstream.so lib/pkgconfig/svmstream.pc include/svmstream/svmstream.h \
    $(cd "$SVMSTREAM_BUILD" && ls -d svmstream-redis svmstream-kafka 2>/dev/null | sed "s,^,bin/,") \
    share/man/man1/svmstream.1 share/man/man7/svmstream-durability.7 share/bash-completion/completions/svmstream; do
    check "$file is there" test -s "$root/$file"
done
check "the installed program runs" "$root/bin/svmstream" --version
release=$(sed -n 's/^#define SVS_VERSION "\(.*\)"/\1/p' include/svmstream/svmstream.h)
version=$("$root/bin/svmstream" --version | cut -d' ' -f2)
check "its version is the release, or a commit after it" sh -c "case '$version' in '$release' | '$release'+*) ;; *) echo '$version'; exit 1 ;; esac"
for program in "$root"/bin/svmstream-*; do
    check "$(basename "$program") has the same version" test "$("$program" --version | cut -d' ' -f2)" = "$version"
done
check "so has the man page" grep -qF "svmstream $version" "$root/share/man/man1/svmstream.1"
check "so has a page of section 7" grep -qF "svmstream $version" "$root/share/man/man7/svmstream-durability.7"
check "the file of the shared library has the release" test -f "$root/lib/libsvmstream.so.$release"
check "the man page names the command feed" grep -q feed "$root/share/man/man1/svmstream.1"
for page in src/manual/*.md; do
    topic=$(basename "$page" .md)
    check "man 7 svmstream-$topic shows the page" sh -c "MANPATH=$root/share/man man 7 svmstream-$topic | grep -qi see.also"
done
check "bash accepts the completion" bash -n "$root/share/bash-completion/completions/svmstream"
check "the shared library has a soname" sh -c "objdump -p '$root/lib/libsvmstream.so' | grep -q 'SONAME *libsvmstream.so.0'"
check "nothing lies beside PREFIX" test "$(ls "$stage")" = opt

flags() {
    PKG_CONFIG_PATH=$root/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$stage pkg-config "$@" svmstream
}
check "the pkg-config file names the version of the header" \
    test "$(flags --modversion)" = "$release"
if sanitized; then
    skip "a program builds with what pkg-config says" "the library is built with a sanitizer"
    skip "it runs with the shared library" "the library is built with a sanitizer"
else
    # shellcheck disable=SC2046
    check "a program builds with what pkg-config says" \
        "${CC:-cc}" -std=c11 examples/library.c $(flags --cflags --libs) -o "$folder/library"
    check "it runs with the shared library" \
        sh -c "zcat examples/occupancy.csv.gz | LD_LIBRARY_PATH='$root/lib' '$folder/library' | grep -q '^accuracy 0.9'"
fi
check "make uninstall succeeds" install uninstall
check "nothing is left" test -z "$(find "$stage" -type f -o -type l)"
echo "1..$n"
exit $failed
