#!/bin/bash
# The whole pipeline, which would take three terminals, in one: `run` learns, `watch` shows what it says, `feed` sends fifty
# years of weather, one message a day. Each day's rain is predicted before the day is learned; the last line says how well.
# At a terminal the stream then goes on until Enter is pressed, and a browser shows it.
#
#   examples/pipeline.sh [ROWS_PER_SECOND]     0 = flat out; default 1500
set -u
here=$(cd "$(dirname "$0")" && pwd)
svmstream=${SVMSTREAM:-$here/../build/svmstream}
rate=${1:-1500}
http=${SVMSTREAM_HTTP:-$(dirname "$svmstream")/svmstream-http}
file=$here/weather.csv.gz
rows=18159
names=$(zcat "$file" | head -n 1 | sed 's/,label$//') # so that the model can name its weights

folder=$(mktemp -d) || exit 1
run= watch= page=
finish() {
    [ -n "$page" ] && kill "$page" 2>/dev/null
    [ -n "$watch" ] && kill "$watch" 2>/dev/null
    [ -n "$run" ] && kill "$run" 2>/dev/null
    wait
    rm -rf "$folder"
}
trap finish EXIT
trap 'exit 1' INT TERM

# Terminal 1: the learner. A port of * takes a free one; the addresses come on standard error.
mkfifo "$folder/said"
"$svmstream" run --in 'tcp://127.0.0.1:*' --out 'tcp://127.0.0.1:*' --ctl 'tcp://127.0.0.1:*' \
    --stream weather --method alsvm --window 1500 --scores 100 --features "$names" </dev/null 2>"$folder/said" &
run=$!
exec 3<"$folder/said"
in= out= ctl=
while [ -z "$in" ] || [ -z "$out" ] || [ -z "$ctl" ]; do
    read -r kind address rest <&3 || {
        echo "svmstream run did not start" >&2
        exit 1
    }
    echo "run: $kind $address $rest"
    case $kind in
    in) in=$address ;;
    out) out=$address ;;
    ctl) ctl=$address ;;
    esac
done

# Terminal 2: models, every hundredth score, alerts.
"$svmstream" watch model score alert --out "$out" </dev/null &
watch=$!

# The page, where a person can look at it. It has its usual port unless that is in use.
if [ -t 0 ] && [ -t 1 ]; then
    for port in 9464 0; do
        mkfifo "$folder/page$port"
        "$http" --listen 127.0.0.1:$port --stream "ctl=$ctl" </dev/null 2>"$folder/page$port" &
        page=$!
        exec 4<"$folder/page$port"
        read -r _ _ url _ <&4
        case $url in http*)
            cat <&4 >/dev/null & # what it reports later
            break
            ;;
        esac
        wait "$page"
        page=
    done
fi

# Terminal 3: the data.
"$svmstream" feed "$file" --in "$in" --rate "$rate" </dev/null || exit 1

# All is sent; the process tells when all is learned.
seen=0
for ((asked = 0; asked < 2000 && seen < rows; asked++)); do
    seen=$("$svmstream" ctl status --ctl "$ctl" </dev/null | sed -n 's/.*"seen":\([0-9]*\).*/\1/p')
    seen=${seen:-0}
done
"$svmstream" watch stats -n 1 --out "$out" </dev/null || exit 1 # they come once a second
echo
echo "The model that came of it, in the units of the data:"
"$svmstream" model show --ctl "$ctl" </dev/null
if [ -n "$page" ]; then
    echo
    echo "The stream runs on: open $url in a browser. Enter ends it."
    read -r _
fi
"$svmstream" ctl stop --ctl "$ctl" </dev/null >/dev/null || exit 1
wait "$run" || exit 1
run=
kill "$watch" 2>/dev/null
wait "$watch" 2>/dev/null
watch=

echo
echo "Predicted before they were learned:"
cat <&3
