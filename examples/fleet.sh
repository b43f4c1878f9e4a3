#!/bin/bash
# Twenty presses and one process: each press has its own model of what is normal for it, and the person in charge gets a line
# of text that names the press. A gateway sends what their sensors say every five minutes, as JSON by MQTT; eight days of it go
# through as fast as they can. On the last day things go wrong with some of them (see `wrong` below).
#
#   examples/fleet.sh
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/mqtt_setup.sh"
days=8 step=300
start=1772323200 # Sunday, 1 March 2026, 0:00 UTC

# The presses. Load follows the shifts (6 to 22 h), heat follows load, current and vibration follow load, pressure gives way to
# it; the hall is warmer in the afternoon. Each press has its own size, and noise.
gateway() {
    awk -v days=$days -v step=$step -v start=$start '
        function uniform() { # the same numbers from every awk
            seed = (seed * 16807) % 2147483647
            return seed / 2147483647
        }
        function normal(  i, sum) {
            for (i = 0; i < 12; i++)
                sum += uniform()
            return sum - 6
        }
        function wrong(m, t) { # t: days since the last one began
            if (m == 3 && t >= .40 && t < .405) # a jam: for two readings
                current *= 2.5
            if (m == 5 && t >= .55)             # a sensor torn off
                vibration = "null"
            if (m == 7 && t >= .45)             # a bearing
                vibration += .9 * shake[m]
            if (m == 11 && t >= .35)            # a sensor that hangs
                temp = held
            if (m == 14 && t >= .30)            # a leak
                pressure -= 2 * (t - .30)
            if (t >= .80 && t < .84)            # the compressor: all of them
                pressure -= .8
            if (m == 11)
                held = temp
        }
        function is_silent(m, t) { # a press that somebody has unplugged: reported a minute after its last reading by the clock on
            # the wall, which eight days in some seconds do not wait for; `svmstream keys` finds it
            return m == 17 && t >= .5
        }
        function read_press(m, n, hour,  t) {
            t = n * step / 86400
            load[m] += .3 * ((hour >= 6 && hour < 22 ? .7 : .1) - load[m]) + .05 * normal()
            if (load[m] < 0)
                load[m] = 0
            heat[m] += (warm[m] * load[m] - heat[m]) * step / 2400 + .1 * normal()
            temp = 19 + 3 * sin((hour - 9) / 24 * 6.2832) + .4 * sin(2.1 * t) + heat[m] + .2 * normal()
            current = amps[m] * (.15 + load[m]) + .3 * normal()
            vibration = sprintf("%.3f", shake[m] * (.25 + load[m]) * exp(.08 * normal()))
            pressure = bar[m] - .3 * load[m] + .03 * normal()
            wrong(m, t - (days - 1))
            if (!is_silent(m, t - (days - 1)))
                printf "{\"at\":%d,\"machine\":\"press-%02d\",\"temp\":%.2f,\"current\":%.2f,\"vibration\":%s,\"pressure\":%.3f}\n",
                    start + n * step, m, temp, current, vibration, pressure
        }
        BEGIN {
            seed = 20260301
            for (m = 1; m <= 20; m++) {
                warm[m] = 24 + 6 * uniform()
                amps[m] = 14 + 6 * uniform()
                shake[m] = 1.1 + .6 * uniform()
                bar[m] = 6 + .4 * uniform()
                heat[m] = 8
            }
            for (n = 0; n < days * 86400 / step; n++)
                for (m = 1; m <= 20; m++)
                    read_press(m, n, n * step % 86400 / 3600)
        }'
}
gateway >"$folder/readings"
total=$(wc -l <"$folder/readings")

start_broker

# One process for all of them: a model for each key, no classifier, novelty alone.
exec 4< <(exec "$svmstream" run --key --in 'tcp://127.0.0.1:*' --out 'tcp://127.0.0.1:*' --ctl 'tcp://127.0.0.1:*' \
    --in.mode router --stream plant --method none --scores none --missing carry 2>&1 </dev/null)
children+=($!)
wait_for '^out ' 4 "svmstream run did not start"
out=${line#out }
wait_for '^ctl ' 4 "svmstream run did not start"
ctl=${line#ctl }
wait_for '^in ' 4 "svmstream run did not start"
in=${line#in }

# Whoever looks after them: here a subscriber, with a person a phone.
exec 5< <(exec stdbuf -oL mosquitto_sub -p "$port" -q 1 -t 'svmstream/#' -F '%t %p')
children+=($!)

# Between the two: the press that a reading names is its key. Where each press has topics of its own, plant/press-07/temp, it is
# --template 'plant/{machine}/{sensor}' --key '{machine}'. Eight days come in a few seconds: they may wait, and none is dropped.
exec 6< <(exec "$adapter" --port "$port" --in "${in% *}" --out "$out" --topic gateway --key '{machine}' --feature '{key}' --ts at \
    --buffer 100000 --publish alert,stats 2>&1)
bridge=$!
children+=("$bridge")
wait_for 'svmstream/plant/stats ' 5 "the adapter does not come up"

# Piece by piece: mosquitto ends the connection of a client that sends far ahead of what it receives.
split -l 5000 "$folder/readings" "$folder/piece."
(for piece in "$folder"/piece.*; do mosquitto_pub -p "$port" -q 1 -t gateway -l <"$piece" || exit; done) &
children+=($!)

# What a person gets. In the first days all is new to the models; the last one is shown line by line.
last=$((start + (days - 1) * 86400)) earlier=0 end=$((SECONDS + 60)) stopped='' open='' silent=''
while [ $SECONDS -lt $end ] && IFS= read -r -t 60 line <&5; do
    if [[ $line =~ ^svmstream/plant/alert.*\"ts\":([0-9]+) ]]; then
        [[ ${BASH_REMATCH[1]} -ge $last ]] && sed 's/.*"text":"\([^"]*\)".*/\1/' <<<"$line"
        [[ ${BASH_REMATCH[1]} -lt $last ]] && [[ $line =~ \"state\":\"open\" ]] && earlier=$((earlier + 1))
    elif [[ $line =~ ^svmstream/plant/stats\ .*\"seen\":$total, ]]; then
        [ -n "$stopped" ] && break
        open=$("$svmstream" keys --ctl "$ctl" --open --sort alerts --limit 20)
        silent=$("$svmstream" keys --ctl "$ctl" --sort age --limit 1)
        "$svmstream" ctl --ctl "$ctl" stop >/dev/null && stopped=1
    fi
done
[ -n "$stopped" ] || {
    echo "not all readings came through:" >&2
    kill "$bridge"
    tail -n 1 <&6 >&2
    exit 1
}
printf 'open alerts:\n%s\nthe longest silence:\n%s\n' "$open" "$silent"
echo "$total readings of 20 presses; alerts in the days before: $earlier"

# The adapter counts what it does, and says so at the end.
kill "$bridge"
tail -n 1 <&6
