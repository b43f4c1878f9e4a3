#!/bin/bash
# The command-line frame and `config`, as a user meets them: exit codes, what is said and where.
program=${1:-$SVMSTREAM}
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
n=0
failed=0

result() { # success text
    n=$((n + 1))
    if [ "$1" = 0 ]; then
        echo "ok $n - $2"
    else
        echo "not ok $n - $2"
        sed 's/^/#   /' "$folder/out" "$folder/err"
        failed=1
    fi
}

# expect CODE STREAM PATTERN TEXT -- ARGUMENTS: the exit code, and a pattern on out or err ("" = that stream is empty)
expect() {
    local code=$1 stream=$2 pattern=$3 text=$4 good=0
    shift 5
    "$program" "$@" >"$folder/out" 2>"$folder/err" </dev/null
    [ $? = "$code" ] || good=1
    if [ -n "$pattern" ]; then
        grep -q -e "$pattern" "$folder/$stream" || good=1
    else
        [ ! -s "$folder/$stream" ] || good=1
    fi
    result $good "$text"
}

expect 2 err 'Usage: svmstream COMMAND' 'without a command: usage on stderr, exit 2' --
expect 0 out 'Usage: svmstream COMMAND' '--help' -- --help
expect 0 out '^  config ' '-h lists the commands' -- -h
for word in --version -V version; do
    expect 0 out '^svmstream [0-9]*\.[0-9]*\.[0-9]*\(+[0-9a-f]*\(\.dirty\)*\)*$' "$word" -- $word
done
expect 0 out '^svmstream [0-9]' 'COMMAND --version' -- config --version
expect 2 err "unknown command 'confg', the nearest known one is 'config'" 'a misspelt command' -- confg
expect 2 err 'write options after the command' 'an option before the command' -- --window 5 config
expect 0 out 'Usage: svmstream config' 'help COMMAND' -- help config
expect 2 err "unknown command or topic 'bogus'" 'help for an unknown topic' -- help bogus
expect 2 err "unknown command or topic 'pandas'; these pages mention it: .*input.*python" 'help for a word far from all: its pages' -- help pandas
expect 2 err "unexpected argument 'app.csv': read a file with .svmstream run --in - < FILE" 'run with a file' -- run app.csv
expect 2 err 'tcp://127.0.0.1:5999 is an address, not a file: name it with --in' 'feed with an address as file' -- feed tcp://127.0.0.1:5999 app.csv
expect 0 out '^svmstream durability - ' 'help TOPIC' -- help durability
for command in run feed watch eval model ctl config; do
    expect 0 out "^Usage: svmstream $command" "$command --help" -- $command --help
    expect 2 err "svmstream $command: unknown option --bogus, the nearest" "$command --bogus" -- $command --bogus
    expect 2 err "unknown option --windw, the nearest known one is --" "$command --windw 5" -- $command --windw 5
done
expect 2 err 'unknown option --durable: it belongs to `svmstream feed`' "an option of another command" -- run --durable
expect 0 err '' 'help says nothing on stderr' -- config --help
awk 'length > 110 { exit 1 }' "$folder/out"
result $? 'help is at most 110 columns wide'

expect 2 err 'svmstream config: --window needs a value' 'a flag without value' -- config --window
expect 2 err "window: 'abc' is not a whole number (0 to" 'a bad value is answered with the range' -- config --window abc
expect 2 err "in.mode: 'push'.*is not an allowed value (pull, router, sub)" 'a bad word is answered with the words' -- config --in.mode=push
expect 2 err 'see `svmstream config --help`' 'a usage error points to the help' -- config --bogus
expect 2 out '' 'a usage error leaves stdout empty' -- config --bogus
expect 2 err "unknown action 'shw', the nearest known one is 'show'" 'config with a misspelt word' -- config shw
expect 2 err "unexpected argument 'more'" 'config with too many words' -- config show more

