# The reviewer: looks at all changes together.
git diff --stat main
sleep 0.4
echo "{\"summary\": \"$(git diff --name-only main | wc -l | tr -d ' ') files in three stories, each accepted: ready to merge\"}"
