# sh run.sh PROGRAM [ARG…]: runs a test program under Wine.
#
# Now and then Wine ends a program before it has begun: with code 1, and without a word. A test program says a word first
# ("running 1 test"), so one that said nothing has tried nothing, and is started again. Whatever else fails is a failure.
said=$(mktemp) || exit 1
trap 'rm -f "$said"' EXIT
for try in 1 2 3; do
  wine "$@" >"$said"
  code=$?
  if [ "$code" -ne 1 ] || [ -s "$said" ]; then
    break
  fi
  echo "started again: Wine ended the program before it began (attempt $try)" >&2
done
cat "$said"
exit "$code"