expect 1 err 'zone "Berlin" is not known: give UTC, an offset like +01:00' 'an unknown zone' -- config check --zone Berlin
expect 2 err 'zone "Berlin" is not known' 'an unknown zone without a calendar' -- eval --zone Berlin "$folder/none.csv"
expect 0 out '^zone: "-02:30"' 'a zone by its offset' -- config show --zone=-02:30
expect 0 out '^window: 1000$' 'config default' -- config default
expect 0 out '^method: auto$' 'config default: method auto' -- config default
expect 0 out '^method: alsvm$' 'a window without a method: alsvm' -- config show --window 1000
expect 1 err 'method auto does not use window' 'a window with method auto: refused' -- config check --method auto --window 500
expect 1 err 'method auto does not use C' 'C with method auto: refused' -- config check --method auto --C 2
printf 'a,label\n1,0\n2,1\n3,0\n4,1\n' >"$folder/few.csv"
echo 'window: 500' >"$folder/window.yaml"
expect 0 err '^method alsvm: method auto does not use window ' 'a window without a method: one line says what it means' -- eval --window 500 "$folder/few.csv"
expect 0 err '^method alsvm: method auto does not use window ' 'a window in a file: the same' -- eval --config "$folder/window.yaml" "$folder/few.csv"
expect 0 err '' 'a window without a method, quiet: nothing is said' -- eval -q --window 500 "$folder/few.csv"
expect 0 out '^method: alsvm$' 'a window in a file: alsvm' -- config show --config "$folder/window.yaml"
expect 2 err 'prints the defaults and takes no settings' 'config default takes no flags' -- config default --window 5
expect 2 err 'nearest known one is --window$' 'the nearest flag of the command' -- run --windw 5
expect 2 err '^svmstream train: --window has no effect on .svmstream train.: leave it out' 'a flag without use for the command' -- \
    train --window 5 x.csv
expect 0 out '^window: 5$' 'config show takes flags over' -- config show --window=5
expect 0 out '^window: 5$' 'show is what config does by itself' -- config --window=5
expect 0 out '^# Maximum memory' 'config show predicts memory' -- config show
expect 0 out '^# *3 features' 'for the features that are named' -- config show --features a,b,c
expect 0 out '^# These settings contradict' 'config show tells contradictions' -- config show --method falsvm --task regress
expect 0 out '^ok$' 'config check' -- config check
expect 0 out '^each key with 3 features .* keys.memory 1000, ' 'config check: what keys take' -- config check --key k --features a,b,c --keys.memory 1000
expect 0 out 'keys.memory 0, [0-9.]* GiB (half of what .*): [0-9]* keys$' 'config check: how many keys the machine holds' -- config check --key k --features a,b,c
expect 0 err 'warning: keys.memory 1000000000 keeps' 'more keys than the machine has memory for' -- config check --key k --keys.memory 1000000000 --keys.max 1000000000
expect 0 out '^# *each key with 10 features' 'config show: what a key takes' -- config show --key k
expect 0 out '' 'config check -q' -- config check -q
expect 1 err 'method falsvm learns classes only' 'config check: falsvm and regress' -- config check --method falsvm --task regress
expect 1 err 'window.seconds' 'config check: window.seconds without window' -- config check --window 0 --window.seconds 5
expect 1 err 'out and ctl' 'config check: one address twice' -- config check --out ipc://a --ctl ipc://a
expect 0 out '^ok$' 'no models at all is no contradiction' -- config check --publish.every 0 --publish.seconds 0

file=$folder/settings.yaml
"$program" config show --window 77 --in - --features 'a,"b",ä' --scores none --max.message 65536 >"$file"
"$program" config show --config "$file" >"$folder/out"
cmp -s <(grep -v '^#' "$file") <(grep -v '^#' "$folder/out")
result $? 'what config show writes, --config reads'
"$program" config default >"$folder/default.yaml"
expect 0 out '^ok$' 'what config default writes, config check takes' -- config check --config "$folder/default.yaml"
expect 0 out '^method: auto$' 'what config default writes means auto' -- config show --config "$folder/default.yaml"
"$program" config show --config "$folder/default.yaml" | grep -v '^#' | cmp -s - <(grep -v '^#' "$folder/default.yaml")
result $? 'and config show prints it as it was'
printf 'a,b,c\n1,2,0\n2,1,1\n3,4,0\n' >"$folder/rows.csv"
expect 0 out '^rows  *3$' 'eval takes the default file, with rows that have no column label' -- \
    eval --config "$folder/default.yaml" "$folder/rows.csv"
