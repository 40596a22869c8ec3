#!/bin/sh
# A worker written in shell: counts the words of whatever it is given, until nothing is left.
#
# It claims a task, keeps its lease while the work goes on, and reports. Every report carries the
# token of its attempt: a worker that was thought dead and comes back is refused, and changes nothing.
#
# Some work:   holdfast task add "Count" --agent counter --payload '{"text": "to be or not to be"}'
# Run it:      sh worker.sh
# Look:        holdfast tasks --agent counter

lease=${LEASE:-30}

# The work itself: HOLDFAST_PAYLOAD is what the task is about.
count() {
  [ -z "$WAIT_FOR" ] || until [ -e "$WAIT_FOR" ]; do sleep 0.05; done
  words=$(printf '%s' "$HOLDFAST_PAYLOAD" | sed 's/.*"text": *"//; s/"[^"]*$//' | wc -w)
  # Before a side effect: may this attempt still act?
  holdfast guard > /dev/null && echo "{\"words\": $((words))}" > "$result"
}

# Renew until the work is over; a refusal means that the attempt is another's, so the work stops.
renew() {
  trap 'kill "$nap"; exit' TERM
  while kill -0 "$1" 2> /dev/null; do
    sleep "$((lease / 3))" & nap=$!
    wait "$nap"
    holdfast work renew --lease "${lease}s" --progress "still counting" > /dev/null || kill "$1"
  done
}

while claimed=$(holdfast work claim --agent counter --lease "${lease}s" --shell); do
  eval "$claimed"
  echo "$HOLDFAST_TITLE: attempt $HOLDFAST_ATTEMPT of $HOLDFAST_TASK"
  result=$(mktemp)
  count & job=$!
  renew "$job" & keeper=$!
  if wait "$job"; then
    holdfast work complete --output - < "$result"
  else
    holdfast work fail --error "the count was stopped"
  fi
  kill "$keeper" 2> /dev/null
  rm -f "$result"
done
echo "nothing left to do"
