#!/bin/bash
# Every example runs, and says what it should.
examples=$SVMSTREAM_EXAMPLES
built=$SVMSTREAM_BUILD/examples
folder=$(mktemp -d) || exit 1
run=
end_run() {
    [ -n "$run" ] && kill "$run" 2>/dev/null && wait "$run" 2>/dev/null
    run=
}
trap 'end_run; rm -rf "$folder"' EXIT
n=0
failed=0

# expect TEXT FILE PATTERN: the file has a line that matches
expect() {
    n=$((n + 1))
    if grep -qE -- "$3" "$2"; then
        echo "ok $n - $1"
    else
        echo "not ok $n - $1: no line matches $3"
        sed 's/^/#   /' "$2"
        failed=1
    fi
}

# status TEXT CODE FILE: the exit code was 0
status() {
    n=$((n + 1))
    if [ "$2" = 0 ]; then
        echo "ok $n - $1"
    else
        echo "not ok $n - $1: exit code $2"
        sed 's/^/#   /' "$3"
        failed=1
    fi
}

# The demo, as fast as possible: a chart, an alert of a real fault, five lines, and commands that work as they are printed.
"$examples/pipeline.sh" 0 >"$folder/pipeline" 2>&1 </dev/null
status "the demo ends well" $? "$folder/pipeline"
expect "it warns of the fault as it happens" "$folder/pipeline" '^! omaha sea_level_pressure 5504 above its highest so far \(1043\), since row 3596$'
expect "and explains it" "$folder/pipeline" '^  Day 3,596 of the records says 5503\.8 hPa\. '
expect "by what is in the file" "$folder/pipeline" ' the records are wrong, on 2 days\. '
figures=' +(6[4-9]|7[01])\.. % +(7[3-9]|8[01])\.. % +(79|8[0-5])\.. %   .*(·|\.).*(○|o).*(●|#)$'
expect "the chart begins with the first 1,500 days" "$folder/pipeline" "^  1,500$figures"
expect "and ends with the last" "$folder/pipeline" "^ 18,000$figures"
expect "all days were learned" "$folder/pipeline" '^  18,159 days arrived'
expect "the linear model is better than yesterday" "$folder/pipeline" '^  One linear model, --method alsvm, was right on 7[89]\.. %\.$'
expect "the default learner is better still" "$folder/pipeline" '^  The default learner was right on 81\.[3-9] %: 4[0-9] % fewer errors'
LC_ALL=C "$examples/pipeline.sh" 0 >"$folder/ascii" 2>&1 </dev/null
n=$((n + 1))
if [ "$(grep -cE "^[ 1]*[0-9],[05]00$figures" "$folder/ascii")" = 12 ] && ! LC_ALL=C grep -q '[^ -~]' "$folder/ascii"; then
    echo "ok $n - without UTF-8 it is ASCII"
else
    echo "not ok $n - without UTF-8 it is ASCII"
    sed 's/^/#   /' "$folder/ascii"
    failed=1
fi
n=$((n + 1))
if [ "$(LC_ALL=C.UTF-8 awk '{ gsub(/[^ -~]+/, "x") } length($0) > 80' "$folder/pipeline")" = "" ]; then
    echo "ok $n - it is at most 80 columns wide"
else
    echo "not ok $n - it is at most 80 columns wide"
    failed=1
fi
sed -n 's/^  \(build\/svmstream .*\)/\1/p' "$folder/pipeline" >"$folder/next"
n=$((n + 1))
if [ "$(wc -l <"$folder/next")" = 3 ] && (cd "$examples/.." && sed "s|^build/svmstream|\"$SVMSTREAM\"|" "$folder/next" | bash -e) >"$folder/tried" 2>&1; then
    echo "ok $n - three commands to try work"
else
    echo "not ok $n - three commands to try work"
    sed 's/^/#   /' "$folder/tried"
    failed=1
fi

# A log that is followed.
"$examples/follow.sh" >"$folder/follow" 2>&1 </dev/null
status "the followed log ends well" $? "$folder/follow"
expect "its columns were recognised" "$folder/follow" '^label status \(ok, fail\) · time timestamp .* 3 categories: machine 8, shift 3, material 4'
expect "each line was scored when it came" "$folder/follow" '^the last line: .*"row":1000'
expect "all of it was learned" "$folder/follow" '^seen 1000$'

