# Every test of the shop; the first that fails ends it.
set -e
for each in tests/*.sh; do
  [ "$each" = tests/all.sh ] || { echo "$each"; sh "$each"; }
done
