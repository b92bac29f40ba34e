/**
 * What a shell reads at its start (decision 130). Words go to `cells complete` as arguments of their own, and what it answers is never given to
 * the shell to be expanded: neither what somebody has typed nor what a gateway says is run.
 */
export const scripts = {
  bash: `# Completion of cells for bash.
_cells() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == :files ]]; then
      compopt -o default
      return
    fi
    COMPREPLY+=("\${line%%$'\\t'*}")
  done < <(cells complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  [[ \${COMPREPLY[0]-} != *[/=] ]] || compopt -o nospace
}
complete -F _cells cells
`,
  zsh: `#compdef cells
# Completion of cells for zsh.
_cells() {
  local line
  local -a lines described
  lines=("\${(@f)$(cells complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ \${lines[1]} == :files ]]; then
    _files
    return
  fi
  for line in $lines; do
    described+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done
  _describe -t words 'cells' described
}
if [[ $funcstack[1] == _cells ]]; then _cells "$@"; else compdef _cells cells; fi
`,
  fish: `# Completion of cells for fish.
function __cells_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l lines (cells complete -- $words[2..-1] 2>/dev/null)
    if test "$lines[1]" = ":files"
        __fish_complete_path (commandline -ct)
    else
        printf '%s\\n' $lines
    end
end
complete -c cells -f -a '(__cells_complete)'
`,
} as const satisfies Record<string, string>;
export type Shell = keyof typeof scripts;
