# Completion of appliance in bash.
_appliance() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} first='' second='' each words=''
    local valued=''
    for each in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        if [[ $each == = ]]; then continue; elif [[ $valued ]]; then valued=''; continue; fi
        case $each in --alias | --cluster | --conf | --connector | --cores | --destination | --env-file | --from | --group | --host | --last | --logs | --lost | --offset | --offsets-topic | --origin | --out | --output | --partition | --records | --resume | --sample | --set | --side | --source | --spark | --to | --topic | --topic-name | --wait | --why) valued=yes ;; esac
        [[ $each == -* ]] && continue
        if [[ -z $first ]]; then first=$each; elif [[ -z $second ]]; then second=$each; fi
    done
    case "$first $before" in
        'source --env-file') _appliance_files "$word"; return ;;
        'destination --env-file') _appliance_files "$word"; return ;;
        'replicate --env-file') _appliance_files "$word"; return ;;
        'console --env-file') _appliance_files "$word"; return ;;
        'spark --env-file') _appliance_files "$word"; return ;;
        'order --env-file') _appliance_files "$word"; return ;;
        'status --env-file') _appliance_files "$word"; return ;;
        'doctor --env-file') _appliance_files "$word"; return ;;
        'configs --env-file') _appliance_files "$word"; return ;;
        'acls --env-file') _appliance_files "$word"; return ;;
        'transform --env-file') _appliance_files "$word"; return ;;
        'transform --from') words='newest earliest' ;;
        'support-bundle --env-file') _appliance_files "$word"; return ;;
        'support-bundle --output') _appliance_files "$word"; return ;;
        'support-bundle --logs') _appliance_files "$word"; return ;;
        'support-bundle --side') words='source destination order' ;;
        'verify --env-file') _appliance_files "$word"; return ;;
        'verify --spark') words='auto yes no' ;;
        'verify --resume') _appliance_files "$word"; return ;;
        'audit --env-file') _appliance_files "$word"; return ;;
        'offsets --env-file') _appliance_files "$word"; return ;;
        'pause --env-file') _appliance_files "$word"; return ;;
        'resume --env-file') _appliance_files "$word"; return ;;
        'reset --env-file') _appliance_files "$word"; return ;;
        'lanes --env-file') _appliance_files "$word"; return ;;
        'rm-topic --env-file') _appliance_files "$word"; return ;;
        'link --env-file') _appliance_files "$word"; return ;;
        'promote --env-file') _appliance_files "$word"; return ;;
        'failover --env-file') _appliance_files "$word"; return ;;
        'failback --env-file') _appliance_files "$word"; return ;;
        'import --env-file') _appliance_files "$word"; return ;;
        'import --out') _appliance_files "$word"; return ;;
        'adopt --env-file') _appliance_files "$word"; return ;;
    esac
    if [[ -z $words ]]; then
        case "$first $second" in
        'order run') words='-h --help --env-file' ;;
        'order status') words='-h --help --env-file --json' ;;
        'order origin') words='-h --help --env-file --cluster --from --json' ;;
        'order move') words='-h --help --env-file --to --lost --dry-run --json --yes --wait' ;;
        'order join') words='-h --help --env-file --dry-run --json --yes --wait' ;;
        'order leave') words='-h --help --env-file --dry-run --json --yes --wait' ;;
        'order alone') words='-h --help --env-file --dry-run --json --yes --wait' ;;
        'order rebuild') words='-h --help --env-file --topic --topic-name --gap --dry-run --json --yes' ;;
        'order resume') words='-h --help --env-file --origin --topic-name --partition --from --gap --dry-run --json --yes --wait' ;;
        'import mm2') words='-h --help --json --out' ;;
        'import replicator') words='-h --help --json --out --source --destination' ;;
        'source '*) words='-h --help --env-file' ;;
        'destination '*) words='-h --help --env-file' ;;
        'replicate '*) words='-h --help --env-file --conf' ;;
        'console '*) words='-h --help --env-file' ;;
        'spark '*) words='-h --help --env-file master worker executor --cores --host' ;;
        'order '*) words='run status origin move join leave alone rebuild resume -h --help --env-file' ;;
        'status '*) words='-h --help --env-file --topic --topic-name --json --watch' ;;
        'doctor '*) words='-h --help --env-file source destination order --json' ;;
        'configs '*) words='-h --help --env-file --topic --topic-name --json' ;;
        'acls '*) words='-h --help --env-file --topic --topic-name --json' ;;
        'transform '*) words='-h --help --env-file --dry-run --topic --topic-name --records --from --json' ;;
        'support-bundle '*) words='-h --help --env-file --json --output --logs --side' ;;
        'verify '*) words='-h --help --env-file --topic --topic-name --json --global --wait --spark --resume' ;;
        'audit '*) words='-h --help --env-file --last --json --csv' ;;
        'offsets '*) words='-h --help --env-file translate build --group --topic --topic-name --partition --offset --reverse --json --dry-run' ;;
        'pause '*) words='-h --help --env-file --topic --topic-name --dry-run --json --yes --why' ;;
        'resume '*) words='-h --help --env-file --topic --topic-name --adopt-positions --partition --from --take-over --removed --dry-run --json --why' ;;
        'reset '*) words='-h --help --env-file --topic --topic-name --dry-run --json --yes --why --partition --to' ;;
        'lanes '*) words='-h --help --env-file --set --balance --sample --dry-run --json --yes --why' ;;
        'rm-topic '*) words='-h --help --env-file --topic --topic-name --dry-run --json --yes --why --delete-copy --delete-dead-letters' ;;
        'link '*) words='-h --help --env-file delete --dry-run --json --yes --why --delete-copies --delete-dead-letters' ;;
        'promote '*) words='-h --help --env-file --topic --topic-name --dry-run --json --yes --why --allow-loss --wait' ;;
        'failover '*) words='-h --help --env-file --topic --topic-name --dry-run --json --yes --why' ;;
        'failback '*) words='-h --help --env-file --topic --topic-name --dry-run --json --yes --why --allow-loss --keep-diverged' ;;
        'import '*) words='mm2 replicator -h --help --env-file' ;;
        'adopt '*) words='-h --help --env-file mm2 --topic --topic-name --dry-run --json --yes --why --alias --offsets-topic --group --connector --whole --allow-loss --allow-doubles --wait' ;;
        'completion '*) words='-h --help bash zsh fish' ;;
        ' '*) words='source destination replicate console spark order status doctor configs acls transform support-bundle verify audit offsets pause resume reset lanes rm-topic link promote failover failback import adopt completion -h --help -V --version' ;;
        esac
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
_appliance_files() {
    mapfile -t COMPREPLY < <(compgen -f -- "$1")
    compopt -o filenames 2>/dev/null
}
complete -o default -F _appliance appliance kafka-cloud-replicator
