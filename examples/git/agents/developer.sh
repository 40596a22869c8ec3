# The developer: writes a page and its test, but forgets the test of the login until it is told.
set -eu
# The demo plays a worker that wakes up too late, and needs what such a one would still have.
[ -z "${KEEP_TOKENS:-}" ] || echo "$HOLDFAST_ATTEMPT_TOKEN" > "$KEEP_TOKENS/$HOLDFAST_TASK.$HOLDFAST_ATTEMPT"
echo "editing pages/$PAGE.html"
echo "<h1>$TITLE</h1>" > "pages/$PAGE.html"
sleep 0.7
if [ "$PAGE" != login ] || [ -n "$FEEDBACK" ]; then
  echo "writing tests/$PAGE.sh"
  echo "grep -q '<h1>$TITLE</h1>' pages/$PAGE.html" > "tests/$PAGE.sh"
fi
sleep 0.5
