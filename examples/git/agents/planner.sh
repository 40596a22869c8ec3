# The planner: reads the task on its input, and answers with a list of stories.
read -r task
echo "reading: $task"
sleep 0.4
echo "three stories will do"
sleep 0.2
cat <<'END'
{"stories": [{"title": "Login form", "page": "login"}, {"title": "SAML callback", "page": "callback"}, {"title": "Logout button", "page": "logout"}]}
END
