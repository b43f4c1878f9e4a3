#!/bin/bash
# A sensor feed on MQTT, svmstream with it, and a line of text only when something is new: a room's sensor sends
# temperature, humidity, light and CO2 once a minute. Three and a half days of it are real (one message a minute, as fast as
# they go through); then, at three in the morning, the light is switched on and CO2 climbs to what it never was.
#
#   examples/mqtt_alert.sh
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/mqtt_setup.sh"
first=2665 minutes=4869 # rows of the data: 4 February 2015, 17:51, to 8 February, 2:59
start=1423072260        # the time of the first

start_broker

# svmstream: no classifier, novelty alone.
exec 4< <(exec "$svmstream" run --in 'tcp://127.0.0.1:*' --out 'tcp://127.0.0.1:*' --ctl 'tcp://127.0.0.1:*' \
    --in.mode router --stream room --method none --scores none 2>&1 </dev/null)
children+=($!)
in= out=
while [ -z "$in" ] || [ -z "$out" ]; do
    read -r -t 60 kind address _ <&4 || {
        echo "svmstream run did not start" >&2
        exit 1
    }
    case $kind in
    in) in=$address ;;
    out) out=$address ;;
    esac
done

# Whoever wants to know: here a subscriber, with a person a phone.
exec 5< <(exec stdbuf -oL mosquitto_sub -p "$port" -q 1 -t 'svmstream/#' -F '%t %p')
children+=($!)

# Between the two: the names in the JSON objects are the features; each object has its own time.
exec 6< <(exec "$adapter" --port "$port" --in "$in" --out "$out" --template '{room}/sensor' --feature '{key}' --ts at \
    --publish alert,stats 2>&1)
bridge=$!
children+=("$bridge")
wait_for 'svmstream/room/stats ' 5 "the adapter does not come up"

# The sensor: {"at":1423072260,"temperature":23.18,...}
measured() {
    zcat "$here/occupancy.csv.gz" | awk -F, -v first=$first -v minutes=$minutes -v start=$start '
        function tell(t, a, b, c, d) {
            printf "{\"at\":%d,\"temperature\":%s,\"humidity\":%s,\"light\":%s,\"co2\":%s}\n", t, a, b, c, d
        }
        NR > first + 1 && NR <= first + 1 + minutes {
            tell(start + 60 * n++, $1, $2, $3, $4)
            temperature = $1
            humidity = $2
        }
        NR == first + 1 + minutes { co2 = $4 }
        END { # what has not been there before
            for (k = 1; k <= 20; k++)
                tell(start + 60 * n++, temperature, humidity, 430, co2 + 200 * k)
        }'
}
measured | mosquitto_pub -p "$port" -q 1 -t room/sensor -l || exit 1

# What a person gets: the room has its own surprises too, and one of them may still be going on at three.
end=$((SECONDS + 60)) text=
night='co2 .*since 03:[0-9]+ UTC'
while [ $SECONDS -lt $end ] && [[ ! $text =~ $night ]] && IFS= read -r -t 60 line <&5; do
    [[ $line =~ ^svmstream/room/alert ]] || continue
    text=$(sed 's/.*"text":"\([^"]*\)".*/\1/' <<<"$line")
    echo "alert: $text"
done
[[ $text =~ $night ]] || {
    echo "no alert came" >&2
    exit 1
}

# The adapter counts what it does, and says so at the end.
kill "$bridge"
tail -n 1 <&6
