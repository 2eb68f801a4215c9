#!/bin/sh
# Makes a man page from what a command of muster says of itself.
# usage: help2man.sh HELP2MAN "PROGRAM [COMMAND]" PAGE VERSION    writes PAGE.1
set -eu
# The beginning, up to a full stop or a colon, as the line that `apropos` finds.
does=$($2 --help | awk -v RS='[.:][ \n]' '{ gsub(/[ \n]+/, " "); print tolower(substr($0, 1, 1)) substr($0, 2); exit }')
see=$(mktemp)
trap 'rm -f "$see" "$3.1.new"' EXIT
if [ "$3" = muster ]; then
  printf '[SEE ALSO]\neach command has a page of its own, as in \\fBmuster\\-train\\fR(1)\n' >"$see"
else
  printf '[SEE ALSO]\n\\fBmuster\\fR(1)\n' >"$see"
fi
"$1" --no-info --version-string="$4" --name="$does" --include="$see" --output="$3.1.new" "$2"
# help2man takes the first word for the page's name.
title=$(printf '%s' "$3" | tr '[:lower:]' '[:upper:]')
sed "s/^\\.TH MUSTER \\(.*\\)\"muster [^\"]*\" /.TH $title \\1\"muster $4\" /; /^\\.SH NAME/{n;s/^[^\\\\]* \\\\- /$3 \\\\- /}" \
  "$3.1.new" |
  # and lines of example commands for a paragraph to be filled
  awk '/^\.IP$/ { print; print ".nf"; lines = 1; next } lines && /^\./ { print ".fi"; lines = 0 } { print }' >"$3.1"
