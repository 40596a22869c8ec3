#!/bin/sh
# A worker in shell: curl to ask and to report, and python3 to read JSON.
#
# It claims tasks over HTTP, keeps their leases while it works, and reports. Every report carries the
# token of its attempt: a worker that was thought dead and comes back is refused, and changes nothing.
#
# Some work:  holdfast task add "Count" --agent shell --payload '{"text": "to be or not to be"}'
# Run it:     HOLDFAST_SERVER=http://127.0.0.1:8765 HOLDFAST_TOKEN=$(holdfast token) sh worker.sh

: "${HOLDFAST_SERVER:?must be set, as the top of this file shows}"
: "${HOLDFAST_TOKEN:?must be set, as the top of this file shows}"
lease=30

post() {
  curl -s "$HOLDFAST_SERVER/api/v1$1" -H "Authorization: Bearer $HOLDFAST_TOKEN" \
    -H "Content-Type: application/json" -d "$2"
}

# A field of some JSON, as Python writes it: field "['task']['id']" "$json"
field() { printf %s "$2" | python3 -c "import json, sys; print(json.load(sys.stdin)$1)" 2> /dev/null; }

# Renew until the work is over; a refusal says that the attempt is another's.
renew() {
  trap 'kill "$nap"; exit' TERM
  while :; do
    sleep "$((lease / 3))" & nap=$!
    wait "$nap"
    post /claims/renew "{\"leases\": [{\"task_id\": \"$task\", \"token\": \"$token\"}]}" \
      | grep -q '"ok":true' || exit
  done
}

number=0
while :; do
  number=$((number + 1))
  # A claim whose answer was lost may be made again: under the same id it gives the same tasks.
  claimed=$(post /claims "{\"worker\": \"shell-1\", \"agents\": [\"shell\"], \"lease_seconds\": $lease,
    \"wait_seconds\": ${WAIT:-60}, \"request_id\": \"$$-$number\"}")
  field "['assignments']" "$claimed" > /dev/null || {
    echo "refused: ${claimed:-no server answers at $HOLDFAST_SERVER}" >&2; exit 1
  }
  task=$(field "['assignments'][0]['task']['id']" "$claimed") || break
  token=$(field "['assignments'][0]['token']" "$claimed")
  text=$(field "['assignments'][0]['task']['payload']['text']" "$claimed")
  renew & keeper=$!
  words=$(printf %s "$text" | wc -w)
  told=$(post "/claims/$task/complete" "{\"token\": \"$token\", \"output\": {\"words\": $((words))}}")
  kill "$keeper"
  echo "$(field "['assignments'][0]['task']['title']" "$claimed")" "$(field "['task']['status']" "$told")"
done
echo "nothing left to do"
