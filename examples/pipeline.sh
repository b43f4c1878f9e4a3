#!/bin/bash
# Fifty years of weather through two learners, live: the default one, and one linear model. Each day is predicted before it is
# learned. A chart compares both with "the same as the day before"; alerts appear when they open.
#
# By hand this takes four terminals: `svmstream run` twice, `svmstream feed`, `svmstream watch alert`. At a terminal the streams
# then continue in a browser until you press Enter.
#
#   examples/pipeline.sh [ROWS_PER_SECOND]     0 = as fast as possible; default 1500
set -u
here=$(cd "$(dirname "$0")" && pwd)
svmstream=${SVMSTREAM:-$here/../build/svmstream}
http=${SVMSTREAM_HTTP:-$(dirname "$svmstream")/svmstream-http}
rate=${1:-1500}
file=$here/weather.csv.gz

folder=$(mktemp -d) || exit 1
children=()
finish() {
    [ ${#children[@]} -gt 0 ] && kill "${children[@]}" 2>/dev/null
    wait
    rm -rf "$folder"
}
trap finish EXIT
trap 'exit 1' INT TERM

# start NAME FLAGS...: a learner on free ports; its addresses are then in ${in[NAME]}, ${out[NAME]} and ${ctl[NAME]}.
declare -A in out ctl
start() {
    local name=$1 kind address report
    shift
    mkfifo "$folder/$name"
    "$svmstream" run --in 'tcp://127.0.0.1:*' --out 'tcp://127.0.0.1:*' --ctl 'tcp://127.0.0.1:*' --in.mode router \
        --stream "$name" "$@" </dev/null 2>"$folder/$name" &
    children+=($!)
    exec {report}<"$folder/$name"
    while [ -z "${in[$name]-}" ] || [ -z "${out[$name]-}" ] || [ -z "${ctl[$name]-}" ]; do
        read -r kind address _ <&"$report" || {
            echo "svmstream run did not start" >&2
            exit 1
        }
        case $kind in
        in) in[$name]=$address ;;
        out) out[$name]=$address ;;
        ctl) ctl[$name]=$address ;;
        esac
    done
    cat <&"$report" >/dev/null & # what it reports later
}

# A row is a day. The budget allows about one alert of unusual weather a year.
start omaha --alert.interval 86400 --alert.budget 0.02/week
start linear --method alsvm --novelty none

# Alerts of rules, marked !, as they open.
"$svmstream" watch alert --json --out "${out[omaha]}" </dev/null 2>/dev/null |
    sed -un 's/.*"kind":"rule".*"state":"open".*"text":"\([^"]*\)".*/! \1/p' &
watch=$!
children+=("$(jobs -p %%)" "$watch")

url=
if [ -t 0 ] && [ -t 1 ]; then
    for port in 9464 0; do # its own port, unless that is in use
        mkfifo "$folder/page$port"
        "$http" --listen 127.0.0.1:$port --stream "ctl=${ctl[omaha]}" --stream "ctl=${ctl[linear]}" \
            </dev/null 2>"$folder/page$port" &
        page=$!
        exec 4<"$folder/page$port"
        read -r _ _ url _ <&4
        case $url in http*)
            children+=("$page")
            cat <&4 >/dev/null &
            break
            ;;
        esac
        wait "$page"
        url=
    done
fi

cat <<'EOF'

Did it rain? 50 years of real weather, day by day, eight measurements a day.
Each day is predicted first, then learned. Right answers per 1,500 days:

EOF
[ -n "$url" ] && printf 'In a browser: %s\n\n' "$url"
marks='. o #'
[ "$(locale charmap 2>/dev/null)" = UTF-8 ] && marks='· ○ ●'