# A bad shard, taken out of a merged model.
"$examples/shards.sh" >"$folder/shards" 2>&1 </dev/null
status "the shards end well" $? "$folder/shards"
expect "the bad site spoils the model of all" "$folder/shards" '^merged model of three sites: 6[0-9]\.'
expect "its own model shows which it is" "$folder/shards" '^site-2 alone: [34][0-9]\.'
expect "without it the model is good" "$folder/shards" '^merged model without site-2: 7[5-9]\.'
expect "and that of the two others, to the last bit" "$folder/shards" '^bit for bit the model of the two others$'
expect "restored it is in again" "$folder/shards" '^restored, it is the model of all three again$'

# Two workers over a log in Redis, of which one is killed.
if PATH=$PATH:/usr/sbin command -v redis-server >/dev/null && [ -x "$built/../svmstream-redis" ]; then
    "$examples/cluster.sh" >"$folder/cluster" 2>&1 </dev/null
    status "the cluster ends well" $? "$folder/cluster"
    sed '/killed/,$d' "$folder/cluster" | grep -oE '^  [0-3]: [^,]*' | cut -d: -f2 | sort -u | sed 's/^/owner/' >"$folder/before"
    sed '1,/killed/d' "$folder/cluster" | grep -oE '^  [0-3]: [^,]*' | cut -d: -f2 | sort -u | sed 's/^/owner/' >"$folder/after"
    n=$((n + 1))
    if [ "$(grep -c owner "$folder/before") $(grep -c owner "$folder/after")" = "2 1" ] && grep -qFf "$folder/after" "$folder/before"; then
        echo "ok $n - two owners, then the one that is left"
    else
        echo "not ok $n - two owners, then the one that is left"
        sed 's/^/#   /' "$folder/cluster"
        failed=1
    fi
    expect "each press has its model" "$folder/cluster" '^presses: 8$'
    expect "the same one as without the kill" "$folder/cluster" '^their models are, bit for bit, those of a worker that nobody disturbed$'
    expect "the presses of all partitions make one model" "$folder/cluster" '^one model of all presses, merged 4 of 4 parts, 1600 rows: Accuracy = 8[012]'
else
    n=$((n + 1))
    if [ "${SVMSTREAM_SERVERS:-}" = needed ]; then
        echo "not ok $n - two workers over a log in Redis: not installed: redis-server, libhiredis-dev"
        failed=1
    else
        echo "ok $n - two workers over a log in Redis # SKIP not installed: redis-server, libhiredis-dev"
    fi
fi

# A published model, applied to raw rows.
{
    echo machine,load,label
    for i in $(seq 1 60); do echo "press-$((i % 3)),0.$((i % 10)),$([ $((i % 3)) = 1 ] && echo hot || echo cold)"; done
} >"$folder/raw.csv"
"$built/../svmstream" eval -q --categories machine --numbers load --model-out "$folder/raw.msgpack" "$folder/raw.csv" >/dev/null 2>&1
printf 'machine=press-1\nload=0.5 machine=press-2\nmachine=press-7 load=0.1\nspeed=7\n' |
    "$built/apply" "$folder/raw.msgpack" >"$folder/apply" 2>&1
status "rows of another program are scored" $? "$folder/apply"
expect "by their words" "$folder/apply" '^hot '
expect "whatever is missing or new" "$folder/apply" '^cold '
expect "a column that the model does not have is refused" "$folder/apply" '^refused: the model has no column "speed"'

# The library without sockets.
zcat "$examples/occupancy.csv.gz" | "$built/library" >"$folder/library" 2>&1
status "the library program ends well" $? "$folder/library"
expect "it predicts before it learns" "$folder/library" '^accuracy 0\.9(8[5-9]|9[0-9])[0-9] over 20560 rows'
expect "it takes a sample out" "$folder/library" '^forgot row 20550: 1 sample taken out'
expect "the model is that of a fresh solve" "$folder/library" 'fresh solve on what is held: below 1e-8$'
n=$((n + 1))
if [ "$(grep -c '^model ' "$folder/library")" = 2 ] && [ "$(grep '^model ' "$folder/library" | cut -d: -f2 | sort -u | wc -l)" = 2 ]; then
    echo "ok $n - forgetting changes the model"
