#!/bin/bash
# A log that grows, followed: each line is scored when it comes, learned, and forgotten again when it leaves the window.
#
#   examples/follow.sh [LOG.csv]     follows a file of your own, as long as you like; without one, a log that this
#                                    script writes: 1000 rows of eight presses, and it ends when they are scored
set -u
here=$(cd "$(dirname "$0")" && pwd)
svmstream=${SVMSTREAM:-$here/../build/svmstream}
if [ $# -gt 0 ]; then
    tail -n +1 -F "$1" | exec "$svmstream" run --in -
    exit
fi

folder=$(mktemp -d) || exit 1
tail= writer= run=
finish() {
    kill $tail $writer $run 2>/dev/null
    wait 2>/dev/null
    rm -rf "$folder"
}
trap finish EXIT
trap 'exit 1' INT TERM

# The machine's program, which appends to its log.
: >"$folder/press.csv"
zcat "$here/presses.csv.gz" | head -n 1001 | while read -r line; do echo "$line"; done >>"$folder/press.csv" &
writer=$!

# Scores come line by line, as soon as their line is there.
mkfifo "$folder/lines" "$folder/scores"
tail -n +1 -f "$folder/press.csv" >"$folder/lines" &
tail=$!
"$svmstream" run --in - <"$folder/lines" >"$folder/scores" &
run=$!
count=0
while read -r score; do
    count=$((count + 1))
    [ $count = 1 ] && echo "the first line: $score"
    [ $count = 1000 ] && break
done <"$folder/scores"
echo "the last line:  $score"

# The end of the log, as when the machine is switched off: the process says what it has learned.
kill "$tail"
tail=
wait "$run"
run=
