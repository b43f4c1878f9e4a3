#!/bin/bash
# A fleet over two workers, with its log in Redis. Each press has a model of its own; the presses are dealt to four partitions of the
# log, and two workers share these. Half of the rows are learned, then one worker is killed: the other one takes its partitions over
# from their checkpoints and reads on, so its presses go on bit for bit. A worker that nobody has disturbed learns the same rows to
# show that. Then all presses get one exact model: the sums of their windows are in the log, too.
#
#   examples/cluster.sh        a redis-server of its own, on a free port of this machine, in a temporary folder
set -u
here=$(cd "$(dirname "$0")" && pwd)
svmstream=${SVMSTREAM:-$here/../build/svmstream}
adapter=${SVMSTREAM_REDIS_ADAPTER:-$(dirname "$svmstream")/svmstream-redis}
for program in redis-server redis-cli "$adapter"; do
    command -v "$program" >/dev/null || { echo "$program is absent: make deps, then make"; exit 1; }
done
folder=$(mktemp -d) || exit 1
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; wait 2>/dev/null; rm -rf "$folder"' EXIT
cd "$folder" || exit 1

# until_true TEXT COMMAND...: repeats the command until it succeeds
until_true() {
    text=$1
    shift
    for _ in $(seq 300); do
        "$@" >/dev/null 2>&1 && return
        sleep .05
    done
    echo "waited in vain for $text"
    cat ./*.log
    exit 1
}

# Ports are tried until Redis can have one.
answers() { redis-cli -p "$port" ping | grep -q PONG; }
for _ in $(seq 20); do
    port=$((20000 + RANDOM % 10000))
    redis-server --port $port --bind 127.0.0.1 --dir "$folder" --save '' --appendonly yes >redis.log 2>&1 &
    redis=$!
    for _ in $(seq 100); do
        answers 2>/dev/null && break
        kill -0 $redis 2>/dev/null || break
        sleep .05
    done
    # A server of somebody else at that port would answer as well.
    kill -0 $redis 2>/dev/null && answers 2>/dev/null && break
done
pids+=($redis)
url=redis://127.0.0.1:$port

# worker NAME STREAM SETTINGS...: one in the background, its folder is ./NAME
worker() {
    name=$1 stream=$2
    shift 2
    mkdir "$name"
    "$adapter" run --redis $url --stream "$stream" --count 4 --lease 1 --save .5 --folder "$name" -- --method alsvm --window 200 --publish.seconds 0 "$@" >"$name.log" 2>&1 &
    pids+=($!)
}

# feed STREAM FILE WORDS...: adds the rows to the log
feed() {
    stream=$1 file=$2
    shift 2
    "$adapter" feed --quiet --redis $url --stream "$stream" --count 4 --label status --ts timestamp "$@" "$file"
}

# status STREAM: owner, samples in the log and in the checkpoint of each partition
status() {
    "$adapter" status --redis $url --stream "$1" | awk 'NR > 1 { print $1, $2, $6, $7 }'
}

# settled STREAM N ROWS: have N workers all partitions, and all rows in checkpoints? Sets `shown`.
settled() {
    shown=$(status "$1")
    [ "$(awk '{ print $2 }' <<<"$shown" | sort -u | wc -l)" = "$2" ] && ! grep -q ' - ' <<<"$shown" &&
        [ "$(awk '$3 == $4 { n += $3 } END { print n + 0 }' <<<"$shown")" = "$3" ]
}

show() {
    awk '{ print "  " $1 ": " $2 ", " $3 " rows" }' <<<"$shown"
}

# weights FOLDER: of the models of the presses that live there, all of their digits
weights() {
    for part in "$1"/*/p*; do
        ask=("$svmstream" ctl --ctl "ipc://$part/ctl")
        for key in $("${ask[@]}" keys | grep -oE 'press-[0-9]+' | sort -u); do
            echo "$key $("${ask[@]}" model key="$key" | grep -oE '"(W|b|version)":(\[[^]]*\]|[0-9]+)' | tr '\n' ' ')"
        done
    done | sort
}

zcat "$here/presses.csv.gz" >rows.csv
head -n 3001 rows.csv >first.csv
{ head -n 1 rows.csv && tail -n +3002 rows.csv; } >second.csv

worker one presses --key machine --publish.sums .2
worker two presses --key machine --publish.sums .2
one=${pids[1]}
feed presses first.csv --key machine
until_true "the first half" settled presses 2 3000
echo "two workers, partitions owned by"
show

feed presses second.csv --key machine
kill -9 "$one"
wait "$one" 2>/dev/null
echo "a worker is killed while it learns the second half"
until_true "the second half" settled presses 1 6000
echo "one worker has all four, and all rows are learned"
show

worker three undisturbed --key machine
feed undisturbed first.csv --key machine
feed undisturbed second.csv --key machine
until_true "the rows of a worker that nobody disturbs" settled undisturbed 1 6000
weights two >two.weights
weights three >three.weights
echo "presses: $(wc -l <two.weights)"
if cmp -s two.weights three.weights; then
    echo "their models are, bit for bit, those of a worker that nobody disturbed"
else
    diff two.weights three.weights
    exit 1
fi

# Each partition publishes the sums over the windows of its presses. They met the shifts and materials in another order in each
# partition; the columns are joined by name.
seen_all() { "$adapter" sums --redis $url --stream presses | "$svmstream" merge -q - | grep -q '"seen":6000,'; }
until_true "the sums of all rows" seen_all
"$adapter" sums --redis $url --stream presses | "$svmstream" merge - --model all.model 2>merge.log
echo "one model of all presses, $(tail -n 1 merge.log): $("$svmstream" predict --ignore machine rows.csv all.model predictions 2>/dev/null | grep Accuracy)"