else
    echo "not ok $n - forgetting changes the model"
    failed=1
fi

# The whole stream without sockets.
"$built/auto" >"$folder/auto" 2>&1
status "the bank inside a program ends well" $? "$folder/auto"
expect "it learns words and gaps" "$folder/auto" '^accuracy 0\.9[0-9]* over 2000 rows'
expect "a loaded stream has the same fingerprint" "$folder/auto" '; fingerprints ([0-9a-f]{8}) and \1$'
expect "it gives a probability" "$folder/auto" '^fast, warm, steel: high, probability (0\.[5-9]|1\.)'
"$built/monitor" >"$folder/monitor" 2>&1
status "the monitor inside a program ends well" $? "$folder/monitor"
expect "it finds what each sensor alone does not show" "$folder/monitor" '^minute 118[0-9]*: open: pump .*flow .*expected'
expect "and the limit" "$folder/monitor" '^minute 1326[0-9]: open: pump pressure .* above its limit 8'
expect "within its budget" "$folder/monitor" '^([3-9]|1[0-9]) alerts in 14400 readings$'

# Sensors by MQTT, and the line that a person gets.
if command -v mosquitto_pub >/dev/null && PATH=$PATH:/usr/sbin command -v mosquitto >/dev/null; then
    "$examples/mqtt_alert.sh" >"$folder/mqtt" 2>&1 </dev/null
    status "the sensor feed by MQTT ends well" $? "$folder/mqtt"
    expect "what is new at three in the morning is told in one line" "$folder/mqtt" '^alert: room .*co2 (is )?[0-9]+ \(?[^;]*expected.*, by chance .* once .*, since 03:.* UTC$'
    expect "every message was taken" "$folder/mqtt" 'received 4889, bad 0, .* acked 4889, refused 0, dropped 0,'

    # A fleet: what goes wrong with a press is reported for this press alone.
    "$examples/fleet.sh" >"$folder/fleet" 2>&1 </dev/null
    status "the fleet ends well" $? "$folder/fleet"
    expect "a jam: a current that never was" "$folder/fleet" '^plant press-03 current 37\.4 above its highest so far \(.*\), since 09:40 UTC$'
    expect "a bearing: vibration that the current does not explain" "$folder/fleet" '^plant press-07 (notice|warning|serious).*vibration .*, since 10:5[0-9] UTC$'
    expect "a sensor that hangs" "$folder/fleet" '^plant press-11 temp stuck at .*, since 08:2[0-9] UTC$'
    expect "a leak: pressure that falls" "$folder/fleet" '^plant press-14 (notice|warning|serious).*pressure .*, since 0[6-9]:[0-9]* UTC$'
    expect "a sensor torn off" "$folder/fleet" '^plant press-05 vibration: no values since 13:1[0-9] UTC.*$'
    n=$((n + 1)) # by the detectors at the first reading, by the rule at the third
    all=$(sed -nE 's/^plant ([0-9]+) presses: (press-[0-9]+), .* and [0-9]+ more: .*pressure .*, since 19:1[0-9] UTC$/\2 \1/p' "$folder/fleet" |
        sort -k1,1 -k2,2nr | awk '!seen[$1]++ { n += $2; lines++ } END { print (n >= 16 && n <= 20 && lines <= 2) }')
    if [ "$all" = 1 ] && grep -q '^plant 1[0-9] presses: press-01, .* more: pressure .* below its lowest so far (.*), since 19:1[0-9] UTC$' "$folder/fleet"; then
        echo "ok $n - what concerns all of them is one thing"
    else
        echo "not ok $n - what concerns all of them is one thing: see $(grep -c presses "$folder/fleet") lines"
        failed=1
    fi
    n=$((n + 1))
    if [ "$(grep -c 'press-01.*, since 19:15 UTC$' "$folder/fleet")" -le 6 ]; then
        echo "ok $n - in a few lines"
    else
        echo "not ok $n - in a few lines"
        failed=1
    fi
    expect "the presses with open alerts are listed" "$folder/fleet" '^press-11  .* open$'
    expect "so is the one that was unplugged" "$folder/fleet" '^press-17  *2160 '
    expect "every reading was taken" "$folder/fleet" 'received 45936, bad 0, .* acked 45936, refused 0, dropped 0,.* lost 0,'
    # An alert of the day before may end on the last one.
    grep -vE '^plant press-(03|05|07|11|14|17)[ :]|, since 19:1[0-9] UTC$|(back to normal|ended) after .*began at (Sat )?2026-03-07 ' "$folder/fleet" >"$folder/others"
    n=$((n + 1))
    if ! grep -q '^plant press-' "$folder/others"; then
        echo "ok $n - nothing is reported of presses that are well"
    else
        echo "not ok $n - nothing is reported of presses that are well"
        sed 's/^/#   /' "$folder/fleet"
        failed=1
    fi
