#!/bin/sh
# Makes a man page from the --help of a command of muster.
# usage: help2man.sh HELP2MAN "PROGRAM [COMMAND]" PAGE VERSION    writes PAGE.1
# writes PAGE.1
set -eu
program=${2%% *}
# The one-line description for `apropos`: the help's text after the usage, up to a full stop or a colon.
does=$($2 --help | sed '1,/^$/d' |
  awk -v RS='[.:][ \n]' '{ gsub(/[ \n]+/, " "); print tolower(substr($0, 1, 1)) substr($0, 2); exit }')
more=$(mktemp)
trap 'rm -f "$more" "$3.1.new"' EXIT
cat >"$more" <<'END'
[EXIT STATUS]
.TP
0
done
.TP
1
something failed; one sentence on standard error says what and where
.TP
2
an option or a field of the run file is wrong
.TP
130
interrupted; what was trained is saved
END
if [ "$3" = muster ]; then
  cat >>"$more" <<'END'

[ENVIRONMENT]
.TP
MUSTER_DATA_DIR
a directory with the files of MNIST and the other sets that are known by name
.TP
MUSTER_CACHE_DIR
where these are kept once fetched; otherwise in the user's cache
.TP
MUSTER_STORE, MUSTER_NODE, MUSTER_NODES, MUSTER_INTERFACE
of a training by several processes (training.nodes: gloo or elastic): the directory or Redis server where they meet, this
process's number, how many there are, and the network interface
.TP
NO_COLOR
no colours in the terminal

[FILES]
.TP
share/muster/run.schema.json
below the directory where muster is installed: all fields of run files with their types and defaults, for editors
.TP
share/muster/mnist.json, share/muster/compare
run files, and some with a field compare for \fBmuster-compare\fR(1)
END
  pages=$("$program" --help | sed -n '/^muster/q; s/^  \([a-z]*\) .*/\\fBmuster\\-\1\\fR(1)/p' | paste -sd, | sed 's/,/, /g')
  printf '\n[SEE ALSO]\n%s\n' "$pages" >>"$more"
else
  printf '\n[SEE ALSO]\n\\fBmuster\\fR(1)\n' >>"$more"
fi
"$1" --no-info --version-string="$4" --name="$does" --include="$more" --output="$3.1.new" "$2"
# help2man takes the first word as the page's name.
title=$(printf '%s' "$3" | tr '[:lower:]' '[:upper:]')
sed "s/^\\.TH MUSTER \\(.*\\)\"muster [^\"]*\" /.TH $title \\1\"muster $4\" /; /^\\.SH NAME/{n;s/^[^\\\\]* \\\\- /$3 \\\\- /}" \
  "$3.1.new" |
  # and would join lines of example commands
  awk '/^\.IP$/ { print; print ".nf"; lines = 1; next } lines && /^\./ { print ".fi"; lines = 0 } { print }' >"$3.1"
