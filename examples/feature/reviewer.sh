# The reviewer: looks at all changes together.
echo "reading the changes"
sleep 0.6
echo '{"summary": "three stories, each accepted: ready to merge"}'
