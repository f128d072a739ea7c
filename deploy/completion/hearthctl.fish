# fish completion for hearthctl: commands and options as its --help tells them, volumes and jobs as this node's hearthd does.
# Nothing is listed here twice. Asking hearthd takes root, and 2 s at most; without, paths alone are completed.

function __hearthctl_words # those before the cursor that are neither options nor the socket
    set -l words (commandline -opc)
    set -e words[1]
    set -l skip 0
    for word in $words
        if test $skip = 1
            set skip 0
        else if contains -- $word -s --socket
            set skip 1
        else if not string match -q -- '-*' $word
            echo $word
        end
    end
end

function __hearthctl_socket
    set -l words (commandline -opc)
    for i in (seq (count $words))
        if contains -- $words[$i] -s --socket; and set -q words[(math $i + 1)]
            printf '%s\n' --socket $words[(math $i + 1)]
        else if string match -q -- '--socket=*' $words[$i]
            echo $words[$i]
        end
    end
end

function __hearthctl_ask
    set -l socket (__hearthctl_socket)
    timeout 2 (commandline -opc)[1] $socket $argv 2>/dev/null </dev/null
end

function __hearthctl_choices
    set -l program (commandline -opc)[1]
    set -l words (__hearthctl_words)
    if string match -q -- '-*' (commandline -ct)
        $program $words[1] --help 2>/dev/null | sed -nE 's/^  (-[a-z], )?(--[a-z-]+)(=[A-Z]+)? +(.*)$/\2\t\4/p'
        return
    end
    switch "$words[1]"
        case '' help
            $program --help 2>/dev/null | sed -nE '/^Commands:/,/^$/s/^  ([a-z]+) +(.*)$/\1\t\2/p'
        case warm evict pin unpin verify why
            __hearthctl_ask status | awk 'NF < 2 || $1 == "not" { table = 0 } table { print $1 ORS $NF } /^CLAIM [/] DATASET / { table = 1 }' | sort -u
        case job
            __hearthctl_ask jobs | awk 'NR > 1 { print $1 }'
    end
end

# Paths where paths go.
complete -c hearthctl -n 'not contains -- (__hearthctl_words)[1] warm evict pin unpin verify why bench' -f
complete -c hearthctl -a '(__hearthctl_choices)'
