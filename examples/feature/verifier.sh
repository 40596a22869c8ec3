# The verifier: accepts a change that has what its story must have, and else says what to add.
echo "looking for a $MUST"
sleep 0.4
case "$CHANGE" in
  *"$MUST"*) echo '{"verdict": "accept"}' ;;
  *) echo "{\"verdict\": \"reject\", \"feedback\": \"add a $MUST\"}" ;;
esac