else
    n=$((n + 1))
    echo "ok $n - the sensor feed by MQTT # SKIP not installed: mosquitto, mosquitto-clients"
fi

# The subscribers, each beside a process of its own.
beside_run() {
    rm -f "$folder/said"
    mkfifo "$folder/said"
    "$SVMSTREAM" run --in 'tcp://127.0.0.1:*' --out 'tcp://127.0.0.1:*' --ctl 'tcp://127.0.0.1:*' $flags --publish.every 1 \
        </dev/null 2>"$folder/said" &
    run=$!
    exec 3<"$folder/said"
    in= out= ctl=
    while [ -z "$in" ] || [ -z "$out" ] || [ -z "$ctl" ]; do
        read -r kind address _ <&3 || break
        eval "$kind=\$address"
    done
    "$@" "$in" "$out" >"$folder/subscriber" 2>&1 </dev/null
    code=$?
    end_run
    exec 3<&-
    return $code
}

flags="--method alsvm"
beside_run "$built/subscriber"
status "the subscriber in C ends well" $? "$folder/subscriber"
expect "its own scores equal those of the process" "$folder/subscriber" '^(1[0-9][0-9]|200) scores compared, \1 equal$'
beside_run /usr/bin/python3 "$examples/subscriber.py"
status "the subscriber in Python ends well" $? "$folder/subscriber"
expect "its own scores equal those of the process" "$folder/subscriber" '^([12][0-9][0-9]|300) scores compared, \1 equal, \1 with the same class$'

# Trees of a bank, walked by a subscriber.
trees='^[4-9][0-9][0-9] scores of trees compared, [2-9] forests received, largest difference [0-9.]*e-[0-9]+$'
flags="--novelty none --score.members yes"
beside_run "$built/bank_trees"
status "the scores of trees, by a subscriber in C" $? "$folder/subscriber"
expect "it says how near they are" "$folder/subscriber" "$trees"
beside_run /usr/bin/python3 "$examples/bank_trees.py"
status "the scores of trees, by a subscriber in Python" $? "$folder/subscriber"
expect "it says how near they are" "$folder/subscriber" "$trees"
four_classes() { /usr/bin/python3 "$examples/bank_trees.py" "$1" "$2" 4; }
beside_run four_classes
status "those of four classes" $? "$folder/subscriber"
targets() { /usr/bin/python3 "$examples/bank_trees.py" "$1" "$2" 0; }
flags="$flags --task regress"
beside_run targets
status "those of a regression" $? "$folder/subscriber"

# JSON without a library. All of it has come when the status says so.
json_rows() {
    zcat "$examples/weather.csv.gz" | head -n 501 | awk -F, 'NR == 1 {split($0, name); next}
        {for (i = 1; i <= NF; i++) printf "%s\"%s\": %s", (i > 1 ? ", " : "{"), name[i], $i; print "}"}' >"$folder/rows"
    "$examples/json.sh" "$1" <"$folder/rows" || return
    for _ in $(seq 2000); do
        "$SVMSTREAM" ctl --ctl "$ctl" status || return
    done | grep -m 1 -o '"errors":0,.*"seen":500,"labelled":500,"learned":500,'
}
flags="--method alsvm"
beside_run json_rows
status "the producer of JSON ends well" $? "$folder/subscriber"
expect "all of its rows are learned" "$folder/subscriber" '"learned":500,'

echo "1..$n"
exit $failed
