# Completion of the program muster for bash: commands, their options from --help, files.
_muster() {
  local current=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]-}
  if ((COMP_CWORD == 1)); then
    local commands
    commands=$(muster --help 2>/dev/null | sed -n '/^muster/q; s/^  \([a-z]*\) .*/\1/p')
    mapfile -t COMPREPLY < <(compgen -W "$commands --help --version" -- "$current")
  elif [[ $current == -* ]]; then
    local options
    options=$(muster "$command" --help 2>/dev/null | sed -n 's/^  \(--[a-z][a-z-]*\).*/\1/p')
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  fi
}
complete -o filenames -F _muster muster
