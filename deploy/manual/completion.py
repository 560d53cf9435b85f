"""Completions of bash, zsh and fish: the commands, the options of each, and their values where these are few."""

from collections.abc import Iterator, Sequence

from deploy.manual.pages import CommandPage, Option

PROGRAMS = ("appliance", "kafka-cloud-replicator")

_BASH = """\
# Completion of appliance in bash.
_appliance() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} first='' second='' each words=''
    local valued=''
    for each in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        if [[ $each == = ]]; then continue; elif [[ $valued ]]; then valued=''; continue; fi
        case $each in {valued}) valued=yes ;; esac
        [[ $each == -* ]] && continue
        if [[ -z $first ]]; then first=$each; elif [[ -z $second ]]; then second=$each; fi
    done
    case "$first $before" in
{values}
    esac
    if [[ -z $words ]]; then
        case "$first $second" in
{words}
        esac
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}}
_appliance_files() {{
    mapfile -t COMPREPLY < <(compgen -f -- "$1")
    compopt -o filenames 2>/dev/null
}}
complete -o default -F _appliance {programs}
"""

_ZSH = """\
#compdef {programs}
# Completion of appliance in zsh.
_appliance() {{
    local -a words_of
    local first='' second='' each valued='' before=${{words[CURRENT-1]}}
    for each in ${{words[2,CURRENT-1]}}; do
        if [[ -n $valued ]]; then valued=''; continue; fi
        case $each in {valued}) valued=yes ;; esac
        [[ $each == -* ]] && continue
        if [[ -z $first ]]; then first=$each; elif [[ -z $second ]]; then second=$each; fi
    done
    case "$first $before" in
{values}
    esac
    case "$first $second" in
{words}
    esac
    _describe command words_of
}}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _appliance "$@"; else compdef _appliance {programs}; fi
"""


def bash(pages: Sequence[CommandPage]) -> str:
    """The completion of bash."""
    values = [
        f"        '{page.words[0]} {name}') {_bash_values(option)} ;;"
        for page, option in _with_value(pages)
        for name in option.names
    ]
    words = [f"        {_pattern(page)}) words='{' '.join(_words(page))}' ;;" for page in _innermost_first(pages)]
    return _BASH.format(values="\n".join(_once(values)), words="\n".join(words), **_same(pages))


def _bash_values(option: Option) -> str:
    return f"words='{' '.join(option.values)}'" if option.values else '_appliance_files "$word"; return'


def zsh(pages: Sequence[CommandPage]) -> str:
    """The completion of zsh."""
    values = [
        f"        '{page.words[0]} {name}') {_zsh_values(option)}; return ;;"
        for page, option in _with_value(pages)
        for name in option.names
    ]
    words = [
        f"        {_pattern(page)}) words_of=({' '.join(_described(page))}) ;;" for page in _innermost_first(pages)
    ]
    return _ZSH.format(values="\n".join(_once(values)), words="\n".join(words), **_same(pages))


def _zsh_values(option: Option) -> str:
    return f"compadd {' '.join(option.values)}" if option.values else "_files"


def _described(page: CommandPage) -> Iterator[str]:
    for name, summary in page.below.items():
        yield _quoted(f"{name}:{summary}")
    for option in page.options:
        yield from (_quoted(f"{name}:{option.help.replace(':', ' -')}") for name in option.names)
        yield from () if option.names else option.values


def fish(pages: Sequence[CommandPage]) -> str:
    """The completion of fish."""
    lines = ["# Completion of appliance in fish."]
    for program in PROGRAMS:
        for page in pages:
            lines += (f"complete -c {program} {line}" for line in _fish(page))
    return "\n".join(lines) + "\n"


def _fish(page: CommandPage) -> Iterator[str]:
    seen = " and ".join(f"__fish_seen_subcommand_from {word}" for word in page.words)
    here = f"{seen}; and not __fish_seen_subcommand_from {' '.join(page.below)}" if page.below and seen else seen
    when = f"-n '{here.replace(' and ', '; and ')}'" if seen else "-n __fish_use_subcommand"
    for name, summary in page.below.items():
        yield f"{when} -f -a {name} -d {_quoted(summary)}"
    for option in page.options:
        if not option.names and option.values:
            yield f"{when} -f -a {_quoted(' '.join(option.values))} -d {_quoted(option.help)}"
        for name in option.names:
            kind = f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
            value = f" -x -a {_quoted(' '.join(option.values))}" if option.values else " -r" if option.value else ""
            yield f"{when} {kind}{value} -d {_quoted(option.help)}"


def _with_value(pages: Sequence[CommandPage]) -> Iterator[tuple[CommandPage, Option]]:
    for page in pages:
        for option in page.options:
            if page.words and option.names and (option.values or option.is_path):
                yield page, option


def _same(pages: Sequence[CommandPage]) -> dict[str, str]:
    """The programs; and the options whose next word is their value, as alternatives."""
    valued = {name for page in pages for each in page.options if each.value for name in each.names}
    return {"programs": " ".join(PROGRAMS), "valued": " | ".join(sorted(valued))}


def _innermost_first(pages: Sequence[CommandPage]) -> list[CommandPage]:
    return sorted(pages, key=lambda page: -len(page.words))


def _pattern(page: CommandPage) -> str:
    return f"'{' '.join(page.words)}'" if len(page.words) == 2 else f"'{page.words[0]} '*" if page.words else "' '*"


def _words(page: CommandPage) -> Iterator[str]:
    yield from page.below
    for option in page.options:
        yield from option.names or option.values


def _once(lines: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(lines))


def _quoted(text: str) -> str:
    """The text in single quotes, for all three shells."""
    return "'" + text.replace("'", "’") + "'"
