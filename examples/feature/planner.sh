# The planner: reads the task on its input, and answers with a list of stories.
read -r task
echo "reading: $task"
sleep 0.5
echo "three stories will do"
sleep 0.3
cat <<'END'
{"stories": [{"title": "Login form", "must": "form"}, {"title": "SAML callback", "must": "signature check"}, {"title": "Logout button", "must": "button"}]}
END
