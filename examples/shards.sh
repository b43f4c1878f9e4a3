#!/bin/bash
# Three sites, one model, and a bad shard. Each site learns its own weather; `svmstream merge` makes the exact model of all of
# them. The rain gauge of the third site hangs: nine rows of ten say that it rains, which spoils the model of all. It is found by its
# own model, and subtracted: what is left is, to the last bit, the model of the two others, and none of them learns a row again.
#
#   examples/shards.sh
set -u
here=$(cd "$(dirname "$0")" && pwd)
svmstream=${SVMSTREAM:-$here/../build/svmstream}
folder=$(mktemp -d) || exit 1
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; wait 2>/dev/null; rm -rf "$folder"' EXIT
cd "$folder" || exit 1

# A process in the background. Its addresses are files of this folder: NAME.in, NAME.out, NAME.ctl.
begin() {
    name=$1
    shift
    "$svmstream" "$@" --out "ipc://$name.out" --ctl "ipc://$name.ctl" >"$name.log" 2>&1 &
    pids+=($!)
}

# until_shown TEXT COMMAND...: runs the command until its output has the text
until_shown() {
    text=$1
    shift
    for _ in $(seq 200); do
        "$@" 2>/dev/null | grep -q -- "$text" && return
        sleep .05
    done
    echo "waited in vain for $text of: $*"
    exit 1
}

# weights FILE: of a model, all of their digits
weights() {
    "$svmstream" model export "$1" | grep -oE '"(W|b)":(\[[^]]*\]|[^,]*)'
}

# accuracy NAME: of the model of this process on the rows that no site has seen
accuracy() {
    "$svmstream" model export --format msgpack -o "$1.model" --ctl "ipc://$1.ctl"
    "$svmstream" predict holdout.csv "$1.model" predictions | sed -n 's/^Accuracy = //p'
}

# The rows of the example dealt out: 5,000 to each site, and the last 3,159 to judge by.
zcat "$here/weather.csv.gz" | awk -F, -v OFS=, '
    NR == 1 { for (i = 0; i < 3; i++) print > "site-" i ".csv"; print > "holdout.csv"; next }
    NR > 15001 { print > "holdout.csv"; next }
    NR % 3 == 2 && NR % 10 { $NF = 1 }
    { print > "site-" NR % 3 ".csv" }'

for site in site-0 site-1 site-2; do
    begin $site run --in.mode router --in ipc://$site.in --method alsvm --window 5000 --novelty none --merge.part $site --publish.sums .1
done
begin all merge ipc://site-0.out ipc://site-1.out ipc://site-2.out
begin two merge ipc://site-0.out ipc://site-1.out
for site in site-0 site-1 site-2; do
    until_shown '"ok":true' "$svmstream" ctl status --ctl ipc://$site.ctl
    "$svmstream" feed -q --ack --in ipc://$site.in $site.csv
done
until_shown '"held":15000' "$svmstream" ctl status --ctl ipc://all.ctl
until_shown '"held":10000' "$svmstream" ctl status --ctl ipc://two.ctl

echo "accuracy on rows that no site has seen"
echo "merged model of three sites: $(accuracy all)"
cp all.model before.model
for site in site-0 site-1 site-2; do
    echo "$site alone: $(accuracy $site)"
done
"$svmstream" ctl drop part=site-2 --ctl ipc://all.ctl >/dev/null
until_shown '"held":10000' "$svmstream" ctl status --ctl ipc://all.ctl
echo "merged model without site-2: $(accuracy all)"
accuracy two >/dev/null
[ "$(weights all.model)" = "$(weights two.model)" ] && echo "bit for bit the model of the two others"
"$svmstream" ctl restore part=site-2 --ctl ipc://all.ctl >/dev/null
until_shown '"held":15000' "$svmstream" ctl status --ctl ipc://all.ctl
accuracy all >/dev/null
[ "$(weights all.model)" = "$(weights before.model)" ] && echo "restored, it is the model of all three again"