"$program" run --config "$folder/default.yaml" --in - <"$folder/rows.csv" >"$folder/out" 2>"$folder/err"
[ $? = 0 ] && [ "$(grep -c '"row":' "$folder/out")" = 3 ] && ! grep -q tcp: "$folder/err"
result $? 'run takes it: scores of standard input, no socket beside it'
"$program" config show --in - --window 50 >"$folder/shown.yaml"
"$program" run --config "$folder/shown.yaml" <"$folder/rows.csv" >"$folder/out" 2>"$folder/err"
[ $? = 0 ] && [ "$(grep -c '"row":' "$folder/out")" = 3 ] && ! grep -q tcp: "$folder/err"
result $? 'and what config show prints likewise'
expect 0 out '^ok$' 'a flag at its default needs no state.dir' -- config check --journal.fsync auto --accept-loss no
expect 1 err 'journal.fsync applies to a kept state only' 'one with another value does' -- config check --journal.fsync never
expect 0 out '^window: 78$' 'a flag wins over the file' -- config show --window 78 -f "$file"
expect 1 err 'No such file' 'a file that is not there' -- config check -f "$folder/none"
expect 1 err 'Is a directory' 'a folder instead of a file' -- config check -f "$folder"

yaml() { # text pattern what
    printf '%b' "$1" >"$file"
    expect 1 err "$2" "file: $3" -- config check --config "$file"
}
yaml 'windw: 5\n' "settings.yaml, line 1, column 1: unknown setting 'windw', the nearest known one is 'window'" 'an unknown key'
for command in run keys; do
    expect 2 err "settings.yaml, line 1, column 1: unknown setting 'windw'" "file: $command ends with 2, as for a wrong flag" -- $command -f "$file"
done
expect 1 err 'cannot read the settings file' 'file: one that is not there may be back soon' -- run -f "$folder/none"
yaml 'window: 5\nwindow: 6\n' 'line 2, column 1: duplicate setting window, first set on line 1' 'a key twice'
yaml 'in: [a]\n' 'settings.yaml, line 1, column 5: in takes one value' 'a list'
yaml 'in:\n  mode: sub\n' 'line 2, column 3: in takes one value' 'a nested map'
yaml 'window: "5\n' 'invalid YAML' 'no YAML'
yaml 'window: many\n' "window: 'many' is not a whole number" 'a bad value'
yaml 'hello\n' 'flat map' 'no map'
yaml 'task: regress\nmethod: falsvm\n' 'falsvm' 'a contradiction'

expect 0 out '^\.TH SVMSTREAM 1' 'help-man prints roff' -- help-man
expect 0 out '^complete -F' 'help-completion prints bash' -- help-completion
bash -n "$folder/out"
result $? 'the completion is valid bash'
completed() { # expected words...
    local expected=$1
    shift
    bash -c 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _svmstream; echo "${COMPREPLY[*]}"' \
        - "$folder/completion" "$@" >"$folder/out" 2>"$folder/err"
    [ "$(cat "$folder/out")" = "$expected" ]
    result $? "completion of: $*"
}
cp "$folder/out" "$folder/completion"
completed 'config' svmstream con
completed '--window --window.seconds' svmstream config --windo
completed 'show' svmstream config sh
completed 'regress' svmstream run --task re
completed 'none' svmstream run --scores n
completed 'durability' svmstream help dur
completed 'help' svmstream hel
completed 'status stop stats' svmstream ctl st
completed 'config columns' svmstream ctl co
completed 'alert.clear= alert.cooldown=' svmstream ctl config alert.c
completed 'window= window.seconds=' svmstream ctl config C=10 windo
completed '' svmstream ctl status windo
completed 'score stats sums' svmstream watch s
completed 'model' svmstream watch alert mo

"$program" config show >/dev/full 2>"$folder/err"
[ $? = 1 ] && grep -q 'cannot write' "$folder/err"
result $? 'a full disk is a failure'
echo "1..$n"
exit $failed
