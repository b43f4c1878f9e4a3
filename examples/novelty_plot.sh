#!/bin/bash
# One temperature sensor of a machine that broke down three times (the Numenta Anomaly Benchmark): a model of its first weeks,
# six readings at a time, is held against the whole feed; the picture shows the feed, how new each moment was, and what the
# people who kept the machine marked afterwards.
#
#   examples/novelty_plot.sh [PICTURE]     PICTURE.svg or .png, default machine.svg in the working directory
#
# The data is not part of this project: DATA (default data) names the folder with nab_machine_temperature_system_failure.csv.gz;
# `make data` says where it is from.
set -u
here=$(cd "$(dirname "$0")" && pwd)
svmstream=${SVMSTREAM:-$here/../build/svmstream}
data=${DATA:-${SVMSTREAM_DATA:-$here/../data}}
file=$data/nab_machine_temperature_system_failure.csv.gz
picture=${1:-machine.svg}
if [ ! -e "$file" ]; then
    echo "SKIPPED: $file is not there; set DATA to the folder that has it"
    exit 0
fi

folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

# The first 30 % of the feed, its column t being the time and is_anomaly what people marked: never learned, and the marked
# samples are left out.
zcat "$file" | head -n 6809 >"$folder/past.csv"
echo "What the machine is usually like:"
"$svmstream" novelty train --ts t --label is_anomaly --normals-only --novelty.lags 6 "$folder/past.csv" "$folder/machine.novelty" </dev/null || exit 1

echo
echo "The whole feed held against it:"
"$svmstream" novelty score --ts t --label is_anomaly --top 1 --plot "$picture" --threshold 0.99 \
    "$file" "$folder/machine.novelty" "$folder/scores.csv" </dev/null || exit 1
echo "picture $picture"

echo
echo "The ten newest moments (row, time, novelty, membership, surprise, the reading that did it, how much):"
tail -n +2 "$folder/scores.csv" | sort -t, -k5,5gr | head -n 10
