# The developer: does what the title says, forgets the rest, and mends it when sent back.
read -r prompt
# The demo plays a worker that wakes up too late, and needs what such a one would still have.
[ -z "$KEEP_TOKENS" ] || echo "$HOLDFAST_ATTEMPT_TOKEN" > "$KEEP_TOKENS/$HOLDFAST_TASK.$HOLDFAST_ATTEMPT"
echo "asked to: $prompt"
sleep 0.4
echo "editing $(echo "$TITLE" | tr 'A-Z ' 'a-z-').ts"
sleep 0.7
echo "running the tests"
sleep 0.4
echo "{\"change\": \"$TITLE${FEEDBACK:+, and $FEEDBACK}\"}"
