# The verifier: accepts a commit whose page has a test that passes, and else says what is missing.
echo "looking at $(git log -1 --format=%h)"
sleep 0.3
if [ ! -f "tests/$PAGE.sh" ]; then
  echo "{\"verdict\": \"reject\", \"feedback\": \"pages/$PAGE.html has no test\"}"
elif sh "tests/$PAGE.sh"; then
  echo '{"verdict": "accept"}'
else
  echo "{\"verdict\": \"reject\", \"feedback\": \"the test of pages/$PAGE.html fails\"}"
fi