# One row of both learners is one line here: `feed --scores` prints the score of each row once it is acknowledged.
scores() { exec "$svmstream" feed -q --ack --scores --rate "$rate" --in "${in[$1]}" "$file" </dev/null; }
paste <(scores omaha) <(scores linear) | awk -F '\t' -v marks="$marks" -v every=1500 -v result="$folder/result" '
    function field(text, name) {
        return match(text, "\"" name "\":[0-9]+") ? substr(text, RSTART + length(name) + 3, RLENGTH - length(name) - 3) : ""
    }
    function thousands(n) {
        return n < 1000 ? n : int(n / 1000) "," substr(1000 + n % 1000, 2)
    }
    function put(share, mark,    k) {
        k = int(100 * share + 0.5)
        place[k < 60 ? 60 : k > 90 ? 90 : k] = mark
    }
    function line(    k, text) {
        split("", place)
        for (k = 1; k <= 3; k++)
            put(right[k] / every, mark[k])
        for (k = 60; k <= 90; k++)
            text = text (k in place ? place[k] : " ")
        sub(/ +$/, "", text)
        printf "%7s %10.1f %% %8.1f %% %8.1f %%   %s\n", thousands(NR), 100 * right[1] / every, 100 * right[2] / every, 100 * right[3] / every, text
        fflush()
        split("", right)
    }
    BEGIN {
        split(marks, mark, " ")
        printf "   days   yesterday     linear    default   60 %%      70 %%      80 %%      90 %%\n"
        printf "                %s          %s          %s     |---------|---------|---------|\n", mark[1], mark[2], mark[3]
        fflush()
    }
    {
        y = field($1, "y")
        good[1] = NR > 1 && y == before
        good[2] = field($2, "yhat") == y
        good[3] = field($1, "yhat") == y
        before = y
        for (k = 1; k <= 3; k++) {
            right[k] += good[k]
            all[k] += good[k]
        }
        if (NR % every == 0)
            line()
    }
    END {
        if (NR == 0)
            exit 1
        fewer = 100 * (all[3] - all[1]) / (NR - all[1])
        printf "%s %.1f %.1f %.1f %.0f\n", thousands(NR), 100 * all[1] / NR, 100 * all[2] / NR, 100 * all[3] / NR, fewer > result
    }' || exit 1
read -r rows yesterday linear default fewer <"$folder/result" || exit 1

# Of all alerts, the first of a rule. What it names stands in the file.
"$svmstream" ctl alerts --ctl "${ctl[omaha]}" </dev/null >"$folder/alerts" 2>/dev/null || exit 1
alert=$(sed 's/{"v":/\n&/g' "$folder/alerts" | grep -m 1 '"kind":"rule".*"state":"open"')
text=$(sed 's/.*"text":"\([^"]*\)".*/\1/' <<<"$alert")
read -r feature value < <(sed 's/.*"top":\[{"feature":"\([^"]*\)","value":\([^,]*\),.*/\1 \2/' <<<"$alert")
read -r row wrong < <(zcat "$file" | awk -F, -v feature="$feature" -v value="$value" '
    NR == 1 { for (k = 1; k <= NF; k++) if ($k == feature) column = k }
    NR > 1 && column && $column == value && !row { row = NR - 1 }
    NR > 1 && column && $column > 1100 { wrong++ }
    END { print int(row / 1000) "," substr(1000 + row % 1000, 2), wrong }')
spells=$("$svmstream" ctl status --ctl "${ctl[omaha]}" </dev/null | sed -n 's/.*"alerts":\([0-9]*\),.*/\1/p')
[ -n "$text" ] && [ -n "$wrong" ] && [ -n "$spells" ] || {
    echo "the fault in the records was not found" >&2
    exit 1
}

cat <<EOF

One alert, explained:
  $text
  Day $row of the records says $value hPa. Air at sea level has never reached
  1,100 hPa: the records are wrong, on $wrong days. You set no limit. The program
  compared each value with all days before it.

In five lines:
  $rows days arrived one by one. Each was predicted first, then learned.
  "The same as yesterday" was right on $yesterday % of the days.
  One linear model, --method alsvm, was right on $linear %.
  The default learner was right on $default %: $fewer % fewer errors than yesterday's.
  With a budget of one alert a year it found $spells unusual spells and this fault.

Try next:
  build/svmstream eval examples/presses.csv.gz              # a log, or your own
  build/svmstream eval --alerts examples/occupancy.csv.gz   # an office's alerts
  build/svmstream help log                                  # log in, scores out
EOF
if [ -n "$url" ]; then
    printf '\nBoth streams still run: open %s in a browser. Enter ends them. ' "$url"
    read -r _
fi
for name in omaha linear; do
    "$svmstream" ctl stop --ctl "${ctl[$name]}" </dev/null >/dev/null || exit 1
done
