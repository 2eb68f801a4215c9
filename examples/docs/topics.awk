# Puts what a header declares into the topic of its folder (pages.dox has the topics). The lines keep their numbers.

function topic(path) {
  if (path ~ /^core\/nn\/(layers|own_output|initializer|layer_options|layers\.h)/) return "layers"
  if (path ~ /^core\/nn\//) return "networks"
  if (path ~ /^core\/optim\//) return "updaters"
  if (path ~ /^(core\/data|datasets)\//) return "data"
  if (path ~ /^(core\/eval|core\/comparison|parallel\/evaluation)\//) return "evaluation"
  if (path ~ /^core\/listeners\//) return "listeners"
  if (path ~ /^core\/(io|interop)\//) return "files"
  if (path ~ /^core\//) return "tensors"
  if (path ~ /^parallel\/(strategies|exchange)/) return "rules"
  if (path ~ /^parallel\/inference\//) return "inference"
  if (path ~ /^parallel\/run\//) return "runs"
  if (path ~ /^parallel\/nodes/) return "nodes"
  return "training"
}

BEGIN {
  path = ARGV[1]
  sub(/^.*build\/docs\/tree\/muster\//, "", path)
  if (index(path, ROOT "/") == 1) path = substr(path, length(ROOT) + 2)
}
# Of several namespaces in a file the outermost ones hold what programs use.
/^namespace muster( |::)?.*\{$/ && !/detail/ {
  print $0 " /** @addtogroup " topic(path) " */ /** @{ */"
  open = 1
  next
}
/^\}  \/\/ namespace muster/ && open {
  print "/** @} */ " $0
  open = 0
  next
}
{ print }
