#!/bin/bash
# A producer of JSON in ten lines of shell, without a ZeroMQ library: every line of standard input is a message.
#
#   tail -F events.json | examples/json.sh tcp://127.0.0.1:5555
#
# {"temperature": 21.5, "machine": "press-03", "label": "ok"} is a sample: label, id, time and weight are the columns that the
# settings of `svmstream run` name, all others are features. The protocol of ZeroMQ (ZMTP 3) is spoken by hand: a greeting, what
# socket this is, then a frame for each line. As with any PUSH socket nothing is acknowledged; for that, and for CURVE, take a
# library: any of them sends the same text.
set -eu
LC_ALL=C # lengths are bytes
place=${1:-tcp://127.0.0.1:5555}
place=${place#tcp://}
exec 3<>"/dev/tcp/${place%:*}/${place##*:}"
{
    printf '\377\0\0\0\0\0\0\0\0\177\3\0NULL' && head -c 48 /dev/zero
    printf '\4\32\5READY\13Socket-Type\0\0\0\4PUSH'
} >&3
head -c 92 <&3 >/dev/null # the same of the other side
while IFS= read -r line || [ -n "$line" ]; do
    n=${#line}
    printf -v head '\\2\\0\\0\\0\\0\\0\\x%02x\\x%02x\\x%02x' $((n >> 16)) $((n >> 8 & 255)) $((n & 255))
    printf "$head%s" "$line" >&3
done
