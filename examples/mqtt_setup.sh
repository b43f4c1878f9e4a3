# What the examples with MQTT begin with, sourced by them: the programs, a folder that goes with the processes at the end, and a
# broker on a free port ($port) of this machine. Needs $here, the folder of the examples.
svmstream=${SVMSTREAM:-$here/../build/svmstream}
adapter=${SVMSTREAM_MQTT:-$(dirname "$svmstream")/svmstream-mqtt}
PATH=$PATH:/usr/sbin

folder=$(mktemp -d) || exit 1
children=()
finish() {
    [ ${#children[@]} -gt 0 ] && kill "${children[@]}" 2>/dev/null
    wait
    rm -rf "$folder"
}
trap finish EXIT
trap 'exit 1' INT TERM

# wait_for PATTERN FD TEXT: reads lines until one matches, which is $line then
wait_for() {
    local end=$((SECONDS + 60))
    while [ $SECONDS -lt $end ] && IFS= read -r -t 60 line <&"$2"; do
        [[ $line =~ $1 ]] && return 0
    done
    echo "$3" >&2
    exit 1
}

# On a free port: most plants and houses have a broker already.
start_broker() {
    local tried broker
    for ((tried = 0; tried < 20; tried++)); do
        port=$((20000 + RANDOM))
        printf 'listener %d 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\n' "$port" >"$folder/broker.conf"
        exec 3< <(exec mosquitto -c "$folder/broker.conf" 2>&1)
        broker=$!
        while IFS= read -r -t 60 line <&3 && [[ ! $line =~ ' running' ]]; do :; done
        [[ ${line:-} =~ ' running' ]] && break
    done
    [[ ${line:-} =~ ' running' ]] || {
        echo "mosquitto does not start" >&2
        exit 1
    }
    children+=("$broker")
}
