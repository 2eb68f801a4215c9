# Converts GitHub's Markdown for Doxygen: pages and headings get labels; links to other pages and their headings become
# references to these labels; other local links become text; formulas get Doxygen's marks.

# The label of the page `path`, for example "rules" or "core-io".
function label(path) {
  if (path ~ /parallel\/nodes\.md$/) return "several-machines"  # parallel/nodes/README.md is the design
  sub(/^\.\//, "", path)
  sub(/^examples\/docs\//, "", path)
  sub(/\/?README\.md$/, "", path)
  sub(/\.md$/, "", path)
  gsub(/\//, "-", path)
  return path == "" ? "readme" : path
}

# The fragment that GitHub gives the heading `text`.
function fragment(text) {
  text = tolower(text)
  gsub(/[^a-z0-9 _-]/, "", text)
  gsub(/ /, "-", text)
  return text
}

# `path`, relative to this page's folder, as a path from the root of the tree.
function resolved(path) {
  path = folder path
  while (match(path, /[^\/]+\/\.\.\//)) path = substr(path, 1, RSTART - 1) substr(path, RSTART + RLENGTH)
  return path
}

function reference(target,   place, path, anchor) {
  place = index(target, "#")
  path = place ? substr(target, 1, place - 1) : target
  anchor = place ? substr(target, place + 1) : ""
  if (path == "") return label(page) "-" anchor
  if (path !~ /\.md$/) return ""
  path = resolved(path)
  if (anchor != "") return label(path) "-" anchor
  return path == "README.md" ? "index" : label(path)
}

# The line with its links replaced.
function linked(line,   result, text, target, ref) {
  result = ""
  while (match(line, /\[[^\]]*\]\([^)]*\)/)) {
    result = result substr(line, 1, RSTART - 1)
    text = substr(line, RSTART, RLENGTH)
    line = substr(line, RSTART + RLENGTH)
    target = text
    sub(/^.*\]\(/, "", target)
    sub(/\)$/, "", target)
    if (target ~ /^https?:/ || target ~ /\.(svg|png)$/) {
      result = result text
      continue
    }
    sub(/\]\(.*$/, "", text)
    sub(/^\[/, "", text)
    ref = reference(target)
    if (ref != "") gsub(/`/, "", text)
    result = result (ref == "" ? text : "[" text "](@ref " ref ")")
  }
  return result line
}

# The line with its formulas between Doxygen's marks.
function marked(line,   result) {
  while (match(line, /\$`[^`]+`\$/)) {
    result = result substr(line, 1, RSTART - 1) "\\f$" substr(line, RSTART + 2, RLENGTH - 4) "\\f$"
    line = substr(line, RSTART + RLENGTH)
  }
  return result line
}

BEGIN {
  page = ARGV[1]
  sub(/^\.\//, "", page)
  if (index(page, ROOT "/") == 1) page = substr(page, length(ROOT) + 2)
  sub(/^build\/docs\/tree\/muster\//, "", page)
  folder = page
  if (!sub(/[^\/]*$/, "", folder)) folder = ""
}
/^```math$/ { formula = 1; print "\\f["; next }
/^```$/ && formula { formula = 0; print "\\f]"; next }
/^ *```/ { inside = !inside; print; next }
inside || formula { print; next }
/^<!-- .* -->$/ { next }
page == "build/docs/options.md" { print; next }
/^# / && !titled {
  titled = 1
  print $0 " {#" (page == "README.md" ? "mainpage" : label(page)) "}"
  print "\n[TOC]\n"
  next
}
/^##+ / {
  text = $0
  sub(/^#+ /, "", text)
  print $0 " {#" label(page) "-" fragment(text) "}"
  next
}
{ print marked(linked($0)) }
